/* Bringing bodies into memory and proving them.
 *
 * A part is proved chunk by chunk. What one handle has proved it remembers itself; once it has
 * proved all chunks, the part's slot is marked, and every later handle finds it done.
 */
#include "api/handle.h"

#include <stdlib.h>

#include "engine/base/check.h"
#include "engine/base/io.h"

#include "api/store.h"

/* The disk is kept asked for so many bytes while those before are mapped, or copied, and proved in
 * steps. */
#define API_AHEAD (UINT64_C(8) << 20)
#define API_STEP (UINT64_C(2) << 20)

bool api_chunk_checked(const struct api_part *part, uint64_t chunk)
{
    return part->ref.verified || (part->checked[chunk / 64] >> (chunk % 64) & 1) != 0;
}

static uint64_t chunk_count(const struct api_part *part)
{
    return (part->len + ENG_CHUNK - 1) / ENG_CHUNK;
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

static void note_checked(struct api_part *part, uint64_t first, uint64_t end)
{
    for (uint64_t chunk = first; chunk < end; chunk++)
        part->checked[chunk / 64] |= UINT64_C(1) << (chunk % 64);
    if (!part->ref.verified && chunks_checked(part, 0, chunk_count(part))) {
        part->ref.verified = true;
        eng_slot_mark_verified(&part->ref.stripe->slots[part->ref.slot], part->ref.slot_word);
    }
}

/* Maps and proves the chunks [first, end). */
static gyre_err check_chunks(struct api_part *part, uint64_t first, uint64_t end)
{
    for (uint64_t chunk = first; chunk < end; chunk++) {
        uint64_t off = chunk * ENG_CHUNK;
        uint64_t left = part->len - off;
        uint64_t len = left < ENG_CHUNK ? left : ENG_CHUNK;
        gyre_err err = eng_populate(&part->ref, off, len);
        if (err == GYRE_OK)
            err = eng_verify(&part->ref, off, len);
        if (err != GYRE_OK)
            return err;
    }
    note_checked(part, first, end);
    return GYRE_OK;
}

/* Brings [off, off + len) of a part in and proves what is not proved yet. DAMAGED, IO. */
static gyre_err populate_part(struct api_part *part, uint64_t off, uint64_t len)
{
    uint64_t first = off / ENG_CHUNK, end = (off + len + ENG_CHUNK - 1) / ENG_CHUNK;
    return chunks_checked(part, first, end) ? eng_populate(&part->ref, off, len)
                                            : check_chunks(part, first, end);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Asks for what lies between *asked and `upto`, in whichever parts. */
static void ask_ahead(const struct gyre_handle *handle, uint64_t *asked, uint64_t upto)
{
    while (*asked < upto) {
        const struct api_part *part = &handle->parts[api_part_at(handle, *asked)];
        uint64_t off = *asked - part->start;
        uint64_t n = smaller(part->len - off, upto - *asked);
        eng_read_ahead(&part->ref, off, n);
        *asked += n;
    }
}

/* Brings in and proves [offset, end) of the object; with `unproved` only parts that want proof.
 * DAMAGED, IO. */
static gyre_err populate_span(struct gyre_handle *handle, uint64_t offset, uint64_t end,
                              bool unproved)
{
    uint64_t asked = offset;
    while (offset < end) {
        struct api_part *part = &handle->parts[api_part_at(handle, offset)];
        uint64_t off = offset - part->start;
        uint64_t part_end = smaller(part->start + part->len, end);
        if (unproved && part->ref.verified) {
            offset = part_end;
            continue;
        }
        if (asked < offset)
            asked = offset;
        ask_ahead(handle, &asked, smaller(offset + API_AHEAD, end));
        uint64_t n = smaller(API_STEP - off % API_STEP, part_end - offset);
        gyre_err err = populate_part(part, off, n);
        if (err != GYRE_OK)
            return err;
        offset += n;
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

/* Reads one chunk past the mapping, and proves it while it is in the processor's cache. */
static gyre_err copy_chunk(struct api_part *part, uint64_t chunk, uint8_t *buffer)
{
    uint64_t off = chunk * ENG_CHUNK, left = part->len - off;
    gyre_err err = eng_pread(part->ref.stripe->fd, buffer, left < ENG_CHUNK ? left : ENG_CHUNK,
                             part->ref.body_file_off + off);
    if (err == GYRE_OK && !eng_chunk_holds(&part->ref, chunk, buffer))
        err = eng_damaged(&part->ref);
    return err;
}

gyre_err api_copy_chunks(struct gyre_handle *handle, struct api_part *part, uint64_t first,
                         uint64_t end, void *buffer, uint64_t upto)
{
    uint64_t asked = part->start + first * ENG_CHUNK;
    for (uint64_t chunk = first; chunk < end; chunk++) {
        uint64_t off = chunk * ENG_CHUNK;
        if (off % API_STEP == 0 || chunk == first)
            ask_ahead(handle, &asked, smaller(part->start + off + API_AHEAD, upto));
        gyre_err err = copy_chunk(part, chunk, (uint8_t *)buffer + off - first * ENG_CHUNK);
        if (err != GYRE_OK)
            return dropped_if_damaged(handle, err);
    }
    note_checked(part, first, end);
    return GYRE_OK;
}

gyre_err api_handle_verify(struct gyre_handle *handle)
{
    if (handle->n_parts == 0)
        return GYRE_OK;
    const struct api_part *last = &handle->parts[handle->n_parts - 1];
    uint64_t end = last->start + last->len;
    return dropped_if_damaged(handle, populate_span(handle, 0, end, true));
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
    return dropped_if_damaged(handle, populate_span(handle, offset, offset + len, false));
}

void api_read_ahead(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    if (handle->head_only || offset >= handle->info.length)
        return;
    if (len > handle->info.length - offset)
        len = handle->info.length - offset;
    if (handle->n_parts == 0) {
        eng_read_ahead(&handle->doc, offset, len);
        return;
    }
    for (uint32_t i = api_part_at(handle, offset); len > 0; i++) {
        const struct api_part *part = &handle->parts[i];
        uint64_t off = offset - part->start, left = part->len - off;
        uint64_t n = len < left ? len : left;
        eng_read_ahead(&part->ref, off, n);
        offset += n;
        len -= n;
    }
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
        uint64_t n = part->len - off;
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
