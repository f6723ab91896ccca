/* Bans: documents older than a ban that match it are misses, in this run and after any restart.
 *
 * A ban names a key, or a label: a document carries the labels (tags, prefixes of its name) that it
 * can be banned by, as 64-bit hashes behind its metadata. Rows lie in the volume file, and in the
 * runtime segment for looking up: without bans that costs a reader one load.
 *
 * "Older" is told by a clock of sixteenths of a second that runs on with the system's and never
 * lags behind what it has given out: a document stored after a ban is newer, a ban made after a
 * document is newer than that, whatever the system's clock does in between.
 *
 * Threads: any. Blocks: eng_ban_add, for the disk when asked. Allocates: nothing. Keeps: E82.
 */
#pragma once

#include <stddef.h>

#include "engine/doc.h"
#include "engine/store.h"

enum eng_ban_kind { ENG_BAN_KEY = 1, ENG_BAN_PREFIX = 2, ENG_BAN_TAG = 3 };

/* The hash a ban or label of these bytes has; never 0. */
uint64_t eng_label_hash(enum eng_ban_kind kind, const void *bytes, size_t len);
/* The same of a key, which needs no label. */
uint64_t eng_ban_key_hash(const uint8_t key[32]);

/* Reads the rows from the volume file when a store is opened. IO. */
GYRE_MUST_USE gyre_err eng_bans_load(struct eng_store *store);

/* Bans what matches in the pool and was stored before now. `sync`: it is durable when this returns.
 * NO_SPACE: all rows are in use (eng_ban_sweep frees them). IO: perhaps not durable. */
GYRE_MUST_USE gyre_err eng_ban_add(struct eng_store *store, uint8_t pool, enum eng_ban_kind kind,
                                   uint64_t hash, uint64_t now_ms, bool sync);
/* Forgets the bans made before `before_ms`: no document that they match is left. IO. */
GYRE_MUST_USE gyre_err eng_bans_forget(struct eng_store *store, uint64_t before_ms);
/* Rows in use, and rows left. */
uint32_t eng_bans_count(const struct eng_store *store);
uint32_t eng_bans_free(const struct eng_store *store);
/* Looks at every document that can be banned by a label, drops those that are, and forgets the bans
 * made before. Blocks: reads the headers of all such documents. IO. */
GYRE_MUST_USE gyre_err eng_ban_sweep(struct eng_store *store, uint32_t now);
/* Makes the rows in memory those of the file again. */
void eng_bans_repair_locked(struct eng_store *store);

/* The time to give to a document that is stored now, in sixteenths of a second. */
uint64_t eng_ban_clock(struct eng_store *store, uint64_t now_ms);

/* For eng_banned, once there are bans. `doc` is checked, its metadata follows it in memory. */
bool eng_ban_matches(const struct eng_store *store, const struct eng_doc *doc);

/* Whether a document is banned. Why a stale answer is safe: who does not see a ban yet began before
 * it was made. */
static inline bool eng_banned(const struct eng_store *store, const struct eng_doc *doc)
{
    return unlikely(atomic_load_explicit(&store->bans->n, memory_order_acquire) != 0) &&
           eng_ban_matches(store, doc);
}
