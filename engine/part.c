#include "engine/writer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/hash.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/admit.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/slot.h"

void eng_part_key(const uint8_t key[32], uint64_t object_serial, uint32_t part_no, uint32_t attempt,
                  uint32_t sub, uint8_t out[32])
{
    uint8_t which[20];
    eng_store_u64(which, object_serial);
    eng_store_u32(which + 8, part_no);
    eng_store_u32(which + 12, attempt);
    eng_store_u32(which + 16, sub);
    const struct iovec pieces[] = {{(void *)(uintptr_t)key, 32}, {which, sizeof which}};
    eng_sha256(pieces, GYRE_ARRAY_LEN(pieces), out);
}

static uint8_t *chunk_table(const struct eng_part *part)
{
    return part->pages + sizeof(struct eng_doc);
}

static uint8_t *tail_page(const struct eng_part *part)
{
    return part->pages + ENG_PAGE;
}

static uint64_t file_off(const struct eng_part *part, uint64_t off)
{
    return ENG_DATA_START + (part->extent.start << ENG_UNIT_SHIFT) + off;
}

/* What is known of the object's length, this part being one of its parts. */
static uint64_t known_length(const struct eng_spec *object, uint64_t part_bytes)
{
    bool announced = object->total_len != UINT64_MAX && object->total_len > part_bytes;
    return announced ? object->total_len : part_bytes;
}

/* S is short: a few large puts can hold all of it. */
static gyre_err reserve(struct eng_extent *extent, uint8_t ring)
{
    uint8_t m = eng_ring_id(eng_ring_pool(ring), ENG_RING_M);
    gyre_err err = eng_log_reserve(extent->stripe, ring, extent->units, false, &extent->start,
                                   &extent->reservation);
    extent->ring = ring;
    if (ring != m && (err == GYRE_NO_SPACE || err == GYRE_BUSY)) {
        err = eng_log_reserve(extent->stripe, m, extent->units, false, &extent->start,
                              &extent->reservation);
        extent->ring = m;
    }
    return err;
}

gyre_err eng_part_begin(struct eng_store *store, const struct eng_spec *object, uint32_t part_no,
                        uint32_t attempt, uint32_t sub, uint64_t capacity,
                        struct eng_part *part_out)
{
    struct eng_part part = {.part_no = part_no, .attempt = attempt, .sub = sub};
    *part_out = (struct eng_part){0};
    if (capacity == 0 || capacity > eng_part_max_bytes(store))
        return GYRE_TOO_LARGE;
    part.body_capacity = capacity;
    eng_part_key(object->key, object->object_serial, part_no, attempt, sub, part.key);
    part.epoch = eng_pool_epoch(store, object->pool);
    (void)eng_place_in_epoch(store, object->pool, part.epoch, part.key, &part.extent.stripe);
    part.extent.units = (ENG_PAGE + eng_align_up(capacity, ENG_PAGE)) / ENG_UNIT;
    part.pages = calloc(2, ENG_PAGE);
    if (part.pages == NULL)
        return GYRE_NO_MEMORY;
    struct eng_stripe *home;
    struct eng_place place = eng_place_of(store, object->pool, object->key, &home);
    uint8_t ring = eng_admit_part(object->pool, home, &place, known_length(object, capacity),
                                  part.extent.stripe);
    gyre_err err = reserve(&part.extent, ring);
    if (err != GYRE_OK)
        free(part.pages);
    else
        *part_out = part;
    return err;
}

/* Writes whole pages only; the rest waits in the tail page, so that the file system never has to
 * read a page in order to change a part of it. */
static gyre_err write_slice(struct eng_part *part, const uint8_t *bytes, size_t len)
{
    size_t waiting = part->body_len % ENG_PAGE;
    uint8_t *tail = tail_page(part);
    if (waiting + len < ENG_PAGE) {
        memcpy(tail + waiting, bytes, len);
        return GYRE_OK;
    }
    size_t direct = eng_align_down(waiting + len, ENG_PAGE) - waiting;
    const struct iovec pieces[] = {{tail, waiting}, {(void *)(uintptr_t)bytes, direct}};
    gyre_err err = eng_pwritev(part->extent.stripe->fd, pieces, GYRE_ARRAY_LEN(pieces),
                               file_off(part, ENG_PAGE + part->body_len - waiting));
    memcpy(tail, bytes + direct, len - direct);
    return err == GYRE_OK ? GYRE_OK : GYRE_IO;
}

static void end_chunk(struct eng_part *part, uint64_t len)
{
    eng_store_u32(chunk_table(part) + part->n_chunks * sizeof(uint32_t), part->chunk_crc);
    part->crc = eng_crc32c_combine(part->crc, part->chunk_crc, len);
    part->n_chunks++;
    part->chunk_crc = 0;
}

gyre_err eng_part_write(struct eng_part *part, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    GYRE_CHECK(part->pages != NULL);
    if (len > part->body_capacity - part->body_len)
        return GYRE_LENGTH;
    if (part->extent.stripe->store->hollow) {
        part->body_len += len;
        part->n_chunks = (uint32_t)eng_div_up(part->body_len, ENG_CHUNK);
        return GYRE_OK;
    }
    while (len > 0) {
        size_t room = ENG_CHUNK - part->body_len % ENG_CHUNK;
        size_t n = len < room ? len : room;
        part->chunk_crc = eng_crc32c(part->chunk_crc, at, n);
        gyre_err err = write_slice(part, at, n);
        if (err != GYRE_OK)
            return err;
        part->body_len += n;
        if (n == room)
            end_chunk(part, ENG_CHUNK);
        at += n;
        len -= n;
    }
    return GYRE_OK;
}

static gyre_err write_tail(const struct eng_part *part)
{
    size_t waiting = part->body_len % ENG_PAGE;
    if (waiting == 0)
        return GYRE_OK;
    memset(tail_page(part) + waiting, 0, ENG_PAGE - waiting);
    return eng_pwrite(part->extent.stripe->fd, tail_page(part), ENG_PAGE,
                      file_off(part, ENG_PAGE + part->body_len - waiting));
}

/* The header, and the record that goes with it. */
static void fill_header(struct eng_part *part, const struct eng_spec *object)
{
    uint32_t meta_len = part->n_chunks * (uint32_t)sizeof(uint32_t);
    struct eng_doc doc = {
        .serial = part->serial,
        .body_len = part->body_len,
        .total_len = part->body_len,
        .object_serial = object->object_serial,
        .meta_len = meta_len,
        .meta_crc = eng_crc32c(0, chunk_table(part), meta_len),
        .body_crc = part->crc,
        .type = ENG_PART,
        .part_no = part->part_no,
        .parts = part->sub,
        .created = object->created,
        .pin_until = object->pin_until,
        .pool_epoch = (uint32_t)part->epoch,
        .tenant = object->tenant,
        .pool = object->pool,
        .retention = object->retention,
    };
    memcpy(doc.key, part->key, sizeof doc.key);
    part->record = eng_slot_fresh(&doc, part->extent.units);
    part->held = object->held;
    part->keep = eng_pool_never_evicts(part->extent.stripe->store, object->pool) || object->held ||
                 object->pin_until != 0;
    eng_doc_seal(&doc, part->extent.stripe->crc_seed, part->extent.start);
    memcpy(part->pages, &doc, sizeof doc);
}

/* A length that was not known gets its own end now, and the part its serial. *flags_out: the first
 * flags of its slot. BUSY: the stripe's lock is not to be had. */
static gyre_err settle(struct eng_part *part, const struct eng_spec *object, uint32_t *flags_out)
{
    struct eng_stripe *stripe = part->extent.stripe;
    uint64_t meta_len = part->n_chunks * sizeof(uint32_t);
    uint64_t units = eng_doc_units(ENG_PART, meta_len, part->body_len);
    GYRE_CHECK(units <= part->extent.units);
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    eng_log_trim_locked(stripe, part->extent.reservation, part->extent.start + units);
    part->serial = ++stripe->rt->serial;
    *flags_out = eng_first_flags_locked(stripe, known_length(object, part->body_len));
    eng_alloc_unlock(stripe);
    part->extent.units = units;
    return GYRE_OK;
}

gyre_err eng_part_finish(struct eng_part *part, const struct eng_spec *object)
{
    gyre_err err;
    bool hollow = part->extent.stripe->store->hollow;
    GYRE_CHECK(part->pages != NULL && part->body_len > 0);
    if (!hollow)
        TRY(write_tail(part));
    GYRE_STEP("part.finish.body");
    if (!hollow && part->body_len % ENG_CHUNK != 0)
        end_chunk(part, part->body_len % ENG_CHUNK);
    uint32_t flags;
    TRY(settle(part, object, &flags));
    fill_header(part, object);
    atomic_fetch_or_explicit(&part->record.word, flags, memory_order_relaxed);
    TRY(eng_pwrite(part->extent.stripe->fd, part->pages, ENG_PAGE, file_off(part, 0)));
    GYRE_STEP("part.finish.header");
    free(part->pages);
    part->pages = NULL;
out:
    return err == GYRE_OK || err == GYRE_BUSY ? err : GYRE_IO;
}

void eng_part_abort(struct eng_part *part)
{
    struct eng_stripe *stripe = part->extent.stripe;
    if (stripe != NULL) {
        /* Once published a reader may have pinned it, so the hand has to decide. */
        eng_log_end(stripe, part->extent.reservation,
                    part->published ? ENG_NO_TRIM : part->extent.start);
    }
    free(part->pages);
    *part = (struct eng_part){0};
}

void eng_part_forget(struct eng_part *part)
{
    free(part->pages);
    *part = (struct eng_part){0};
}
