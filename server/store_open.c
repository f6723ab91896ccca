#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/commands.h"
#include "server/nearest.h"
#include "server/options.h"
#include "server/progress.h"

enum { MESSAGE_MAX = 1024, CLOSE_TIMEOUT_MS = 10000 };

#define DEFAULT_SIZE_MAX (UINT64_C(10) << 30)

/* Free bytes of the file system that holds `path` or, if that does not exist yet, its nearest
 * parent that does; 0 when unknown. */
static uint64_t free_bytes(const char *path)
{
    char parent[4096];
    struct statvfs fs;
    int n = snprintf(parent, sizeof(parent), "%s", path);
    if (n < 0 || (size_t)n >= sizeof(parent))
        return 0;
    while (statvfs(parent, &fs) != 0) {
        char *slash = strrchr(parent, '/');
        if (slash == NULL)
            strcpy(parent, ".");
        else if (slash == parent)
            strcpy(parent, "/");
        else
            *slash = '\0';
        if (slash == NULL || slash == parent)
            return statvfs(parent, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
    }
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* How big a new store gets when nobody says: half of what is free in the fullest directory, within
 * bounds, in whole MiB. */
static uint64_t default_size(const struct srv_options *options)
{
    uint64_t size = DEFAULT_SIZE_MAX;
    for (size_t i = 0; i < options->n_data; i++) {
        uint64_t half = free_bytes(options->data[i].path) / 2;
        if (options->data[i].size_bytes == 0 && half < size)
            size = half;
    }
    size &= ~((UINT64_C(1) << 20) - 1);
    return size < GYRE_SIZE_MIN ? GYRE_SIZE_MIN : size;
}

/* What is read for them waits for no thread, so that these only map and verify. */
static uint32_t async_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 2 ? 2 : cores > 64 ? 64 : (uint32_t)cores;
}

/* Who may not write a directory could only be refused. If its files may not be read either, the
 * opening says so. */
struct gyre_store *srv_store_open_to_look(const struct srv_options *options)
{
    for (size_t i = 0; i < options->n_data; i++) {
        if (access(options->data[i].path, F_OK) == 0 && access(options->data[i].path, W_OK) != 0)
            return srv_store_open(options, GYRE_OPEN_READONLY);
    }
    return srv_store_open(options, GYRE_OPEN_EXISTING);
}

struct gyre_store *srv_store_open(const struct srv_options *options, enum gyre_open_mode mode)
{
    char want[SRV_SIZE_TEXT_MAX], have[SRV_SIZE_TEXT_MAX];
    gyre_err err;
    struct gyre_store *store = srv_store_try_open(options, mode, false, &err);
    if (store != NULL && srv_store_is_other_size(options, store, want, have))
        fprintf(stderr, "gyre: %s: the store takes %s, not %s: a size is for a new one\n",
                options->data[0].path, have, want);
    return store;
}

/* The sum of the sizes that were asked for; 0 if the user left one open. */
static uint64_t size_wanted(const struct srv_options *options)
{
    uint64_t want = 0;
    bool is_shared = false;
    for (size_t i = 0; i < options->n_data; i++) {
        want += options->data[i].size_bytes;
        is_shared = is_shared || options->data[i].size_bytes == 0;
    }
    if (is_shared && options->size == 0)
        return 0;
    return want + (is_shared ? options->size : 0);
}

/* How much smaller a store can be than the sizes it was made with (gyre_size_bytes), whatever its
 * segments are. */
static uint64_t size_lost(struct gyre_store *store, uint64_t size)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    struct gyre_file file;
    uint64_t area = 0, n_stripes = 0;
    for (size_t i = 1; gyre_file_at(store, i, &file) == GYRE_OK; i++, n_stripes++)
        area += file.size_bytes - file.base_offset;
    if (gyre_stat(store, &stats) != GYRE_OK || stats.segments == 0)
        return size;
    return n_stripes * (area / stats.segments) + size / 100;
}

bool srv_store_is_other_size(const struct srv_options *options, struct gyre_store *store,
                             char want_out[SRV_SIZE_TEXT_MAX], char have_out[SRV_SIZE_TEXT_MAX])
{
    uint64_t want = size_wanted(options), have = gyre_size_bytes(store);
    want_out[0] = have_out[0] = '\0';
    if (want == 0 || (have <= want && want - have <= size_lost(store, want)))
        return false;
    srv_size_write(want, want_out);
    srv_size_write(have, have_out);
    return true;
}

struct gyre_store *srv_store_try_open(const struct srv_options *options, enum gyre_open_mode mode,
                                      bool may_wait, gyre_err *err_out)
{
    struct gyre_data_dir dirs[SRV_DATA_MAX];
    struct gyre_options open;
    struct srv_progress progress;
    struct gyre_store *store;
    char message[MESSAGE_MAX] = "";
    for (size_t i = 0; i < options->n_data; i++)
        dirs[i] = (struct gyre_data_dir){options->data[i].path, options->data[i].size_bytes};
    gyre_options_init(&open);
    open.dirs = dirs;
    open.n_dirs = options->n_data;
    open.size_bytes = options->size != 0 ? options->size : default_size(options);
    open.mode = mode;
    open.segment_bytes = options->segment_size;
    open.async_threads = async_threads();
    open.average_object_bytes = (uint32_t)options->object_size;
    open.sync_interval_ms =
        (uint32_t)(options->sync_interval < UINT32_MAX ? options->sync_interval : UINT32_MAX);
    srv_progress_init(&progress);
    open.progress = srv_progress_show;
    open.progress_data = &progress;
    gyre_err err = gyre_open(&open, &store, message, sizeof(message));
    srv_progress_fini(&progress);
    *err_out = err;
    if (err == GYRE_OK)
        return store;
    if (err == GYRE_LOCKED && may_wait)
        return NULL;
    char near[MESSAGE_MAX];
    bool guess = err == GYRE_NO_STORE && options->n_data == 1 &&
                 access(options->data[0].path, F_OK) != 0 &&
                 srv_nearest_file(options->data[0].path, near, sizeof(near));
    fprintf(stderr, "gyre: %s%s%s%s\n", message[0] != '\0' ? message : gyre_err_text(err),
            guess ? "; did you mean \"" : "", guess ? near : "", guess ? "\"?" : "");
    return NULL;
}

int srv_store_end(const struct srv_options *options, struct gyre_store **store, int status)
{
    gyre_err err = gyre_close(store, CLOSE_TIMEOUT_MS);
    if (err == GYRE_OK)
        return status;
    fprintf(stderr, "gyre: %s: closing: %s\n", options->data[0].path, gyre_err_text(err));
    return 1;
}
