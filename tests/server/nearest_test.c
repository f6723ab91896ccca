/* Edit distances and guesses. */
#include "server/nearest.h"

#include <stdio.h>

#include "tests/harness/test.h"

TEST(distances_count_single_edits)
{
    static const struct {
        const char *a;
        const char *b;
        size_t want;
    } rows[] = {
        {"", "", 0},
        {"abc", "abc", 0},
        {"ABC", "abc", 0},
        {"", "abc", 3},
        {"abc", "ab", 1},
        {"abc", "abxc", 1},
        {"abc", "axc", 1},
        {"abc", "acb", 1},
        {"ab", "ba", 1},
        {"lisen", "listen", 1},
        {"kitten", "sitting", 3},
        {"thread", "threads", 1},
        {"stat", "state", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_EQ_U64(srv_edit_distance(rows[i].a, rows[i].b), rows[i].want);
        CHECK_EQ_U64(srv_edit_distance(rows[i].b, rows[i].a), rows[i].want);
    }
    char long_text[200];
    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    CHECK_EQ_U64(srv_edit_distance(long_text, long_text), 0);
    CHECK_EQ_U64(srv_edit_distance(long_text, ""), 63);
}

TEST(the_closest_name_is_guessed)
{
    static const char *const names[] = {"serve", "stat", "check", "tls-cert"};
    CHECK_EQ_STR(srv_nearest("sevre", names, 4), "serve");
    CHECK_EQ_STR(srv_nearest("state", names, 4), "stat");
    CHECK_EQ_STR(srv_nearest("tls", names, 4), "tls-cert");
    CHECK(srv_nearest("zzzzzzz", names, 4) == NULL);
    CHECK(srv_nearest("zz", names, 4) == NULL);
    CHECK(srv_nearest("verbose", (const char *const[]){"error"}, 1) == NULL);
    CHECK_EQ_STR(srv_nearest("cehk", names, 4), "check");
    CHECK(srv_nearest("serve", names, 0) == NULL);
}

TEST(missing_files_are_guessed_in_their_folder)
{
    char got[512], wrong[512];
    const char *path = test_path("gyre.json");
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0);
    snprintf(wrong, sizeof(wrong), "%s/gyer.jsn", test_tmpdir());
    CHECK(srv_nearest_file(wrong, got, sizeof(got)));
    CHECK_EQ_STR(got, path);
    snprintf(wrong, sizeof(wrong), "%s/nothing-like-it", test_tmpdir());
    CHECK(!srv_nearest_file(wrong, got, sizeof(got)));
    CHECK_EQ_STR(got, "");
    CHECK(!srv_nearest_file("/no/such/folder/x", got, sizeof(got)));
    CHECK(!srv_nearest_file(test_path("gyre.jso"), got, 5));
}
