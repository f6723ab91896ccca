#include "engine/stripe_repair.h"

#include <string.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/directory.h"
#include "engine/header.h"
#include "engine/log.h"

/* ---- Reservations ---- */

/* Each is whole or, half written, one whose owner is dead and which is ended soon; only what counts
 * them may be wrong. */
static void recount_reservations(struct eng_stripe *stripe)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint64_t area = stripe->area_bytes >> ENG_UNIT_SHIFT;
    uint64_t units = 0;

    rt->reservations_high = 0;
    for (uint32_t i = 0; i < ENG_RESERVATIONS; i++) {
        struct eng_reservation *at = &rt->reservations[i];
        if (at->start >= at->end || at->end > area)
            *at = (struct eng_reservation){0};
        if (at->end == 0)
            continue;
        rt->reservations_high = i + 1;
        units += at->end - at->start;
    }
    atomic_store_explicit(&rt->reserved_units, units, memory_order_relaxed);
}

/* ---- Rings ---- */

static bool is_member(const struct eng_stripe *stripe, uint32_t segment, uint8_t ring)
{
    const struct eng_segment_row *row = &stripe->rt->segments[segment];

    return segment < stripe->n_segments && row->state == ENG_SEGMENT_RING &&
           row->pool == eng_ring_pool(ring) && row->kind == eng_ring_kind_of(ring);
}

/* Whether succession leads from the tail through `n` members and back, as it nearly always does. */
static bool is_closed(const struct eng_stripe *stripe, uint32_t tail, uint8_t ring, uint32_t n)
{
    uint32_t at = tail;

    for (uint32_t i = 0; i < n; i++) {
        if (at >= stripe->n_segments || !is_member(stripe, at, ring) || (i > 0 && at == tail))
            return false;
        at = stripe->rt->segments[at].successor;
    }
    return at == tail;
}

/* Whether succession from `first` comes to `segment` within the stripe's number of steps. */
static bool leads_to(const struct eng_stripe *stripe, uint32_t first, uint32_t segment)
{
    uint32_t at = first;

    for (uint32_t i = 0; i <= stripe->n_segments && at < stripe->n_segments; i++) {
        if (at == segment)
            return true;
        at = stripe->rt->segments[at].successor;
    }
    return false;
}

/* In the order of their numbers, the tail last. */
static void link_by_number(struct eng_stripe *stripe, struct eng_ring *ring, uint8_t id)
{
    uint32_t before = ring->tail_segment;

    for (uint32_t i = 1; i <= stripe->n_segments; i++) {
        uint32_t segment = (ring->tail_segment + i) % stripe->n_segments;
        if (!is_member(stripe, segment, id))
            continue;
        stripe->rt->segments[before].successor = segment;
        before = segment;
    }
}

/* A segment is marked as the ring's before it is linked: one that succession does not reach goes in
 * behind the tail, where it was to go. */
static void link_members(struct eng_stripe *stripe, struct eng_ring *ring, uint8_t id)
{
    struct eng_segment_row *rows = stripe->rt->segments;
    uint32_t first = ENG_NO_SEGMENT;
    uint32_t n = 0;

    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        if (!is_member(stripe, i, id))
            continue;
        first = first == ENG_NO_SEGMENT ? i : first;
        n++;
    }
    ring->n_segments = n;
    if (n == 0 || is_closed(stripe, ring->tail_segment, id, n))
        return;
    if (ring->tail_segment >= stripe->n_segments || !is_member(stripe, ring->tail_segment, id)) {
        ring->tail_segment = first;
        rows[first].successor = first;
    }
    if (!is_member(stripe, rows[ring->tail_segment].successor, id))
        rows[ring->tail_segment].successor = ring->tail_segment;
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        if (!is_member(stripe, i, id) || leads_to(stripe, ring->tail_segment, i))
            continue;
        rows[i].successor = rows[ring->tail_segment].successor;
        rows[ring->tail_segment].successor = i;
        ring->tail_segment = i;
    }
    if (!is_closed(stripe, ring->tail_segment, id, n)) /* it led into the pool's other ring */
        link_by_number(stripe, ring, id);
}

/* The hand enters a segment by its number first and its place in it second. */
static void place_hand(const struct eng_stripe *stripe, struct eng_ring *ring, uint8_t id)
{
    if (ring->n_segments == 0) {
        ring->hand_segment = ring->tail_segment = ring->write_segment = ENG_NO_SEGMENT;
        return;
    }
    if (ring->hand_segment >= stripe->n_segments || !is_member(stripe, ring->hand_segment, id)) {
        ring->hand_segment = ring->tail_segment;
        ring->hand = 0;
    }
    uint64_t start = ring->hand_segment * stripe->segment_units;
    if (ring->hand < start || ring->hand > start + stripe->segment_units)
        ring->hand = start;
    if (ring->write_segment >= stripe->n_segments || !is_member(stripe, ring->write_segment, id))
        ring->write_segment = ring->hand_segment;
}

static void repair_ring(struct eng_stripe *stripe, uint8_t id)
{
    struct eng_ring *ring = eng_ring_of(stripe, id);

    if (ring->runs_in_flight != 0) {
        ring->n_runs = ring->n_left = 0;
        ring->first_run = 0;
        ring->clean_units = 0;
        ring->runs_in_flight = 0;
    }
    link_members(stripe, ring, id);
    place_hand(stripe, ring, id);
}

/* ---- The header ---- */

/* Between writing a header and noting what it says a process may have died. The newest whole copy
 * is what the next opening would go by. */
static void adopt_header(struct eng_stripe *stripe)
{
    struct eng_store *store = stripe->store;
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_segment_row rows[ENG_MAX_SEGMENTS];
    struct eng_stripe_header header;

    if (store->volume == NULL || /* a stripe without files, of a test */
        eng_header_read(store->volume_fd, &store->super, stripe->index, &header, rows) != GYRE_OK)
        return;
    /* What it announces counts once it is durable; else the one before it still stands. */
    if (header.generation < rt->header_generation || eng_sync_data(store->volume_fd) != GYRE_OK)
        return;
    rt->header_generation = header.generation;
    rt->serial_synced = header.serial_synced;
    rt->horizon_all = header.n_horizon == ENG_HORIZON_ALL;
    rt->n_horizon = rt->horizon_all ? 0 : header.n_horizon;
    memcpy(rt->horizon, header.horizon, rt->n_horizon * sizeof rt->horizon[0]);
}

void eng_stripe_repair_locked(struct eng_stripe *stripe)
{
    GYRE_STEP("stripe_repair.begin");
    eng_directory_repair_locked(stripe);
    GYRE_STEP("stripe_repair.directory");
    for (uint32_t i = 0; i < stripe->n_segments; i++)
        if (stripe->rt->segments[i].state == ENG_SEGMENT_FREE)
            stripe->rt->segments[i].successor = ENG_NO_SEGMENT;
    recount_reservations(stripe);
    for (uint8_t ring = 0; ring < ENG_RINGS; ring++)
        repair_ring(stripe, ring);
    adopt_header(stripe);
}
