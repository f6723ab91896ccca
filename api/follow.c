/* The side that reads along.
 *
 * While the object comes in, its bytes lie in parts already written, in the last page of a part, or
 * in the stage of the put; once it is stored, in pinned parts or in a copy. What lies in a file is
 * read without the flight's lock, so that many followers do not hold up who fetches.
 */
#include "api/miss.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/sys.h"
#include "engine/part_read.h"

#include "api/put.h"
#include "api/seek.h"
#include "api/store.h"

struct gyre_follow {
    struct api_flight *flight;
    struct api_waker waker;
};

struct gyre_follow *api_follow_make_locked(struct api_flight *flight)
{
    struct gyre_follow *follow = calloc(1, sizeof *follow);
    if (follow == NULL)
        return NULL;
    follow->flight = flight;
    flight->followers++;
    return follow;
}

static bool is_inherited(const struct api_flight *flight)
{
    return api_is_inherited(flight->store, flight->life);
}

const struct gyre_info *gyre_follow_info(const struct gyre_follow *follow)
{
    return &follow->flight->info;
}

const void *gyre_follow_meta(const struct gyre_follow *follow, size_t *len_out)
{
    if (len_out != NULL)
        *len_out = follow->flight->info.meta_len;
    return follow->flight->meta;
}

/* ---- Where bytes are ---- */

static void look_into_put(const struct gyre_put *put, uint64_t offset,
                          struct eng_part_bytes *bytes_out)
{
    uint64_t start = 0;
    for (size_t i = 0; offset < put->spilled; i++) {
        const struct eng_part *part = &put->parts[i];
        if (offset < start + part->body_len) {
            eng_part_look(part, offset - start, bytes_out);
            return;
        }
        start += part->body_len;
    }
    *bytes_out = (struct eng_part_bytes){.memory = put->stage.bytes + (offset - put->spilled),
                                         .len = put->accepted - offset};
}

static void look_into_stored(const struct api_flight *flight, uint64_t offset,
                             struct eng_part_bytes *bytes_out)
{
    if (flight->small != NULL) {
        *bytes_out = (struct eng_part_bytes){.memory = flight->small + offset,
                                             .len = flight->readable - offset};
        return;
    }
    const struct api_extent *extent = flight->extents;
    while (offset >= extent->start + extent->len)
        extent++;
    uint64_t off = offset - extent->start;
    *bytes_out = (struct eng_part_bytes){
        .fd = extent->fd, .file_off = extent->file_off + off, .len = extent->len - off};
}

/* Waits for bytes past `offset`. NOT_FOUND: the object ends here. */
static gyre_err await_bytes_locked(struct api_flight *flight, uint64_t offset, uint64_t deadline_ns)
{
    for (;;) {
        if (flight->failed || flight->state == API_BROKEN || flight->state == API_PASSED)
            return flight->err;
        if (offset < flight->readable)
            return GYRE_OK;
        if (flight->state == API_STORED)
            return offset == flight->readable ? GYRE_NOT_FOUND : GYRE_RANGE;
        uint64_t now_ns = eng_clock_mono_ns();
        if (atomic_load_explicit(&flight->store->closing, memory_order_relaxed) != 0)
            return GYRE_CLOSED;
        if (now_ns >= deadline_ns)
            return GYRE_TIMEOUT;
        uint64_t look_ns = now_ns + API_SEEK_NS;
        eng_cond_wait_until(&flight->changed, &flight->lock,
                            look_ns < deadline_ns ? look_ns : deadline_ns);
    }
}

/* A read of the log goes on without the lock; whoever ends the flight waits for it. */
static gyre_err read_locked(struct api_flight *flight, uint64_t offset, void *buffer, size_t len,
                            size_t *copied_out)
{
    struct eng_part_bytes bytes;
    gyre_err err = GYRE_OK;
    if (flight->state == API_STORED)
        look_into_stored(flight, offset, &bytes);
    else
        look_into_put(flight->put, offset, &bytes);
    if (bytes.len > flight->readable - offset)
        bytes.len = flight->readable - offset;
    if (bytes.len < len)
        len = (size_t)bytes.len;
    if (bytes.memory != NULL) {
        memcpy(buffer, bytes.memory, len);
    } else {
        flight->reading++;
        eng_lock_release(&flight->lock);
        err = eng_pread(bytes.fd, buffer, len, bytes.file_off);
        eng_lock_acquire(&flight->lock);
        if (--flight->reading == 0)
            eng_cond_broadcast(&flight->changed);
    }
    *copied_out = err == GYRE_OK ? len : 0;
    return err;
}

gyre_err gyre_follow_read(struct gyre_follow *follow, uint64_t offset, void *buffer, size_t len,
                          uint32_t wait_ms, size_t *copied_out)
{
    if (copied_out == NULL)
        return GYRE_INVALID;
    *copied_out = 0;
    if (follow == NULL || (buffer == NULL && len > 0))
        return GYRE_INVALID;
    struct api_flight *flight = follow->flight;
    if (is_inherited(flight))
        return GYRE_STATE;
    eng_lock_acquire(&flight->lock);
    gyre_err err =
        await_bytes_locked(flight, offset, eng_clock_mono_ns() + wait_ms * UINT64_C(1000000));
    while (err == GYRE_OK && *copied_out < len) {
        size_t n = 0;
        err = read_locked(flight, offset + *copied_out, (uint8_t *)buffer + *copied_out,
                          len - *copied_out, &n);
        *copied_out += n;
        if (err == GYRE_OK && await_bytes_locked(flight, offset + *copied_out, 0) != GYRE_OK)
            break;
    }
    eng_lock_release(&flight->lock);
    if (err == GYRE_NOT_FOUND)
        return GYRE_OK;
    if (err != GYRE_OK)
        *copied_out = 0;
    return err == GYRE_TIMEOUT && wait_ms == 0 ? GYRE_WOULD_BLOCK : err;
}

gyre_err gyre_follow_notify(struct gyre_follow *follow, uint64_t offset, void (*wake)(void *data),
                            void *data)
{
    if (follow == NULL || wake == NULL)
        return GYRE_INVALID;
    struct api_flight *flight = follow->flight;
    if (is_inherited(flight))
        return GYRE_STATE;
    eng_lock_acquire(&flight->lock);
    bool busy = follow->waker.listed;
    if (!busy) {
        follow->waker = (struct api_waker){
            .next = flight->wakers, .offset = offset, .wake = wake, .data = data, .listed = true};
        flight->wakers = &follow->waker;
        api_flight_wake_locked(flight);
    }
    eng_lock_release(&flight->lock);
    return busy ? GYRE_STATE : GYRE_OK;
}

void gyre_follow_end(struct gyre_follow *follow)
{
    if (follow == NULL)
        return;
    struct api_flight *flight = follow->flight;
    if (!is_inherited(flight)) {
        eng_lock_acquire(&flight->lock);
        api_waker_unlist_locked(flight, &follow->waker);
        flight->followers--;
        eng_lock_release(&flight->lock);
        api_flight_unref(flight);
    }
    free(follow);
}
