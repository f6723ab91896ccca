/* Making the rings anew from what the segments say; see recover_internal.h.
 *
 * A ring's segments follow each other in the order the hand enters them. The header knows where the
 * hand's writers were (the frontier); from there on, segments with documents newer than the header
 * are the ones entered since, and the frontier is now behind the last of them. Putting the hand
 * anywhere else would make it take the newest documents before the oldest.
 */
#include <stdlib.h>

#include "engine/base/bits.h"
#include "engine/geometry.h"
#include "engine/log.h"
#include "engine/recover_internal.h"

/* The segments of one ring, from the header's frontier on. */
struct sequence {
    uint32_t *at;
    uint32_t n;
    uint32_t n_known; /* by the segment table; the others were free when it was written */
};

struct place {
    uint32_t segment; /* a place at its very end is still in it */
    uint64_t units;
};

static bool is_member(const struct eng_stripe *stripe, uint32_t segment, uint8_t ring)
{
    const struct eng_segment_row *row = &stripe->rt->segments[segment];

    return row->state == ENG_SEGMENT_RING && row->pool == eng_ring_pool(ring) &&
           row->kind == eng_ring_kind_of(ring);
}

/* Follows succession from `first`; false unless it leads through all `n` members and back. */
static bool follow_chain(const struct eng_stripe *stripe, uint8_t ring, uint32_t first, uint32_t n,
                         uint32_t *out)
{
    uint32_t at = first;

    for (uint32_t i = 0; i < n; i++) {
        if (at >= stripe->n_segments || !is_member(stripe, at, ring) || (i > 0 && at == first))
            return false;
        out[i] = at;
        at = stripe->rt->segments[at].successor;
    }
    return at == first;
}

static const struct eng_ring_row *header_row(const struct eng_recovering *r, uint8_t ring)
{
    uint8_t pool = eng_ring_pool(ring);
    enum eng_ring_kind kind = eng_ring_kind_of(ring);
    const struct eng_ring_row *row = &r->header->rings[2 * pool + kind];

    return row->used && row->pool == pool && row->kind == kind &&
                   is_member(r->stripe, row->segment, ring)
               ? row
               : NULL;
}

/* Members that the table knows, in ring order from the header's frontier on; in order of their
 * numbers, from there too, if the table's succession is broken. */
static void list_known(const struct eng_recovering *r, uint8_t ring, struct sequence *seq)
{
    const struct eng_stripe *stripe = r->stripe;
    const struct eng_ring_row *row = header_row(r, ring);

    seq->n = 0;
    for (uint32_t i = 0; i < stripe->n_segments; i++)
        if (is_member(stripe, i, ring))
            seq->at[seq->n++] = i;
    seq->n_known = seq->n;
    if (seq->n == 0)
        return;
    uint32_t lowest = seq->at[0];
    if (!follow_chain(stripe, ring, row != NULL ? row->segment : lowest, seq->n, seq->at)) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < stripe->n_segments; i++) {
            uint32_t segment = ((row != NULL ? row->segment : 0) + i) % stripe->n_segments;
            if (is_member(stripe, segment, ring))
                seq->at[n++] = segment;
        }
    }
}

/* Where a ring that grows gets its next segment: behind the one entered last, whose successor was
 * entered long before. */
static uint32_t find_tail(const struct eng_stripe *stripe, const struct sequence *seq)
{
    const struct eng_segment_row *rows = stripe->rt->segments;

    for (uint32_t i = 0; i < seq->n; i++)
        if (rows[seq->at[i]].first_serial > rows[seq->at[(i + 1) % seq->n]].first_serial)
            return i;
    return seq->n > 0 ? seq->n - 1 : 0;
}

/* Free segments that turned out to hold the pool's documents go in behind the tail: rings take the
 * lowest free number first. They become M's, whose hand looks at what its documents are worth.
 * Returns the new tail. */
static uint32_t insert_adopted(struct eng_recovering *r, uint8_t ring, struct sequence *seq)
{
    struct eng_segment_row *rows = r->stripe->rt->segments;
    uint32_t tail = find_tail(r->stripe, seq);
    uint32_t at = seq->n > 0 ? tail + 1 : 0;

    for (uint32_t i = 0; i < r->stripe->n_segments; i++) {
        const struct eng_segment_seen *seen = &r->seen[i];
        if (rows[i].state != ENG_SEGMENT_FREE || !seen->announced || !seen->used ||
            seen->pool != ring)
            continue;
        for (uint32_t j = seq->n; j > at; j--)
            seq->at[j] = seq->at[j - 1];
        seq->at[at] = i;
        seq->n++;
        tail = at++;
        rows[i] = (struct eng_segment_row){
            .state = ENG_SEGMENT_RING,
            .pool = ring,
            .kind = ENG_RING_M,
            .first_serial = seen->oldest_new,
        };
    }
    return tail;
}

static bool has_new(const struct eng_recovering *r, uint32_t segment)
{
    return r->seen[segment].announced && r->seen[segment].oldest_new != UINT64_MAX;
}

/* Where the segment's documents with serials above `threshold` end, in units; 0 if it has none. */
static uint64_t recent_end(const struct eng_recovering *r, uint32_t segment, uint64_t threshold)
{
    const struct eng_stripe *stripe = r->stripe;
    uint64_t per_segment = stripe->segment_units / (ENG_GRANULE / ENG_UNIT);
    uint64_t end = 0;

    for (uint64_t g = segment * per_segment; g < (segment + 1) * per_segment; g++) {
        uint32_t slot = eng_granule_first_locked(stripe, g);
        for (; slot != ENG_NO_SLOT; slot = eng_granule_next_locked(stripe, slot)) {
            struct eng_known_doc known;
            uint64_t offset = eng_entry_offset(eng_directory_entry(stripe, slot));
            if (eng_known_doc_read(r, offset, &known) && known.doc.serial > threshold &&
                offset + known.units > end)
                end = offset + known.units;
        }
    }
    return end;
}

/* The ring went round since the header's serial, so every segment has documents newer than it.
 * Those at the frontier are from just now before it and from a lap ago behind it: half a lap tells
 * them apart. The newest one alone would not do, for a small document may lie in a slab that others
 * have passed. */
static struct place behind_newest(const struct eng_recovering *r, const struct sequence *seq)
{
    uint32_t best = 0;
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < seq->n; i++) {
        const struct eng_segment_seen *seen = &r->seen[seq->at[i]];
        if (seen->newest > r->seen[seq->at[best]].newest)
            best = i;
        oldest = seen->oldest_new < oldest ? seen->oldest_new : oldest;
    }
    const struct eng_segment_seen *newest = &r->seen[seq->at[best]];
    uint64_t threshold = newest->newest - (newest->newest - oldest) / 2;
    struct place frontier = {seq->at[best], newest->newest_end};
    for (uint32_t i = 0; i < seq->n; i++) {
        uint32_t segment = seq->at[(best + i) % seq->n];
        uint64_t end = recent_end(r, segment, threshold);
        if (end == 0)
            break;
        frontier = (struct place){segment, end};
    }
    return frontier;
}

static struct place find_frontier(struct eng_recovering *r, uint8_t ring,
                                  const struct sequence *seq)
{
    const struct eng_ring_row *row = header_row(r, ring);
    struct place frontier = {seq->at[0], seq->at[0] * r->stripe->segment_units};
    uint32_t i = 0;

    if (row != NULL && row->segment == seq->at[0])
        frontier.units = row->cursor >> ENG_UNIT_SHIFT;
    for (; i < seq->n; i++) {
        uint32_t segment = seq->at[i];
        if (has_new(r, segment))
            frontier = (struct place){segment, r->seen[segment].new_end};
        else if (i > 0)
            break;
        if (i > 0)
            r->stripe->rt->segments[segment].first_serial = r->seen[segment].oldest_new;
    }
    return i == seq->n && i > 1 ? behind_newest(r, seq) : frontier;
}

static void build_ring(struct eng_recovering *r, uint8_t ring_id, struct sequence *seq)
{
    struct eng_stripe *stripe = r->stripe;
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);

    ring->hand_segment = ENG_NO_SEGMENT;
    ring->tail_segment = ENG_NO_SEGMENT;
    ring->write_segment = ENG_NO_SEGMENT;
    list_known(r, ring_id, seq);
    uint32_t tail = eng_ring_kind_of(ring_id) == ENG_RING_M ? insert_adopted(r, ring_id, seq)
                                                            : find_tail(stripe, seq);
    ring->n_segments = seq->n;
    if (seq->n == 0)
        return;
    for (uint32_t i = 0; i < seq->n; i++)
        stripe->rt->segments[seq->at[i]].successor = seq->at[(i + 1) % seq->n];
    struct place frontier = find_frontier(r, ring_id, seq);
    ring->tail_segment = seq->at[tail];
    ring->hand_segment = frontier.segment;
    ring->hand = eng_align_up(frontier.units, ENG_PAGE_UNITS);
    ring->write_segment = ring->hand_segment;
    ring->cursor = ring->hand;
}

/* A pool that never evicts keeps what it has, though it were more than its share. */
static void build_pool(struct eng_recovering *r, uint8_t pool, struct sequence *seq)
{
    struct eng_stripe *stripe = r->stripe;
    struct eng_ring *m = eng_ring_of(stripe, eng_ring_id(pool, ENG_RING_M));

    eng_ring_share_locked(stripe, pool);
    build_ring(r, eng_ring_id(pool, ENG_RING_M), seq);
    build_ring(r, eng_ring_id(pool, ENG_RING_S), seq);
    if ((stripe->store->super.pools[pool].flags & ENG_POOL_NEVER_EVICT) != 0 &&
        m->max_segments < m->n_segments)
        m->max_segments = m->n_segments;
}

gyre_err eng_rings_build(struct eng_recovering *r)
{
    struct eng_stripe *stripe = r->stripe;
    struct sequence seq = {.at = malloc(stripe->n_segments * sizeof *seq.at)};

    if (seq.at == NULL)
        return GYRE_NO_MEMORY;
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_RING && row->pool >= stripe->store->super.n_pools)
            row->pool = ENG_POOL_MAIN;
        if (row->state == ENG_SEGMENT_FREE)
            *row = (struct eng_segment_row){.successor = ENG_NO_SEGMENT};
    }
    for (uint8_t pool = 0; pool < stripe->store->super.n_pools; pool++)
        build_pool(r, pool, &seq);
    free(seq.at);
    return GYRE_OK;
}
