#include "engine/locks.h"

#include "engine/base/check.h"
#include "engine/stripe_repair.h"

/* A lock is never given up on, so it is never LOST: what it guards can always be put right from the
 * directory. */
void eng_alloc_lock(struct eng_stripe *stripe)
{
    enum eng_mutex_result result = eng_mutex_lock(&stripe->rt->alloc_lock);
    GYRE_CHECK(result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD);
    if (unlikely(result == ENG_MUTEX_OWNER_DEAD)) {
        eng_stripe_repair_locked(stripe);
        eng_mutex_consistent(&stripe->rt->alloc_lock);
    }
}

void eng_alloc_unlock(struct eng_stripe *stripe)
{
    eng_mutex_unlock(&stripe->rt->alloc_lock);
}

/* What it guards is written to the volume file first and then here, row by row: half a change is
 * told from the file. */
void eng_facts_lock(struct eng_store *store, bool *orphaned_out)
{
    enum eng_mutex_result result = eng_mutex_lock(&store->rt.head->facts_lock);
    GYRE_CHECK(result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD);
    *orphaned_out = result == ENG_MUTEX_OWNER_DEAD;
    if (unlikely(*orphaned_out))
        eng_mutex_consistent(&store->rt.head->facts_lock);
}

void eng_facts_unlock(struct eng_store *store)
{
    eng_mutex_unlock(&store->rt.head->facts_lock);
}

/* The hand moves only after everything before it is decided, so a step that ended halfway is simply
 * done again. */
void eng_clean_lock(struct eng_stripe *stripe)
{
    enum eng_mutex_result result = eng_mutex_lock(&stripe->rt->clean_lock);
    GYRE_CHECK(result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD);
    if (unlikely(result == ENG_MUTEX_OWNER_DEAD))
        eng_mutex_consistent(&stripe->rt->clean_lock);
}

void eng_clean_unlock(struct eng_stripe *stripe)
{
    eng_mutex_unlock(&stripe->rt->clean_lock);
}
