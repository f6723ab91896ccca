/* When a document's time is over, whatever it was worth: hard expiry, bans, purged pools.
 *
 * Threads: any. Blocks: eng_spent_locked, on the header of a document that has a look mark.
 * Allocates: nothing. Keeps: E81, E82, E83.
 */
#pragma once

#include "engine/ban.h"

/* Whether `now` (Unix seconds) has reached the document's expiry. */
static inline bool eng_expired(const struct eng_doc *doc, uint32_t now)
{
    return doc->expires != 0 && now >= doc->expires;
}

/* Whether a document that is no PART is there for nobody any more. */
static inline bool eng_stale(const struct eng_store *store, const struct eng_doc *doc, uint32_t now)
{
    return eng_expired(doc, now) || eng_banned(store, doc);
}

/* For the hand, of a document that would stay otherwise: whether it has to go. True too for one of
 * a pool that was purged since. The caller holds the clean lock or the alloc lock, so that the
 * bytes stay. */
bool eng_spent_locked(const struct eng_stripe *stripe, uint32_t slot, uint64_t entry, uint32_t now);
