/* The side that fetches: a put whose bytes others read while they come in. */
#include "api/miss.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/part_read.h"
#include "engine/pin.h"

#include "api/put.h"
#include "api/store.h"

struct gyre_fill {
    struct api_flight *flight;
};

struct gyre_fill *api_fill_make(struct api_flight *flight)
{
    struct gyre_fill *fill = malloc(sizeof *fill);
    if (fill != NULL)
        fill->flight = flight;
    return fill;
}

static bool is_inherited(const struct api_flight *flight)
{
    return api_is_inherited(flight->store, flight->life);
}

/* Out of the table first: who comes now looks into the store. */
static void leave_table(struct api_flight *flight, enum eng_flight_end how)
{
    api_flight_unlist(flight);
    eng_flight_end(flight->store->engine, &flight->row, how);
    api_flight_unref(flight);
}

/* Reads that go past the lock end before what they read may be taken back. */
static void await_reads_locked(struct api_flight *flight)
{
    while (flight->reading > 0)
        eng_cond_wait(&flight->changed, &flight->lock);
}

void api_flight_end(struct api_flight *flight, enum api_flight_state state, gyre_err err)
{
    eng_lock_acquire(&flight->lock);
    flight->state = state;
    flight->err = err;
    api_flight_wake_locked(flight);
    await_reads_locked(flight);
    gyre_put_abort(&flight->put);
    eng_lock_release(&flight->lock);
    leave_table(flight, state == API_PASSED ? ENG_FLIGHT_PASSED : ENG_FLIGHT_GIVEN_UP);
}

/* ---- Bytes ---- */

/* A copy for followers, who may see it until the last of them leaves. */
static gyre_err note_begin_locked(struct api_flight *flight, const struct gyre_put_options *options)
{
    const struct gyre_put *put = flight->put;
    flight->meta = malloc(options->meta_len + 1);
    if (flight->meta == NULL)
        return GYRE_NO_MEMORY;
    if (options->meta_len > 0)
        memcpy(flight->meta, options->meta, options->meta_len);
    flight->info = (struct gyre_info){
        .length = options->length,
        .created = put->spec.created,
        .expires = options->expires,
        .etag_hash = options->etag_hash,
        .meta_len = (uint32_t)options->meta_len,
        .tenant = options->tenant,
        .pool = options->pool,
        .retention = options->retention,
    };
    return GYRE_OK;
}

gyre_err gyre_fill_begin(struct gyre_fill *fill, const struct gyre_put_options *options)
{
    if (fill == NULL || options == NULL || options->pool != fill->flight->pool)
        return GYRE_INVALID;
    struct api_flight *flight = fill->flight;
    if (is_inherited(flight))
        return GYRE_STATE;
    eng_lock_acquire(&flight->lock);
    gyre_err err = flight->state != API_FETCHING ? GYRE_STATE : GYRE_OK;
    if (err == GYRE_OK)
        err = gyre_put_begin(flight->store, &flight->key, options, &flight->put);
    if (err == GYRE_OK) {
        err = note_begin_locked(flight, options);
        if (err != GYRE_OK)
            gyre_put_abort(&flight->put);
    }
    if (err == GYRE_OK) {
        flight->state = API_BEGUN;
        api_flight_wake_locked(flight);
    }
    eng_lock_release(&flight->lock);
    return err;
}

/* The put, with the flight's lock held; NULL, and not held, where there is none. */
static struct gyre_put *enter(struct gyre_fill *fill)
{
    if (fill == NULL || is_inherited(fill->flight))
        return NULL;
    eng_lock_acquire(&fill->flight->lock);
    if (fill->flight->put == NULL)
        eng_lock_release(&fill->flight->lock);
    return fill->flight->put;
}

/* What the put has taken can be read from now on; one that failed is of no use to followers. */
static gyre_err leave(struct gyre_fill *fill, gyre_err err)
{
    struct api_flight *flight = fill->flight;
    if (err == GYRE_OK) {
        flight->readable = flight->put->accepted;
    } else if (flight->put->failed != GYRE_OK) {
        flight->failed = true;
        flight->err = err;
    }
    api_flight_wake_locked(flight);
    eng_lock_release(&flight->lock);
    return err;
}

gyre_err gyre_fill_write(struct gyre_fill *fill, const void *bytes, size_t len)
{
    struct gyre_put *put = enter(fill);
    return put == NULL ? GYRE_STATE : leave(fill, gyre_put_write(put, bytes, len));
}

gyre_err gyre_fill_reserve(struct gyre_fill *fill, size_t *len_inout, void **buffer_out)
{
    if (buffer_out == NULL)
        return GYRE_INVALID;
    *buffer_out = NULL;
    struct gyre_put *put = enter(fill);
    return put == NULL ? GYRE_STATE : leave(fill, gyre_put_reserve(put, len_inout, buffer_out));
}

gyre_err gyre_fill_advance(struct gyre_fill *fill, size_t len)
{
    struct gyre_put *put = enter(fill);
    return put == NULL ? GYRE_STATE : leave(fill, gyre_put_advance(put, len));
}

gyre_err gyre_fill_set_meta(struct gyre_fill *fill, const void *meta, size_t meta_len,
                            uint64_t etag_hash, uint32_t expires)
{
    struct gyre_put *put = enter(fill);
    return put == NULL ? GYRE_STATE
                       : leave(fill, gyre_put_set_meta(put, meta, meta_len, etag_hash, expires));
}

/* ---- Ends ---- */

static gyre_err pin_parts_locked(struct api_flight *flight)
{
    const struct gyre_put *put = flight->put;
    uint64_t start = 0;
    flight->extents = calloc(put->n_parts + 1, sizeof *flight->extents);
    if (flight->extents == NULL)
        return GYRE_NO_MEMORY;
    for (size_t i = 0; i < put->n_parts; i++) {
        struct api_extent *extent = &flight->extents[i];
        struct eng_part_bytes bytes;
        eng_part_look(&put->parts[i], 0, &bytes);
        gyre_err err = eng_part_pin(&put->parts[i], &extent->pin);
        if (err != GYRE_OK)
            return err;
        extent->fd = bytes.fd;
        extent->file_off = bytes.file_off;
        extent->start = start;
        extent->len = bytes.len;
        start += bytes.len;
        flight->n_extents++;
    }
    return GYRE_OK;
}

static gyre_err copy_small_locked(struct api_flight *flight)
{
    const struct gyre_put *put = flight->put;
    flight->small = malloc((size_t)put->accepted + 1);
    if (flight->small == NULL)
        return GYRE_NO_MEMORY;
    if (put->accepted > 0)
        memcpy(flight->small, put->stage.bytes, (size_t)put->accepted);
    return GYRE_OK;
}

/* From here on the object's bytes stay where followers find them, even if it is replaced or evicted
 * as soon as it is stored. */
static void keep_for_followers_locked(struct api_flight *flight)
{
    const struct gyre_put *put = flight->put;
    if (flight->followers == 0)
        return;
    gyre_err err =
        put->accepted < ENG_BIG_BODY ? copy_small_locked(flight) : pin_parts_locked(flight);
    if (err == GYRE_OK)
        return;
    flight->failed = true;
    flight->err = err;
    await_reads_locked(flight);
}

static gyre_err commit_locked(struct api_flight *flight, uint64_t *serial_out)
{
    if (flight->put == NULL)
        return GYRE_STATE;
    gyre_err err = api_put_settle(flight->put);
    if (err == GYRE_OK)
        keep_for_followers_locked(flight);
    if (err != GYRE_OK)
        await_reads_locked(flight);
    uint64_t length = flight->put->accepted;
    gyre_err result = gyre_put_commit(&flight->put, serial_out);
    if (result == GYRE_OK)
        flight->info.length = length;
    return result;
}

gyre_err gyre_fill_commit(struct gyre_fill **fill, uint64_t *serial_out)
{
    if (serial_out != NULL)
        *serial_out = 0;
    if (fill == NULL || *fill == NULL)
        return GYRE_INVALID;
    struct api_flight *flight = (*fill)->flight;
    if (is_inherited(flight)) {
        gyre_fill_abort(fill, GYRE_STATE);
        return GYRE_STATE;
    }
    free(*fill);
    *fill = NULL;
    eng_lock_acquire(&flight->lock);
    gyre_err err = commit_locked(flight, serial_out);
    bool stored = err == GYRE_OK;
    flight->state = stored ? API_STORED : API_BROKEN;
    if (!stored)
        flight->err = err;
    api_flight_wake_locked(flight);
    if (!stored)
        await_reads_locked(flight);
    eng_lock_release(&flight->lock);
    leave_table(flight, stored ? ENG_FLIGHT_STORED : ENG_FLIGHT_GIVEN_UP);
    return err;
}

/* What other threads of the parent may have been in the middle of is left as it is. */
static void end(struct gyre_fill **fill, enum api_flight_state state, gyre_err err)
{
    if (fill == NULL || *fill == NULL)
        return;
    struct api_flight *flight = (*fill)->flight;
    free(*fill);
    *fill = NULL;
    if (is_inherited(flight))
        gyre_put_abort(&flight->put);
    else
        api_flight_end(flight, state, err);
}

void gyre_fill_pass(struct gyre_fill **fill)
{
    end(fill, API_PASSED, GYRE_STATE);
}

void gyre_fill_abort(struct gyre_fill **fill, gyre_err err)
{
    end(fill, API_BROKEN, err != GYRE_OK ? err : GYRE_STATE);
}
