/* A reload: all parts or none. */
#include "server/reload.h"

#include <stdio.h>

#include "tests/harness/test.h"

struct part {
    bool refuses;
    int prepared, committed, abandoned;
};

static bool prepare(void *data, const struct srv_options *next, char *error, size_t size)
{
    struct part *part = data;
    (void)next;
    if (part->refuses)
        snprintf(error, size, "not like this");
    else
        part->prepared++;
    return !part->refuses;
}

static void commit(void *data)
{
    ((struct part *)data)->committed++;
}

static void abandon(void *data)
{
    ((struct part *)data)->abandoned++;
}

TEST(all_commit_or_none)
{
    for (int refusing = 0; refusing <= 3; refusing++) {
        struct part state[3] = {0};
        struct srv_reload_part parts[3];
        char error[64] = "";
        for (int i = 0; i < 3; i++) {
            state[i].refuses = i == refusing;
            parts[i] = (struct srv_reload_part){&state[i], prepare, commit, abandon};
        }
        CHECK_EQ_INT(srv_reload(parts, 3, NULL, error, sizeof error), refusing == 3);
        CHECK_EQ_STR(error, refusing == 3 ? "" : "not like this");
        for (int i = 0; i < 3; i++) {
            CHECK_EQ_INT(state[i].prepared, i < refusing);
            CHECK_EQ_INT(state[i].committed, refusing == 3);
            CHECK_EQ_INT(state[i].abandoned, refusing < 3 && i < refusing);
        }
    }
}
