/* Named points where the simulation build may crash, fail or run another actor; in every other
 * build they are nothing.
 *
 *     GYRE_STEP("log.commit.published");               can be a crash or a switch to another actor
 *     TRY(GYRE_STEP_ERR("log.reserve.before_write"));  can also be a failure
 *
 * The name is "file.function.point". A test installs a hook, counts the steps of a run, and repeats
 * the run once for each k with the k-th step doing harm, until a run ends before its k-th step.
 *
 * Threads: steps any; install and remove while no other thread is inside a step. Blocks: as the
 * hook does. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/gyre_err.h"

/* What is called at each step. `can_fail` is false where the result would be ignored; then it must
 * be GYRE_OK. A crash is whatever the hook does instead of returning: _exit in a child, or longjmp
 * back into the test. */
struct eng_step_hook {
    gyre_err (*step)(void *data, const char *name, bool can_fail);
    void *data;
};

/* Installs a hook, lent until replaced; NULL removes it. Has an effect on code compiled with
 * GYRE_SIM only. */
void eng_step_install(const struct eng_step_hook *hook);

/* Calls the installed hook, if any. Through the macros only. */
void eng_step(const char *name);
GYRE_MUST_USE gyre_err eng_step_err(const char *name);

#ifdef GYRE_SIM
#define GYRE_STEP(name) eng_step(name)
#define GYRE_STEP_ERR(name) eng_step_err(name)
#else
#define GYRE_STEP(name) ((void)0)
#define GYRE_STEP_ERR(name) (GYRE_OK)
#endif
