/* Two to four processes on one small store, one of them killed every second. */
#include "tests/torture/torture.h"

#include <stdio.h>

#include "engine/base/check.h"
#include "tests/harness/test.h"

/* A busy machine may need longer for the laps; the harness's limit is far above that. */
static struct torture short_or_long(const char *dir)
{
    unsigned full = TEST_SANITIZED ? 120 : 600;
    return (struct torture){
        .dir = dir,
        .seconds = test_full()      ? full
                   : TEST_SANITIZED ? 20
                                    : 40,
        .laps = test_full() || !TEST_SANITIZED ? 20 : 2,
        .processes = 4,
        .hold_ms = 500,
        .kill_ms = 1000,
        .seed = test_seed(),
        .delays = TEST_SANITIZED,
    };
}

TEST(inv_E13_nothing_torn_stale_or_foreign_while_processes_are_killed)
{
    struct torture_report report;
    const struct torture torture = short_or_long(test_path("data"));
    torture_run(&torture, &report);
    printf("%ju puts, %ju refused, %ju deletes, %ju gets, %ju found, %ju held, %ju counted\n",
           (uintmax_t)report.puts, (uintmax_t)report.refused, (uintmax_t)report.deletes,
           (uintmax_t)report.gets, (uintmax_t)report.found, (uintmax_t)report.held,
           (uintmax_t)report.counted);
    printf("%.0f laps, %u processes killed, %u stopped for a while\n", report.laps, report.kills,
           report.stops);
    CHECK_MSG(report.failure[0] == '\0', "%s", report.failure);
    CHECK(report.laps >= torture.laps && report.kills > 5);
    CHECK(report.puts > 100 && report.found > 100 && report.held > 20 && report.counted > 20);
}
