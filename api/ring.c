#include "api/ring.h"

#include <liburing.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/base/bits.h"

enum {
    ENTRIES = 256,
    SLICE_BYTES = 256 << 10, /* of one read: deep enough a queue, few enough of them */
};

/* [w] under `lock`  [r] the ring's thread only, once submitted  [c] */
struct api_ring {
    struct eng_lock lock; /* submissions */
    struct io_uring uring;
    unsigned n_slices; /* [w] under way: never more than completions have room for */
    struct eng_thread thread;
    void *scratch; /* where reads go to: the page cache is what they are for, so all share it */
};

/* What one call asked for. */
struct reading {
    unsigned n_left; /* [r] slices */
    void (*done)(void *data);
    void *data;
};

static void reap(struct api_ring *ring, struct reading *reading)
{
    eng_lock_acquire(&ring->lock);
    ring->n_slices--;
    eng_lock_release(&ring->lock);
    if (--reading->n_left > 0)
        return;
    reading->done(reading->data);
    free(reading);
}

/* Until the completion without a reading, which is the last. */
static void work(void *data)
{
    struct api_ring *ring = data;
    for (;;) {
        struct io_uring_cqe *cqe;
        if (io_uring_wait_cqe(&ring->uring, &cqe) != 0)
            continue;
        struct reading *reading = io_uring_cqe_get_data(cqe);
        io_uring_cqe_seen(&ring->uring, cqe);
        if (reading == NULL)
            return;
        reap(ring, reading);
    }
}

struct api_ring *api_ring_create(void)
{
    struct api_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL)
        return NULL;
    ring->scratch = malloc(SLICE_BYTES);
    if (ring->scratch == NULL || io_uring_queue_init(ENTRIES, &ring->uring, 0) != 0)
        goto fail;
    eng_lock_init(&ring->lock, 0);
    if (eng_thread_start(&ring->thread, "gyre-ring", work, ring) == GYRE_OK)
        return ring;
    eng_lock_fini(&ring->lock);
    io_uring_queue_exit(&ring->uring);
fail:
    free(ring->scratch);
    free(ring);
    return NULL;
}

void api_ring_destroy(struct api_ring *ring)
{
    if (ring == NULL)
        return;
    eng_lock_acquire(&ring->lock);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_data(sqe, NULL);
    io_uring_submit(&ring->uring);
    eng_lock_release(&ring->lock);
    eng_thread_join(&ring->thread);
    io_uring_queue_exit(&ring->uring);
    eng_lock_fini(&ring->lock);
    free(ring->scratch);
    free(ring);
}

static unsigned slices_of(const struct api_span *spans, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += eng_div_up(spans[i].len, SLICE_BYTES);
    return sum > ENTRIES ? ENTRIES + 1 : (unsigned)sum;
}

static void submit_locked(struct api_ring *ring, const struct api_span *spans, size_t n,
                          struct reading *reading)
{
    for (size_t i = 0; i < n; i++) {
        for (uint64_t at = 0; at < spans[i].len; at += SLICE_BYTES) {
            uint64_t left = spans[i].len - at;
            struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
            io_uring_prep_read(sqe, spans[i].fd, ring->scratch,
                               (unsigned)(left < SLICE_BYTES ? left : SLICE_BYTES),
                               spans[i].off + at);
            io_uring_sqe_set_data(sqe, reading);
        }
    }
    /* What the kernel does not take at once, for want of memory, it takes a moment later. */
    while (io_uring_sq_ready(&ring->uring) > 0 && io_uring_submit(&ring->uring) <= 0)
        sched_yield();
}

bool api_ring_read(struct api_ring *ring, const struct api_span *spans, size_t n,
                   void (*done)(void *data), void *data)
{
    unsigned n_slices = slices_of(spans, n);
    struct reading *reading = n_slices == 0 ? NULL : malloc(sizeof *reading);
    if (reading == NULL)
        return false;
    *reading = (struct reading){n_slices, done, data};
    eng_lock_acquire(&ring->lock);
    bool has_room = ring->n_slices + n_slices <= ENTRIES;
    if (has_room) {
        ring->n_slices += n_slices;
        submit_locked(ring, spans, n, reading);
    }
    eng_lock_release(&ring->lock);
    if (!has_room)
        free(reading);
    return has_room;
}
