/* Bytes of a response that another request of this process is fetching, as they come. */
#include "server/http/follow.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "server/job.h"
#include "server/loop.h"

enum { PIECE_BYTES = 64 << 10 };

struct source {
    struct srv_source base; /* first: the front knows no more of it */
    struct srv_exchange *ex;
    struct srv_loop *loop;
    struct gyre_follow *follow;
    uint64_t offset;
    bool is_unbounded; /* the length was not known when the answer began; it may be since */
    struct srv_job job;
    atomic_bool is_posted; /* [a] the wake-up is on its way; ordered by gyre_follow_end */
    bool is_waiting;       /* for it */
    bool is_destroyed;
    char bytes[PIECE_BYTES];
};

/* On the thread that fills. */
static void on_bytes(void *data)
{
    struct source *source = data;
    struct srv_loop *loop = source->loop; /* the source may be gone once this is posted */
    atomic_store_explicit(&source->is_posted, true, memory_order_relaxed);
    srv_loop_post(loop, &source->job);
    srv_loop_expect(loop, -1);
}

static void woken(struct srv_job *job)
{
    struct source *source = (struct source *)((char *)job - offsetof(struct source, job));
    source->is_waiting = false;
    if (source->is_destroyed)
        free(source);
    else
        srv_source_wake(source->ex);
}

static enum srv_source_state next(struct srv_source *self, size_t max, struct iovec *piece_out)
{
    struct source *source = (struct source *)self;
    size_t len, want = max < PIECE_BYTES ? max : PIECE_BYTES;
    gyre_err err = gyre_follow_read(source->follow, source->offset, source->bytes, want, 0, &len);
    if (err == GYRE_OK && len > 0) {
        source->offset += len;
        *piece_out = (struct iovec){source->bytes, len};
        return SRV_SOURCE_READY;
    }
    if (err == GYRE_OK)
        return source->is_unbounded ? SRV_SOURCE_END : SRV_SOURCE_FAILED;
    if (err != GYRE_WOULD_BLOCK)
        return SRV_SOURCE_FAILED;
    source->job = (struct srv_job){.done = woken};
    atomic_store_explicit(&source->is_posted, false, memory_order_relaxed);
    source->is_waiting = true;
    srv_loop_expect(source->loop, 1);
    if (gyre_follow_notify(source->follow, source->offset, on_bytes, source) == GYRE_OK)
        return SRV_SOURCE_WAIT;
    source->is_waiting = false;
    srv_loop_expect(source->loop, -1);
    return SRV_SOURCE_FAILED;
}

static void destroy(struct srv_source *self)
{
    struct source *source = (struct source *)self;
    gyre_follow_end(source->follow); /* from here on nobody is in on_bytes, nor will be */
    source->is_destroyed = true;
    if (!source->is_waiting) {
        free(source);
    } else if (!atomic_load_explicit(&source->is_posted, memory_order_relaxed)) {
        srv_loop_expect(source->loop, -1);
        free(source);
    }
}

struct srv_source *srv_follow_create(struct srv_exchange *ex, struct gyre_follow **follow,
                                     bool is_unbounded)
{
    struct source *source = malloc(sizeof *source);
    if (source == NULL)
        return NULL;
    source->base = (struct srv_source){next, destroy};
    source->ex = ex;
    source->loop = srv_exchange_loop(ex);
    source->follow = *follow;
    source->offset = 0;
    source->is_unbounded = is_unbounded;
    atomic_init(&source->is_posted, false);
    source->is_waiting = source->is_destroyed = false;
    *follow = NULL;
    return &source->base;
}
