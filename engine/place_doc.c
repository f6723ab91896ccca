#include "engine/place_doc.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/admit.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/slot.h"

static const uint8_t zeros[ENG_PAGE];

static uint64_t file_off(uint64_t units)
{
    return ENG_DATA_START + (units << ENG_UNIT_SHIFT);
}

static gyre_err find_place_in(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                              struct eng_placed *placed)
{
    gyre_err err;
    if (units <= ENG_SLAB_DOC_MAX / ENG_UNIT) {
        err = eng_slab_acquire(stripe, ring, units, &placed->slab);
        placed->start = err == GYRE_OK ? placed->slab->used : 0;
    } else {
        err = eng_log_reserve(stripe, ring, units, false, &placed->start, &placed->reservation);
    }
    placed->ring = ring;
    return err;
}

/* S is short: a few large puts can hold all of it. */
static gyre_err find_place(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                           struct eng_placed *placed)
{
    uint8_t m = eng_ring_id(eng_ring_pool(ring), ENG_RING_M);
    gyre_err err = find_place_in(stripe, ring, units, placed);
    return ring != m && (err == GYRE_NO_SPACE || err == GYRE_BUSY)
               ? find_place_in(stripe, m, units, placed)
               : err;
}

/* Gives the place up. `kept`: what was written there stays. */
static void leave_place(struct eng_placed *placed, bool kept)
{
    if (placed->slab != NULL) {
        placed->slab->used = kept ? placed->start + placed->record.units : placed->start;
        eng_slab_release(placed->stripe, placed->slab);
    } else {
        eng_log_end(placed->stripe, placed->reservation, kept ? ENG_NO_TRIM : placed->start);
    }
    *placed = (struct eng_placed){0};
}

static uint32_t meta_crc(const struct iovec *meta, const struct iovec *labels)
{
    uint32_t crc = eng_crc32c(0, meta->iov_base, meta->iov_len);
    return likely(labels->iov_len == 0) ? crc : eng_crc32c(crc, labels->iov_base, labels->iov_len);
}

static struct iovec labels_of(const struct eng_spec *spec)
{
    return (struct iovec){(void *)(uintptr_t)spec->labels, spec->n_labels * sizeof(uint64_t)};
}

static struct eng_doc header_of(const struct eng_placed *placed, const struct eng_spec *spec,
                                const struct iovec *meta, const struct iovec *body)
{
    const struct iovec labels = labels_of(spec);
    uint32_t flags = spec->flags | spec->n_labels << ENG_DOC_LABELS_SHIFT |
                     (uint32_t)(spec->stored_ticks & 15) << ENG_DOC_TICKS_SHIFT |
                     (placed->in_small ? ENG_DOC_IN_SMALL : 0);
    struct eng_doc doc = {
        .serial = placed->serial,
        .body_len = body->iov_len,
        .total_len = spec->total_len,
        .object_serial = spec->object_serial,
        .etag_hash = spec->etag_hash,
        .meta_len = (uint32_t)(meta->iov_len + labels.iov_len),
        .meta_crc = meta_crc(meta, &labels),
        .body_crc = eng_crc32c(0, body->iov_base, body->iov_len),
        .type = spec->type,
        .flags = (uint16_t)flags,
        .stored_s = (uint32_t)(spec->stored_ticks >> 4),
        .parts = spec->parts,
        .created = spec->created,
        .expires = spec->expires,
        .pin_until = spec->pin_until,
        .alt_id = spec->alt_id,
        .pool_epoch = (uint32_t)eng_pool_epoch(placed->stripe->store, spec->pool),
        .tenant = spec->tenant,
        .pool = spec->pool,
        .retention = spec->retention,
    };
    memcpy(doc.key, spec->key, sizeof doc.key);
    eng_doc_seal(&doc, placed->stripe->crc_seed, placed->start);
    return doc;
}

/* Header, metadata, body and zeros up to the end of the last page in one call. The page belongs to
 * the slab or extent, so the zeros hit nobody, and the file system has no old page to read. */
static gyre_err write_out(const struct eng_placed *placed, const struct eng_doc *doc,
                          const struct eng_spec *spec, const struct iovec *meta,
                          const struct iovec *body)
{
    uint64_t at = file_off(placed->start);
    uint64_t meta_end = sizeof *doc + doc->meta_len;
    uint64_t body_off = body->iov_len > 0 ? eng_doc_body_off(doc) : meta_end;
    uint64_t end = at + body_off + body->iov_len;
    const struct iovec pieces[] = {
        {(void *)(uintptr_t)doc, sizeof *doc},
        *meta,
        labels_of(spec),
        {(void *)(uintptr_t)zeros, body_off - meta_end},
        *body,
        {(void *)(uintptr_t)zeros, eng_align_up(end, ENG_PAGE) - end},
    };
    bool hollow = placed->stripe->store->hollow && doc->type == ENG_DOC; /* header and metadata */
    gyre_err err;
    TRY(GYRE_STEP_ERR("place_doc.write.before"));
    TRY(eng_pwritev(placed->stripe->fd, pieces, hollow ? 2 : GYRE_ARRAY_LEN(pieces), at));
    GYRE_STEP("place_doc.write.done");
out:
    return err == GYRE_OK ? GYRE_OK : GYRE_IO;
}

/* The ring of the pool for small things that corresponds to `ring`. */
static uint8_t ring_for_small(const struct eng_stripe *stripe, uint8_t ring)
{
    uint8_t same = eng_ring_id(ENG_POOL_SMALL, eng_ring_kind_of(ring));
    return eng_ring_of(stripe, same)->max_segments > 0 ? same
                                                       : eng_ring_id(ENG_POOL_SMALL, ENG_RING_M);
}

/* Under the lock once for all that is decided before a document is written; its serial comes before
 * its place then, which nobody relies on. *flags_out: the first flags of its slot. BUSY. */
static gyre_err admit(struct eng_placed *placed, const struct eng_place *place,
                      const struct eng_spec *spec, uint32_t *flags_out)
{
    struct eng_stripe *stripe = placed->stripe;
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    placed->ring = place == NULL ? eng_ring_id(ENG_POOL_MAIN, ENG_RING_M)
                                 : eng_admit_locked(spec->pool, stripe, place, spec->total_len,
                                                    &placed->remembered);
    placed->serial = ++stripe->rt->serial;
    *flags_out = eng_first_flags_locked(stripe, spec->total_len);
    eng_alloc_unlock(stripe);
    return GYRE_OK;
}

gyre_err eng_placed_write(struct eng_stripe *stripe, const struct eng_place *place,
                          const struct eng_spec *spec, const struct iovec *meta,
                          const struct iovec *body, struct eng_placed *placed_out)
{
    *placed_out = (struct eng_placed){0};
    uint64_t meta_len = meta->iov_len + spec->n_labels * sizeof(uint64_t);
    if (meta_len + body->iov_len > eng_small_max_bytes(stripe->store))
        return GYRE_TOO_LARGE;
    struct eng_placed placed = {.stripe = stripe};
    uint64_t units = eng_doc_units(spec->type, meta_len, body->iov_len);
    uint32_t flags;
    gyre_err err = admit(&placed, place, spec, &flags);
    if (err != GYRE_OK)
        return err;
    placed.in_small = eng_pool_is_for_small(stripe->store, eng_ring_pool(placed.ring), spec->type,
                                            sizeof(struct eng_doc) + meta_len + body->iov_len);
    err = find_place(stripe, placed.in_small ? ring_for_small(stripe, placed.ring) : placed.ring,
                     units, &placed);
    if (err != GYRE_OK)
        return err;
    struct eng_doc doc = header_of(&placed, spec, meta, body);
    placed.record = eng_slot_fresh(&doc, units);
    atomic_fetch_or_explicit(&placed.record.word, flags, memory_order_relaxed);
    err = write_out(&placed, &doc, spec, meta, body);
    if (err != GYRE_OK)
        leave_place(&placed, false);
    *placed_out = placed;
    return err;
}

void eng_placed_end(struct eng_placed *placed)
{
    leave_place(placed, true);
}

void eng_placed_abort(struct eng_placed *placed)
{
    if (placed->stripe == NULL)
        return;
    /* Where this fails, recovery may find a document that its writer was told is not stored: the
     * disk is failing then, and what it holds is still an object somebody put. */
    gyre_err err =
        eng_pwrite(placed->stripe->fd, zeros, sizeof(struct eng_doc), file_off(placed->start));
    leave_place(placed, err != GYRE_OK);
}
