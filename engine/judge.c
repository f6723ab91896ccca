#include "engine/admit.h"
#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/expiry.h"
#include "engine/hand.h"
#include "engine/locks.h"
#include "engine/parent.h"
#include "engine/pool.h"
#include "engine/slot.h"

/* Looks at a HEAD that is written anew or moved each time. */
enum { HEAD_ROUNDS = 4 };

/* Looking ahead for more documents that stay, beside one that does. */
#define RUN_UNITS ((UINT64_C(1) << 20) / ENG_UNIT)

static uint64_t page_of(const struct eng_batch *batch, uint64_t offset)
{
    return (offset - batch->start) / ENG_PAGE_UNITS;
}

static uint64_t end_of(const struct eng_batch *batch, const struct eng_met *met)
{
    uint64_t end = met->offset + met->units;
    return end < batch->segment_end ? end : batch->segment_end;
}

static uint64_t mark(struct eng_batch *batch, const struct eng_met *met)
{
    return eng_pages_mark(&batch->pages, met->offset, end_of(batch, met));
}

static uint32_t word_of(const struct eng_batch *batch, const struct eng_met *met)
{
    return atomic_load_explicit(&batch->stripe->slots[met->slot].word, memory_order_relaxed);
}

/* A PART whose HEAD has gone is found by nobody. */
static bool is_orphan(const struct eng_batch *batch, const struct eng_met *met)
{
    struct eng_parent_heads heads;
    if (eng_entry_kind(met->entry) != ENG_KIND_PART)
        return false;
    struct eng_parent head = eng_parent_of(batch->stripe, met->entry);
    if (head.stripe == NULL)
        return false;
    eng_parent_find(&head, &heads);
    return heads.n == 0;
}

/* Of its own, before the neighbours are looked at. */
static void judge_alone(struct eng_batch *batch, struct eng_met *met)
{
    const struct eng_stripe *stripe = batch->stripe;
    const struct eng_slot *slot = &stripe->slots[met->slot];
    uint32_t word = word_of(batch, met);
    met->in_main = eng_ring_kind_of(batch->ring_id) == ENG_RING_M || eng_entry_in_main(met->entry);
    bool busy = eng_pages_busy(&batch->pages, page_of(batch, met->offset));
    met->settled = busy || eng_pool_never_evicts(stripe->store, eng_slot_pool(slot)) ||
                   eng_entry_keep(met->entry);
    const struct eng_resident resident = {
        .in_main = met->in_main,
        .hits = (word & ENG_SLOT_HITS) / ENG_SLOT_HIT,
        .grade = (enum eng_grade)((word & ENG_SLOT_GRADE) >> ENG_SLOT_GRADE_SHIFT),
    };
    enum eng_verdict verdict = batch->hard || is_orphan(batch, met)
                                   ? ENG_LEAVES
                                   : eng_policy_judge(&stripe->rt->policy, &resident);
    met->fate = met->settled || verdict == ENG_STAYS ? ENG_FATE_STAYS
                : verdict == ENG_PROMOTED            ? ENG_FATE_COPIED
                                                     : ENG_FATE_GOES;
    if (met->fate != ENG_FATE_GOES && !busy &&
        eng_spent_locked(stripe, met->slot, met->entry, batch->now)) {
        met->fate = ENG_FATE_GOES;
        met->settled = false;
        met->spent = true;
        batch->expired++;
    }
    met->promoted = met->fate == ENG_FATE_COPIED;
    if (met->promoted && !eng_policy_pay(&batch->stripe->rt->policy, met->units)) {
        met->fate = ENG_FATE_GOES;
        met->promoted = false;
    }
}

/* Index behind a run of documents that stay side by side from `i` on, and where the run ends. */
static uint32_t run_from(const struct eng_batch *batch, uint32_t i, uint64_t *end_out)
{
    uint64_t start = batch->met[i].offset;
    uint64_t end = start;
    for (; i < batch->n; i++) {
        const struct eng_met *met = &batch->met[i];
        if (met->fate != ENG_FATE_STAYS ||
            (met->offset > eng_align_up(end, ENG_PAGE_UNITS) && end > start) ||
            met->offset - start > RUN_UNITS)
            break;
        end = end_of(batch, met);
    }
    *end_out = end;
    return i;
}

/* Copies those that waste more by staying, while tokens last. */
static void judge_run(struct eng_batch *batch, uint32_t first, uint32_t behind, uint64_t gap,
                      uint64_t run)
{
    struct eng_policy *policy = &batch->stripe->rt->policy;
    if (gap == 0 || eng_policy_hops(policy, gap, run))
        return;
    for (uint32_t i = first; i < behind; i++)
        if (batch->met[i].settled)
            return;
    for (uint32_t i = first; i < behind; i++)
        if (eng_policy_pay(policy, batch->met[i].units))
            batch->met[i].fate = ENG_FATE_COPIED;
}

static void judge_gaps(struct eng_batch *batch)
{
    uint64_t free_from = batch->start;
    for (uint32_t i = 0; i < batch->n;) {
        if (batch->met[i].fate != ENG_FATE_STAYS) {
            i++;
            continue;
        }
        uint64_t end;
        uint32_t behind = run_from(batch, i, &end);
        uint64_t first_page = eng_align_down(batch->met[i].offset, ENG_PAGE_UNITS);
        uint64_t gap = first_page > free_from ? first_page - free_from : 0;
        judge_run(batch, i, behind, gap, end - batch->met[i].offset);
        if (batch->met[behind - 1].fate == ENG_FATE_STAYS)
            free_from = eng_align_up(end, ENG_PAGE_UNITS);
        i = behind;
    }
}

/* A document all of whose pages stay anyway gains nothing by leaving: pages are what is reused. */
static bool is_covered(const struct eng_batch *batch, const struct eng_met *met)
{
    uint64_t last = page_of(batch, end_of(batch, met) - 1);
    for (uint64_t page = page_of(batch, met->offset); page <= last; page++)
        if (!eng_pages_busy(&batch->pages, page))
            return false;
    return true;
}

static void remember_locked(struct eng_stripe *stripe, uint64_t identity)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint64_t objects = atomic_load_explicit(&rt->documents, memory_order_relaxed) -
                       atomic_load_explicit(&rt->parts, memory_order_relaxed);
    eng_ghost_put(&rt->ghost, stripe->ghost, stripe->n_ghost, identity, objects);
}

void eng_evict_locked(struct eng_batch *batch, const struct eng_met *met)
{
    struct eng_stripe *stripe = batch->stripe;
    uint32_t slot =
        eng_directory_locate_locked(stripe, met->slot, met->entry); /* it may have moved */
    if (slot == ENG_NO_SLOT)
        return;
    GYRE_CHECK(eng_directory_remove_locked(stripe, slot, met->entry));
    batch->evicted++;
    batch->evicted_units += met->units;
    GYRE_STEP("cleaner.decide.evicted");
    if (eng_entry_kind(met->entry) != ENG_KIND_PART && !met->spent &&
        eng_policy_remembers(&stripe->rt->policy, met->in_main))
        remember_locked(stripe, eng_identity(stripe, met->slot / ENG_BUCKET_ENTRIES,
                                             eng_entry_tag(met->entry)));
}

/* Whether there is a HEAD that names the part; *slot_out and *entry_out: where it is. */
static bool find_head(const struct eng_batch *batch, const struct eng_met *part,
                      const struct eng_parent *head, uint32_t *slot_out, uint64_t *entry_out)
{
    struct eng_parent_heads heads;
    eng_parent_find(head, &heads);
    for (uint32_t i = 0; i < heads.n; i++) {
        *slot_out = heads.at[i].slot;
        *entry_out = heads.at[i].entry;
        /* Why a stale length is safe: it is a bound for what the header says. */
        if (eng_parent_names(head->stripe, *entry_out, head->stripe->slots[*slot_out].units,
                             batch->stripe, part->slot, part->entry))
            return true;
    }
    return false;
}

static void unlink_head_locked(struct eng_batch *batch, const struct eng_met *part,
                               const struct eng_parent *head, uint32_t slot, uint64_t entry)
{
    batch->evicted++;
    batch->evicted_units += head->stripe->slots[slot].units;
    GYRE_CHECK(eng_directory_remove_locked(head->stripe, slot, entry));
    if (!part->spent && eng_policy_remembers(&head->stripe->rt->policy, part->in_main))
        remember_locked(head->stripe, head->identity);
}

/* Takes out the HEAD that names a part; false: the part has to stay, because its HEAD does. */
static bool evict_head(struct eng_batch *batch, const struct eng_met *part)
{
    struct eng_parent head = eng_parent_of(batch->stripe, part->entry);
    uint32_t slot;
    uint64_t entry;
    if (head.stripe == NULL)
        return true;
    for (int round = 0; round < HEAD_ROUNDS; round++) {
        if (!find_head(batch, part, &head, &slot, &entry))
            return true;
        if (eng_entry_keep(entry) || eng_alloc_lock_bounded(head.stripe) != GYRE_OK)
            return false;
        slot = eng_directory_locate_locked(head.stripe, slot, entry);
        bool found = slot != ENG_NO_SLOT;
        if (found)
            unlink_head_locked(batch, part, &head, slot, entry);
        eng_alloc_unlock(head.stripe);
        if (found) {
            GYRE_STEP("judge.head.unlinked");
            return true;
        }
    }
    return false;
}

void eng_evict_part(struct eng_batch *batch, const struct eng_met *met)
{
    if (!evict_head(batch, met)) {
        (void)mark(batch, met);
        return;
    }
    eng_alloc_lock(batch->stripe);
    eng_evict_locked(batch, met);
    eng_alloc_unlock(batch->stripe);
}

void eng_evict_parts(struct eng_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->met[i].fate == ENG_FATE_GOES &&
            eng_entry_kind(batch->met[i].entry) == ENG_KIND_PART)
            eng_evict_part(batch, &batch->met[i]);
}

void eng_judge_locked(struct eng_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        judge_alone(batch, &batch->met[i]);
    judge_gaps(batch);
    for (uint32_t i = 0; i < batch->n; i++) {
        struct eng_met *met = &batch->met[i];
        if (met->fate == ENG_FATE_COPIED)
            batch->n_copied++;
        if (met->fate != ENG_FATE_STAYS)
            continue;
        uint64_t fresh = mark(batch, met);
        batch->hops++;
        if (met->settled)
            batch->settled_pages += fresh;
        else
            eng_slot_cool(&batch->stripe->slots[met->slot]);
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        struct eng_met *met = &batch->met[i];
        if (met->fate == ENG_FATE_GOES && eng_entry_kind(met->entry) != ENG_KIND_PART &&
            (met->spent || !is_covered(batch, met)))
            eng_evict_locked(batch, met);
    }
}
