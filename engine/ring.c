#include "engine/log.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/runs.h"
#include "engine/sync.h"

/* Segments that should always be announced ahead of a hand. */
enum { AHEAD = 4 };

struct eng_ring *eng_ring_of(const struct eng_stripe *stripe, uint8_t pool)
{
    GYRE_CHECK(pool < ENG_MAX_POOLS);
    return &stripe->rt->rings[pool];
}

uint32_t eng_segment_of(const struct eng_stripe *stripe, uint64_t offset_units)
{
    return (uint32_t)(offset_units / stripe->segment_units);
}

static uint32_t next_free(const struct eng_stripe *stripe, uint32_t from)
{
    while (from < stripe->n_segments && stripe->rt->segments[from].state != ENG_SEGMENT_FREE)
        from++;
    return from < stripe->n_segments ? from : ENG_NO_SEGMENT;
}

/* At the tail only: a ring that is opened while it grows may have segments behind its hand that
 * were entered, and never written. */
bool eng_ring_may_grow_locked(const struct eng_stripe *stripe, uint8_t pool)
{
    const struct eng_ring *ring = eng_ring_of(stripe, pool);
    return (ring->n_segments == 0 || ring->hand_segment == ring->tail_segment) &&
           ring->n_segments < ring->max_segments && next_free(stripe, 0) != ENG_NO_SEGMENT;
}

size_t eng_ring_ahead_locked(const struct eng_stripe *stripe, uint8_t pool, uint32_t *segments_out,
                             size_t max)
{
    const struct eng_ring *ring = eng_ring_of(stripe, pool);
    const struct eng_segment_row *rows = stripe->rt->segments;
    size_t n = 0;
    uint32_t room = ring->max_segments - ring->n_segments;
    uint32_t left = ring->n_segments;
    uint32_t at = ring->hand_segment;
    for (; n < max && left > 0 && at != ring->tail_segment; left--)
        segments_out[n++] = at = rows[at].successor;
    uint32_t fresh = next_free(stripe, 0);
    for (; n < max && room > 0 && fresh != ENG_NO_SEGMENT; room--) {
        segments_out[n++] = fresh;
        fresh = next_free(stripe, fresh + 1);
    }
    for (; n < max && left > 0; left--)
        segments_out[n++] = at = rows[at].successor;
    return n;
}

static bool announced_locked(const struct eng_stripe *stripe, uint32_t segment)
{
    const struct eng_stripe_rt *rt = stripe->rt;
    if (stripe->rt->horizon_all != 0)
        return true;
    for (uint32_t i = 0; i < rt->n_horizon; i++)
        if (rt->horizon[i] == segment)
            return true;
    return false;
}

static void link_segment(struct eng_stripe *stripe, uint8_t pool, uint32_t segment)
{
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    struct eng_segment_row *row = &rt->segments[segment];
    *row = (struct eng_segment_row){
        .state = ENG_SEGMENT_RING,
        .pool = pool,
        .kind = ENG_RING_M,
        .successor = segment,
        .first_serial = rt->serial + 1,
    };
    if (ring->n_segments > 0) {
        row->successor = rt->segments[ring->tail_segment].successor;
        rt->segments[ring->tail_segment].successor = segment;
    }
    ring->tail_segment = segment;
    ring->n_segments++;
}

/* A new segment holds nothing, so all of it is clean and the hand stands at its end. */
static void enter_new(struct eng_stripe *stripe, uint8_t pool, uint32_t segment)
{
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    link_segment(stripe, pool, segment);
    uint64_t start = segment * stripe->segment_units;
    ring->hand_segment = segment;
    ring->hand = start + stripe->segment_units;
    eng_runs_push_locked(ring, stripe->segment_units, start, ring->hand, UINT64_MAX);
}

static void enter_next(struct eng_stripe *stripe, struct eng_ring *ring, uint32_t segment)
{
    if (ring->hand_segment == ring->tail_segment) {
        ring->laps++;
        ENG_COUNT(stripe->store, laps, 1);
    }
    eng_runs_drop_segment_locked(ring, stripe->segment_units, segment);
    stripe->rt->segments[segment].first_serial = stripe->rt->serial + 1;
    stripe->rt->segments[segment].blurred = 0;
    ring->hand_segment = segment;
    ring->hand = segment * stripe->segment_units;
}

gyre_err eng_ring_enter_locked(struct eng_stripe *stripe, uint8_t pool)
{
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    bool grow = eng_ring_may_grow_locked(stripe, pool);
    if (!grow && ring->n_segments == 0)
        return GYRE_NO_SPACE;
    uint32_t segment =
        grow ? next_free(stripe, 0) : stripe->rt->segments[ring->hand_segment].successor;
    if (!announced_locked(stripe, segment)) {
        gyre_err err = eng_horizon_extend_locked(stripe);
        if (err != GYRE_OK)
            return err;
        GYRE_CHECK(announced_locked(stripe, segment));
    }
    GYRE_STEP("ring.enter.announced");
    if (grow)
        enter_new(stripe, pool, segment);
    else
        enter_next(stripe, ring, segment);
    return GYRE_OK;
}

bool eng_log_horizon_low_locked(const struct eng_stripe *stripe)
{
    for (uint8_t pool = 0; pool < ENG_MAX_POOLS; pool++) {
        uint32_t ahead[AHEAD];
        size_t n = eng_ring_ahead_locked(stripe, pool, ahead, AHEAD);
        for (size_t i = 0; i < n; i++)
            if (!announced_locked(stripe, ahead[i]))
                return true;
    }
    return false;
}
