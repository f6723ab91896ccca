#include "server/snapshot.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/access_log.h"
#include "server/buf.h"
#include "server/check.h"
#include "server/fault.h"
#include "server/job.h"
#include "server/tls.h"

/* ---- States ---- */

enum srv_snapshot_state srv_snapshot_state(const struct srv_snapshot_sources *sources)
{
    enum srv_front_state front = srv_front_state(sources->front);
    if (front == SRV_FRONT_ENDING)
        return SRV_STATE_DRAINING;
    if (front == SRV_FRONT_STARTING || sources->store == NULL)
        return SRV_STATE_STARTING;
    return sources->is_failing ? SRV_STATE_FAILING : SRV_STATE_READY;
}

const char *srv_snapshot_state_name(enum srv_snapshot_state state)
{
    static const char *const names[] = {"starting", "ready", "draining", "failing"};
    return names[state];
}

/* ---- The process ---- */

static uint64_t count_files(void)
{
    uint64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the directory itself */
}

/* The number behind `key` in /proc/self/status; sizes are in kB there. */
static uint64_t process_number(const char *status, const char *key)
{
    unsigned long long number = 0;
    const char *at = strstr(status, key);
    if (at == NULL || sscanf(at + strlen(key), " %llu", &number) != 1)
        return 0;
    return number;
}

static uint64_t ms_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

static void look_at_process(struct srv_snapshot *snapshot)
{
    char status[4096] = "";
    struct rusage usage;
    FILE *file = fopen("/proc/self/status", "re");
    if (file != NULL) {
        status[fread(status, 1, sizeof status - 1, file)] = '\0';
        fclose(file);
    }
    snapshot->threads = process_number(status, "\nThreads:");
    snapshot->resident_bytes = process_number(status, "\nVmRSS:") * 1024;
    snapshot->anonymous_bytes = process_number(status, "\nRssAnon:") * 1024;
    snapshot->open_files = count_files();
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        snapshot->cpu_ms = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
}

/* ---- Taking ---- */

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void look_at_front(const struct srv_front *front, struct srv_snapshot *snapshot)
{
    srv_front_stats(front, &snapshot->loops);
    snapshot->event_loops = srv_front_n_loops(front);
    snapshot->loop_lag_ms = srv_front_lag_ms(front);
    snapshot->connections_limit = srv_front_max_connections(front);
    snapshot->buffer_bytes = srv_buf_pool_used_bytes(srv_front_buf_pool(front));
    snapshot->tls_renegotiations = srv_tls_renegotiations();
    snapshot->stored_faults = srv_fault_count();
    snapshot->buffer_budget_bytes = srv_buf_pool_budget_bytes(srv_front_buf_pool(front));
}

static void look_at_store(struct gyre_store *store, struct srv_snapshot *snapshot)
{
    snapshot->store_handle = store;
    snapshot->store_open = gyre_stat(store, &snapshot->store) == GYRE_OK;
    for (uint8_t pool = 0; pool < GYRE_POOLS_MAX; pool++) {
        struct gyre_pool_info *info = &snapshot->pools[snapshot->n_pools];
        info->struct_size = sizeof *info;
        if (gyre_pool_at(store, pool, info) != GYRE_OK)
            break;
        snapshot->n_pools++;
    }
}

void srv_snapshot_take(const struct srv_snapshot_sources *sources, struct srv_snapshot *snapshot)
{
    struct srv_pool_stats pool = {0};
    memset(snapshot, 0, sizeof *snapshot);
    enum srv_snapshot_state state = srv_snapshot_state(sources);
    snapshot->front = sources->front;
    snapshot->state = srv_snapshot_state_name(state);
    snapshot->ready = state == SRV_STATE_READY;
    look_at_front(sources->front, snapshot);
    look_at_process(snapshot);
    if (sources->pool != NULL)
        srv_pool_stats(sources->pool, &pool);
    snapshot->workers = pool.n_threads;
    snapshot->workers_busy = pool.n_busy;
    snapshot->jobs_queued = pool.n_queued;
    snapshot->jobs_done = pool.n_done;
    if (sources->access_log != NULL)
        srv_access_log_count(sources->access_log, &snapshot->access_log_lines,
                             &snapshot->access_log_dropped);
    snapshot->uptime_seconds = (monotonic_ms() - sources->begun_ms) / 1000;
    snapshot->reloads = sources->reloads;
    snapshot->reloads_refused = sources->reloads_refused;
    snapshot->store_failing = sources->is_failing;
    snapshot->store.struct_size = sizeof snapshot->store;
    if (sources->store != NULL)
        look_at_store(sources->store, snapshot);
}

/* ---- Rows ---- */

size_t srv_snapshot_numbers(const struct srv_snapshot *snapshot, struct srv_number *rows,
                            size_t max)
{
    enum { GAUGE, COUNTER };
    const struct srv_number all[] = {
#define SRV_LOOP(name, type, help) {#name, help, type == COUNTER, snapshot->loops.name},
#define SRV_READ(name, type, help) {#name, help, type == COUNTER, snapshot->name},
#include "server/counters.def"
    };
    size_t n = sizeof all / sizeof all[0];
    SRV_CHECK(n <= max);
    memcpy(rows, all, sizeof all);
    return n;
}

size_t srv_snapshot_store_numbers(const struct srv_snapshot *snapshot, struct srv_number *rows,
                                  size_t max)
{
    enum { GAUGE, BYTES, COUNTER, COUNTER_BYTES };
    const struct srv_number all[] = {
#define X(name, unit, text) {#name, text, unit >= COUNTER, snapshot->store.name},
#include "api/gyre_stats.def"
#undef X
    };
    size_t n = sizeof all / sizeof all[0];
    SRV_CHECK(n <= max);
    memcpy(rows, all, sizeof all);
    return n;
}

size_t srv_snapshot_pool_numbers(const struct gyre_pool_info *pool, struct srv_number *rows,
                                 size_t max)
{
    enum { GAUGE, COUNTER };
    const struct srv_number all[] = {
#define SRV_POOL(name, type, help) {#name, help, type == COUNTER, pool->name},
#include "server/counters.def"
    };
    size_t n = sizeof all / sizeof all[0];
    SRV_CHECK(n <= max);
    memcpy(rows, all, sizeof all);
    return n;
}
