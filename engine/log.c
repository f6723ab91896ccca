#include "engine/log.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/cleaner.h"
#include "engine/keeper.h"
#include "engine/locks.h"
#include "engine/process.h"
#include "engine/runs.h"

/* Laps a reservation may clean while others take away what it cleaned. */
enum { CONTENDED_LAPS = 16, EPOCHS_PER_LAP = 64 };

/* Documents that stay lie everywhere, and hardly ever leave room for a long extent between them. A
 * reservation for which so many times its length was cleaned in pieces gets its place at their
 * cost: the alternative were to clean all of the ring and find it nowhere. */
#define HARD_SHARE 4

static void set_reserved_locked(struct eng_stripe *stripe, uint64_t units)
{
    /* Relaxed: written under the lock, read by others for statistics. */
    atomic_store_explicit(&stripe->rt->reserved_units, units, memory_order_relaxed);
}

static uint64_t reserved_locked(const struct eng_stripe *stripe)
{
    return atomic_load_explicit(&stripe->rt->reserved_units, memory_order_relaxed);
}

/* Puts in progress may hold three quarters of the main pool's rings, so that the hand always finds
 * something. */
static bool over_limit(const struct eng_stripe *stripe, uint8_t ring, uint64_t units)
{
    const struct eng_ring *m = eng_ring_of(stripe, eng_ring_id(ENG_POOL_MAIN, ENG_RING_M));
    const struct eng_ring *s = eng_ring_of(stripe, eng_ring_id(ENG_POOL_MAIN, ENG_RING_S));
    uint64_t pool_units = (m->max_segments + s->max_segments) * stripe->segment_units;
    return eng_ring_pool(ring) == ENG_POOL_MAIN &&
           reserved_locked(stripe) + units > pool_units / 4 * 3;
}

static uint32_t free_reservation_locked(const struct eng_stripe_rt *rt)
{
    for (uint32_t i = 0; i < rt->reservations_high; i++)
        if (rt->reservations[i].start == rt->reservations[i].end)
            return i;
    return rt->reservations_high; /* ENG_RESERVATIONS: none */
}

/* Time as the policy knows it: by what was written. A burst of requests for one object fits into an
 * epoch, and is one hit. */
static void pass_time_locked(struct eng_stripe *stripe, uint64_t units)
{
    struct eng_stripe_rt *rt = stripe->rt;
    rt->epoch_units += units;
    if (rt->epoch_units < (stripe->area_bytes >> ENG_UNIT_SHIFT) / EPOCHS_PER_LAP)
        return;
    rt->epoch_units = 0;
    /* Why a stale answer is safe: one hit more or less is counted. */
    atomic_store_explicit(&rt->epoch, atomic_load_explicit(&rt->epoch, memory_order_relaxed) + 1,
                          memory_order_relaxed);
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
    if (n_older > ring->n_left)
        ring->n_left = n_older;
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

/* What a reservation is for. */
struct demand {
    uint64_t least, most; /* units */
    bool is_slab, is_copy;
};

/* What was reserved. */
struct grant {
    uint64_t start, units;
    uint32_t reservation;
};

static gyre_err take_locked(struct eng_stripe *stripe, uint8_t ring_id, const struct demand *demand,
                            struct grant *grant_out)
{
    GYRE_CHECK(demand->least > 0 && demand->least % ENG_PAGE_UNITS == 0 &&
               demand->most % ENG_PAGE_UNITS == 0);
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    *grant_out = (struct grant){.reservation = UINT32_MAX};
    uint32_t reservation = free_reservation_locked(rt);
    if (reservation == ENG_RESERVATIONS || over_limit(stripe, ring_id, demand->least))
        return GYRE_BUSY;
    uint64_t start, units;
    uint32_t n_older;
    if (!eng_runs_take_locked(ring, stripe->segment_units, demand->least, demand->most, &start,
                              &units, &n_older))
        return GYRE_NO_SPACE;
    follow_writer_locked(stripe, ring, start, n_older);
    enter_reservation_locked(stripe, reservation, start, units, demand->is_slab);
    if (reservation == rt->reservations_high)
        rt->reservations_high++;
    set_reserved_locked(stripe, reserved_locked(stripe) + units);
    ring->cursor = start + units;
    rt->written_units += units;
    pass_time_locked(stripe, units);
    if (!demand->is_copy)
        eng_policy_earn(&rt->policy, units,
                        eng_policy_most_tokens(stripe->area_bytes >> ENG_UNIT_SHIFT));
    *grant_out = (struct grant){start, units, reservation};
    GYRE_STEP("log.take.reserved");
    return GYRE_OK;
}

gyre_err eng_log_take_locked(struct eng_stripe *stripe, uint8_t ring, uint64_t units, bool is_slab,
                             uint64_t *start_out, uint32_t *reservation_out)
{
    const struct demand demand = {units, units, is_slab, false};
    struct grant grant;
    gyre_err err = take_locked(stripe, ring, &demand, &grant);
    *start_out = grant.start;
    *reservation_out = grant.reservation;
    return err;
}

gyre_err eng_log_take_copy_locked(struct eng_stripe *stripe, uint8_t ring, uint64_t least,
                                  uint64_t most, uint64_t *start_out, uint64_t *units_out,
                                  uint32_t *reservation_out)
{
    const struct demand demand = {least, most, false, true};
    struct grant grant;
    gyre_err err = take_locked(stripe, ring, &demand, &grant);
    *start_out = grant.start;
    *units_out = grant.units;
    *reservation_out = grant.reservation;
    return err;
}

/* What one caller's cleaning has come to. */
struct lap {
    uint64_t moved_units;   /* since something long enough was freed */
    uint64_t cleaned_units; /* the same */
    uint64_t total_units;
    uint64_t busy_units;
};

static bool lap_over(const struct lap *lap, const struct eng_stripe *stripe,
                     const struct eng_ring *ring)
{
    uint64_t ring_units = ring->n_segments * stripe->segment_units;
    return lap->moved_units > 2 * ring_units || lap->total_units > CONTENDED_LAPS * ring_units;
}

/* Hot documents cool as the hand passes, so a lap on which all of them stayed is followed by one on
 * which none does. */
static bool must_be_hard(const struct lap *lap, const struct eng_stripe *stripe,
                         const struct eng_ring *ring, uint64_t units)
{
    return lap->cleaned_units >= HARD_SHARE * units ||
           lap->moved_units > ring->n_segments * stripe->segment_units;
}

/* Cleans and tries again until it fits or two laps have not been enough. Space that others took
 * away in between starts the count anew: the ring is busy then, not full. */
static gyre_err clean_and_take(struct eng_stripe *stripe, uint8_t ring_id,
                               const struct demand *demand, struct grant *grant_out)
{
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    uint64_t units = demand->least;
    uint64_t target = 2 * eng_clean_target_units(stripe, ring);
    uint64_t limit = target > 4 * units ? target : 4 * units;
    struct lap lap = {0};
    for (;;) {
        gyre_err err = eng_alloc_lock_bounded(stripe);
        if (err != GYRE_OK)
            return err;
        err = take_locked(stripe, ring_id, demand, grant_out);
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
        err = eng_clean_step_locked(stripe, ring_id, limit, must_be_hard(&lap, stripe, ring, units),
                                    &step);
        if (err != GYRE_OK)
            return err;
        lap.total_units += step.moved_units;
        lap.busy_units += step.busy_units;
        bool fits = step.longest_units >= units;
        lap.moved_units = fits ? 0 : lap.moved_units + step.moved_units;
        lap.cleaned_units = fits ? 0 : lap.cleaned_units + step.cleaned_units;
    }
}

static gyre_err reserve(struct eng_stripe *stripe, uint8_t ring_id, const struct demand *demand,
                        struct grant *grant_out)
{
    *grant_out = (struct grant){.reservation = UINT32_MAX};
    if (demand->least > stripe->segment_units)
        return GYRE_TOO_LARGE;
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    err = take_locked(stripe, ring_id, demand, grant_out);
    bool low = ring->clean_units < eng_clean_target_units(stripe, ring) / 2;
    eng_alloc_unlock(stripe);
    if (err == GYRE_BUSY && eng_processes_reap(stripe->store) > 0) { /* the dead held too much */
        TRY(eng_alloc_lock_bounded(stripe));
        err = take_locked(stripe, ring_id, demand, grant_out);
        eng_alloc_unlock(stripe);
    }
    if (err == GYRE_NO_SPACE) {
        TRY(eng_clean_lock_bounded(stripe));
        err = clean_and_take(stripe, ring_id, demand, grant_out);
        eng_clean_unlock(stripe);
    }
out:
    if (low)
        eng_keeper_wake(stripe->store);
    return err;
}

gyre_err eng_log_reserve(struct eng_stripe *stripe, uint8_t ring, uint64_t units, bool is_slab,
                         uint64_t *start_out, uint32_t *reservation_out)
{
    const struct demand demand = {units, units, is_slab, false};
    struct grant grant;
    gyre_err err = reserve(stripe, ring, &demand, &grant);
    *start_out = grant.start;
    *reservation_out = grant.reservation;
    return err;
}

gyre_err eng_log_reserve_slab(struct eng_stripe *stripe, uint8_t ring, uint64_t least,
                              uint64_t most, uint64_t *start_out, uint64_t *units_out,
                              uint32_t *reservation_out)
{
    const struct demand demand = {least, most, true, false};
    struct grant grant;
    gyre_err err = reserve(stripe, ring, &demand, &grant);
    *start_out = grant.start;
    *units_out = grant.units;
    *reservation_out = grant.reservation;
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
    const struct eng_segment_row *row = &stripe->rt->segments[segment];
    struct eng_ring *ring =
        eng_ring_of(stripe, eng_ring_id(row->pool, (enum eng_ring_kind)row->kind));
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
