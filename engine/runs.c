#include "engine/runs.h"

#include "engine/base/check.h"
#include "engine/log.h"

struct eng_run *eng_run_at(struct eng_ring *ring, uint32_t i)
{
    return &ring->runs[(ring->first_run + i) % ENG_RUNS];
}

const struct eng_run *eng_run_get(const struct eng_ring *ring, uint32_t i)
{
    return &ring->runs[(ring->first_run + i) % ENG_RUNS];
}

/* Whoever inherits the lock of one who died in between forgets the queue. */
static void begin_change(struct eng_ring *ring)
{
    ring->runs_in_flight = 1;
    atomic_signal_fence(memory_order_seq_cst); /* a death is seen in program order */
}

static void end_change(struct eng_ring *ring)
{
    atomic_signal_fence(memory_order_seq_cst);
    ring->runs_in_flight = 0;
}

static uint64_t length(const struct eng_run *run)
{
    return run->end - run->start;
}

static void drop(struct eng_ring *ring, uint32_t i)
{
    ring->clean_units -= length(eng_run_at(ring, i));
    if (i == 0) {
        ring->first_run = (ring->first_run + 1) % ENG_RUNS;
    } else {
        for (uint32_t k = i; k + 1 < ring->n_runs; k++)
            *eng_run_at(ring, k) = *eng_run_at(ring, k + 1);
    }
    ring->n_runs--;
    if (i < ring->n_left)
        ring->n_left--;
}

void eng_runs_drop_locked(struct eng_ring *ring, uint32_t i)
{
    begin_change(ring);
    drop(ring, i);
    end_change(ring);
}

uint64_t eng_runs_push_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t start,
                              uint64_t end, uint64_t limit_units)
{
    GYRE_CHECK(start < end && start % ENG_PAGE_UNITS == 0 && end % ENG_PAGE_UNITS == 0);
    begin_change(ring);
    ring->clean_units += end - start;
    bool follows = ring->n_runs > 0 && eng_run_at(ring, ring->n_runs - 1)->end == start;
    if (follows && start % segment_units != 0) { /* a document never crosses a segment's end */
        eng_run_at(ring, ring->n_runs - 1)->end = end;
    } else {
        if (ring->n_runs == ENG_RUNS)
            drop(ring, 0);
        *eng_run_at(ring, ring->n_runs++) = (struct eng_run){start, end};
    }
    while (ring->n_runs > 1 && ring->clean_units > limit_units)
        drop(ring, 0);
    end_change(ring);
    return length(eng_run_at(ring, ring->n_runs - 1));
}

/* The oldest run of `least` units; n_runs: there is none. */
static uint32_t find_oldest(const struct eng_ring *ring, uint64_t least)
{
    uint32_t i = 0;
    while (i < ring->n_runs && length(eng_run_get(ring, i)) < least)
        i++;
    return i;
}

/* The shortest of `least` units in a segment. */
static uint32_t find_shortest(const struct eng_ring *ring, uint64_t segment_units, uint64_t segment,
                              uint64_t least)
{
    uint32_t found = ring->n_runs;
    for (uint32_t i = 0; i < ring->n_runs; i++) {
        const struct eng_run *run = eng_run_get(ring, i);
        if (run->start / segment_units == segment && length(run) >= least &&
            (found == ring->n_runs || length(run) < length(eng_run_get(ring, found))))
            found = i;
    }
    return found;
}

bool eng_runs_take_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t least,
                          uint64_t most, uint64_t *start_out, uint64_t *units_out,
                          uint32_t *n_older_out)
{
    uint32_t i = ring->n_runs;
    if (least < most && ring->cursor > 0)
        i = find_shortest(ring, segment_units, (ring->cursor - 1) / segment_units, least);
    if (i == ring->n_runs)
        i = find_oldest(ring, least);
    if (i == ring->n_runs)
        return false;
    struct eng_run *run = eng_run_at(ring, i);
    uint64_t units = length(run) < most ? length(run) : most;
    *units_out = units;
    *start_out = run->start;
    *n_older_out = i;
    begin_change(ring);
    run->start += units;
    ring->clean_units -= units;
    if (run->start == run->end)
        drop(ring, i);
    end_change(ring);
    return true;
}

bool eng_runs_give_back_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t start,
                               uint64_t end)
{
    for (uint32_t i = 0; i < ring->n_runs; i++) {
        struct eng_run *run = eng_run_at(ring, i);
        if (run->start != end || end % segment_units == 0)
            continue;
        begin_change(ring);
        run->start = start;
        ring->clean_units += end - start;
        end_change(ring);
        return true;
    }
    if (ring->n_runs == ENG_RUNS)
        return false;
    if (ring->n_runs > 0) {
        const struct eng_run *first = eng_run_get(ring, 0);
        if (first->start / segment_units != start / segment_units || end > first->start)
            return false;
    }
    begin_change(ring);
    ring->first_run = (ring->first_run + ENG_RUNS - 1) % ENG_RUNS;
    ring->n_runs++;
    /* Something newer was written behind it, unless it is the end of the newest reservation. */
    if (ring->n_left > 0 || ring->cursor != end)
        ring->n_left++;
    *eng_run_at(ring, 0) = (struct eng_run){start, end};
    ring->clean_units += end - start;
    end_change(ring);
    return true;
}

void eng_runs_drop_segment_locked(struct eng_ring *ring, uint64_t segment_units, uint32_t segment)
{
    for (uint32_t i = 0; i < ring->n_runs;) {
        if (eng_run_at(ring, i)->start / segment_units == segment)
            eng_runs_drop_locked(ring, i);
        else
            i++;
    }
}
