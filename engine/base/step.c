#include "engine/base/step.h"

#include <stdatomic.h>
#include <stddef.h>

#include "engine/base/check.h"

/* [a] release at install, acquire at each step: a step sees the hook's fields as they were when it
 * was installed. */
static _Atomic(const struct eng_step_hook *) installed;

void eng_step_install(const struct eng_step_hook *hook)
{
    atomic_store_explicit(&installed, hook, memory_order_release); /* Pairs with A */
}

gyre_err eng_step_err(const char *name)
{
    const struct eng_step_hook *hook =
        atomic_load_explicit(&installed, memory_order_acquire); /* A */
    return hook == NULL ? GYRE_OK : hook->step(hook->data, name, true);
}

void eng_step(const char *name)
{
    const struct eng_step_hook *hook =
        atomic_load_explicit(&installed, memory_order_acquire); /* A */
    if (hook != NULL) {
        gyre_err err = hook->step(hook->data, name, false);
        GYRE_CHECK(err == GYRE_OK);
    }
}
