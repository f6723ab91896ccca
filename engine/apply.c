/* Entering what a roll-forward has found into the directory; see recover_internal.h.
 *
 * A big object's HEAD and its parts reached the disk, or did not, each by itself, and its parts lie
 * in any stripe. So the parts of all stripes are entered first, and a HEAD only takes the place of
 * an older object when all it names is there.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/locks.h"
#include "engine/pool.h"
#include "engine/recover_internal.h"
#include "engine/slot.h"
#include "engine/writer.h"

struct existing {
    uint32_t slot; /* ENG_NO_SLOT: none */
    uint64_t entry;
    struct eng_known_doc known;
};

static bool is_same(const struct eng_known_doc *a, const struct eng_known_doc *b)
{
    return a->doc.pool == b->doc.pool && (a->doc.type == ENG_PART) == (b->doc.type == ENG_PART) &&
           memcmp(a->doc.key, b->doc.key, sizeof a->doc.key) == 0;
}

/* The directory's document of the same key and role. A key that was deleted and put again can have
 * two entries when one of their pages is old and the other new: the newest document stays. */
static void find_existing(const struct eng_recovering *r, const struct eng_known_doc *doc,
                          struct existing *found)
{
    struct eng_candidates candidates;

    found->slot = ENG_NO_SLOT;
    eng_directory_lookup(r->stripe, &doc->place, &candidates);
    for (size_t i = 0; i < candidates.n; i++) {
        const struct eng_candidate *at = &candidates.at[i];
        struct existing other = {.slot = at->slot, .entry = at->entry};
        if (!eng_known_doc_read(r, eng_entry_offset(at->entry), &other.known) ||
            !eng_known_doc_owns(&other.known, at->slot, at->entry) || !is_same(&other.known, doc))
            continue;
        if (found->slot != ENG_NO_SLOT) {
            bool newer = other.known.doc.serial > found->known.doc.serial;
            const struct existing *older = newer ? found : &other;
            (void)eng_directory_remove_locked(r->stripe, older->slot, older->entry);
            if (!newer)
                continue;
        }
        *found = other;
    }
}

static void insert(const struct eng_recovering *r, const struct eng_known_doc *doc,
                   const struct existing *old)
{
    struct eng_stripe *stripe = r->stripe;
    /* Whether it is still to be kept is found out by the first sweep (hold.h). */
    bool keep = eng_pool_never_evicts(stripe->store, doc->doc.pool) || doc->doc.pin_until != 0;
    uint64_t entry =
        eng_entry_make(doc->place.tag, doc->offset, doc->units, eng_kind_of_type(doc->doc.type),
                       ENG_RING_M, keep, doc->doc.serial);
    const struct eng_slot record = eng_slot_of_doc(&doc->doc, doc->units);
    struct eng_displaced displaced;

    if (old->slot != ENG_NO_SLOT)
        GYRE_CHECK(eng_directory_replace_locked(stripe, old->slot, old->entry, entry, &record));
    else if (eng_directory_insert_locked(stripe, &doc->place, entry, &record, &displaced) !=
             GYRE_OK)
        return; /* both buckets are full of documents that are kept: as if it had not reached the
                   disk */
    ENG_COUNT(stripe->store, recovered_documents, 1);
}

/* ---- Objects in parts ---- */

/* Whether the part that a row of this HEAD names is in the directory of its stripe. */
static bool part_is_there(struct eng_store *store, const struct eng_doc *head,
                          const struct eng_part_row *row)
{
    struct eng_recovering view = {0};
    struct eng_candidates candidates;
    uint8_t key[32];

    eng_part_key(head->key, head->object_serial, row->part_no, row->attempt, row->sub, key);
    struct eng_place place = eng_place_of(store, head->pool, key, &view.stripe);
    eng_directory_lookup(view.stripe, &place, &candidates);
    for (size_t i = 0; i < candidates.n; i++) {
        const struct eng_candidate *at = &candidates.at[i];
        struct eng_known_doc part;
        if (eng_known_doc_read(&view, eng_entry_offset(at->entry), &part) &&
            eng_known_doc_owns(&part, at->slot, at->entry) && part.doc.type == ENG_PART &&
            memcmp(part.doc.key, key, sizeof key) == 0 &&
            part.doc.object_serial == head->object_serial && part.doc.body_len == row->length &&
            part.doc.body_crc == row->crc)
            return true;
    }
    return false;
}

static bool parts_are_there(const struct eng_recovering *r, const struct eng_known_doc *head)
{
    uint64_t at = ENG_DATA_START + (head->offset << ENG_UNIT_SHIFT) + eng_doc_body_off(&head->doc);

    for (uint64_t i = 0; i < head->doc.body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row;
        if (eng_pread(r->stripe->fd, &row, sizeof row, at + i * sizeof row) != GYRE_OK ||
            !part_is_there(r->stripe->store, &head->doc, &row))
            return false;
    }
    return true;
}

/* ---- Applying ---- */

void eng_apply(const struct eng_recovering *r, uint64_t offset_units)
{
    struct eng_known_doc doc;
    struct existing old;

    if (!eng_known_doc_read(r, offset_units, &doc))
        return;
    find_existing(r, &doc, &old);
    if (old.slot != ENG_NO_SLOT && old.known.doc.serial >= doc.doc.serial)
        return;
    if (doc.doc.type == ENG_HEAD && !parts_are_there(r, &doc))
        return;
    if (doc.doc.type != ENG_TOMBSTONE)
        insert(r, &doc, &old);
    else if (old.slot != ENG_NO_SLOT)
        (void)eng_directory_remove_locked(r->stripe, old.slot, old.entry);
}

void eng_recover_objects(struct eng_stripe *stripe, struct eng_newer *newer)
{
    const struct eng_recovering r = {.stripe = stripe};

    eng_alloc_lock(stripe);
    for (size_t i = 0; i < newer->n; i++)
        eng_apply(&r, newer->offsets[i]);
    eng_alloc_unlock(stripe);
    free(newer->offsets);
    *newer = (struct eng_newer){0};
}
