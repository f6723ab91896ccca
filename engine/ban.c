#include "engine/ban.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/locks.h"
#include "engine/pool.h"
#include "engine/reader.h"
#include "engine/seal.h"
#include "engine/slot.h"

/* The index of rows, read without a lock:
 *
 *   writer (facts_lock)                        reader
 *   row fields, then its index word, release   index word, acquire, then the row     (A)
 *   n, release                                 n, acquire                            (B)
 *   rows that move: version odd .. even        version before and after: equal and even (C)
 *
 * A row's time only grows while its place stays. */

#define INDEX_SLOTS (2u * ENG_BANS)
#define SPINS_BEFORE_LOCK 10000

uint64_t eng_label_hash(enum eng_ban_kind kind, const void *bytes, size_t len)
{
    uint8_t tag = (uint8_t)kind;
    uint8_t digest[32];
    const struct iovec pieces[] = {{&tag, 1}, {(void *)(uintptr_t)bytes, len}};
    eng_sha256(pieces, GYRE_ARRAY_LEN(pieces), digest);
    return eng_load_u64(digest) | 1;
}

uint64_t eng_ban_key_hash(const uint8_t key[32])
{
    return eng_key_hash(key, ENG_BAN_KEY, ENG_BAN_KEY) | 1;
}

/* ---- The clock ---- */

static uint64_t ticks_of_ms(uint64_t ms)
{
    return ms / 1000 * 16 + ms % 1000 * 16 / 1000;
}

/* The first millisecond of the tick. */
static uint64_t ms_of_ticks(uint64_t ticks)
{
    return ticks / 16 * 1000 + eng_div_up(ticks % 16 * 1000, 16);
}

static void raise_to(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t now = atomic_load_explicit(at, memory_order_relaxed);
    while (now < value && !atomic_compare_exchange_weak_explicit(
                              at, &now, value, memory_order_acq_rel, memory_order_relaxed)) {
    }
}

uint64_t eng_ban_clock(struct eng_store *store, uint64_t now_ms)
{
    struct eng_bans *bans = store->bans;
    uint64_t ticks = ticks_of_ms(now_ms);
    uint64_t newest = atomic_load_explicit(&bans->newest_ticks, memory_order_acquire);
    ticks = ticks > newest ? ticks : newest + 1;
    raise_to(&bans->stored_ticks, ticks);
    return ticks;
}

/* ---- Looking ---- */

static uint32_t first_place(uint64_t hash, uint32_t pool)
{
    return (uint32_t)(eng_mix64(hash ^ (uint64_t)pool << 56) % INDEX_SLOTS);
}

/* The row of a hash, or ENG_BANS. */
static uint32_t find_row(const struct eng_bans *bans, uint64_t hash, uint32_t pool)
{
    for (uint32_t i = 0, at = first_place(hash, pool); i < INDEX_SLOTS;
         i++, at = (at + 1) % INDEX_SLOTS) {
        uint32_t row = atomic_load_explicit(&bans->index[at], memory_order_acquire); /* A */
        if (row == 0)
            break;
        if (atomic_load_explicit(&bans->rows[row - 1].hash, memory_order_relaxed) == hash &&
            atomic_load_explicit(&bans->rows[row - 1].pool, memory_order_relaxed) == pool)
            return row - 1;
    }
    return ENG_BANS;
}

static bool is_older(const struct eng_bans *bans, const struct eng_doc *doc, uint64_t hash)
{
    uint32_t row = find_row(bans, hash, doc->pool);
    if (row == ENG_BANS)
        return false;
    uint64_t ms = atomic_load_explicit(&bans->rows[row].time_ms, memory_order_relaxed);
    return eng_doc_stored_ticks(doc) <= ticks_of_ms(ms);
}

static bool matches_once(const struct eng_bans *bans, const struct eng_doc *doc)
{
    if (is_older(bans, doc, eng_ban_key_hash(doc->key)))
        return true;
    const uint8_t *labels = (const uint8_t *)(doc + 1) + eng_doc_user_meta_len(doc);
    for (uint32_t i = 0; i < eng_doc_labels(doc); i++)
        if (is_older(bans, doc, eng_load_u64(labels + i * sizeof(uint64_t))))
            return true;
    return false;
}

bool eng_ban_matches(const struct eng_store *store, const struct eng_doc *doc)
{
    const struct eng_bans *bans = store->bans;
    for (unsigned spins = 0;; spins++) {
        uint32_t before = atomic_load_explicit(&bans->version, memory_order_acquire); /* C */
        if ((before & 1) == 0) {
            bool matches = matches_once(bans, doc);
            atomic_thread_fence(memory_order_acquire); /* C */
            if (atomic_load_explicit(&bans->version, memory_order_relaxed) == before)
                return matches;
        }
        if (spins < SPINS_BEFORE_LOCK)
            continue;
        /* Whoever moves rows lost its processor, or its life; the lock finds out, and repairs. */
        eng_facts_settle((struct eng_store *)(uintptr_t)store);
        spins = 0;
    }
}

/* ---- Rows ---- */

static uint64_t row_off(const struct eng_store *store, uint32_t row)
{
    return store->super.ban_off + (uint64_t)row * sizeof(struct eng_ban_row);
}

static uint32_t row_limit(const struct eng_store *store)
{
    return store->super.ban_rows < ENG_BANS ? store->super.ban_rows : ENG_BANS;
}

static bool row_used(const struct eng_bans *bans, uint32_t row)
{
    return atomic_load_explicit(&bans->rows[row].kind, memory_order_relaxed) != 0;
}

static void set_row(struct eng_bans *bans, uint32_t row, const struct eng_ban_row *from)
{
    struct eng_ban *at = &bans->rows[row];
    atomic_store_explicit(&at->hash, from->hash, memory_order_relaxed);
    atomic_store_explicit(&at->time_ms, from->time_ms, memory_order_relaxed);
    atomic_store_explicit(&at->kind, from->kind, memory_order_relaxed);
    atomic_store_explicit(&at->pool, from->pool, memory_order_relaxed);
    raise_to(&bans->newest_ticks, ticks_of_ms(from->time_ms));
}

static void index_row(struct eng_bans *bans, uint32_t row)
{
    uint32_t at = first_place(atomic_load_explicit(&bans->rows[row].hash, memory_order_relaxed),
                              atomic_load_explicit(&bans->rows[row].pool, memory_order_relaxed));
    while (atomic_load_explicit(&bans->index[at], memory_order_relaxed) != 0)
        at = (at + 1) % INDEX_SLOTS;
    atomic_store_explicit(&bans->index[at], (uint16_t)(row + 1), memory_order_release); /* A */
}

/* Takes the rows of the file, which are right whatever happened to those in memory. A row stays
 * where it is for life, so that no order of writes can lose one. */
static gyre_err reload(struct eng_store *store)
{
    struct eng_bans *bans = store->bans;
    static const struct eng_ban_row unused;
    struct eng_ban_row rows[ENG_BANS];
    uint32_t limit = row_limit(store);
    uint32_t n = 0;
    gyre_err err = eng_pread(store->volume_fd, rows, limit * sizeof rows[0], row_off(store, 0));

    if (err != GYRE_OK)
        return err;
    uint32_t version = atomic_load_explicit(&bans->version, memory_order_relaxed) | 1;
    atomic_store_explicit(&bans->version, version, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* C */
    for (uint32_t i = 0; i < INDEX_SLOTS; i++)
        atomic_store_explicit(&bans->index[i], 0, memory_order_relaxed);
    for (uint32_t i = 0; i < limit; i++) {
        bool used = rows[i].kind != 0 && eng_ban_row_valid(&rows[i]);
        set_row(bans, i, used ? &rows[i] : &unused);
        if (used)
            index_row(bans, i);
        n = used ? i + 1 : n;
    }
    atomic_store_explicit(&bans->n, n, memory_order_release);                 /* B */
    atomic_store_explicit(&bans->version, version + 1, memory_order_release); /* C */
    return GYRE_OK;
}

/* Documents of before a restart may be as new as the newest ban allowed. */
gyre_err eng_bans_load(struct eng_store *store)
{
    gyre_err err = reload(store);
    uint64_t newest = atomic_load_explicit(&store->bans->newest_ticks, memory_order_relaxed);
    if (err == GYRE_OK && newest != 0)
        raise_to(&store->bans->stored_ticks, newest + 1);
    return err;
}

/* Where the file cannot be read, what is in memory has to do. */
void eng_bans_repair_locked(struct eng_store *store)
{
    if (reload(store) != GYRE_OK)
        atomic_fetch_and_explicit(&store->bans->version, ~UINT32_C(1), memory_order_release);
}

uint32_t eng_bans_count(const struct eng_store *store)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < atomic_load_explicit(&store->bans->n, memory_order_acquire); i++)
        used += row_used(store->bans, i);
    return used;
}

uint32_t eng_bans_free(const struct eng_store *store)
{
    return row_limit(store) - eng_bans_count(store);
}

/* The file first: what is forgotten in memory is repaired from there. */
static gyre_err put_row_locked(struct eng_store *store, uint32_t row, struct eng_ban_row *what)
{
    struct eng_bans *bans = store->bans;
    eng_ban_row_seal(what);
    gyre_err err = eng_pwrite(store->volume_fd, what, sizeof *what, row_off(store, row));
    GYRE_STEP("ban.row.written");
    if (err != GYRE_OK)
        return err;
    bool is_new = !row_used(bans, row);
    set_row(bans, row, what);
    if (is_new)
        index_row(bans, row);
    if (row >= atomic_load_explicit(&bans->n, memory_order_relaxed))
        atomic_store_explicit(&bans->n, row + 1, memory_order_release); /* B */
    return GYRE_OK;
}

gyre_err eng_ban_add(struct eng_store *store, uint8_t pool, enum eng_ban_kind kind, uint64_t hash,
                     uint64_t now_ms, bool sync)
{
    struct eng_bans *bans = store->bans;
    gyre_err err;

    eng_facts_enter(store);
    uint64_t stored = atomic_load_explicit(&bans->stored_ticks, memory_order_acquire);
    uint64_t newest = atomic_load_explicit(&bans->newest_ticks, memory_order_relaxed);
    stored = ms_of_ticks(stored > newest ? stored : newest);
    now_ms = stored > now_ms ? stored : now_ms;
    uint32_t row = find_row(bans, hash, pool);
    for (row = row == ENG_BANS ? 0 : row; row < row_limit(store) && row_used(bans, row); row++)
        if (atomic_load_explicit(&bans->rows[row].hash, memory_order_relaxed) == hash &&
            atomic_load_explicit(&bans->rows[row].pool, memory_order_relaxed) == pool)
            break;
    struct eng_ban_row what = {.hash = hash, .time_ms = now_ms, .kind = kind, .pool = pool};
    err = row < row_limit(store) ? put_row_locked(store, row, &what) : GYRE_NO_SPACE;
    if (err == GYRE_OK && sync)
        err = eng_sync_data(store->volume_fd);
    eng_facts_unlock(store);
    return err;
}

/* After a power loss some may be back, which harms nobody: what they match is gone. */
gyre_err eng_bans_forget(struct eng_store *store, uint64_t before_ms)
{
    static const struct eng_ban_row unused;
    gyre_err err = GYRE_OK;

    eng_facts_enter(store);
    for (uint32_t i = 0; i < row_limit(store); i++) {
        const struct eng_ban *row = &store->bans->rows[i];
        if (row_used(store->bans, i) &&
            atomic_load_explicit(&row->time_ms, memory_order_relaxed) < before_ms)
            TRY(eng_pwrite(store->volume_fd, &unused, sizeof unused, row_off(store, i)));
    }
out:
    if (err == GYRE_OK)
        err = reload(store);
    eng_facts_unlock(store);
    return err;
}

/* Whoever was being stored when the bans were made has long been published. */
#define SETTLED_MS 10000

enum { BUCKETS_AT_ONCE = 64 };

/* Of the bytes an entry leads to, the key alone is taken: looking it up drops what is banned. */
static void look_at(struct eng_stripe *stripe, uint64_t entry, uint32_t now)
{
    uint64_t offset = eng_entry_offset(entry);
    struct eng_store *store = stripe->store;
    struct eng_ref ref;
    if (offset >= stripe->area_bytes >> ENG_UNIT_SHIFT)
        return;
    struct eng_doc doc =
        *(const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
    const struct eng_want want = {.key = doc.key, .pool = doc.pool};
    if (doc.pool < store->super.n_pools &&
        eng_find(store, &want, now, ENG_NO_COUNT | ENG_HEADER, &ref) == GYRE_OK)
        eng_ref_release(&ref);
}

static void look_at_some(struct eng_stripe *stripe, uint32_t first, uint32_t now)
{
    uint64_t entries[BUCKETS_AT_ONCE * ENG_BUCKET_ENTRIES];
    size_t n = 0;
    eng_alloc_lock(stripe);
    for (uint32_t i = 0; i < BUCKETS_AT_ONCE * ENG_BUCKET_ENTRIES; i++) {
        uint32_t slot = first * ENG_BUCKET_ENTRIES + i;
        if (slot >= stripe->n_buckets * ENG_BUCKET_ENTRIES)
            break;
        uint64_t entry = eng_directory_entry(stripe, slot);
        if (entry != 0 && eng_entry_kind(entry) != ENG_KIND_PART &&
            (stripe->slots[slot].class_ & ENG_CLASS_LOOK) != 0)
            entries[n++] = entry;
    }
    eng_alloc_unlock(stripe);
    for (size_t i = 0; i < n; i++)
        look_at(stripe, entries[i], now);
}

gyre_err eng_ban_sweep(struct eng_store *store, uint32_t now)
{
    uint64_t begun_ms = now * UINT64_C(1000);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        for (uint32_t bucket = 0; bucket < stripe->n_buckets; bucket += BUCKETS_AT_ONCE)
            look_at_some(stripe, bucket, now);
    }
    return eng_bans_forget(store, begun_ms > SETTLED_MS ? begun_ms - SETTLED_MS : 0);
}
