/* Documents against their entries, their neighbours and their checksums; see check_internal.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/check_internal.h"
#include "engine/doc.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"

#define BUFFER_BYTES (UINT64_C(1) << 20)

/* The slots of one segment, by address. */
struct row {
    uint64_t offset; /* units */
    uint32_t slot;
};

struct pass {
    struct eng_checking *c;
    struct eng_recovering view; /* what reading headers needs */
    struct row *rows;
    size_t n, capacity;
    uint8_t *buffer;
};

static int by_offset(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static gyre_err collect_segment(struct pass *pass, uint32_t segment)
{
    const struct eng_stripe *stripe = pass->view.stripe;
    uint64_t per_segment = stripe->store->super.segment_bytes / ENG_GRANULE;

    pass->n = 0;
    for (uint64_t i = 0; i < per_segment; i++) {
        uint32_t slot = eng_granule_first_locked(stripe, segment * per_segment + i);
        for (; slot != ENG_NO_SLOT; slot = eng_granule_next_locked(stripe, slot)) {
            if (pass->n == pass->capacity) {
                size_t capacity = pass->capacity == 0 ? 1024 : 2 * pass->capacity;
                struct row *rows = realloc(pass->rows, capacity * sizeof *rows);
                if (rows == NULL)
                    return GYRE_NO_MEMORY;
                pass->rows = rows;
                pass->capacity = capacity;
            }
            pass->rows[pass->n++] =
                (struct row){eng_entry_offset(eng_directory_entry(stripe, slot)), slot};
        }
    }
    if (pass->n > 0)
        qsort(pass->rows, pass->n, sizeof *pass->rows, by_offset);
    return GYRE_OK;
}

static gyre_err remember_head(struct eng_checking *c, const struct eng_doc *doc)
{
    if (c->n_heads == c->heads_capacity) {
        size_t capacity = c->heads_capacity == 0 ? 256 : 2 * c->heads_capacity;
        struct eng_check_head *heads = realloc(c->heads, capacity * sizeof *heads);
        if (heads == NULL)
            return GYRE_NO_MEMORY;
        c->heads = heads;
        c->heads_capacity = capacity;
    }
    memcpy(c->heads[c->n_heads].key, doc->key, sizeof doc->key);
    c->heads[c->n_heads++].pool = doc->pool;
    return GYRE_OK;
}

/* By reading, not through the mapping: a bad sector is then an error and not a signal. */
static bool sum_holds(struct pass *pass, uint64_t file_off, uint64_t len, uint32_t expected)
{
    uint32_t crc = 0;

    for (uint64_t done = 0; done < len;) {
        uint64_t n = len - done < BUFFER_BYTES ? len - done : BUFFER_BYTES;
        if (eng_pread(pass->view.stripe->fd, pass->buffer, n, file_off + done) != GYRE_OK)
            return false;
        crc = eng_crc32c(crc, pass->buffer, n);
        done += n;
    }
    return crc == expected;
}

static bool sums_hold(struct pass *pass, const struct eng_known_doc *known)
{
    const struct eng_doc *doc = &known->doc;
    uint64_t at = ENG_DATA_START + (known->offset << ENG_UNIT_SHIFT);

    return sum_holds(pass, at + sizeof *doc, doc->meta_len, doc->meta_crc) &&
           sum_holds(pass, at + eng_doc_body_off(doc), doc->body_len, doc->body_crc);
}

/* No other entry may lead to a document of the same key and role. */
static void check_alone(struct pass *pass, const struct eng_known_doc *known, uint32_t slot)
{
    struct eng_candidates candidates;

    eng_directory_lookup(pass->view.stripe, &known->place, &candidates);
    for (size_t i = 0; i < candidates.n; i++) {
        struct eng_known_doc other;
        const struct eng_candidate *at = &candidates.at[i];
        if (at->slot <= slot ||
            !eng_known_doc_read(&pass->view, eng_entry_offset(at->entry), &other))
            continue;
        if (memcmp(other.doc.key, known->doc.key, sizeof other.doc.key) == 0 &&
            other.doc.pool == known->doc.pool &&
            (other.doc.type == ENG_PART) == (known->doc.type == ENG_PART))
            eng_check_violated(pass->c, pass->view.stripe, "E49",
                               "slots %" PRIu32 " and %" PRIu32 " hold the same key", slot,
                               at->slot);
    }
}

/* Whether a document is of a pool that was purged since it was stored: whole, and nobody's. */
static bool is_purged(const struct pass *pass, const struct row *row, uint64_t *end)
{
    const struct eng_stripe *stripe = pass->view.stripe;
    uint64_t room = stripe->segment_units - row->offset % stripe->segment_units;
    struct eng_doc doc;

    if (eng_pread(stripe->fd, &doc, sizeof doc, ENG_DATA_START + (row->offset << ENG_UNIT_SHIFT)) !=
            GYRE_OK ||
        eng_doc_check(&doc, stripe->crc_seed, row->offset, room) != GYRE_OK ||
        doc.pool >= stripe->store->super.n_pools ||
        doc.pool_epoch == (uint32_t)eng_pool_epoch(stripe->store, doc.pool))
        return false;
    *end = row->offset + eng_doc_extent_units(&doc);
    return true;
}

/* Bytes are counted by tenant from the first document of one on. */
static void check_tenant(struct pass *pass, const struct eng_known_doc *known, uint32_t slot)
{
    const struct eng_stripe *stripe = pass->view.stripe;
    uint32_t features =
        atomic_load_explicit(&stripe->store->rt.head->features, memory_order_acquire);

    if ((features & ENG_COMPAT_TENANTS) != 0 && stripe->slots[slot].tenant != known->doc.tenant)
        eng_check_violated(pass->c, stripe, "E80",
                           "slot %" PRIu32 " counts for tenant %u instead of %u", slot,
                           stripe->slots[slot].tenant, known->doc.tenant);
}

/* The document of a slot; *end is where the one before it ends, in units. */
static gyre_err check_document(struct pass *pass, const struct row *row, uint64_t *end)
{
    struct eng_checking *c = pass->c;
    const struct eng_stripe *stripe = pass->view.stripe;
    uint64_t entry = eng_directory_entry(stripe, row->slot);
    struct eng_known_doc known;

    c->report->documents++;
    if (is_purged(pass, row, end))
        return GYRE_OK;
    if (stripe->rt->segments[eng_segment_of(stripe, row->offset)].state != ENG_SEGMENT_RING)
        eng_check_violated(c, stripe, "E48", "slot %" PRIu32 " leads into a free segment",
                           row->slot);
    if (!eng_known_doc_read(&pass->view, row->offset, &known) ||
        !eng_known_doc_owns(&known, row->slot, entry) || (c->bodies && !sums_hold(pass, &known))) {
        c->report->documents_bad++;
        eng_slot_distrust(&stripe->slots[row->slot]); /* or readers would go on without looking */
        eng_check_damaged(c, stripe, "the document at %" PRIu64 " is damaged: it reads as a miss",
                          row->offset << ENG_UNIT_SHIFT);
        return GYRE_OK;
    }
    if (row->offset < *end)
        eng_check_violated(c, stripe, "E6",
                           "the document at unit %" PRIu64 " begins before the one before it ends",
                           row->offset);
    if (stripe->slots[row->slot].units < known.units)
        eng_check_violated(c, stripe, "E3", "slot %" PRIu32 " counts %" PRIu32 " units of %" PRIu64,
                           row->slot, stripe->slots[row->slot].units, known.units);
    *end = row->offset + known.units;
    check_alone(pass, &known, row->slot);
    check_tenant(pass, &known, row->slot);
    c->report->live_bytes += known.units << ENG_UNIT_SHIFT;
    if (known.doc.type == ENG_HEAD)
        return remember_head(c, &known.doc);
    c->report->objects += known.doc.type != ENG_PART;
    return GYRE_OK;
}

/* Others go on between two segments. */
static gyre_err check_segment(struct pass *pass, struct eng_stripe *stripe, uint32_t segment)
{
    uint64_t end = 0;

    eng_clean_lock(stripe);
    eng_alloc_lock(stripe);
    gyre_err err = collect_segment(pass, segment);
    for (size_t i = 0; i < pass->n && err == GYRE_OK; i++)
        err = check_document(pass, &pass->rows[i], &end);
    eng_alloc_unlock(stripe);
    eng_clean_unlock(stripe);
    return err;
}

gyre_err eng_check_documents(struct eng_checking *c, struct eng_stripe *stripe)
{
    struct pass pass = {.c = c, .view = {.stripe = stripe}, .buffer = malloc(BUFFER_BYTES)};
    gyre_err err = pass.buffer != NULL ? GYRE_OK : GYRE_NO_MEMORY;

    for (uint32_t segment = 0; segment < stripe->n_segments && err == GYRE_OK; segment++)
        err = check_segment(&pass, stripe, segment);
    free(pass.rows);
    free(pass.buffer);
    return err;
}
