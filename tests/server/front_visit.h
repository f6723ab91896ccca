/* Handler contexts of front_fixture.h: responses out of sources and bodies that are summed up.
 *
 * Threads: as exchange.h says; contexts outlive their exchange while a job is out.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "server/buf.h"
#include "server/exchange.h"
#include "server/job.h"
#include "tests/harness/test.h"

struct visit {
    struct srv_job job;
    struct srv_source source;
    struct srv_exchange *ex; /* NULL once gone */
    struct srv_pool *pool;
    _Atomic int *n_alive;
    const _Atomic bool *gate;
    struct srv_buf *buf;
    uint64_t at, end, sum;
    bool waits, fails, works, ends, out;
    char piece[1 << 16];
};

static inline uint8_t fixture_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static inline uint64_t fixture_sum(uint64_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += (at + i + 1) * (uint64_t)(bytes[i] + 1);
    return sum;
}

static inline void visit_free(struct visit *v)
{
    --*v->n_alive;
    free(v);
}

static inline void visit_gone(void *ctx)
{
    struct visit *v = ctx;
    v->ex = NULL;
    if (!v->out)
        visit_free(v);
}

static inline void visit_text(struct visit *v, int status, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct srv_field fields[] = {{{"Content-Type", 12}, {"text/plain", 10}},
                                       {{"X-Test", 6}, {"1", 1}}};
    struct srv_response response = {.status = status, .fields = fields, .n_fields = 2};
    srv_respond_bytes(v->ex, &response, text, (size_t)n);
}

/* True if the context is to be used on. */
static inline bool visit_back(struct visit *v)
{
    bool is_alive = v->ex != NULL;
    v->out = false;
    if (!is_alive)
        visit_free(v);
    return is_alive;
}

static inline void visit_submit(struct visit *v, void (*run)(struct srv_job *),
                                void (*done)(struct srv_job *))
{
    v->job = (struct srv_job){.run = run, .done = done};
    v->out = true;
    srv_job_submit_admitted(v->pool, srv_exchange_loop(v->ex), &v->job);
}

static inline void visit_nothing(struct srv_job *job)
{
    (void)job;
}

static inline void visit_sleep(struct srv_job *job)
{
    (void)job;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

static inline void visit_woken(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    v->ends = true; /* may give one piece */
    if (visit_back(v))
        srv_source_wake(v->ex);
}

static inline enum srv_source_state visit_next(struct srv_source *source, size_t max,
                                               struct iovec *piece)
{
    struct visit *v = (struct visit *)((char *)source - offsetof(struct visit, source));
    if (v->fails && v->at >= v->end / 2)
        return SRV_SOURCE_FAILED;
    if (v->waits && !v->ends) {
        visit_submit(v, visit_nothing, visit_woken);
        return SRV_SOURCE_WAIT;
    }
    v->ends = false;
    size_t n = max < sizeof v->piece ? max : sizeof v->piece;
    for (size_t i = 0; i < n; i++)
        v->piece[i] = (char)fixture_byte(v->at + i);
    v->at += n;
    *piece = (struct iovec){v->piece, n};
    return SRV_SOURCE_READY;
}

static inline void visit_destroy_source(struct srv_source *source)
{
    struct visit *v = (struct visit *)((char *)source - offsetof(struct visit, source));
    CHECK(v->source.next != NULL);
    v->source.next = NULL;
}

static inline void visit_bytes(struct visit *v)
{
    v->source = (struct srv_source){visit_next, visit_destroy_source};
    struct srv_response response = {.status = 200, .content_length = v->end};
    srv_respond(v->ex, &response, &v->source);
}

static inline void visit_body(void *ctx, enum srv_body_event event, struct srv_buf *buf);

static inline void visit_sum(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    v->sum = fixture_sum(v->sum, v->at, v->buf->base, v->buf->len);
    v->at += v->buf->len;
    srv_buf_release(v->buf);
    v->buf = NULL;
}

static inline void visit_counted(struct visit *v)
{
    if (v->ends)
        visit_text(v, 200, "%llu %llu\n", (unsigned long long)v->at, (unsigned long long)v->sum);
    else
        srv_body_read(v->ex, visit_body);
}

static inline void visit_summed(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    if (visit_back(v))
        visit_counted(v);
}

static inline void visit_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct visit *v = ctx;
    if (event == SRV_BODY_MALFORMED || event == SRV_BODY_STALLED || event == SRV_BODY_OVERLOAD) {
        CHECK(buf == NULL);
        visit_text(v,
                   event == SRV_BODY_MALFORMED ? 400
                   : event == SRV_BODY_STALLED ? 408
                                               : 503,
                   "body\n");
        return;
    }
    CHECK(buf == NULL || buf->len > 0);
    CHECK(event == SRV_BODY_END || buf != NULL);
    v->ends = event == SRV_BODY_END;
    v->buf = buf;
    if (buf == NULL) {
        visit_counted(v);
    } else if (v->works) {
        visit_submit(v, visit_sum, visit_summed);
    } else {
        visit_sum(&v->job);
        visit_counted(v);
    }
}

static inline void visit_peeked(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    (void)event;
    srv_buf_release(buf);
    visit_text(ctx, 409, "seen enough\n");
}
