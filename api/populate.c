/* Bringing bodies into memory and proving them.
 *
 * A part is proved chunk by chunk. What one handle has proved it remembers itself; once it has
 * proved all chunks, the part's slot is marked, and every later handle finds it done.
 */
#include "api/handle.h"

#include <stdlib.h>

#include "engine/base/check.h"

#include "api/store.h"

/* Read and verified at a time, so that what was read is still in memory when it is verified. */
#define API_POPULATE_WINDOW (UINT64_C(8) << 20)

bool api_chunk_checked(const struct api_part *part, uint64_t chunk)
{
    return part->ref.verified || (part->checked[chunk / 64] >> (chunk % 64) & 1) != 0;
}

static uint64_t chunk_count(const struct api_part *part)
{
    return (part->ref.doc->body_len + ENG_CHUNK - 1) / ENG_CHUNK;
}

static bool chunks_checked(const struct api_part *part, uint64_t first, uint64_t end)
{
    for (uint64_t chunk = first; chunk < end; chunk++) {
        if (!api_chunk_checked(part, chunk))
            return false;
    }
    return true;
}

uint32_t api_part_at(const struct gyre_handle *handle, uint64_t offset)
{
    uint32_t low = 0, high = handle->n_parts;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (handle->parts[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Reads and proves the chunks [first, end). */
static gyre_err check_chunks(struct api_part *part, uint64_t first, uint64_t end)
{
    uint64_t off = first * ENG_CHUNK;
    uint64_t stop = end * ENG_CHUNK;
    if (stop > part->ref.doc->body_len)
        stop = part->ref.doc->body_len;
    gyre_err err = eng_populate(&part->ref, off, stop - off);
    if (err == GYRE_OK)
        err = eng_verify(&part->ref, off, stop - off);
    if (err != GYRE_OK)
        return err;
    for (uint64_t chunk = first; chunk < end; chunk++)
        part->checked[chunk / 64] |= UINT64_C(1) << (chunk % 64);
    if (!part->ref.verified && chunks_checked(part, 0, chunk_count(part))) {
        part->ref.verified = true;
        eng_slot_mark_verified(&part->ref.stripe->slots[part->ref.slot], part->ref.slot_word);
    }
    return GYRE_OK;
}

/* Brings [off, off + len) of a part in and proves what is not proved yet. DAMAGED, IO. */
static gyre_err populate_part(struct api_part *part, uint64_t off, uint64_t len)
{
    while (len > 0) {
        uint64_t n = API_POPULATE_WINDOW - off % API_POPULATE_WINDOW;
        if (n > len)
            n = len;
        uint64_t first = off / ENG_CHUNK, end = (off + n + ENG_CHUNK - 1) / ENG_CHUNK;
        gyre_err err = chunks_checked(part, first, end) ? eng_populate(&part->ref, off, n)
                                                        : check_chunks(part, first, end);
        if (err != GYRE_OK)
            return err;
        off += n;
        len -= n;
    }
    return GYRE_OK;
}

/* The object is gone as a whole when one of its parts is. */
static gyre_err dropped_if_damaged(struct gyre_handle *handle, gyre_err err)
{
    if (err == GYRE_DAMAGED)
        eng_drop(&handle->doc);
    return err;
}

gyre_err api_handle_verify(struct gyre_handle *handle)
{
    for (uint32_t i = 0; i < handle->n_parts; i++) {
        struct api_part *part = &handle->parts[i];
        if (part->ref.verified)
            continue;
        gyre_err err = populate_part(part, 0, part->ref.doc->body_len);
        if (err != GYRE_OK)
            return dropped_if_damaged(handle, err);
    }
    return GYRE_OK;
}

/* STATE, RANGE; OK for any span inside the object, empty ones too. */
static gyre_err check_span(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    if (handle->head_only || api_is_inherited(handle->store, handle->life))
        return GYRE_STATE;
    if (offset > handle->info.length || len > handle->info.length - offset)
        return GYRE_RANGE;
    return GYRE_OK;
}

gyre_err gyre_populate(struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    if (handle == NULL)
        return GYRE_INVALID;
    gyre_err err = check_span(handle, offset, len);
    if (err != GYRE_OK || len == 0)
        return err;
    if (handle->n_parts == 0)
        return dropped_if_damaged(handle, eng_populate(&handle->doc, offset, len));
    for (uint32_t i = api_part_at(handle, offset); len > 0; i++) {
        struct api_part *part = &handle->parts[i];
        uint64_t off = offset - part->start;
        uint64_t n = part->ref.doc->body_len - off;
        if (n > len)
            n = len;
        err = populate_part(part, off, n);
        if (err != GYRE_OK)
            return dropped_if_damaged(handle, err);
        offset += n;
        len -= n;
    }
    return GYRE_OK;
}

bool gyre_resident(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    if (handle == NULL || check_span(handle, offset, len) != GYRE_OK)
        return false;
    if (len == 0)
        return true;
    if (handle->n_parts == 0)
        return handle->doc.verified && eng_resident(&handle->doc, offset, len);
    for (uint32_t i = api_part_at(handle, offset); len > 0; i++) {
        const struct api_part *part = &handle->parts[i];
        uint64_t off = offset - part->start;
        uint64_t n = part->ref.doc->body_len - off;
        if (n > len)
            n = len;
        if (!chunks_checked(part, off / ENG_CHUNK, (off + n + ENG_CHUNK - 1) / ENG_CHUNK) ||
            !eng_resident(&part->ref, off, n))
            return false;
        offset += n;
        len -= n;
    }
    return true;
}
