#include "engine/recover.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/recover_internal.h"
#include "engine/slot.h"

#define SERIAL_GAP (UINT64_C(1) << 20)
#define BUCKETS_PER_REPORT (UINT32_C(1) << 20)

static void note_announced(struct eng_recovering *r)
{
    const struct eng_stripe_header *header = r->header;

    if (r->how == ENG_RECOVER_CLEAN)
        return;
    if (header->n_horizon == ENG_HORIZON_ALL) {
        for (uint32_t i = 0; i < r->stripe->n_segments; i++)
            r->seen[i].announced = true;
        return;
    }
    for (uint32_t i = 0; i < header->n_horizon; i++)
        r->seen[header->horizon[i]].announced = true;
    for (size_t i = 0; i < GYRE_ARRAY_LEN(header->rings); i++)
        if (header->rings[i].used)
            r->seen[header->rings[i].segment].announced = true;
}

/* ---- From directory to slot records ---- */

/* Whether an entry can be believed as far as its own bits go. */
static bool entry_plausible(const struct eng_recovering *r, uint64_t entry)
{
    const struct eng_stripe *stripe = r->stripe;
    uint64_t offset = eng_entry_offset(entry);

    if (eng_entry_kind(entry) == ENG_KIND_EMPTY || offset >= stripe->area_bytes >> ENG_UNIT_SHIFT)
        return false;
    uint32_t segment = eng_segment_of(stripe, offset);
    uint64_t room = stripe->segment_units - offset % stripe->segment_units;
    if (eng_entry_units_bound(entry) > eng_size_class_units(eng_size_class(room)))
        return false;
    return stripe->rt->segments[segment].state == ENG_SEGMENT_RING || r->seen[segment].announced;
}

/* Lengths are what the size class allows at most: never too short, so nothing that is kept loses
 * its end. The hand asks the header before it lets a document stay. */
static void adopt_entry(struct eng_recovering *r, uint32_t slot, uint64_t entry)
{
    struct eng_stripe *stripe = r->stripe;
    uint64_t offset = eng_entry_offset(entry);
    uint64_t room = stripe->segment_units - offset % stripe->segment_units;
    uint64_t bound = eng_entry_units_bound(entry);
    uint8_t pool = eng_pool_of_ring(stripe->rt->segments[eng_segment_of(stripe, offset)].pool);
    const struct eng_slot record = {
        .word = ENG_SLOT_ESTIMATE,
        .units = (uint32_t)(bound < room ? bound : room),
        .class_ = eng_class_of(pool, eng_pool_epoch(stripe->store, pool), true),
    };

    eng_directory_adopt_locked(stripe, slot, &record);
}

/* Versions become even: nobody reads while a store is being opened. */
static void adopt_directory(struct eng_recovering *r)
{
    struct eng_stripe *stripe = r->stripe;

    for (uint32_t b = 0; b < stripe->n_buckets; b++) {
        struct eng_bucket *bucket = &stripe->buckets[b];
        uint64_t ctl = atomic_load_explicit(&bucket->ctl, memory_order_relaxed);
        if (ctl > UINT32_MAX || (ctl & 1) != 0)
            atomic_store_explicit(&bucket->ctl, 0, memory_order_relaxed);
        for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
            uint64_t entry = atomic_load_explicit(&bucket->entry[i], memory_order_relaxed);
            if (entry == 0)
                continue;
            if (entry_plausible(r, entry))
                adopt_entry(r, b * ENG_BUCKET_ENTRIES + i, entry);
            else
                atomic_store_explicit(&bucket->entry[i], 0, memory_order_relaxed);
        }
        if (r->progress != NULL && b % BUCKETS_PER_REPORT == 0)
            r->progress(r->progress_data, "reading the directory", b, stripe->n_buckets);
    }
}

/* ---- Two entries for one place ---- */

/* Of entries that lead to the same offset at most one can be right: a move that ended halfway
 * leaves two, a flipped bit makes one up. */
static void resolve_granule(struct eng_recovering *r, uint64_t granule)
{
    struct eng_stripe *stripe = r->stripe;
    uint32_t a = eng_granule_first_locked(stripe, granule);

    while (a != ENG_NO_SLOT) {
        uint32_t next = eng_granule_next_locked(stripe, a);
        uint64_t entry = eng_directory_entry(stripe, a);
        for (uint32_t b = next; b != ENG_NO_SLOT; b = eng_granule_next_locked(stripe, b)) {
            struct eng_known_doc known;
            uint64_t other = eng_directory_entry(stripe, b);
            if (eng_entry_offset(entry) != eng_entry_offset(other))
                continue;
            bool second = eng_known_doc_read(r, eng_entry_offset(entry), &known) &&
                          eng_known_doc_owns(&known, b, other);
            if (second) {
                (void)eng_directory_remove_locked(stripe, a, entry);
            } else {
                (void)eng_directory_remove_locked(stripe, b, other);
                next = a; /* once more: the list behind `a` has changed */
            }
            break;
        }
        a = next;
    }
}

static void resolve_duplicates(struct eng_recovering *r)
{
    for (uint64_t granule = 0; granule < r->stripe->area_bytes / ENG_GRANULE; granule++)
        if (eng_granule_first_locked(r->stripe, granule) != ENG_NO_SLOT)
            resolve_granule(r, granule);
}

/* ---- All of it ---- */

/* The segment table is as old as the header, so it does not tell of segments entered since. They
 * are among the announced ones, which it is therefore not to be believed about from now on. */
static void blur_announced(struct eng_recovering *r)
{
    struct eng_stripe_rt *rt = r->stripe->rt;

    rt->blurred_serial = r->how == ENG_RECOVER_CLEAN ? r->header->blurred_serial : rt->serial;
    for (uint32_t i = 0; i < r->stripe->n_segments; i++)
        if (r->seen[i].announced)
            rt->segments[i].blurred = 1;
}

/* Entries whose kept documents would suffer from a wrong length, those that may be newer than the
 * header, and all where bytes are counted by tenant. */
static bool needs_headers(const struct eng_recovering *r, uint32_t segment)
{
    const struct eng_segment_row *row = &r->stripe->rt->segments[segment];

    if ((r->stripe->store->super.feature_compat & ENG_COMPAT_TENANTS) != 0 &&
        row->state == ENG_SEGMENT_RING)
        return true;
    return r->seen[segment].announced ||
           (row->state == ENG_SEGMENT_RING &&
            (r->stripe->store->super.pools[row->pool].flags & ENG_POOL_NEVER_EVICT) != 0);
}

gyre_err eng_recover_stripe(struct eng_stripe *stripe, const struct eng_stripe_header *header,
                            enum eng_recovery how,
                            void (*progress)(void *data, const char *what, uint64_t done,
                                             uint64_t total),
                            void *data, struct eng_newer *newer_out)
{
    struct eng_recovering r = {stripe, header, how, NULL, 0, progress, data};
    gyre_err err = GYRE_OK;

    *newer_out = (struct eng_newer){0};
    r.seen = calloc(stripe->n_segments, sizeof *r.seen);
    if (r.seen == NULL)
        return GYRE_NO_MEMORY;
    for (uint32_t i = 0; i < stripe->n_segments; i++)
        r.seen[i].oldest_new = UINT64_MAX;
    eng_alloc_lock(stripe);
    note_announced(&r);
    adopt_directory(&r);
    resolve_duplicates(&r);
    for (uint32_t i = 0; i < stripe->n_segments; i++)
        if (needs_headers(&r, i))
            eng_confirm_segment(&r, i);
    if (how == ENG_RECOVER_POWER)
        TRY(eng_roll_forward(&r, newer_out));
    TRY(eng_rings_build(&r));
    uint64_t known = how == ENG_RECOVER_CLEAN ? header->serial_synced : header->serial_limit;
    stripe->rt->serial = (known > r.max_serial ? known : r.max_serial) + SERIAL_GAP;
    blur_announced(&r);
out:
    eng_alloc_unlock(stripe);
    free(r.seen);
    return err;
}
