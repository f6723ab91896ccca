#include "engine/vector.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/step.h"
#include "engine/publish.h"
#include "engine/seal.h"

#define ROUNDS_MAX 1000
#define HEAD_BYTES 8 /* before the first entry */

GYRE_STATIC_SIZE(struct eng_inline, 16);

void eng_alternate_key(const uint8_t key[32], uint64_t salt, uint8_t out[32])
{
    static const char what[] = "alternate";
    uint8_t bytes[8];
    eng_store_u64(bytes, salt);
    const struct iovec pieces[] = {{(void *)(uintptr_t)what, sizeof what},
                                   {(void *)(uintptr_t)key, 32},
                                   {bytes, sizeof bytes}};
    eng_sha256(pieces, GYRE_ARRAY_LEN(pieces), out);
}

struct eng_alternate eng_vector_at(const uint8_t *body, uint32_t i)
{
    struct eng_alternate at = {0};
    const uint8_t *strings = body + HEAD_BYTES + eng_load_u32(body) * sizeof at.entry;
    memcpy(&at.entry, body + HEAD_BYTES + i * sizeof at.entry, sizeof at.entry);
    at.vary = strings + at.entry.vary_off;
    if (at.entry.flags & ENG_ALTERNATE_INLINE) {
        at.inside = strings + (at.entry.head_salt >> 32);
        at.inside_len = (uint32_t)at.entry.head_salt;
    }
    return at;
}

/* ---- Lists ---- */

struct list {
    struct eng_alternate *at;
    uint32_t n;
};

/* Reads what is under the key; an object that is no vector counts as an empty one. */
static gyre_err read_list(const struct eng_ref *ref, struct list *list)
{
    uint32_t n = 0;
    list->n = 0;
    if (ref->stripe != NULL && ref->doc->type == ENG_VECTOR &&
        eng_vector_check(ref->body, ref->doc->body_len, &n) != GYRE_OK)
        n = 0; /* whose checksum holds, so nothing of ours wrote it */
    list->at = calloc(n + 1, sizeof *list->at);
    if (list->at == NULL)
        return GYRE_NO_MEMORY;
    for (; list->n < n; list->n++)
        list->at[list->n] = eng_vector_at(ref->body, list->n);
    return GYRE_OK;
}

static struct eng_alternate *find_id(const struct list *list, uint32_t id)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->at[i].entry.alt_id == id)
            return &list->at[i];
    return NULL;
}

/* Takes out what was made from `id`, and what was made from that. */
static void drop_derived(struct list *list, uint32_t id)
{
    for (uint32_t i = 0; i < list->n;) {
        if (list->at[i].entry.origin_variant != id) {
            i++;
            continue;
        }
        uint32_t derived = list->at[i].entry.alt_id;
        memmove(&list->at[i], &list->at[i + 1], (list->n - i - 1) * sizeof *list->at);
        list->n--;
        if (derived != id)
            drop_derived(list, derived);
        i = 0;
    }
}

static gyre_err drop(struct list *list, uint32_t id)
{
    struct eng_alternate *at = find_id(list, id);
    if (at == NULL)
        return GYRE_NOT_FOUND;
    size_t behind = list->n - (size_t)(at - list->at) - 1;
    memmove(at, at + 1, behind * sizeof *at);
    list->n--;
    drop_derived(list, id);
    return GYRE_OK;
}

/* A replaced one keeps its place in the order; what was made from its old bytes goes. */
static gyre_err add(struct list *list, const struct eng_alternate *what)
{
    if (what->entry.origin_variant != 0) {
        const struct eng_alternate *origin = find_id(list, what->entry.origin_variant);
        if (origin == NULL || origin->entry.source_serial != what->entry.source_serial ||
            what->entry.origin_variant == what->entry.alt_id)
            return GYRE_CHANGED;
    }
    struct eng_alternate *old = find_id(list, what->entry.alt_id);
    if (old != NULL) {
        *old = *what;
        drop_derived(list, what->entry.alt_id);
        return GYRE_OK;
    }
    if (list->n == ENG_ALTERNATES)
        return GYRE_NO_SPACE;
    list->at[list->n++] = *what;
    return GYRE_OK;
}

static gyre_err apply(struct list *list, const struct eng_edit *edit)
{
    if (edit->touch) {
        struct eng_alternate *at = find_id(list, edit->add->entry.alt_id);
        if (at == NULL)
            return GYRE_NOT_FOUND;
        if ((at->inside != NULL) != (edit->add->inside != NULL) ||
            at->entry.source_serial != edit->add->entry.source_serial)
            return GYRE_CHANGED; /* replaced meanwhile */
        at->entry.expires = edit->add->entry.expires;
        at->inside = edit->add->inside;
        at->inside_len = edit->add->inside_len;
        return GYRE_OK;
    }
    if (edit->remove != 0)
        return drop(list, edit->remove);
    return add(list, edit->add);
}

/* ---- Bodies ---- */

static size_t body_len(const struct list *list, bool *has_inside)
{
    size_t len = HEAD_BYTES + list->n * sizeof(struct eng_vector_entry);
    *has_inside = false;
    for (uint32_t i = 0; i < list->n; i++) {
        len += list->at[i].entry.vary_len + list->at[i].inside_len;
        *has_inside = *has_inside || list->at[i].inside != NULL;
    }
    return len;
}

static void write_body(const struct list *list, uint8_t *body)
{
    uint8_t *strings = body + HEAD_BYTES + list->n * sizeof(struct eng_vector_entry);
    uint32_t off = 0;
    eng_store_u32(body, list->n);
    eng_store_u32(body + 4, 0);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct eng_alternate *at = &list->at[i];
        struct eng_vector_entry entry = at->entry;
        entry.vary_off = off;
        if (entry.vary_len > 0)
            memcpy(strings + off, at->vary, entry.vary_len);
        off += entry.vary_len;
        if (at->inside != NULL) {
            entry.head_salt = (uint64_t)off << 32 | at->inside_len;
            memcpy(strings + off, at->inside, at->inside_len);
            off += at->inside_len;
        }
        memcpy(body + HEAD_BYTES + i * sizeof entry, &entry, sizeof entry);
    }
}

/* ---- Editing ---- */

static gyre_err commit_list(struct eng_store *store, const struct eng_edit *edit,
                            const struct eng_ref *old, const struct list *list,
                            uint64_t *serial_out)
{
    bool has_inside;
    size_t len = body_len(list, &has_inside);
    if (len > ENG_VECTOR_MAX || len > eng_small_max_bytes(store) ||
        (edit->add != NULL && edit->add->inside != NULL && len > ENG_VECTOR_INLINE_MAX))
        return GYRE_TOO_LARGE;
    uint8_t *body = malloc(len);
    if (body == NULL)
        return GYRE_NO_MEMORY;
    write_body(list, body);
    struct eng_commit commit = {
        .spec = {.key = edit->key,
                 .type = ENG_VECTOR,
                 .total_len = len,
                 .created = (uint32_t)(edit->now_ms / 1000),
                 .tenant = old->stripe != NULL ? old->doc->tenant : edit->tenant,
                 .pool = edit->pool},
        .body = body,
        .body_len = len,
        .condition = old->stripe != NULL ? ENG_IF_SERIAL : ENG_IF_ABSENT,
        .if_serial = old->stripe != NULL ? old->doc->serial : 0,
        .now = (uint32_t)(edit->now_ms / 1000),
        .now_ms = edit->now_ms,
        .sync = edit->sync,
    };
    gyre_err err = eng_commit(store, &commit, serial_out);
    free(body);
    return err;
}

static gyre_err edit_once(struct eng_store *store, const struct eng_edit *edit,
                          const struct eng_ref *old, uint64_t *serial_out)
{
    struct list list = {0};
    gyre_err err;
    TRY(eng_condition_check(edit->condition, edit->if_serial, old->doc));
    TRY(read_list(old, &list));
    TRY(apply(&list, edit));
    GYRE_STEP("vector.edit.before");
    if (list.n > 0 || old->stripe == NULL)
        err = commit_list(store, edit, old, &list, serial_out);
    else
        err = eng_delete(store, edit->pool, edit->key, ENG_IF_SERIAL, old->doc->serial, edit->sync);
out:
    free(list.at);
    return err;
}

/* What the internal condition refuses was changed by somebody else in between. */
gyre_err eng_vector_edit(struct eng_store *store, const struct eng_edit *edit, uint64_t *serial_out)
{
    const struct eng_want want = {.key = edit->key, .pool = edit->pool};
    uint32_t now = (uint32_t)(edit->now_ms / 1000);
    *serial_out = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct eng_ref old;
        struct eng_ref again;
        gyre_err err = eng_find(store, &want, now, ENG_NO_COUNT, &old);
        if (err != GYRE_OK && err != GYRE_NOT_FOUND && err != GYRE_EXPIRED)
            return err;
        uint64_t seen = old.stripe != NULL ? old.doc->serial : 0;
        err = edit_once(store, edit, &old, serial_out);
        eng_ref_release(&old);
        if (err == GYRE_OK || (err != GYRE_CHANGED && err != GYRE_EXISTS && err != GYRE_NOT_FOUND))
            return err;
        gyre_err found = eng_find(store, &want, now, ENG_NO_COUNT, &again);
        bool same = (found == GYRE_OK ? again.doc->serial : 0) == seen;
        eng_ref_release(&again);
        if (same)
            return err;
    }
    return GYRE_BUSY;
}

/* ---- What a vector leaves behind ---- */

void eng_alternate_unlink(struct eng_store *store, uint8_t pool, const uint8_t key[32])
{
    const struct eng_want want = {.key = key, .pool = pool};
    struct eng_ref ref;
    if (eng_find(store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &ref) != GYRE_OK)
        return; /* evicted, or damaged and dropped */
    eng_drop(&ref);
    eng_parts_remove(store, &ref, NULL, 0);
    eng_ref_release(&ref);
}

static bool names_salt(const void *body, uint32_t n, uint64_t salt)
{
    for (uint32_t i = 0; i < n; i++) {
        struct eng_vector_entry entry;
        memcpy(&entry, (const uint8_t *)body + HEAD_BYTES + i * sizeof entry, sizeof entry);
        if (entry.head_salt == salt && (entry.flags & ENG_ALTERNATE_INLINE) == 0)
            return true;
    }
    return false;
}

void eng_alternates_remove(struct eng_store *store, const struct eng_ref *vector, const void *kept,
                           size_t kept_len)
{
    uint32_t n;
    uint32_t n_kept = 0;
    if (eng_vector_check(vector->body, vector->doc->body_len, &n) != GYRE_OK ||
        (kept != NULL && eng_vector_check(kept, kept_len, &n_kept) != GYRE_OK))
        return; /* what it may have named is unreachable, and leaves at the hand */
    for (uint32_t i = 0; i < n; i++) {
        const struct eng_alternate at = eng_vector_at(vector->body, i);
        uint8_t key[32];
        if (at.inside != NULL || names_salt(kept, n_kept, at.entry.head_salt))
            continue;
        eng_alternate_key(vector->doc->key, at.entry.head_salt, key);
        eng_alternate_unlink(store, vector->doc->pool, key);
        GYRE_STEP("vector.alternate.removed");
    }
}
