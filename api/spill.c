/* Bodies from 64 KiB: cutting the stream into parts and writing them while it comes in.
 *
 * What is written before the last byte is a whole number of pages each time, so the file system
 * never has to read a page to change a piece of it. A known length is cut at once; an unknown one
 * into parts of 1, 4, 16 MiB and then the longest, so that the unused end of the last reservation
 * stays in proportion.
 */
#include "api/put.h"

#include <stdlib.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/tenant.h"

#include "api/store.h"

bool api_put_spilling(const struct gyre_put *put)
{
    if (put->announced != GYRE_LENGTH_UNKNOWN)
        return put->announced >= ENG_BIG_BODY || put->upload != NULL;
    return put->n_parts > 0 || put->part_open;
}

/* How long the next part may become, when `known` bytes are all that is left, or 0 if there may be
 * more. */
static uint64_t next_capacity(const struct gyre_put *put, uint64_t known)
{
    uint64_t longest = eng_part_max_bytes(put->store->engine);
    uint64_t wanted = known;
    if (put->announced != GYRE_LENGTH_UNKNOWN)
        wanted = put->announced - put->spilled;
    else if (known == 0)
        wanted = put->n_parts < 3 ? UINT64_C(1) << (20 + 2 * put->n_parts) : longest;
    return wanted < longest ? wanted : longest;
}

/* Room for one more part in the list. */
static gyre_err grow_parts(struct gyre_put *put)
{
    if (put->n_parts < put->parts_capacity)
        return GYRE_OK;
    size_t capacity = put->parts_capacity == 0 ? 4 : put->parts_capacity * 2;
    struct eng_part *parts = reallocarray(put->parts, capacity, sizeof *parts);
    if (parts == NULL)
        return GYRE_NO_MEMORY;
    put->parts = parts;
    put->parts_capacity = capacity;
    return GYRE_OK;
}

/* What a part's header says of the object. Expiry may still change and stands in the HEAD alone. */
static struct eng_spec part_spec(const struct gyre_put *put)
{
    struct eng_spec spec = put->spec;
    spec.type = ENG_PART;
    spec.expires = 0;
    return spec;
}

/* An object that is over its tenant's quota by itself is refused before it has displaced others;
 * what it replaces is only looked at when it is published. A part of an upload replaces little. */
static gyre_err check_quota(const struct gyre_put *put, uint64_t capacity)
{
    const struct eng_store *engine = put->store->engine;
    uint64_t bytes = 0;
    uint64_t quota = 0;
    gyre_err err = eng_tenant_bytes(engine, put->spec.tenant, &bytes, &quota);
    if (likely(quota == 0) || err != GYRE_OK)
        return err;
    return eng_tenant_admit(engine, put->spec.tenant, (put->spilled + capacity) / ENG_UNIT,
                            put->upload != NULL ? 0 : bytes / ENG_UNIT);
}

static gyre_err open_part(struct gyre_put *put, uint64_t known)
{
    if (put->part_open)
        return GYRE_OK;
    gyre_err err = grow_parts(put);
    if (err != GYRE_OK)
        return err;
    if (put->spec.object_serial == 0)
        put->spec.object_serial =
            eng_object_serial(put->store->engine, put->spec.pool, put->key.bytes);
    struct eng_spec spec = part_spec(put);
    uint64_t capacity = next_capacity(put, known);
    uint32_t n = (uint32_t)put->n_parts;
    err = check_quota(put, capacity);
    if (err != GYRE_OK)
        return err;
    err = put->upload != NULL
              ? eng_part_begin(put->store->engine, &spec, put->upload->number, put->attempt, n,
                               capacity, &put->parts[n])
              : eng_part_begin(put->store->engine, &spec, n + 1, 0, 0, capacity, &put->parts[n]);
    put->part_open = err == GYRE_OK;
    return err;
}

gyre_err api_spill_finish(struct gyre_put *put)
{
    if (!put->part_open)
        return GYRE_OK;
    struct eng_spec spec = part_spec(put);
    gyre_err err = eng_part_finish(&put->parts[put->n_parts], &spec);
    if (err == GYRE_OK) {
        put->n_parts++;
        put->part_open = false;
    }
    return err;
}

/* Writes as much of the bytes as may be written now. */
static gyre_err spill(struct gyre_put *put, const uint8_t *bytes, size_t len, bool final,
                      size_t *taken_out)
{
    *taken_out = 0;
    while (*taken_out < len) {
        size_t left = len - *taken_out;
        if (!final && !put->part_open && left < ENG_PAGE && put->spilled + left != put->announced)
            break;
        gyre_err err = open_part(put, final ? left : 0);
        if (err != GYRE_OK)
            return err;
        struct eng_part *part = &put->parts[put->n_parts];
        uint64_t room = part->body_capacity - part->body_len;
        size_t n = left < room ? left : (size_t)room;
        if (n < room && !final)
            n = (size_t)eng_align_down(n, ENG_PAGE);
        if (n == 0)
            break;
        err = eng_part_write(part, bytes + *taken_out, n);
        if (err == GYRE_OK && part->body_len == part->body_capacity)
            err = api_spill_finish(put);
        if (err != GYRE_OK)
            return err;
        *taken_out += n;
        put->spilled += n;
    }
    return GYRE_OK;
}

gyre_err api_spill_stage(struct gyre_put *put, bool final)
{
    size_t taken;
    gyre_err err = spill(put, put->stage.bytes, put->stage.filled, final, &taken);
    if (err == GYRE_OK)
        api_stage_consume(&put->stage, taken);
    return err;
}

gyre_err api_spill_direct(struct gyre_put *put, const uint8_t *bytes, size_t len, size_t *taken_out)
{
    return spill(put, bytes, len, false, taken_out);
}
