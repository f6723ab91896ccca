/* Making the rings anew from what the segments say; see recover_internal.h.
 *
 * A ring is its segments in the order they were entered, oldest first; the hand stands in one of
 * the newest. Table and documents agree on that order, so a chain that was broken, or grew after
 * the table was written, needs no repair of its own.
 */
#include <stdlib.h>

#include "engine/base/bits.h"
#include "engine/geometry.h"
#include "engine/log.h"
#include "engine/recover_internal.h"

struct member {
    uint64_t first_serial;
    uint32_t segment;
};

static int by_age(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    if (x->first_serial != y->first_serial)
        return x->first_serial < y->first_serial ? -1 : 1;
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* Announced segments that hold documents belong to the ring of these documents' pool. The others
 * without any are free again. */
static void adopt_segments(struct eng_recovering *r)
{
    for (uint32_t i = 0; i < r->stripe->n_segments; i++) {
        struct eng_segment_row *row = &r->stripe->rt->segments[i];
        const struct eng_segment_seen *seen = &r->seen[i];
        if (!seen->announced || !seen->used)
            continue;
        if (row->state == ENG_SEGMENT_FREE) {
            row->state = ENG_SEGMENT_RING;
            row->pool = seen->pool;
            row->kind = ENG_RING_M;
            row->first_serial = seen->oldest_new;
        }
        if (seen->oldest_new != UINT64_MAX)
            row->first_serial = seen->oldest_new;
    }
}

struct hand {
    uint32_t segment; /* a hand at its very end still stands in it */
    uint64_t at;
};

/* Where the hand goes on: behind the newest document where that is known, else where the header
 * says, else at the oldest. */
static struct hand find_hand(const struct eng_recovering *r, uint8_t pool,
                             const struct member *members, uint32_t n)
{
    const struct eng_ring_row *row = &r->header->rings[2 * pool + ENG_RING_M];
    struct hand hand = {members[0].segment, members[0].segment * r->stripe->segment_units};
    uint64_t newest = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t segment = members[i].segment;
        const struct eng_segment_seen *seen = &r->seen[segment];
        if (seen->announced && seen->oldest_new != UINT64_MAX && seen->newest > newest) {
            newest = seen->newest;
            hand = (struct hand){segment, eng_align_up(seen->newest_end, ENG_PAGE_UNITS)};
        }
        if (newest == 0 && row->used && row->pool == pool && row->segment == segment)
            hand =
                (struct hand){segment, eng_align_up(row->cursor >> ENG_UNIT_SHIFT, ENG_PAGE_UNITS)};
    }
    return hand;
}

static void build_ring(struct eng_recovering *r, uint8_t pool, struct member *members)
{
    struct eng_stripe *stripe = r->stripe;
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    uint32_t n = 0;

    ring->max_segments = eng_pool_max_segments(&stripe->store->super, stripe->index, pool);
    ring->hand_segment = ENG_NO_SEGMENT;
    ring->tail_segment = ENG_NO_SEGMENT;
    ring->write_segment = ENG_NO_SEGMENT;
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        const struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_RING && row->pool == pool)
            members[n++] = (struct member){row->first_serial, i};
    }
    ring->n_segments = n;
    if (n == 0)
        return;
    ring->max_segments = ring->max_segments < n ? n : ring->max_segments;
    qsort(members, n, sizeof *members, by_age);
    for (uint32_t i = 0; i < n; i++)
        stripe->rt->segments[members[i].segment].successor = members[(i + 1) % n].segment;
    ring->tail_segment = members[n - 1].segment;
    struct hand hand = find_hand(r, pool, members, n);
    ring->hand = hand.at;
    ring->hand_segment = hand.segment;
    ring->write_segment = ring->hand_segment;
    ring->cursor = ring->hand;
}

gyre_err eng_rings_build(struct eng_recovering *r)
{
    struct eng_stripe *stripe = r->stripe;
    struct member *members = malloc(stripe->n_segments * sizeof *members);

    if (members == NULL)
        return GYRE_NO_MEMORY;
    adopt_segments(r);
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_RING && row->pool >= stripe->store->super.n_pools)
            row->pool = ENG_POOL_MAIN;
        if (row->state == ENG_SEGMENT_FREE)
            *row = (struct eng_segment_row){.successor = ENG_NO_SEGMENT};
    }
    for (uint8_t pool = 0; pool < stripe->store->super.n_pools; pool++)
        build_ring(r, pool, members);
    free(members);
    return GYRE_OK;
}
