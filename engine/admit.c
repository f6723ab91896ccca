#include "engine/admit.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/locks.h"
#include "engine/parent.h"
#include "engine/pool.h"
#include "engine/writer.h"

/* Parts that follow their HEAD's counter at once; of a larger object the rest does not. */
enum { PARTS_FOLLOW = 1024 };

static uint64_t units_of(uint64_t bytes)
{
    uint64_t most = UINT64_C(1) << 31;
    uint64_t units = eng_div_up(bytes + sizeof(struct eng_doc), ENG_UNIT);
    return units < most ? units : most;
}

static uint64_t identity_of(const struct eng_place *place)
{
    return eng_identity_of_buckets(place->bucket[0], place->bucket[1], place->tag);
}

/* ---- Samples ---- */

unsigned eng_length_class(uint64_t object_bytes)
{
    return eng_size_class(units_of(object_bytes));
}

/* Whoever comes first takes the place: the order of two samples does not matter. */
void eng_sample(struct eng_stripe *stripe, uint64_t hash, enum eng_event kind, unsigned size_class)
{
    struct eng_samples *samples = &stripe->rt->samples;
    uint64_t at = atomic_fetch_add_explicit(&samples->head, 1, memory_order_relaxed);
    atomic_store_explicit(&samples->at[at % ENG_SAMPLES], eng_shadow_event(hash, kind, size_class),
                          memory_order_relaxed);
}

static void drain(struct eng_stripe *stripe)
{
    struct eng_samples *samples = &stripe->rt->samples;
    uint64_t head = atomic_load_explicit(&samples->head, memory_order_relaxed);
    if (head - samples->tail > ENG_SAMPLES) /* the oldest were written over */
        samples->tail = head - ENG_SAMPLES;
    for (; samples->tail != head; samples->tail++)
        eng_shadow_feed(
            &stripe->rt->shadow,
            atomic_load_explicit(&samples->at[samples->tail % ENG_SAMPLES], memory_order_relaxed));
}

/* For whoever looks in: the shadow itself is for the holder of the clean lock. */
static void show(struct eng_stripe_rt *rt)
{
    atomic_store_explicit(&rt->compared, eng_shadow_count(rt->shadow.weight), memory_order_relaxed);
    atomic_store_explicit(&rt->compared_hits[ENG_MODE_F], eng_shadow_count(rt->shadow.f.score),
                          memory_order_relaxed);
    atomic_store_explicit(&rt->compared_hits[ENG_MODE_R], eng_shadow_count(rt->shadow.r.score),
                          memory_order_relaxed);
}

static uint64_t objects_of(const struct eng_stripe_rt *rt)
{
    return atomic_load_explicit(&rt->documents, memory_order_relaxed) -
           atomic_load_explicit(&rt->parts, memory_order_relaxed);
}

/* What all objects of the evicting pools may take. */
static uint64_t capacity_units(const struct eng_stripe *stripe)
{
    const struct eng_ring *m = eng_ring_of(stripe, eng_ring_id(ENG_POOL_MAIN, ENG_RING_M));
    const struct eng_ring *s = eng_ring_of(stripe, eng_ring_id(ENG_POOL_MAIN, ENG_RING_S));
    return (m->max_segments + s->max_segments) * stripe->segment_units;
}

void eng_policy_learn(struct eng_stripe *stripe)
{
    struct eng_stripe_rt *rt = stripe->rt;
    struct eng_policy *policy = &rt->policy;
    if (policy->retention == ENG_RETENTION_FIFO)
        return;
    if (eng_shadow_fit(&rt->shadow, objects_of(rt), capacity_units(stripe)))
        atomic_store_explicit(&rt->samples.shift, rt->shadow.shift, memory_order_relaxed);
    drain(stripe);
    show(rt);
    if (policy->retention != ENG_RETENTION_AUTO)
        return;
    enum eng_mode mode = eng_shadow_mode(&rt->shadow);
    if (mode == eng_policy_mode(policy))
        return;
    if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
        return; /* the next step asks again */
    atomic_store_explicit(&policy->mode, mode, memory_order_relaxed);
    for (uint8_t pool = 0; pool < stripe->store->super.n_pools; pool++)
        if (!eng_pool_never_evicts(stripe->store, pool))
            eng_ring_share_locked(stripe, pool);
    eng_alloc_unlock(stripe);
    ENG_COUNT(stripe->store, mode_switches, 1);
}

void eng_retention_set(struct eng_store *store, enum eng_retention retention)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        struct eng_policy *policy = &stripe->rt->policy;
        eng_alloc_lock(stripe);
        if (retention != ENG_RETENTION_KEPT && policy->retention != (uint32_t)retention) {
            policy->retention = retention;
            if (retention != ENG_RETENTION_AUTO)
                atomic_store_explicit(&policy->mode,
                                      retention == ENG_RETENTION_RECENCY ? ENG_MODE_R : ENG_MODE_F,
                                      memory_order_relaxed);
        }
        if (policy->retention == ENG_RETENTION_KEPT)
            policy->retention = ENG_RETENTION_AUTO;
        for (uint8_t pool = 0; pool < store->super.n_pools; pool++)
            if (!eng_pool_never_evicts(store, pool))
                eng_ring_share_locked(stripe, pool);
        eng_alloc_unlock(stripe);
    }
}

/* ---- Newcomers ---- */

static uint32_t epoch_of(const struct eng_stripe *stripe)
{
    return atomic_load_explicit(&stripe->rt->epoch, memory_order_relaxed);
}

static bool knows_locked(const struct eng_stripe *stripe, const struct eng_place *place)
{
    return eng_ghost_has(&stripe->rt->ghost, stripe->ghost, stripe->n_ghost, identity_of(place));
}

static uint8_t choose_locked(uint8_t pool, const struct eng_stripe *at, uint64_t object_bytes,
                             bool remembered)
{
    uint8_t m = eng_ring_id(pool, ENG_RING_M);
    const struct eng_newcomer newcomer = {
        .object_units = units_of(object_bytes),
        .segment_units = at->segment_units,
        .remembered = remembered,
        .m_may_grow = eng_ring_may_grow_locked(at, m),
    };
    return eng_policy_admits(&at->rt->policy, &newcomer) ? m : eng_ring_id(pool, ENG_RING_S);
}

/* Whether nothing is to be decided: all goes to M. */
static bool has_one_ring_locked(uint8_t pool, const struct eng_stripe *stripe)
{
    return eng_pool_never_evicts(stripe->store, pool) ||
           eng_ring_of(stripe, eng_ring_id(pool, ENG_RING_S))->max_segments == 0;
}

uint8_t eng_admit_locked(uint8_t pool, struct eng_stripe *stripe, const struct eng_place *place,
                         uint64_t object_bytes, bool *remembered_out)
{
    *remembered_out = false;
    if (has_one_ring_locked(pool, stripe))
        return eng_ring_id(pool, ENG_RING_M);
    *remembered_out = knows_locked(stripe, place);
    return choose_locked(pool, stripe, object_bytes, *remembered_out);
}

uint8_t eng_admit_part(uint8_t pool, struct eng_stripe *home, const struct eng_place *place,
                       uint64_t object_bytes, struct eng_stripe *at)
{
    uint8_t m = eng_ring_id(pool, ENG_RING_M);
    if (eng_pool_never_evicts(at->store, pool) || at->rt->policy.retention == ENG_RETENTION_FIFO ||
        eng_alloc_lock_bounded(home) != GYRE_OK)
        return m;
    bool remembered = knows_locked(home, place);
    if (home != at) {
        eng_alloc_unlock(home);
        if (eng_alloc_lock_bounded(at) != GYRE_OK)
            return m;
    }
    uint8_t ring =
        has_one_ring_locked(pool, at) ? m : choose_locked(pool, at, object_bytes, remembered);
    eng_alloc_unlock(at);
    return ring;
}

uint32_t eng_first_flags_locked(struct eng_stripe *stripe, uint64_t object_bytes)
{
    enum eng_grade grade = eng_policy_grade(&stripe->rt->policy, units_of(object_bytes));
    return (uint32_t)grade << ENG_SLOT_GRADE_SHIFT | (epoch_of(stripe) & ENG_SLOT_EPOCH);
}

void eng_admitted_locked(struct eng_stripe *stripe, const struct eng_place *place,
                         uint64_t object_bytes, bool remembered)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint64_t units = units_of(object_bytes);
    eng_policy_inserted(&rt->policy, units);
    if (remembered &&
        eng_ghost_take(&rt->ghost, stripe->ghost, stripe->n_ghost, identity_of(place)))
        ENG_COUNT(stripe->store, ghost_finds, 1);
    if (eng_is_sampled(stripe, place->hash))
        eng_sample(stripe, place->hash, ENG_EVENT_PUT, eng_size_class(units));
}

/* ---- Hits ---- */

static void count_part(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                       const struct eng_parent *head)
{
    struct eng_stripe *stripe;
    struct eng_candidates candidates;
    struct eng_place place = eng_place_of(store, pool, key, &stripe);
    eng_directory_lookup(stripe, &place, &candidates);
    for (size_t i = 0; i < candidates.n; i++) {
        const struct eng_candidate *at = &candidates.at[i];
        if (eng_entry_kind(at->entry) != ENG_KIND_PART)
            continue;
        (void)eng_slot_count_hit(&stripe->slots[at->slot], at->slot_word, epoch_of(stripe));
        eng_parent_note(stripe, at->entry, head);
    }
}

/* At most once in an epoch, so that it costs little. */
static void count_parts(struct eng_store *store, const struct eng_place *place,
                        const struct eng_ref *ref)
{
    const struct eng_parent head = {ref->stripe, identity_of(place)};
    const struct eng_doc *doc = ref->doc;
    uint64_t n = doc->body_len / sizeof(struct eng_part_row);
    for (uint64_t i = 0; i < n && i < PARTS_FOLLOW; i++) {
        struct eng_part_row row;
        uint8_t key[32];
        memcpy(&row, ref->body + i * sizeof row, sizeof row);
        eng_part_key(doc->key, doc->object_serial, row.part_no, row.attempt, row.sub, key);
        count_part(store, doc->pool, key, &head);
    }
}

/* A part can have been cooled since its HEAD's counter came to its end. */
void eng_hit_count(struct eng_store *store, const struct eng_place *place,
                   const struct eng_ref *ref, uint32_t epoch)
{
    struct eng_slot *slot = &ref->stripe->slots[ref->slot];
    bool counted = eng_slot_count_hit(slot, ref->slot_word, epoch);
    if (ref->doc->type == ENG_HEAD && (counted || eng_slot_note_epoch(slot, ref->slot_word, epoch)))
        count_parts(store, place, ref);
}
