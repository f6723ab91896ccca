#include "engine/policy.h"

#include "engine/base/bits.h"
#include "engine/format.h"

enum {
    FORGET_OBJECTS = 4096, /* the mean is of about so many; then both sums are halved */
    PROMOTE_HITS = 2,
    EARN_SHIFT = 2, /* a quarter of what is inserted */
    LARGE = 4,      /* times the mean, and the mean over it */
    S_SHARE = 10,   /* M is nine times as large */
    GAP_SHARE = 4,  /* a gap may be a quarter of the run behind it */
    BIG_SHARE = 4,  /* an object over a quarter of a segment would be all there is in S */
};

#define BURST_BYTES (UINT64_C(16) << 20)

bool eng_policy_admits(const struct eng_policy *policy, const struct eng_newcomer *newcomer)
{
    if (policy->retention == ENG_RETENTION_FIFO || newcomer->m_may_grow ||
        eng_policy_mode(policy) == ENG_MODE_R)
        return true;
    return newcomer->remembered || newcomer->object_units > newcomer->segment_units / BIG_SHARE;
}

enum eng_verdict eng_policy_judge(const struct eng_policy *policy, const struct eng_resident *it)
{
    if (policy->retention == ENG_RETENTION_FIFO)
        return ENG_LEAVES;
    if (it->in_main)
        return it->hits >= (it->grade == ENG_GRADE_LARGE ? 2u : 1u) ? ENG_STAYS : ENG_LEAVES;
    uint32_t enough = it->grade == ENG_GRADE_LARGE   ? PROMOTE_HITS + 1
                      : it->grade == ENG_GRADE_SMALL ? PROMOTE_HITS - 1
                                                     : PROMOTE_HITS;
    return it->hits >= enough ? ENG_PROMOTED : ENG_LEAVES;
}

bool eng_policy_remembers(const struct eng_policy *policy, bool in_main)
{
    if (policy->retention == ENG_RETENTION_FIFO)
        return false;
    return !in_main || eng_policy_mode(policy) == ENG_MODE_R;
}

/* A gap that fits what is usually written is no loss: it will be filled. */
bool eng_policy_hops(const struct eng_policy *policy, uint64_t gap_units, uint64_t run_units)
{
    uint64_t usual = policy->n_extents > 0 ? policy->extents_units / policy->n_extents : 0;
    return gap_units >= usual || gap_units <= run_units / GAP_SHARE;
}

enum eng_grade eng_policy_grade(const struct eng_policy *policy, uint64_t object_units)
{
    uint64_t mean = policy->n_objects > 0 ? policy->sum_units / policy->n_objects : object_units;
    return object_units > LARGE * mean   ? ENG_GRADE_LARGE
           : object_units < mean / LARGE ? ENG_GRADE_SMALL
                                         : ENG_GRADE_COMMON;
}

void eng_policy_inserted(struct eng_policy *policy, uint64_t object_units)
{
    policy->sum_units += object_units;
    policy->n_objects++;
    if (policy->n_objects >= FORGET_OBJECTS) {
        policy->sum_units /= 2;
        policy->n_objects /= 2;
    }
}

void eng_policy_earn(struct eng_policy *policy, uint64_t units, uint64_t most_units)
{
    policy->inserted_units += units;
    policy->extents_units += units;
    policy->n_extents++;
    if (policy->n_extents >= FORGET_OBJECTS) {
        policy->extents_units /= 2;
        policy->n_extents /= 2;
    }
    policy->tokens_units += units >> EARN_SHIFT;
    if (policy->tokens_units > most_units)
        policy->tokens_units = most_units;
}

bool eng_policy_pay(struct eng_policy *policy, uint64_t units)
{
    if (policy->retention == ENG_RETENTION_FIFO || policy->tokens_units < units) {
        policy->refused_copies++;
        return false;
    }
    policy->tokens_units -= units;
    policy->copied_units += units;
    return true;
}

uint64_t eng_policy_most_tokens(uint64_t stripe_units)
{
    return stripe_units / 50 + BURST_BYTES / ENG_UNIT;
}

uint32_t eng_policy_s_segments(const struct eng_policy *policy, uint32_t n)
{
    if (policy->retention == ENG_RETENTION_FIFO || policy->retention == ENG_RETENTION_RECENCY ||
        n < 4)
        return 0;
    if (eng_policy_mode(policy) == ENG_MODE_R)
        return 1;
    uint32_t share = (n + S_SHARE / 2) / S_SHARE;
    return share > 0 ? share : 1;
}
