/* Opening, closing and syncing a store. */
#include "api/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/geometry.h"
#include "engine/sync.h"
#include "engine/writer.h"

void gyre_options_init(struct gyre_options *options)
{
    *options = (struct gyre_options){
        .struct_size = sizeof *options,
        .mode = GYRE_OPEN_OR_CREATE,
        .sync_interval_ms = 30000,
        .async_threads = 2,
    };
}

/* What must hold before the engine looks at the rest. */
static const char *option_fault(const struct gyre_options *options)
{
    if (options == NULL || options->struct_size != sizeof *options)
        return "the options were not filled by gyre_options_init of this version of libgyre";
    if (options->dirs == NULL || options->n_dirs == 0)
        return "no data directory was given";
    if (options->n_dirs > ENG_MAX_STRIPES)
        return "more than 64 data directories were given";
    for (size_t i = 0; i < options->n_dirs; i++) {
        if (options->dirs[i].path == NULL || options->dirs[i].path[0] == '\0')
            return "a data directory has no name";
    }
    if (options->mode != GYRE_OPEN_OR_CREATE && options->mode != GYRE_OPEN_EXISTING &&
        options->mode != GYRE_OPEN_RESET && options->mode != GYRE_OPEN_READONLY)
        return "the open mode is none of GYRE_OPEN_OR_CREATE, GYRE_OPEN_EXISTING, GYRE_OPEN_RESET, "
               "GYRE_OPEN_READONLY";
    if (options->n_pools > GYRE_POOLS_MAX || (options->pools == NULL && options->n_pools > 0))
        return "more than 13 pools were asked for, or none where some were announced";
    if (options->retention > GYRE_RETENTION_RECENCY)
        return "the retention is none of enum gyre_retention";
    if (options->async_threads > API_POOL_THREADS)
        return "more than 64 async threads were asked for";
    return NULL;
}

/* What the main pool may fill. */
static uint64_t capacity(const struct eng_store *engine)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < engine->n_stripes; i++)
        bytes +=
            eng_pool_max_segments(&engine->super, i, ENG_POOL_MAIN) * engine->super.segment_bytes;
    return bytes;
}

static gyre_err open_engine(const struct gyre_options *options, const struct eng_dir *dirs,
                            char *message, size_t message_size, struct eng_store **engine_out)
{
    struct eng_pool_want pools[GYRE_POOLS_MAX];
    for (size_t i = 0; i < options->n_pools; i++)
        pools[i] = (struct eng_pool_want){options->pools[i].name, options->pools[i].max_bytes,
                                          options->pools[i].never_evicts};
    struct eng_open open = {
        .dirs = dirs,
        .n_dirs = (uint32_t)options->n_dirs,
        .size_bytes = options->size_bytes,
        .may_create = options->mode == GYRE_OPEN_OR_CREATE || options->mode == GYRE_OPEN_RESET,
        .read_only = options->mode == GYRE_OPEN_READONLY,
        .reset = options->mode == GYRE_OPEN_RESET,
        .replace_lost = options->replace_lost && options->mode != GYRE_OPEN_READONLY,
        .segment_bytes = options->segment_bytes,
        .stripes = options->stripes,
        .average_object_bytes = options->average_object_bytes,
        .sync_interval_ms = options->sync_interval_ms,
        .retention = (enum eng_retention)options->retention,
        .pools = pools,
        .n_pools = (uint32_t)options->n_pools,
        .progress = options->progress,
        .progress_data = options->progress_data,
        .message = message,
        .message_size = message_size,
    };
    return eng_store_open(&open, engine_out);
}

gyre_err gyre_open(const struct gyre_options *options, struct gyre_store **store_out,
                   char *message_out, size_t message_size)
{
    char scratch[512];
    char *message = message_out != NULL && message_size > 0 ? message_out : scratch;
    size_t size = message == scratch ? sizeof scratch : message_size;
    message[0] = '\0';
    if (store_out == NULL)
        return GYRE_INVALID;
    *store_out = NULL;
    const char *fault = option_fault(options);
    if (fault != NULL) {
        snprintf(message, size, "cannot open the store: %s", fault);
        return GYRE_INVALID;
    }

    gyre_err err = GYRE_NO_MEMORY;
    api_fork_register();
    struct gyre_store *store = api_store_take();
    struct eng_dir *dirs = calloc(options->n_dirs, sizeof *dirs);
    struct eng_store *engine = NULL;
    if (store != NULL && dirs != NULL) {
        for (size_t i = 0; i < options->n_dirs; i++)
            dirs[i] = (struct eng_dir){(char *)(uintptr_t)options->dirs[i].path,
                                       options->dirs[i].size_bytes};
        err = open_engine(options, dirs, message, size, &engine);
    }
    free(dirs);
    if (err != GYRE_OK) {
        if (message[0] == '\0')
            snprintf(message, size, "%s: cannot open the store: %s", options->dirs[0].path,
                     gyre_err_text(err));
        if (store != NULL)
            api_store_untake(store);
        return err;
    }
    message[0] = '\0';
    store->capacity_bytes = capacity(engine);
    store->object_max_bytes = engine->read_only ? 0 : eng_object_max_bytes(engine);
    api_store_opened(store, engine, options->async_threads > 0 ? options->async_threads : 2);
    *store_out = store;
    return GYRE_OK;
}

gyre_err gyre_close(struct gyre_store **store, uint32_t timeout_ms)
{
    if (store == NULL || *store == NULL)
        return GYRE_INVALID;
    struct gyre_store *closed = *store;
    *store = NULL;
    return api_store_close(closed, eng_clock_mono_ns() + timeout_ms * UINT64_C(1000000));
}

gyre_err gyre_sync(struct gyre_store *store)
{
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_sync_store(store->engine, false);
    api_leave(store, shard);
    return err;
}
