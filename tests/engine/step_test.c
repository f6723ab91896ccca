/* Steps reach the hook in the simulation build and are nothing elsewhere. */
#ifndef GYRE_SIM
#define GYRE_SIM 1
#endif
#include "engine/base/step.h"

#include "engine/base/check.h"
#include "tests/harness/test.h"

struct plan {
    int steps;
    int fail_at;
    bool refuse_to_succeed;
    const char *last;
};

static gyre_err on_step(void *data, const char *name, bool can_fail)
{
    struct plan *plan = data;
    plan->last = name;
    plan->steps++;
    if (plan->refuse_to_succeed)
        return GYRE_IO;
    return can_fail && plan->steps == plan->fail_at ? GYRE_IO : GYRE_OK;
}

static gyre_err work(int *done)
{
    gyre_err err;
    *done = 0;
    GYRE_STEP("step_test.work.begin");
    TRY(GYRE_STEP_ERR("step_test.work.first"));
    (*done)++;
    TRY(GYRE_STEP_ERR("step_test.work.second"));
    (*done)++;
out:
    return err;
}

TEST(without_a_hook_nothing_happens)
{
    int done;
    CHECK_OK(work(&done));
    CHECK_EQ_INT(done, 2);
}

TEST(each_step_can_be_made_to_fail_until_none_is_left)
{
    int done;
    int failures = 0;
    int k = 1;
    struct plan plan;
    do {
        plan = (struct plan){.fail_at = k};
        eng_step_install(&(struct eng_step_hook){on_step, &plan});
        failures += work(&done) == GYRE_IO;
    } while (plan.steps >= k++);
    eng_step_install(NULL);
    CHECK_EQ_INT(failures, 2);
    CHECK_EQ_INT(done, 2);
    CHECK_EQ_STR(plan.last, "step_test.work.second");
}

TEST(a_failure_that_would_be_ignored_aborts)
{
    struct plan plan = {.refuse_to_succeed = true};
    eng_step_install(&(struct eng_step_hook){on_step, &plan});
    CHECK_ABORTS(GYRE_STEP("step_test.ignored"));
    eng_step_install(NULL);
}
