/* Who stays and who goes: pure decisions, on numbers alone. The hand, the writers and the readers
 * ask; nothing here looks at a clock, a file or a lock.
 *
 * Two rings: newcomers pass through S, a tenth of the space; what is hit there twice, or comes back
 * soon after it left, lives in M, where the hand lets it stay in place for as long as it is hit
 * ("hop"). Copies are paid from tokens, which insertions earn, so that they stay a quarter of what
 * is inserted however the decisions fall. S3-FIFO (Yang et al., 2023) is the model of the rings.
 *
 *   new      -> M  while M takes free segments; in mode R; remembered by the ghost; very large
 *            -> S  otherwise
 *   hand, S  -> M  hits >= 2 (small 1, large 3), copied ("promoted")
 *            -> gone, into the ghost
 *   hand, M  -> M  hits >= 1 (large 2), one hit less: in place, or copied where that wastes less
 *            -> gone; in mode R into the ghost
 *
 * Owns:    nothing: the state is flat memory of the caller, shared by processes.
 * Threads: the stripe's alloc lock, but for what is marked [a]. Blocks: never. Allocates: nothing.
 * Keeps:   E70, E72, E73.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum eng_retention {
    ENG_RETENTION_KEPT,      /* of an opening: as others have set it; AUTO in a new segment */
    ENG_RETENTION_AUTO,      /* S and M, or M alone, as the shadow finds better */
    ENG_RETENTION_FIFO,      /* one ring, nobody stays */
    ENG_RETENTION_FREQUENCY, /* always S and M */
    ENG_RETENTION_RECENCY,   /* always M alone */
};

enum eng_mode { ENG_MODE_F = 0, ENG_MODE_R = 1 };

/* How long an object is, against the others of its time; kept in its slot word. */
enum eng_grade { ENG_GRADE_COMMON = 0, ENG_GRADE_SMALL = 1, ENG_GRADE_LARGE = 2 };

/* Of a stripe. Any numbers in it are safe. */
struct eng_policy {
    _Atomic uint32_t mode;                       /* [a] enum eng_mode */
    uint32_t retention;                          /* enum eng_retention; const after open */
    uint64_t tokens_units;                       /* may be copied now */
    uint64_t sum_units, n_objects;               /* lately inserted, for the mean */
    uint64_t extents_units, n_extents;           /* lately reserved, for the mean */
    uint64_t inserted_units, copied_units;       /* since the store was opened */
    uint64_t promotions, copies, refused_copies; /* the last: tokens did not suffice */
};

/* What an insertion's place depends on. */
struct eng_newcomer {
    uint64_t object_units, segment_units;
    bool m_may_grow; /* a free segment is there for M */
    bool remembered; /* by the ghost */
};

/* What the hand sees of a document. */
struct eng_resident {
    bool in_main;  /* lies in a segment of M, or was written to one */
    uint32_t hits; /* 0..3 */
    enum eng_grade grade;
};

enum eng_verdict { ENG_LEAVES, ENG_STAYS, ENG_PROMOTED };

/* Whether a newcomer goes to M. */
bool eng_policy_admits(const struct eng_policy *policy, const struct eng_newcomer *newcomer);
/* What becomes of a document the hand has reached. */
enum eng_verdict eng_policy_judge(const struct eng_policy *policy, const struct eng_resident *it);
/* Whether what leaves is remembered. */
bool eng_policy_remembers(const struct eng_policy *policy, bool in_main);
/* Whether a run of documents that stay is better left in place, with `gap_units` of free space
 * before it, than copied. */
bool eng_policy_hops(const struct eng_policy *policy, uint64_t gap_units, uint64_t run_units);

/* An insertion of an object; they make the mean that grades refer to. */
void eng_policy_inserted(struct eng_policy *policy, uint64_t object_units);
enum eng_grade eng_policy_grade(const struct eng_policy *policy, uint64_t object_units);
/* A reservation for something inserted earns a quarter of its length in tokens; no more than
 * `most_units` are kept. */
void eng_policy_earn(struct eng_policy *policy, uint64_t units, uint64_t most_units);
/* Pays for a copy; false: it cannot be paid. */
bool eng_policy_pay(struct eng_policy *policy, uint64_t units);
/* The most tokens a stripe keeps. */
uint64_t eng_policy_most_tokens(uint64_t stripe_units);

/* Segments of a pool's `n` that S should have. */
uint32_t eng_policy_s_segments(const struct eng_policy *policy, uint32_t n);

static inline enum eng_mode eng_policy_mode(const struct eng_policy *policy)
{
    /* Why a stale answer is safe: a newcomer goes where it would have gone a moment ago. */
    return (enum eng_mode)(atomic_load_explicit(&policy->mode, memory_order_relaxed) & 1);
}
