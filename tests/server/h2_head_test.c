/* Heads of HTTP/2 responses: that they are written here and not by libh2o, and cut into frames. */
#include "tests/server/h2_answer.h"

#include "tests/server/front_fixture.h"

static struct fixture fixture;
static struct h2_out out;

static void start_long(void *data, struct srv_exchange *ex)
{
    static char value[20000];
    const struct srv_field fields[] = {{{"X-Long", 6}, {value, sizeof value}},
                                       {{"X-Last", 6}, {"z", 1}}};
    struct srv_response response = {.status = 431, .fields = fields, .n_fields = 2};
    (void)data;
    memset(value, 'v', sizeof value);
    srv_respond(ex, &response, NULL);
}

TEST(a_head_longer_than_a_frame_is_continued)
{
    static struct h2_frame frames[2];
    fixture_init(&fixture);
    fixture.handler.start = start_long;
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    h2_preface(&out);
    h2_request(&out, 1, "GET", "/", NULL, true);
    CHECK(h2_flush(fd, &out));
    do {
        CHECK(h2_next(fd, &frames[0]));
    } while (frames[0].stream != 1);
    CHECK(h2_next(fd, &frames[1]));
    CHECK_EQ_INT(frames[0].type, H2_HEADERS);
    CHECK_EQ_INT(frames[0].length, 16384);
    CHECK_EQ_INT(frames[0].flags & H2_END_HEADERS, 0);
    CHECK_EQ_INT(h2_status(&frames[0]), 431);
    CHECK(memmem(frames[0].payload, frames[0].length, "\6x-long", 7) != NULL);
    CHECK_EQ_INT(frames[1].type, H2_CONTINUATION);
    CHECK_EQ_INT(frames[1].flags & H2_END_HEADERS, H2_END_HEADERS);
    CHECK_EQ_INT(frames[1].stream, 1);
    CHECK(memmem(frames[1].payload, frames[1].length, "vv\0\6x-last\1z", 12) != NULL);
    close(fd);
    fixture_close(&fixture);
}
