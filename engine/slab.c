#include "engine/slab.h"

#include <stdlib.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/lock.h"
#include "engine/locks.h"
#include "engine/log.h"

#define SLAB_UNITS ((256u << 10) / ENG_UNIT)
/* Documents a slab is made for. More would be kept together longer than is good: a slab stays where
 * it was begun while the log moves on, and its documents' age is judged by their place. */
#define SLAB_DOCUMENTS 32

enum slab_state { SLAB_NONE, SLAB_IDLE, SLAB_BUSY };

struct eng_slab_cache {
    struct eng_lock lock;
    struct eng_cond idle;                        /* a slab is no longer busy */
    struct eng_slab slabs[ENG_RINGS][ENG_SLABS]; /* state_ under the lock, the rest the holder's */
};

gyre_err eng_slabs_create(struct eng_slab_cache **cache_out)
{
    *cache_out = calloc(1, sizeof **cache_out);
    if (*cache_out == NULL)
        return GYRE_NO_MEMORY;
    eng_lock_init(&(*cache_out)->lock, ENG_RANK_SLAB);
    eng_cond_init(&(*cache_out)->idle);
    return GYRE_OK;
}

void eng_slabs_destroy(struct eng_slab_cache *cache)
{
    if (cache == NULL)
        return;
    eng_cond_fini(&cache->idle);
    eng_lock_fini(&cache->lock);
    free(cache);
}

/* The holder's slab goes back to the log, pages nothing was written to first. */
static void retire(struct eng_stripe *stripe, struct eng_slab *slab)
{
    eng_log_end(stripe, slab->reservation, eng_align_up(slab->used, ENG_PAGE_UNITS));
    slab->start = slab->end = slab->used = 0;
}

/* Small segments get small slabs, so that a few open ones are not half of a ring. */
static uint64_t full_size(const struct eng_stripe *stripe, uint64_t units)
{
    uint64_t sixteenth = stripe->segment_units / 16;
    uint64_t most = sixteenth < SLAB_UNITS ? sixteenth : SLAB_UNITS;
    uint64_t size = eng_align_up(units * SLAB_DOCUMENTS, ENG_PAGE_UNITS);
    return size < most ? size : most;
}

/* Between documents that stay lie single free pages: a slab takes them as they come. */
static gyre_err reserve(struct eng_stripe *stripe, uint64_t units, struct eng_slab *slab)
{
    uint64_t least = eng_align_up(units, ENG_PAGE_UNITS);
    uint64_t most = full_size(stripe, units);
    uint64_t size;
    gyre_err err = eng_log_reserve_slab(stripe, slab->ring, least, most > least ? most : least,
                                        &slab->start, &size, &slab->reservation);
    if (err != GYRE_OK)
        return err;
    slab->used = slab->start;
    slab->end = slab->start + size;
    return GYRE_OK;
}

/* An idle slab with room; else one to be filled anew, idle or not yet in use; NULL: all are busy.
 */
static struct eng_slab *choose_locked(struct eng_slab *slabs, uint64_t units)
{
    struct eng_slab *fullest = NULL, *unused = NULL;
    for (int i = 0; i < ENG_SLABS; i++) {
        struct eng_slab *slab = &slabs[i];
        if (slab->state_ == SLAB_IDLE && slab->end - slab->used >= units)
            return slab;
        if (slab->state_ == SLAB_NONE && unused == NULL)
            unused = slab;
        if (slab->state_ == SLAB_IDLE &&
            (fullest == NULL || slab->end - slab->used < fullest->end - fullest->used))
            fullest = slab;
    }
    return fullest != NULL ? fullest : unused;
}

static void set_state(struct eng_slab_cache *cache, struct eng_slab *slab, enum slab_state state)
{
    eng_lock_acquire(&cache->lock);
    slab->state_ = (uint8_t)state;
    eng_cond_signal(&cache->idle);
    eng_lock_release(&cache->lock);
}

gyre_err eng_slab_acquire(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                          struct eng_slab **slab_out)
{
    struct eng_slab_cache *cache = stripe->slabs;
    struct eng_slab *slab;
    GYRE_CHECK(ring < ENG_RINGS && units > 0);
    *slab_out = NULL;
    eng_lock_acquire(&cache->lock);
    while ((slab = choose_locked(cache->slabs[ring], units)) == NULL)
        eng_cond_wait(&cache->idle, &cache->lock);
    slab->state_ = SLAB_BUSY;
    eng_lock_release(&cache->lock);

    slab->ring = ring;
    if (slab->end - slab->used < units) {
        if (slab->end != slab->start)
            retire(stripe, slab);
        gyre_err err = reserve(stripe, units, slab);
        if (err != GYRE_OK) {
            set_state(cache, slab, SLAB_NONE);
            return err;
        }
    }
    *slab_out = slab;
    return GYRE_OK;
}

void eng_slab_release(struct eng_stripe *stripe, struct eng_slab *slab)
{
    GYRE_CHECK(slab->state_ == SLAB_BUSY && slab->used <= slab->end);
    set_state(stripe->slabs, slab, SLAB_IDLE);
}

static void retire_ring(struct eng_stripe *stripe, uint8_t ring)
{
    struct eng_slab_cache *cache = stripe->slabs;
    for (int i = 0; i < ENG_SLABS; i++) {
        struct eng_slab *slab = &cache->slabs[ring][i];
        eng_lock_acquire(&cache->lock);
        while (slab->state_ == SLAB_BUSY)
            eng_cond_wait(&cache->idle, &cache->lock);
        bool open = slab->state_ == SLAB_IDLE;
        slab->state_ = open ? SLAB_BUSY : SLAB_NONE;
        eng_lock_release(&cache->lock);
        if (!open)
            continue;
        retire(stripe, slab);
        set_state(cache, slab, SLAB_NONE);
    }
}

void eng_slabs_retire(struct eng_stripe *stripe)
{
    for (uint8_t ring = 0; ring < ENG_RINGS; ring++)
        retire_ring(stripe, ring);
}
