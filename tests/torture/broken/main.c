/* The torture of an engine that may have a mistake in it; broken_test.c runs it and reads what it
 * says. TORTURE_SECONDS: for how long at most. */
#include <stdlib.h>

#include "tests/harness/test.h"
#include "tests/torture/torture.h"

TEST(nothing_is_found)
{
    const char *seconds = getenv("TORTURE_SECONDS");
    const struct torture torture = {
        .dir = test_path("data"),
        .seconds = seconds != NULL ? (unsigned)strtoul(seconds, NULL, 10) : 10,
        .processes = 3,
        .kill_ms = 1000,
        .seed = test_seed(),
        .delays = true,
    };
    struct torture_report report;
    torture_run(&torture, &report);
    CHECK_MSG(report.failure[0] == '\0', "found after %u kills and %.1f laps: %s", report.kills,
              report.laps, report.failure);
}
