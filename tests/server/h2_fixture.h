/* A front with one loop and an HTTP/2 client that writes what a test says.
 *
 * Blocks:  as h2_answer.h says.
 */
#pragma once

#include "tests/server/h2_answer.h"

#include "tests/server/front_fixture.h"

static struct fixture fixture;
static struct h2_out out;
static struct h2_answer answer;

static inline void open_fixture(void)
{
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture_open(&fixture);
}

static inline int connect_h2(void)
{
    int fd = fixture_connect(&fixture);
    out.len = 0;
    h2_preface(&out);
    return fd;
}

static inline void data(uint32_t stream, const char *text, bool is_last)
{
    h2_frame(&out, H2_DATA, is_last ? H2_END_STREAM : 0, stream, text, strlen(text));
}

/* Asks for /text on `stream`: the connection still works. */
static inline void check_alive(int fd, uint32_t stream)
{
    h2_request(&out, stream, "GET", "/text", NULL, true);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, stream, &answer));
    CHECK_EQ_INT(answer.status, 200);
    CHECK_EQ_STR(answer.text, "hello\n");
}
