/* Taking bytes out of a handle: lent where they lie, or copied. */
#include "api/handle.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/fault.h"

#include "api/store.h"

/* Where the bytes from an offset on are: contiguous, proved, and all in one document. */
struct span {
    const struct eng_ref *ref;
    uint64_t off, len; /* of the document's body */
};

/* WOULD_BLOCK: the first byte is not proved yet. IO: bytes are known not to be there. The offset
 * lies inside the object. */
static gyre_err span_at(const struct gyre_handle *handle, uint64_t offset, struct span *span_out)
{
    if (handle->n_parts == 0) {
        if (eng_fault_hit(handle->doc.body + offset, handle->info.length - offset))
            return GYRE_IO;
        *span_out = (struct span){&handle->doc, offset, handle->info.length - offset};
        return GYRE_OK;
    }
    const struct api_part *part = &handle->parts[api_part_at(handle, offset)];
    uint64_t body_len = part->len;
    uint64_t off = offset - part->start;
    uint64_t end = body_len;
    if (!part->ref.verified) {
        uint64_t chunk = off / ENG_CHUNK;
        if (!api_chunk_checked(part, chunk))
            return GYRE_WOULD_BLOCK;
        while (++chunk * ENG_CHUNK < body_len && api_chunk_checked(part, chunk))
            ;
        if (chunk * ENG_CHUNK < body_len)
            end = chunk * ENG_CHUNK;
    }
    *span_out = (struct span){&part->ref, off, end - off};
    return eng_fault_hit(part->ref.body + off, end - off) ? GYRE_IO : GYRE_OK;
}

bool gyre_faulted(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    if (handle == NULL || handle->head_only || eng_fault_count() == 0)
        return false;
    if (handle->n_parts == 0)
        return eng_fault_hit(handle->doc.body + offset, len);
    for (uint32_t i = api_part_at(handle, offset); len > 0 && i < handle->n_parts; i++) {
        const struct api_part *part = &handle->parts[i];
        uint64_t off = offset - part->start, left = part->len - off;
        uint64_t n = len < left ? len : left;
        if (eng_fault_hit(part->ref.body + off, n))
            return true;
        offset += n;
        len -= n;
    }
    return false;
}

gyre_err gyre_guard_faults(void (*hook)(void))
{
    return eng_fault_guard(hook) ? GYRE_OK : GYRE_UNSUPPORTED;
}

gyre_err gyre_handle_piece(const struct gyre_handle *handle, uint64_t offset,
                           struct gyre_piece *piece_out)
{
    if (piece_out == NULL)
        return GYRE_INVALID;
    *piece_out = (struct gyre_piece){.fd = -1};
    if (handle == NULL)
        return GYRE_INVALID;
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    if (handle->head_only || api_is_inherited(handle->store, handle->life))
        return GYRE_STATE;
    if (offset >= handle->info.length)
        return GYRE_RANGE;
    struct span span;
    gyre_err err = span_at(handle, offset, &span);
    if (err != GYRE_OK)
        return err;
    *piece_out = (struct gyre_piece){
        .base = span.ref->body + span.off,
        .len = span.len,
        .fd = span.ref->stripe->fd,
        .file_offset = span.ref->body_file_off + span.off,
    };
    return GYRE_OK;
}

/* Copies what of the span can be had without waiting, *copied_out > 0 when OK. The kernel decides,
 * so no fault can happen; where it cannot say, a look at the residency of the mapping must do.
 * WOULD_BLOCK, IO. */
static gyre_err copy_nowait(const struct span *span, void *buffer, size_t *copied_out)
{
    struct iovec piece = {buffer, span->len};
    ssize_t n;
    do {
        n = preadv2(span->ref->stripe->fd, &piece, 1, (off_t)(span->ref->body_file_off + span->off),
                    RWF_NOWAIT);
    } while (n < 0 && errno == EINTR);
    *copied_out = n > 0 ? (size_t)n : 0;
    if (n > 0)
        return GYRE_OK;
    if (n < 0 && errno == EAGAIN)
        return GYRE_WOULD_BLOCK;
    if (n == 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
        return GYRE_IO;
    if (!eng_resident(span->ref, span->off, span->len))
        return GYRE_WOULD_BLOCK;
    memcpy(buffer, span->ref->body + span->off, span->len);
    *copied_out = span->len;
    return GYRE_OK;
}

/* Small bodies were read a moment ago, by the checksum at the latest. Large ones are read past the
 * mapping: a page fault costs more than the copy of a page, and an error of the disk comes back as
 * one. */
static gyre_err copy_waiting(const struct span *span, void *buffer)
{
    if (span->ref->doc->type == ENG_PART)
        return eng_pread(span->ref->stripe->fd, buffer, span->len,
                         span->ref->body_file_off + span->off);
    memcpy(buffer, span->ref->body + span->off, span->len);
    return eng_fault_hit(span->ref->body + span->off, span->len) ? GYRE_IO : GYRE_OK;
}

/* Whole chunks that are not proved yet are read into the caller's buffer and proved there. False:
 * there is none, or the buffer is too short for one. */
static bool copy_unproved(struct gyre_handle *handle, uint64_t offset, void *buffer, size_t len,
                          size_t *copied_out, gyre_err *err_out)
{
    struct api_part *part = &handle->parts[api_part_at(handle, offset)];
    uint64_t off = offset - part->start, body_len = part->len;
    uint64_t first = off / ENG_CHUNK, end = first;
    uint64_t room = len < body_len - off ? len : body_len - off;
    if (off % ENG_CHUNK != 0)
        return false;
    while ((end * ENG_CHUNK < off + room) && !api_chunk_checked(part, end) &&
           ((end + 1) * ENG_CHUNK <= off + room || off + room == body_len))
        end++;
    if (end == first)
        return false;
    *err_out = api_copy_chunks(handle, part, first, end, buffer, offset + len);
    *copied_out = (end * ENG_CHUNK < body_len ? end * ENG_CHUNK : body_len) - off;
    return true;
}

/* One step of gyre_copy: up to the end of a span. */
static gyre_err copy_span(struct gyre_handle *handle, uint64_t offset, void *buffer, size_t len,
                          bool nowait, size_t *copied_out)
{
    struct span span;
    gyre_err err = span_at(handle, offset, &span);
    if (err == GYRE_WOULD_BLOCK && !nowait) {
        if (copy_unproved(handle, offset, buffer, len, copied_out, &err))
            return err;
        const struct api_part *part = &handle->parts[api_part_at(handle, offset)];
        uint64_t left = part->start + part->len - offset;
        err = gyre_populate(handle, offset, len < left ? len : left);
        if (err == GYRE_OK)
            err = span_at(handle, offset, &span);
    }
    if (err != GYRE_OK)
        return err;
    if (span.len > len)
        span.len = len;
    if (nowait)
        return copy_nowait(&span, buffer, copied_out);
    err = copy_waiting(&span, buffer);
    *copied_out = err == GYRE_OK ? span.len : 0;
    return err;
}

gyre_err gyre_copy(struct gyre_handle *handle, uint64_t offset, void *buffer, size_t len,
                   unsigned flags, size_t *copied_out)
{
    if (copied_out == NULL)
        return GYRE_INVALID;
    *copied_out = 0;
    if (handle == NULL || (buffer == NULL && len > 0) || (flags & ~(unsigned)GYRE_GET_NOWAIT) != 0)
        return GYRE_INVALID;
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    if (handle->head_only || api_is_inherited(handle->store, handle->life))
        return GYRE_STATE;
    if (offset > handle->info.length)
        return GYRE_RANGE;
    if (len > handle->info.length - offset)
        len = (size_t)(handle->info.length - offset);
    bool nowait = (flags & GYRE_GET_NOWAIT) != 0;
    while (*copied_out < len) {
        size_t n = 0;
        gyre_err err = copy_span(handle, offset + *copied_out, (uint8_t *)buffer + *copied_out,
                                 len - *copied_out, nowait, &n);
        if (err == GYRE_WOULD_BLOCK && *copied_out > 0)
            return GYRE_OK;
        if (err != GYRE_OK) {
            *copied_out = 0;
            return err;
        }
        *copied_out += n;
    }
    return GYRE_OK;
}
