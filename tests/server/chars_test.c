/* Lower case: every byte, at every place of runs of every length. */
#include "server/chars.h"

#include <string.h>

#include "tests/harness/test.h"

TEST(only_A_to_Z_change_their_case)
{
    for (size_t len = 1; len <= 20; len++) {
        for (int c = 0; c < 256; c++) {
            char from[32], to[32];
            memset(from, c, sizeof from);
            memset(to, '!', sizeof to);
            srv_lower(to, from, len);
            for (size_t i = 0; i < len; i++)
                CHECK_EQ_INT((unsigned char)to[i], c >= 'A' && c <= 'Z' ? c + 32 : c);
            CHECK_EQ_INT(to[len], '!');
        }
    }
}

TEST(neighbours_do_not_matter_and_a_run_may_be_lowered_in_place)
{
    char text[] = "X-Amz-\xff\x80Zz@[`{AZaz09-CONTENT-LENGTH\x01";
    srv_lower(text, text, sizeof text - 1);
    CHECK_EQ_STR(text, "x-amz-\xff\x80zz@[`{azaz09-content-length\x01");
}
