/* The torture finds what it is there to find: engines with one mistake each. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/harness/test.h"

/* What torture_NAME found; empty: nothing. */
static void run(const char *name, unsigned seconds, char *found_out, size_t size)
{
    char command[600];
    char line[1000];
    snprintf(command, sizeof command, "TORTURE_SECONDS=%u GYRE_SEED=%ju '%s/torture_%s' 2>&1",
             seconds, (uintmax_t)test_seed(), TORTURE_PROGRAMS, name);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    found_out[0] = '\0';
    while (fgets(line, sizeof line, pipe) != NULL) {
        char *found = strstr(line, "found after");
        if (found != NULL)
            snprintf(found_out, size, "%s", found);
    }
    int status = pclose(pipe);
    CHECK_MSG(status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == (found_out[0] != '\0'),
              "%s: status 0x%x, \"%s\"", command, (unsigned)status, found_out);
    printf("%s: %s", name, found_out[0] != '\0' ? found_out : "nothing found\n");
}

static void is_found_out(const char *name, const char *word)
{
    if (TEST_SANITIZED)
        test_skip("a sanitizer's pace leaves the windows shut");
    char found[600];
    run(name, test_full() ? 900 : 105, found, sizeof found);
    CHECK_MSG(strstr(found, word) != NULL, "%s: \"%s\"", name, found);
}

TEST(a_reader_without_a_fence_is_found_out)
{
    is_found_out("no_reader_fence", "torn");
}

/* The window is some instructions of the hand wide: found within seconds or minutes.
 */
TEST(a_hand_that_unlinks_too_late_is_found_out)
{
    if (!test_full())
        test_skip("may take minutes; the long form has them");
    is_found_out("late_unlink", "torn");
}

TEST(a_key_that_is_not_compared_is_found_out)
{
    is_found_out("wrong_key", "foreign");
}

/* The same program without a mistake. */
TEST(a_sound_engine_is_not_accused)
{
    char found[600];
    run("sound", 8, found, sizeof found);
    CHECK_EQ_STR(found, "");
}
