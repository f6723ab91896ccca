#include "server/stored.h"

#include <stdlib.h>

#include "server/job.h"
#include "server/loop.h"

struct source {
    struct srv_source base; /* first: the front knows no more of it */
    struct srv_exchange *ex;
    struct srv_loop *loop;
    struct srv_pool *pool;
    struct gyre_handle *handle; /* the job's while is_working */
    uint64_t start;             /* first byte lent */
    uint64_t offset;            /* next byte to lend */
    uint64_t end;
    uint64_t present_end; /* bytes before this were brought in just now: not asked for again */
    struct srv_job job;
    gyre_err err; /* of the last job */
    bool is_working;
    bool is_destroyed; /* while a job was out */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void end_source(struct source *source)
{
    gyre_release(source->handle);
    free(source);
}

static struct source *source_of(struct srv_job *job)
{
    return (struct source *)((char *)job - offsetof(struct source, job));
}

static uint64_t window(const struct source *source)
{
    return least(source->end - source->offset, SRV_STORED_WINDOW_BYTES);
}

/* On a worker. */
static void populate(struct srv_job *job)
{
    struct source *source = source_of(job);

    source->err = gyre_populate(source->handle, source->offset, window(source));
}

/* On a thread of the store's. */
static void arrived(void *data, gyre_err err)
{
    struct source *source = data;
    struct srv_loop *loop = source->loop; /* the source may be gone once this is posted */

    source->err = err;
    srv_loop_post(loop, &source->job);
    srv_loop_expect(loop, -1);
}

static void populated(struct srv_job *job)
{
    struct source *source = source_of(job);

    source->is_working = false;
    if (source->is_destroyed) {
        end_source(source);
        return;
    }
    source->present_end = least(source->end, source->offset + SRV_STORED_SEND_MAX);
    srv_source_wake(source->ex);
}

static enum srv_source_state next(struct srv_source *self, size_t max, struct iovec *piece_out)
{
    struct source *source = (struct source *)self;
    uint64_t want = least(least(source->end - source->offset, max), SRV_STORED_SEND_MAX);
    struct gyre_piece piece;

    if (source->err != GYRE_OK ||
        gyre_faulted(source->handle, source->start, source->offset - source->start))
        return SRV_SOURCE_FAILED;
    /* A window just brought in is not asked about again: with memory so short that it has left
     * already, asking would never end, and a fault then is the lesser evil. */
    if (source->offset < source->present_end)
        want = least(want, source->present_end - source->offset);
    else if (!gyre_resident(source->handle, source->offset, want))
        goto wait;
    if (gyre_handle_piece(source->handle, source->offset, &piece) != GYRE_OK)
        return SRV_SOURCE_FAILED;
    piece_out->iov_base = (void *)piece.base;
    piece_out->iov_len = least(piece.len, want);
    source->offset += piece_out->iov_len;
    return SRV_SOURCE_READY;

wait:
    source->is_working = true;
    source->job = (struct srv_job){.run = populate, .done = populated};
    srv_loop_expect(source->loop, 1);
    if (gyre_populate_async(source->handle, source->offset, window(source), arrived, source) !=
        GYRE_OK) {
        srv_loop_expect(source->loop, -1);
        srv_job_submit_admitted(source->pool, source->loop, &source->job);
    }
    return SRV_SOURCE_WAIT;
}

static void destroy(struct srv_source *self)
{
    struct source *source = (struct source *)self;

    if (source->is_working)
        source->is_destroyed = true;
    else
        end_source(source);
}

struct srv_source *srv_stored_create(struct srv_exchange *ex, struct srv_pool *pool,
                                     struct gyre_handle **handle, uint64_t offset, uint64_t len)
{
    struct source *source = calloc(1, sizeof *source);

    if (source == NULL)
        return NULL;
    source->base = (struct srv_source){next, destroy};
    source->ex = ex;
    source->loop = srv_exchange_loop(ex);
    source->pool = pool;
    source->handle = *handle;
    source->start = source->offset = offset;
    source->end = offset + len;
    *handle = NULL;
    return &source->base;
}
