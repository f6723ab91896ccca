#include "engine/log.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/geometry.h"
#include "engine/runs.h"
#include "engine/sync.h"

/* Segments that should always be announced ahead of a hand. */
enum { AHEAD = 4 };

struct eng_ring *eng_ring_of(const struct eng_stripe *stripe, uint8_t ring)
{
    GYRE_CHECK(ring < ENG_RINGS);
    return &stripe->rt->rings[ring];
}

/* The pool's other ring. */
static uint8_t other_of(uint8_t ring)
{
    return (uint8_t)((ring + ENG_MAX_POOLS) % ENG_RINGS);
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

bool eng_ring_may_grow_locked(const struct eng_stripe *stripe, uint8_t ring)
{
    const struct eng_ring *it = eng_ring_of(stripe, ring);
    const struct eng_ring *other = eng_ring_of(stripe, other_of(ring));
    return it->n_segments < it->max_segments &&
           it->n_segments + other->n_segments < it->max_segments + other->max_segments &&
           next_free(stripe, 0) != ENG_NO_SEGMENT;
}

void eng_ring_share_locked(struct eng_stripe *stripe, uint8_t pool)
{
    const struct eng_superblock *super = &stripe->store->super;
    uint32_t n = eng_pool_max_segments(super, stripe->index, pool);
    bool evicts = pool < super->n_pools && (super->pools[pool].flags & ENG_POOL_NEVER_EVICT) == 0;
    uint32_t s = evicts ? eng_policy_s_segments(&stripe->rt->policy, n) : 0;
    eng_ring_of(stripe, eng_ring_id(pool, ENG_RING_S))->max_segments = s;
    eng_ring_of(stripe, eng_ring_id(pool, ENG_RING_M))->max_segments = n - s;
}

/* ---- What comes next ---- */

/* The segment that the other ring's hand would enter next, if that ring has more than its share and
 * this one less. A ring keeps its last segment unless it is to have none. */
static uint32_t next_from_other(const struct eng_stripe *stripe, uint8_t ring)
{
    const struct eng_ring *it = eng_ring_of(stripe, ring);
    const struct eng_ring *other = eng_ring_of(stripe, other_of(ring));
    uint32_t least = other->max_segments == 0 ? 0 : 1;
    if (it->n_segments >= it->max_segments || other->n_segments <= other->max_segments ||
        other->n_segments <= least)
        return ENG_NO_SEGMENT;
    return stripe->rt->segments[other->hand_segment].successor;
}

size_t eng_ring_ahead_locked(const struct eng_stripe *stripe, uint8_t ring, uint32_t *segments_out,
                             size_t max)
{
    const struct eng_ring *it = eng_ring_of(stripe, ring);
    size_t n = 0;
    uint32_t room = eng_ring_may_grow_locked(stripe, ring) ? it->max_segments - it->n_segments : 0;
    uint32_t segment = next_free(stripe, 0);
    for (; n < max && room > 0 && segment != ENG_NO_SEGMENT; room--) {
        segments_out[n++] = segment;
        segment = next_free(stripe, segment + 1);
    }
    uint32_t theirs = next_from_other(stripe, ring);
    if (n < max && n == 0 && theirs != ENG_NO_SEGMENT)
        segments_out[n++] = theirs;
    if (it->n_segments == 0)
        return n;
    segment = n > 0 && segments_out[0] != theirs
                  ? it->tail_segment
                  : it->hand_segment; /* the grown part ends at the tail */
    for (uint32_t i = 0; n < max && i < it->n_segments; i++) {
        segment = stripe->rt->segments[segment].successor;
        segments_out[n++] = segment;
    }
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

bool eng_log_horizon_low_locked(const struct eng_stripe *stripe)
{
    for (uint8_t ring = 0; ring < ENG_RINGS; ring++) {
        uint32_t ahead[AHEAD];
        size_t n = eng_ring_ahead_locked(stripe, ring, ahead, AHEAD);
        for (size_t i = 0; i < n; i++)
            if (!announced_locked(stripe, ahead[i]))
                return true;
    }
    return false;
}

/* ---- Entering it ---- */

/* Links a segment in behind `before`; a ring that was empty is that segment alone. */
static void link_behind(struct eng_stripe *stripe, uint8_t ring, uint32_t before, uint32_t segment)
{
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_ring *it = eng_ring_of(stripe, ring);
    struct eng_segment_row *row = &rt->segments[segment];
    *row = (struct eng_segment_row){
        .state = ENG_SEGMENT_RING,
        .pool = eng_ring_pool(ring),
        .kind = (uint8_t)eng_ring_kind_of(ring),
        .successor = segment,
        .first_serial = rt->serial + 1,
    };
    if (it->n_segments > 0) {
        row->successor = rt->segments[before].successor;
        rt->segments[before].successor = segment;
    }
    if (it->n_segments == 0 || it->tail_segment == before)
        it->tail_segment = segment;
    it->n_segments++;
}

/* Takes the successor of a ring's hand segment out of the ring. */
static void unlink_next(struct eng_stripe *stripe, uint8_t ring, uint32_t segment)
{
    struct eng_ring *it = eng_ring_of(stripe, ring);
    struct eng_segment_row *rows = stripe->rt->segments;
    eng_runs_drop_segment_locked(it, stripe->segment_units, segment);
    rows[it->hand_segment].successor = rows[segment].successor;
    if (it->tail_segment == segment)
        it->tail_segment = it->hand_segment;
    if (--it->n_segments == 0)
        it->hand_segment = it->tail_segment = it->write_segment = ENG_NO_SEGMENT;
}

/* A new segment holds nothing, so all of it is clean and the hand stands at its end. */
static void enter_new(struct eng_stripe *stripe, uint8_t ring, uint32_t segment)
{
    struct eng_ring *it = eng_ring_of(stripe, ring);
    link_behind(stripe, ring, it->tail_segment, segment);
    uint64_t start = segment * stripe->segment_units;
    it->hand_segment = segment;
    it->hand = start + stripe->segment_units;
    eng_runs_push_locked(it, stripe->segment_units, start, it->hand, UINT64_MAX);
}

static void enter_next(struct eng_stripe *stripe, struct eng_ring *it, uint32_t segment)
{
    if (it->hand_segment == it->tail_segment) {
        it->laps++;
        ENG_COUNT(stripe->store, laps, 1);
    }
    eng_runs_drop_segment_locked(it, stripe->segment_units, segment);
    stripe->rt->segments[segment].first_serial = stripe->rt->serial + 1;
    stripe->rt->segments[segment].blurred = 0;
    it->hand_segment = segment;
    it->hand = segment * stripe->segment_units;
}

/* What lies in the segment is judged anew by this ring's hand. */
static void enter_theirs(struct eng_stripe *stripe, uint8_t ring, uint32_t segment)
{
    struct eng_ring *it = eng_ring_of(stripe, ring);
    unlink_next(stripe, other_of(ring), segment);
    link_behind(stripe, ring, it->hand_segment, segment);
    it->hand_segment = segment;
    it->hand = segment * stripe->segment_units;
}

gyre_err eng_ring_enter_locked(struct eng_stripe *stripe, uint8_t ring)
{
    struct eng_ring *it = eng_ring_of(stripe, ring);
    bool grow = eng_ring_may_grow_locked(stripe, ring);
    uint32_t theirs = grow ? ENG_NO_SEGMENT : next_from_other(stripe, ring);
    if (!grow && theirs == ENG_NO_SEGMENT && it->n_segments == 0)
        return GYRE_NO_SPACE;
    uint32_t segment = grow ? next_free(stripe, 0)
                       : theirs != ENG_NO_SEGMENT
                           ? theirs
                           : stripe->rt->segments[it->hand_segment].successor;
    if (!announced_locked(stripe, segment)) {
        gyre_err err = eng_horizon_extend_locked(stripe);
        if (err != GYRE_OK)
            return err;
        GYRE_CHECK(announced_locked(stripe, segment));
    }
    GYRE_STEP("ring.enter.announced");
    if (grow)
        enter_new(stripe, ring, segment);
    else if (theirs != ENG_NO_SEGMENT)
        enter_theirs(stripe, ring, segment);
    else
        enter_next(stripe, it, segment);
    return GYRE_OK;
}
