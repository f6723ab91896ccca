/* The table of parts in a HEAD: believed only as far as it adds up, then every part found and
 * pinned. */
#include "api/handle.h"

#include <stdlib.h>
#include <string.h>

#include "engine/writer.h"

#include "api/store.h"

static uint64_t row_count(const struct eng_ref *head)
{
    return head->doc->body_len / sizeof(struct eng_part_row);
}

static struct eng_part_row row_at(const struct eng_ref *head, uint64_t i)
{
    struct eng_part_row row;
    memcpy(&row, head->body + i * sizeof row, sizeof row);
    return row;
}

/* What to look for: the derived key is written to `key`. */
static struct eng_want part_want(const struct eng_ref *head, const struct eng_part_row *row,
                                 uint8_t key[32])
{
    const struct eng_doc *doc = head->doc;
    eng_part_key(doc->key, doc->object_serial, row->part_no, row->attempt, row->sub, key);
    return (struct eng_want){
        .key = key, .pool = doc->pool, .part = true, .object_serial = doc->object_serial};
}

bool api_parts_valid(const struct eng_store *store, const struct eng_ref *head)
{
    const struct eng_doc *doc = head->doc;
    uint64_t n = row_count(head);
    if (n == 0 || n > UINT32_MAX || doc->body_len % sizeof(struct eng_part_row) != 0 ||
        doc->parts != n)
        return false;
    uint64_t longest = eng_part_max_bytes(store);
    if (longest > (uint64_t)API_PART_CHUNKS_MAX * ENG_CHUNK)
        longest = (uint64_t)API_PART_CHUNKS_MAX * ENG_CHUNK;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct eng_part_row row = row_at(head, i);
        if (row.length == 0 || row.length > longest ||
            __builtin_add_overflow(sum, row.length, &sum))
            return false;
    }
    return sum == doc->total_len;
}

bool api_parts_probable(struct eng_store *store, const struct eng_ref *head)
{
    for (uint64_t i = 0; i < row_count(head); i++) {
        struct eng_part_row row = row_at(head, i);
        uint8_t key[32];
        struct eng_want want = part_want(head, &row, key);
        if (!eng_probable(store, &want))
            return false;
    }
    return true;
}

/* Finds one part. NOT_FOUND also for a part that is not as long as its row says. The hit was
 * counted at the HEAD, and only the HEAD's expiry counts. */
static gyre_err pin_part(struct gyre_handle *handle, uint64_t i, uint64_t start, unsigned eng_flags)
{
    struct api_part *part = &handle->parts[i];
    struct eng_part_row row = row_at(&handle->doc, i);
    uint8_t key[32];
    struct eng_want want = part_want(&handle->doc, &row, key);
    gyre_err err = eng_find(handle->store->engine, &want, 0, eng_flags | ENG_NO_COUNT, &part->ref);
    if (err != GYRE_OK)
        return err;
    part->start = start;
    part->len = row.length;
    memset(part->checked, 0, sizeof part->checked);
    if (part->ref.doc->body_len != row.length) {
        eng_ref_release(&part->ref);
        return GYRE_NOT_FOUND;
    }
    return GYRE_OK;
}

gyre_err api_parts_pin(struct gyre_handle *handle, unsigned eng_flags)
{
    uint64_t n = row_count(&handle->doc);
    handle->parts = n == 1 ? &handle->first_part : calloc(n, sizeof *handle->parts);
    if (handle->parts == NULL)
        return GYRE_NO_MEMORY;
    uint64_t start = 0;
    for (uint64_t i = 0; i < n; i++) {
        gyre_err err = pin_part(handle, i, start, eng_flags);
        if (err != GYRE_OK) {
            while (i-- > 0)
                eng_ref_release(&handle->parts[i].ref);
            if (n > 1)
                free(handle->parts);
            handle->parts = NULL;
            return err;
        }
        start += handle->parts[i].len;
    }
    handle->n_parts = (uint32_t)n;
    return GYRE_OK;
}
