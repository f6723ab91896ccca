#include "engine/log.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/cleaner.h"
#include "engine/keeper.h"
#include "engine/locks.h"
#include "engine/process.h"
#include "engine/runs.h"

/* Laps a reservation may clean while others take away what it cleaned. */
enum { CONTENDED_LAPS = 16 };

static void set_reserved_locked(struct eng_stripe *stripe, uint64_t units)
{
    /* Relaxed: written under the lock, read by others for statistics. */
    atomic_store_explicit(&stripe->rt->reserved_units, units, memory_order_relaxed);
}

static uint64_t reserved_locked(const struct eng_stripe *stripe)
{
    return atomic_load_explicit(&stripe->rt->reserved_units, memory_order_relaxed);
}

/* Puts in progress may hold three quarters of the main ring, so that the hand always finds
 * something. */
static bool over_limit(const struct eng_stripe *stripe, const struct eng_ring *ring, uint64_t units)
{
    uint64_t ring_units = ring->max_segments * stripe->segment_units;
    return ring == eng_ring_of(stripe, ENG_POOL_MAIN) &&
           reserved_locked(stripe) + units > ring_units / 4 * 3;
}

static uint32_t free_reservation_locked(const struct eng_stripe_rt *rt)
{
    for (uint32_t i = 0; i < rt->reservations_high; i++)
        if (rt->reservations[i].start == rt->reservations[i].end)
            return i;
    return rt->reservations_high; /* ENG_RESERVATIONS: none */
}

/* First fit leaves behind what is too short for most. Of the runs that were passed over, those that
 * lie two segments behind the writers are given up, so that what a restart has to look at stays
 * short. */
static void follow_writer_locked(const struct eng_stripe *stripe, struct eng_ring *ring,
                                 uint64_t start, uint32_t n_older)
{
    uint32_t segment = eng_segment_of(stripe, start);
    uint32_t before = ring->write_segment;
    ring->write_segment = segment;
    for (; segment != before && n_older > 0; n_older--) {
        uint32_t oldest = eng_segment_of(stripe, eng_run_get(ring, 0)->start);
        if (oldest == segment || oldest == before)
            break;
        eng_runs_drop_locked(ring, 0);
    }
}

/* The end comes last, so that a death in between leaves a free place or a whole reservation of its
 * owner, who is known to be dead then (a death is seen in program order). */
static void enter_reservation_locked(struct eng_stripe *stripe, uint32_t reservation,
                                     uint64_t start, uint64_t units, bool is_slab)
{
    struct eng_reservation *at = &stripe->rt->reservations[reservation];
    at->end = 0;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&at->process, stripe->store->process_index, memory_order_relaxed);
    at->is_slab = is_slab;
    at->start = start;
    atomic_signal_fence(memory_order_seq_cst);
    GYRE_STEP("log.take.half");
    at->end = start + units;
}

gyre_err eng_log_take_locked(struct eng_stripe *stripe, uint8_t pool, uint64_t units, bool is_slab,
                             uint64_t *start_out, uint32_t *reservation_out)
{
    GYRE_CHECK(units > 0 && units % ENG_PAGE_UNITS == 0);
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    *start_out = 0;
    *reservation_out = UINT32_MAX;
    uint32_t reservation = free_reservation_locked(rt);
    if (reservation == ENG_RESERVATIONS || over_limit(stripe, ring, units))
        return GYRE_BUSY;
    uint64_t start;
    uint32_t n_older;
    if (!eng_runs_take_locked(ring, units, &start, &n_older))
        return GYRE_NO_SPACE;
    follow_writer_locked(stripe, ring, start, n_older);
    enter_reservation_locked(stripe, reservation, start, units, is_slab);
    if (reservation == rt->reservations_high)
        rt->reservations_high++;
    set_reserved_locked(stripe, reserved_locked(stripe) + units);
    ring->cursor = start + units;
    rt->written_units += units;
    *start_out = start;
    *reservation_out = reservation;
    GYRE_STEP("log.take.reserved");
    return GYRE_OK;
}

/* What one caller's cleaning has come to. */
struct lap {
    uint64_t moved_units; /* since something long enough was freed */
    uint64_t total_units;
    uint64_t busy_units;
};

static bool lap_over(const struct lap *lap, const struct eng_stripe *stripe,
                     const struct eng_ring *ring)
{
    uint64_t ring_units = ring->n_segments * stripe->segment_units;
    return lap->moved_units > ring_units || lap->total_units > CONTENDED_LAPS * ring_units;
}

/* Cleans and tries again until it fits or a whole lap has not been enough. Space that others took
 * away in between starts the count anew: the ring is busy then, not full. */
static gyre_err clean_and_take(struct eng_stripe *stripe, uint8_t pool, uint64_t units,
                               bool is_slab, uint64_t *start_out, uint32_t *reservation_out)
{
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    uint64_t target = 2 * eng_clean_target_units(stripe, ring);
    uint64_t limit = target > 4 * units ? target : 4 * units;
    struct lap lap = {0};
    for (;;) {
        gyre_err err = eng_alloc_lock_bounded(stripe);
        if (err != GYRE_OK)
            return err;
        err = eng_log_take_locked(stripe, pool, units, is_slab, start_out, reservation_out);
        bool over = lap_over(&lap, stripe, ring);
        eng_alloc_unlock(stripe);
        if (err != GYRE_NO_SPACE)
            return err;
        if (over && eng_processes_reap(stripe->store) > 0) {
            lap = (struct lap){0}; /* the dead held what was busy */
            continue;
        }
        if (over)
            return lap.busy_units >= units || lap.total_units > lap.moved_units ? GYRE_BUSY
                                                                                : GYRE_NO_SPACE;
        struct eng_clean_step step;
        err = eng_clean_step_locked(stripe, pool, limit, &step);
        if (err != GYRE_OK)
            return err;
        lap.total_units += step.moved_units;
        lap.busy_units += step.busy_units;
        lap.moved_units = step.longest_units >= units ? 0 : lap.moved_units + step.moved_units;
    }
}

gyre_err eng_log_reserve(struct eng_stripe *stripe, uint8_t pool, uint64_t units, bool is_slab,
                         uint64_t *start_out, uint32_t *reservation_out)
{
    *start_out = 0;
    *reservation_out = UINT32_MAX;
    if (units > stripe->segment_units)
        return GYRE_TOO_LARGE;
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    err = eng_log_take_locked(stripe, pool, units, is_slab, start_out, reservation_out);
    bool low = ring->clean_units < eng_clean_target_units(stripe, ring) / 2;
    eng_alloc_unlock(stripe);
    if (err == GYRE_BUSY && eng_processes_reap(stripe->store) > 0) { /* the dead held too much */
        TRY(eng_alloc_lock_bounded(stripe));
        err = eng_log_take_locked(stripe, pool, units, is_slab, start_out, reservation_out);
        eng_alloc_unlock(stripe);
    }
    if (err == GYRE_NO_SPACE) {
        TRY(eng_clean_lock_bounded(stripe));
        err = clean_and_take(stripe, pool, units, is_slab, start_out, reservation_out);
        eng_clean_unlock(stripe);
    }
out:
    if (low)
        eng_keeper_wake(stripe->store);
    return err;
}

/* Bytes that lie ahead of the hand in its own segment are left to the hand: it would queue them
 * too. */
static bool hand_has_passed(const struct eng_stripe *stripe, const struct eng_ring *ring,
                            uint64_t start, uint64_t end)
{
    return eng_segment_of(stripe, start) != ring->hand_segment || end <= ring->hand;
}

void eng_log_trim_locked(struct eng_stripe *stripe, uint32_t reservation, uint64_t start)
{
    struct eng_reservation *at = &stripe->rt->reservations[reservation];
    GYRE_CHECK(start >= at->start && start <= at->end && start % ENG_PAGE_UNITS == 0);
    if (start == at->end)
        return;
    uint64_t end = at->end;
    uint32_t segment = eng_segment_of(stripe, start);
    struct eng_ring *ring = eng_ring_of(stripe, stripe->rt->segments[segment].pool);
    if (segment == ring->write_segment && hand_has_passed(stripe, ring, start, end))
        (void)eng_runs_give_back_locked(ring, stripe->segment_units, start, end);
    at->end = start;
    set_reserved_locked(stripe, reserved_locked(stripe) - (end - start));
}

void eng_log_end_locked(struct eng_stripe *stripe, uint32_t reservation)
{
    struct eng_stripe_rt *rt = stripe->rt;
    GYRE_CHECK(reservation < rt->reservations_high);
    struct eng_reservation *at = &rt->reservations[reservation];
    set_reserved_locked(stripe, reserved_locked(stripe) - (at->end - at->start));
    at->end = 0; /* first: see enter_reservation_locked */
    atomic_signal_fence(memory_order_seq_cst);
    *at = (struct eng_reservation){0};
    while (rt->reservations_high > 0 && rt->reservations[rt->reservations_high - 1].end == 0)
        rt->reservations_high--;
}

/* Release: what its owner wrote comes before what a later one writes there, which only follows
 * under the lock of whoever ends it. */
static void abandon(struct eng_stripe *stripe, uint32_t reservation)
{
    atomic_store_explicit(&stripe->rt->reservations[reservation].process, ENG_NOBODY,
                          memory_order_release);
    atomic_store_explicit(&stripe->store->rt.head->abandoned, 1, memory_order_release);
}

void eng_log_end(struct eng_stripe *stripe, uint32_t reservation, uint64_t trim_from)
{
    if (eng_alloc_lock_bounded(stripe) != GYRE_OK) {
        abandon(stripe, reservation);
        return;
    }
    if (trim_from != ENG_NO_TRIM)
        eng_log_trim_locked(stripe, reservation, trim_from);
    eng_log_end_locked(stripe, reservation);
    eng_alloc_unlock(stripe);
}
