/* The stages of streamed puts, and the list of big buffers behind them. */
#include "api/stage.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/check.h"

#define API_STAGE_FIRST (4u << 10)

static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept[API_STAGE_BIG_KEPT]; /* touched before: no fault when used again */
static size_t n_kept, n_used;

static void *big_take(void)
{
    void *bytes = NULL;
    pthread_mutex_lock(&big_lock);
    bool may = n_used < API_STAGE_BIG_MAX;
    if (may) {
        n_used++;
        if (n_kept > 0)
            bytes = kept[--n_kept];
    }
    pthread_mutex_unlock(&big_lock);
    if (!may || bytes != NULL)
        return bytes;
    bytes = mmap(NULL, API_STAGE_BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED)
        return bytes;
    pthread_mutex_lock(&big_lock);
    n_used--;
    pthread_mutex_unlock(&big_lock);
    return NULL;
}

static void big_give(void *bytes)
{
    bool keep = false;
    pthread_mutex_lock(&big_lock);
    n_used--;
    if (n_kept < API_STAGE_BIG_KEPT) {
        kept[n_kept++] = bytes;
        keep = true;
    }
    pthread_mutex_unlock(&big_lock);
    if (!keep)
        munmap(bytes, API_STAGE_BIG);
}

/* A capacity of 4, 16 or 64 KiB. */
static gyre_err grow_small(struct api_stage *stage, size_t need)
{
    size_t capacity = API_STAGE_FIRST;
    while (capacity < need)
        capacity *= 4;
    uint8_t *bytes = realloc(stage->bytes, capacity);
    if (bytes == NULL)
        return GYRE_NO_MEMORY;
    stage->bytes = bytes;
    stage->capacity = capacity;
    return GYRE_OK;
}

gyre_err api_stage_grow(struct api_stage *stage, size_t want)
{
    size_t room = stage->capacity - stage->filled;
    if (room >= want || stage->capacity == API_STAGE_BIG)
        return GYRE_OK;
    size_t need = want < API_STAGE_BIG ? stage->filled + want : API_STAGE_BIG;
    if (need <= API_STAGE_SMALL)
        return grow_small(stage, need);
    void *big = big_take();
    if (big == NULL)
        return stage->capacity < API_STAGE_SMALL ? grow_small(stage, API_STAGE_SMALL) : GYRE_OK;
    if (stage->filled > 0)
        memcpy(big, stage->bytes, stage->filled);
    free(stage->bytes);
    *stage = (struct api_stage){big, API_STAGE_BIG, stage->filled, true};
    return GYRE_OK;
}

void api_stage_consume(struct api_stage *stage, size_t len)
{
    GYRE_CHECK(len <= stage->filled);
    stage->filled -= len;
    if (stage->filled > 0)
        memmove(stage->bytes, stage->bytes + len, stage->filled);
}

void api_stage_fini(struct api_stage *stage)
{
    if (stage->big)
        big_give(stage->bytes);
    else
        free(stage->bytes);
    *stage = (struct api_stage){0};
}

void api_stage_lock(void)
{
    pthread_mutex_lock(&big_lock);
}

void api_stage_unlock(void)
{
    pthread_mutex_unlock(&big_lock);
}
