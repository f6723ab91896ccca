#include "engine/sync.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/header.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/runs.h"
#include "engine/slab.h"

/* Bytes a header announces beyond what is in use, and the fewest segments a ring. A larger horizon
 * means fewer forced headers and more to read after a power loss. */
#define AHEAD_BYTES (UINT64_C(1) << 30)
#define AHEAD_MIN 4
#define AHEAD_MAX 32
#define SYNC_WAITS 30

/* ---- The horizon ---- */

struct horizon {
    bool all; /* more segments than the list has places for */
    uint32_t n;
    uint32_t segments[ENG_HORIZON];
};

/* False when there is no place left. */
static bool announce(struct horizon *horizon, uint32_t segment)
{
    for (uint32_t i = 0; i < horizon->n; i++)
        if (horizon->segments[i] == segment)
            return true;
    if (horizon->n == ENG_HORIZON)
        return false;
    horizon->segments[horizon->n++] = segment;
    return true;
}

/* The same for one that has to be in the header. */
static void must_announce(struct horizon *horizon, uint32_t segment)
{
    if (!announce(horizon, segment))
        horizon->all = true;
}

/* What can be written without another ring movement: clean runs, extents handed out, where the
 * hands are. */
static void announce_in_use(const struct eng_stripe *stripe, struct horizon *horizon)
{
    const struct eng_stripe_rt *rt = stripe->rt;

    for (uint32_t i = 0; i < ENG_RINGS; i++) {
        const struct eng_ring *ring = &rt->rings[i];
        if (ring->n_segments == 0)
            continue;
        must_announce(horizon, ring->hand_segment);
        for (uint32_t run = 0; run < ring->n_runs; run++)
            must_announce(horizon, eng_segment_of(stripe, eng_run_get(ring, run)->start));
    }
    for (uint32_t i = 0; i < rt->reservations_high; i++)
        if (rt->reservations[i].start < rt->reservations[i].end)
            must_announce(horizon, eng_segment_of(stripe, rt->reservations[i].start));
}

bool eng_horizon_in_use_locked(const struct eng_stripe *stripe, uint32_t segments_out[ENG_HORIZON],
                               uint32_t *n_out)
{
    struct horizon horizon = {0};

    announce_in_use(stripe, &horizon);
    memcpy(segments_out, horizon.segments, horizon.n * sizeof *segments_out);
    *n_out = horizon.n;
    return !horizon.all;
}

/* The one segment that each hand enters next: whoever extends the horizon is about to enter it. */
static void announce_next(const struct eng_stripe *stripe, struct horizon *horizon)
{
    for (uint8_t ring = 0; ring < ENG_RINGS; ring++) {
        uint32_t next;
        if (eng_ring_ahead_locked(stripe, ring, &next, 1) == 1)
            must_announce(horizon, next);
    }
}

/* Where the hands go next. What finds no place here is announced later. */
static void announce_ahead(const struct eng_stripe *stripe, struct horizon *horizon)
{
    uint64_t wanted = AHEAD_BYTES / (stripe->segment_units << ENG_UNIT_SHIFT);
    size_t max = wanted < AHEAD_MIN ? AHEAD_MIN : wanted > AHEAD_MAX ? AHEAD_MAX : (size_t)wanted;

    for (uint8_t ring = ENG_RINGS; ring-- > 0;) {
        uint32_t next[AHEAD_MAX];
        size_t n = eng_ring_ahead_locked(stripe, ring, next,
                                         eng_ring_pool(ring) == ENG_POOL_MAIN ? max : AHEAD_MIN);
        for (size_t i = 0; i < n && announce(horizon, next[i]); i++) {
        }
    }
}

/* ---- The header ---- */

/* Where writing goes on: the oldest clean run that nothing newer lies behind. Older ones are
 * leftovers too short for what came; a hand that began anew at one of them would take the newest
 * documents. */
static void find_frontier(const struct eng_stripe *stripe, const struct eng_ring *ring,
                          struct eng_ring_row *row)
{
    uint64_t frontier = ring->hand;

    row->segment = ring->hand_segment;
    if (ring->n_left < ring->n_runs) {
        frontier = eng_run_get(ring, ring->n_left)->start;
        row->segment = eng_segment_of(stripe, frontier);
    }
    row->cursor = frontier << ENG_UNIT_SHIFT;
}

static void fill_rings(const struct eng_stripe *stripe, struct eng_stripe_header *header)
{
    header->mode = eng_policy_mode(&stripe->rt->policy);
    for (uint8_t i = 0; i < ENG_RINGS; i++) {
        uint8_t pool = eng_ring_pool(i);
        struct eng_ring_row *row = &header->rings[2 * pool + eng_ring_kind_of(i)];
        const struct eng_ring *ring = &stripe->rt->rings[i];
        if (ring->n_segments == 0)
            continue;
        row->pool = pool;
        row->kind = (uint8_t)eng_ring_kind_of(i);
        row->used = 1;
        find_frontier(stripe, ring, row);
    }
}

static void fill_file_identity(const struct eng_stripe *stripe, struct eng_stripe_header *header)
{
    struct stat status;

    if (fstat(stripe->fd, &status) != 0)
        return;
    header->data_bytes = (uint64_t)status.st_size;
    header->data_inode = status.st_ino;
    header->data_ctime_ns =
        (uint64_t)status.st_ctim.tv_sec * 1000000000 + (uint64_t)status.st_ctim.tv_nsec;
}

/* Writes a header for `serial_synced` and makes it durable before any ring may rely on it. `keep`:
 * segments that stay announced. */
static gyre_err write_header_locked(struct eng_stripe *stripe, uint64_t serial_synced,
                                    const struct horizon *keep, bool clean)
{
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_stripe_header header;
    struct horizon horizon = *keep;
    gyre_err err;

    announce_in_use(stripe, &horizon);
    announce_next(stripe, &horizon);
    if (horizon.all)
        horizon.n = 0; /* the header says "all"; the list is kept for the rings, which look up what
                          they enter next */
    announce_ahead(stripe, &horizon);
    memset(&header, 0, sizeof header);
    header.serial_synced = serial_synced;
    header.serial_limit = rt->serial;
    header.clean = clean;
    header.blurred_serial = rt->blurred_serial;
    header.n_horizon = horizon.all ? ENG_HORIZON_ALL : horizon.n;
    memcpy(header.horizon, horizon.segments, sizeof header.horizon);
    fill_rings(stripe, &header);
    if (clean)
        fill_file_identity(stripe, &header);
    int fd = stripe->store->volume_fd;
    TRY(eng_header_write(fd, &stripe->store->super, stripe->index, &header, rt->segments,
                         &stripe->rt->header_generation));
    GYRE_STEP("sync.header.written");
    TRY(eng_sync_data(fd));
    GYRE_STEP("sync.header.durable");
    rt->serial_synced = serial_synced;
    rt->horizon_all = horizon.all;
    rt->n_horizon = horizon.n;
    memcpy(rt->horizon, horizon.segments, sizeof rt->horizon);
out:
    return err;
}

gyre_err eng_horizon_extend_locked(struct eng_stripe *stripe)
{
    struct horizon keep = {.all = stripe->rt->horizon_all != 0, .n = stripe->rt->n_horizon};

    /* Since the last sync documents may have been written to any segment announced then. */
    memcpy(keep.segments, stripe->rt->horizon, sizeof keep.segments);
    return write_header_locked(stripe, stripe->rt->serial_synced, &keep, false);
}

/* ---- Sync ---- */

static gyre_err sync_directory(const struct eng_stripe *stripe)
{
    size_t len =
        (size_t)eng_align_up((uint64_t)stripe->n_buckets * sizeof(struct eng_bucket), ENG_PAGE);

    return msync(stripe->buckets, len, MS_SYNC) == 0 ? GYRE_OK : eng_err_of_errno(errno);
}

/* Where the hands were when the serial was noted. */
struct hands {
    uint32_t segment[ENG_RINGS]; /* ENG_NO_SEGMENT: the ring was not in use */
};

static struct hands note_hands(const struct eng_stripe *stripe)
{
    struct hands hands;

    for (uint32_t i = 0; i < ENG_RINGS; i++) {
        const struct eng_ring *ring = &stripe->rt->rings[i];
        hands.segment[i] = ring->n_segments != 0 ? ring->hand_segment : ENG_NO_SEGMENT;
    }
    return hands;
}

/* Announces what the hands have passed since: it may be full of documents already. A segment that
 * changed its ring meanwhile breaks the way from the old place; then all of the ring is named. */
static void announce_passed(const struct eng_stripe *stripe, const struct hands *before,
                            struct horizon *horizon)
{
    const struct eng_stripe_rt *rt = stripe->rt;

    for (uint32_t ring_id = 0; ring_id < ENG_RINGS; ring_id++) {
        const struct eng_ring *ring = &rt->rings[ring_id];
        if (ring->n_segments == 0)
            continue;
        uint32_t at = before->segment[ring_id] != ENG_NO_SEGMENT
                          ? before->segment[ring_id]
                          : rt->segments[ring->tail_segment].successor;
        bool moved = rt->segments[at].pool != eng_ring_pool((uint8_t)ring_id) ||
                     rt->segments[at].kind != eng_ring_kind_of((uint8_t)ring_id);
        if (moved)
            at = ring->hand_segment;
        for (uint32_t i = 0; i < ring->n_segments && at < stripe->n_segments; i++) {
            if (at == ring->hand_segment && !moved)
                break;
            must_announce(horizon, at);
            at = rt->segments[at].successor;
        }
    }
}

/* The caller holds sync_lock. */
static gyre_err sync_once(struct eng_stripe *stripe, bool clean)
{
    struct horizon written = {0};
    uint64_t serial;
    uint64_t units;
    gyre_err err;

    if (clean)
        eng_slabs_retire(stripe);
    /* From here on documents newer than `serial` go to what is in use now, and to what the hands
     * enter. */
    TRY(eng_alloc_lock_bounded(stripe));
    serial = stripe->rt->serial;
    units = stripe->rt->written_units;
    struct hands hands = note_hands(stripe);
    announce_in_use(stripe, &written);
    eng_alloc_unlock(stripe);
    GYRE_STEP("sync.noted");
    err = eng_sync_data(stripe->fd);
    if (err != GYRE_OK) {
        /* Pages that could not be written may be dropped and read again as they were before. */
        eng_directory_distrust(stripe);
        goto out;
    }
    GYRE_STEP("sync.data");
    TRY(sync_directory(stripe));
    GYRE_STEP("sync.directory");
    TRY(eng_alloc_lock_bounded(stripe));
    announce_passed(stripe, &hands, &written);
    err = write_header_locked(stripe, serial, &written, clean);
    if (err == GYRE_OK)
        stripe->rt->written_units -=
            units < stripe->rt->written_units ? units : stripe->rt->written_units;
    eng_alloc_unlock(stripe);
    if (err == GYRE_OK)
        ENG_COUNT(stripe->store, syncs, 1);
out:
    return err;
}

/* A sync that ended halfway has promised nothing yet. One that is under way may take as long as the
 * disk does, so the bound is a multiple of the other locks'. BUSY: its process was stopped. */
static gyre_err lock_sync(struct eng_stripe *stripe)
{
    uint64_t deadline_ns = eng_clock_mono_ns() + SYNC_WAITS * stripe->store->lock_wait_ns;
    enum eng_mutex_result result = eng_mutex_lock_until(&stripe->rt->sync_lock, deadline_ns);

    GYRE_CHECK(result != ENG_MUTEX_LOST);
    if (result == ENG_MUTEX_OWNER_DEAD)
        eng_mutex_consistent(&stripe->rt->sync_lock);
    return result == ENG_MUTEX_BUSY ? GYRE_BUSY : GYRE_OK;
}

gyre_err eng_sync_stripe(struct eng_stripe *stripe, bool clean)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint64_t before =
        atomic_load_explicit(&rt->syncs_begun, memory_order_acquire); /* Pairs with A */
    gyre_err err = lock_sync(stripe);

    if (err != GYRE_OK)
        return err;
    if (clean ||
        rt->sync_done <= before) { /* else one that began after this call has done it all */
        uint64_t number =
            atomic_fetch_add_explicit(&rt->syncs_begun, 1, memory_order_acq_rel) + 1; /* A */
        err = sync_once(stripe, clean);
        if (err == GYRE_OK)
            rt->sync_done = number;
    }
    eng_mutex_unlock(&rt->sync_lock);
    return err;
}

gyre_err eng_sync_store(struct eng_store *store, bool clean)
{
    gyre_err first = GYRE_OK;

    for (uint32_t i = 0; i < store->n_stripes; i++) {
        gyre_err err = eng_sync_stripe(&store->stripes[i], clean);
        first = first == GYRE_OK ? err : first;
    }
    return first;
}
