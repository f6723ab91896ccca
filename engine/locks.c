#include "engine/locks.h"

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/stripe_repair.h"

/* An opening takes locks before it has a place to count in. */
static void note(const struct eng_store *store, enum eng_mutex_result result)
{
    if (likely(result == ENG_MUTEX_OK) || store->process == NULL)
        return;
    if (result == ENG_MUTEX_OWNER_DEAD)
        ENG_COUNT((struct eng_store *)(uintptr_t)store, lock_repairs, 1);
    else
        ENG_COUNT((struct eng_store *)(uintptr_t)store, lock_timeouts, 1);
}

/* A lock is never given up on, so it is never LOST: what it guards can always be put right from the
 * directory. */
void eng_alloc_lock(struct eng_stripe *stripe)
{
    enum eng_mutex_result result = eng_mutex_lock(&stripe->rt->alloc_lock);
    GYRE_CHECK(result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD);
    note(stripe->store, result);
    if (unlikely(result == ENG_MUTEX_OWNER_DEAD)) {
        eng_stripe_repair_locked(stripe);
        eng_mutex_consistent(&stripe->rt->alloc_lock);
    }
}

/* Nearly always it is free, and no clock has to be read. */
enum eng_mutex_result eng_lock_bounded(const struct eng_store *store, struct eng_mutex *mutex)
{
    enum eng_mutex_result result = eng_mutex_trylock(mutex);
    if (unlikely(result == ENG_MUTEX_BUSY))
        result = eng_mutex_lock_until(mutex, eng_clock_mono_ns() + store->lock_wait_ns);
    GYRE_CHECK(result != ENG_MUTEX_LOST);
    note(store, result);
    return result;
}

gyre_err eng_alloc_lock_bounded(struct eng_stripe *stripe)
{
    enum eng_mutex_result result = eng_lock_bounded(stripe->store, &stripe->rt->alloc_lock);
    if (unlikely(result == ENG_MUTEX_OWNER_DEAD)) {
        eng_stripe_repair_locked(stripe);
        eng_mutex_consistent(&stripe->rt->alloc_lock);
    }
    return result == ENG_MUTEX_BUSY ? GYRE_BUSY : GYRE_OK;
}

gyre_err eng_clean_lock_bounded(struct eng_stripe *stripe)
{
    enum eng_mutex_result result = eng_lock_bounded(stripe->store, &stripe->rt->clean_lock);
    if (unlikely(result == ENG_MUTEX_OWNER_DEAD))
        eng_mutex_consistent(&stripe->rt->clean_lock);
    return result == ENG_MUTEX_BUSY ? GYRE_BUSY : GYRE_OK;
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
