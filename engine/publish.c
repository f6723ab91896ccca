#include "engine/publish.h"

#include <string.h>

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/slot.h"

static uint64_t part_entry(const struct eng_part *part, uint16_t tag)
{
    return eng_entry_make(tag, part->extent.start, part->record.units, ENG_KIND_PART,
                          eng_ring_kind_of(part->extent.ring), part->keep, part->serial);
}

static gyre_err publish_part(struct eng_store *store, struct eng_part *part)
{
    struct eng_stripe *stripe;
    struct eng_displaced displaced;
    uint8_t pool = eng_slot_pool(&part->record);
    struct eng_place place = eng_place_in_epoch(store, pool, part->epoch, part->key, &stripe);
    uint64_t entry = part_entry(part, place.tag);
    GYRE_CHECK(stripe == part->extent.stripe);
    displaced.slot = ENG_NO_SLOT;
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    if (part->keep)
        err = eng_pool_may_keep_locked(stripe, pool, part->record.units, part->held);
    if (err == GYRE_OK)
        err = eng_directory_insert_locked(stripe, &place, entry, &part->record, &displaced);
    eng_alloc_unlock(stripe);
    part->published = err == GYRE_OK;
    if (displaced.slot != ENG_NO_SLOT)
        ENG_COUNT(store, displacements, 1);
    GYRE_STEP("publish.part");
    return err;
}

gyre_err eng_parts_publish(struct eng_store *store, struct eng_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        GYRE_CHECK(parts[i].pages == NULL && parts[i].record.units > 0); /* finished */
        gyre_err err = publish_part(store, &parts[i]);
        if (err == GYRE_OK)
            continue;
        eng_parts_withdraw(store, parts, i);
        return err;
    }
    return GYRE_OK;
}

void eng_parts_withdraw(struct eng_store *store, const struct eng_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct eng_stripe *stripe;
        struct eng_place place = eng_place_in_epoch(store, eng_slot_pool(&parts[i].record),
                                                    parts[i].epoch, parts[i].key, &stripe);
        uint64_t entry = part_entry(&parts[i], place.tag);
        /* The reservation keeps its bytes, so its entry is like no other. One that stays is reached
         * by nobody, and leaves at the hand. */
        if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
            continue;
        uint32_t slot =
            eng_directory_locate_locked(stripe, place.bucket[0] * ENG_BUCKET_ENTRIES, entry);
        if (slot != ENG_NO_SLOT) /* it may have been displaced */
            (void)eng_directory_remove_locked(stripe, slot, entry);
        eng_alloc_unlock(stripe);
    }
}

void eng_parts_note(struct eng_store *store, const struct eng_part *parts, size_t n,
                    const struct eng_parent *head)
{
    for (size_t i = 0; i < n; i++) {
        struct eng_stripe *stripe;
        struct eng_place place = eng_place_in_epoch(store, eng_slot_pool(&parts[i].record),
                                                    parts[i].epoch, parts[i].key, &stripe);
        eng_parent_note(stripe, part_entry(&parts[i], place.tag), head);
    }
}

void eng_parts_end(struct eng_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct eng_stripe *stripe = parts[i].extent.stripe;
        eng_log_end(stripe, parts[i].extent.reservation, ENG_NO_TRIM);
        parts[i] = (struct eng_part){0};
    }
}

static struct eng_part_row row_of(const struct eng_ref *head, uint64_t i)
{
    struct eng_part_row row;
    memcpy(&row, head->body + i * sizeof row, sizeof row);
    return row;
}

void eng_row_remove(struct eng_store *store, const struct eng_doc *head,
                    const struct eng_part_row *row)
{
    uint8_t key[32];
    eng_part_key(head->key, head->object_serial, row->part_no, row->attempt, row->sub, key);
    struct eng_want want = {
        .key = key, .pool = head->pool, .part = true, .object_serial = head->object_serial};
    struct eng_ref part;
    if (eng_find(store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &part) != GYRE_OK)
        return; /* what stays behind is unreachable, and leaves at the hand */
    eng_drop(&part);
    eng_ref_release(&part);
    GYRE_STEP("publish.remove.part");
}

static bool is_same_part(const struct eng_part_row *a, const struct eng_part_row *b)
{
    return a->part_no == b->part_no && a->attempt == b->attempt && a->sub == b->sub;
}

bool eng_rows_have(const struct eng_part_row *rows, size_t n, const struct eng_part_row *row,
                   size_t *from)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = (*from + i) % n;
        if (is_same_part(&rows[at], row)) {
            *from = at + 1;
            return true;
        }
    }
    return false;
}

void eng_parts_remove(struct eng_store *store, const struct eng_ref *head,
                      const struct eng_part_row *keep, size_t n_keep)
{
    const struct eng_doc *doc = head->doc;
    size_t from = 0;
    if (doc->type != ENG_HEAD)
        return;
    for (uint64_t i = 0; i < doc->body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row = row_of(head, i);
        if (!eng_rows_have(keep, n_keep, &row, &from))
            eng_row_remove(store, doc, &row);
    }
}

gyre_err eng_condition_check(enum eng_condition condition, uint64_t if_serial,
                             const struct eng_doc *old)
{
    switch (condition) {
    case ENG_IF_ABSENT: return old == NULL ? GYRE_OK : GYRE_EXISTS;
    case ENG_IF_SERIAL:
        if (old == NULL)
            return GYRE_NOT_FOUND;
        return old->serial == if_serial ? GYRE_OK : GYRE_CHANGED;
    default: return GYRE_OK;
    }
}
