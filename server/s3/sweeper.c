#include "server/s3/sweeper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/log.h"
#include "server/s3/change.h"
#include "server/s3/lifecycle.h"
#include "server/s3/name.h"
#include "server/s3/names_scan.h"
#include "server/s3/upload_record.h"

enum { PERIOD_MAX_S = 3600, BATCH = 256, LOOK_AT = 4096 };

struct srv_s3_sweeper {
    struct srv_s3_sweeper_config config; /* [c] */
    pthread_t thread;                    /* [c] */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic bool is_ending; /* [a] set under `lock` */
    _Atomic bool is_asked;  /* [a] likewise: to look at all buckets */
};

/* One bucket being swept. */
struct sweep {
    struct srv_s3_sweeper *sweeper;
    const struct srv_s3_lifecycle *lifecycle;
    struct srv_str bucket;
    int64_t now_s;
};

static bool is_ending(const struct srv_s3_sweeper *sweeper)
{
    return atomic_load_explicit(&sweeper->is_ending, memory_order_relaxed);
}

/* ---- Objects ---- */

static struct gyre_key key_of(struct srv_str bucket, struct srv_str key)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)bucket.base, bucket.len},
                             {(void *)(uintptr_t)key.base, key.len}};
    struct gyre_key digest;

    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &digest) == GYRE_OK);
    return digest;
}

/* Removes the object if it has expired, and is still the one that was looked at. */
static void sweep_object(const struct sweep *sweep, struct srv_str key)
{
    const struct srv_s3_sweeper_config *config = &sweep->sweeper->config;
    struct gyre_key digest = key_of(sweep->bucket, key);
    struct gyre_handle *handle;
    struct srv_s3_change change;
    struct srv_s3_meta meta;
    size_t len;

    if (gyre_get(config->store, &digest, (uint32_t)sweep->now_s, GYRE_GET_HEAD, &handle) != GYRE_OK)
        return;
    const void *bytes = gyre_handle_meta(handle, &len);
    const struct gyre_info *info = gyre_handle_info(handle);
    uint64_t serial = info->serial;
    bool is_due =
        srv_s3_meta_decode(bytes, len, &meta) &&
        srv_s3_lifecycle_is_due(sweep->lifecycle, &meta, info->length, sweep->now_s, config->day_s);
    gyre_release(handle);
    if (!is_due)
        return;
    srv_s3_change_begin_delete(&change, config->names);
    gyre_err err = gyre_delete(config->store, &digest, GYRE_IF_SERIAL, serial, 0);
    srv_s3_change_end(&change, sweep->bucket, key, err == GYRE_OK ? &digest : NULL);
}

/* Names are gathered before anything is removed, so that the index is not read while it is made to
 * change. */
struct batch {
    size_t n;
    size_t lens[BATCH];
    char keys[BATCH][SRV_S3_KEY_MAX];
};

static bool gather(const struct sweep *sweep, struct srv_str after, struct batch *batch)
{
    struct srv_names_scan scan;
    struct srv_name_row row;
    enum srv_names_found found = SRV_NAMES_FOUND;

    batch->n = 0;
    if (srv_names_scan_begin(sweep->sweeper->config.names, sweep->bucket, (uint32_t)sweep->now_s,
                             LOOK_AT, &scan) != SRV_NAMES_FOUND)
        return false;
    if (srv_names_scan_seek(&scan, after, after.len > 0) == SRV_NAMES_FOUND) {
        while (batch->n < BATCH && (found = srv_names_scan_next(&scan, &row)) != SRV_NAMES_END &&
               found != SRV_NAMES_NOT_NOW) {
            struct srv_str key = srv_names_scan_key(&scan, &row);
            memcpy(batch->keys[batch->n], key.base, key.len);
            batch->lens[batch->n++] = key.len;
            if (found == SRV_NAMES_SPENT)
                break;
        }
    }
    srv_names_scan_end(&scan);
    return batch->n > 0;
}

static void sweep_objects(const struct sweep *sweep, struct batch *batch)
{
    char last[SRV_S3_KEY_MAX];
    struct srv_str after = {last, 0};

    while (!is_ending(sweep->sweeper) && gather(sweep, after, batch)) {
        for (size_t i = 0; i < batch->n && !is_ending(sweep->sweeper); i++)
            sweep_object(sweep, (struct srv_str){batch->keys[i], batch->lens[i]});
        after.len = batch->lens[batch->n - 1];
        memcpy(last, batch->keys[batch->n - 1], after.len);
    }
}

/* ---- Uploads ---- */

static bool sweep_upload(void *data, const struct gyre_key *key, const struct gyre_upload_id *id,
                         const struct gyre_handle *handle)
{
    const struct sweep *sweep = data;
    const struct srv_s3_sweeper_config *config = &sweep->sweeper->config;
    struct srv_s3_upload_record record;
    struct srv_s3_meta meta;
    size_t len;

    const void *bytes = gyre_handle_meta(handle, &len);
    if (srv_s3_upload_record_decode(bytes, len, &record) &&
        srv_s3_meta_decode(record.object.base, record.object.len, &meta) &&
        meta.bucket.len == sweep->bucket.len &&
        memcmp(meta.bucket.base, sweep->bucket.base, meta.bucket.len) == 0 &&
        srv_s3_lifecycle_is_upload_due(sweep->lifecycle, meta.key,
                                       gyre_handle_info(handle)->created, sweep->now_s,
                                       config->day_s)) {
        gyre_err err = gyre_upload_abort(config->store, key, id, 0);
        if (err != GYRE_OK && err != GYRE_NOT_FOUND) /* it is tried the next time */
            srv_log(SRV_LOG_WARN, "an upload that was given up stays for now: %s",
                    gyre_err_text(err));
    }
    return !is_ending(sweep->sweeper);
}

/* ---- Buckets ---- */

static void sweep_bucket(struct srv_s3_sweeper *sweeper, struct srv_str name, struct batch *batch)
{
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(sweeper->config.buckets, name);

    if (bucket == NULL)
        return;
    struct srv_s3_facts *facts = srv_s3_bucket_facts(sweeper->config.buckets, bucket);
    if (facts->lifecycle != NULL) {
        struct sweep sweep = {sweeper, facts->lifecycle, name, time(NULL)};
        sweep_objects(&sweep, batch);
        gyre_err err = gyre_each_upload(sweeper->config.store, sweep_upload, &sweep);
        if (err != GYRE_OK && err != GYRE_CLOSED)
            srv_log(SRV_LOG_WARN, "uploads of the bucket %s cannot be looked through: %s",
                    name.base, gyre_err_text(err));
    }
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
}

struct bucket_names {
    size_t n;
    bool is_short;
    char (*at)[SRV_S3_BUCKET_MAX + 1];
};

static void take_name(void *data, struct srv_str name, struct srv_str owner, int64_t created_ms)
{
    struct bucket_names *names = data;

    (void)owner;
    (void)created_ms;
    if (names->n % 64 == 0) {
        void *grown = realloc(names->at, (names->n + 64) * sizeof names->at[0]);
        names->is_short = grown == NULL || names->is_short;
        if (names->is_short)
            return;
        names->at = grown;
    }
    memcpy(names->at[names->n], name.base, name.len);
    names->at[names->n++][name.len] = '\0';
}

static void sweep_all(struct srv_s3_sweeper *sweeper)
{
    struct bucket_names names = {.n = 0};
    struct batch *batch = malloc(sizeof *batch);

    if (batch != NULL && srv_s3_buckets_each(sweeper->config.buckets, take_name, &names)) {
        for (size_t i = 0; i < names.n && !is_ending(sweeper); i++)
            sweep_bucket(sweeper, (struct srv_str){names.at[i], strlen(names.at[i])}, batch);
    }
    free(names.at);
    free(batch);
}

/* ---- Its thread ---- */

enum { SETTLE_MS = 1000 }; /* at least between two looks at all buckets */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void srv_s3_sweeper_ask(struct srv_s3_sweeper *sweeper)
{
    if (atomic_load_explicit(&sweeper->is_asked, memory_order_relaxed))
        return;
    pthread_mutex_lock(&sweeper->lock);
    atomic_store_explicit(&sweeper->is_asked, true, memory_order_relaxed);
    pthread_cond_signal(&sweeper->wake);
    pthread_mutex_unlock(&sweeper->lock);
}

static void settle(struct srv_s3_sweeper *sweeper)
{
    struct srv_s3_buckets *buckets = sweeper->config.buckets;

    /* Whoever asks from here on asks for another look. */
    atomic_store_explicit(&sweeper->is_asked, false, memory_order_relaxed);
    gyre_err err = srv_s3_buckets_is_settled(buckets) ? GYRE_OK : srv_s3_buckets_refresh(buckets);
    if (err != GYRE_OK && err != GYRE_CLOSED)
        srv_log(SRV_LOG_WARN, "the buckets cannot be read: %s", gyre_err_text(err));
}

/* Until it is time for either; false at the end. */
static bool wait_for_work(struct srv_s3_sweeper *sweeper, int64_t settle_ms, int64_t sweep_ms)
{
    pthread_mutex_lock(&sweeper->lock);
    while (!is_ending(sweeper)) {
        bool is_asked = atomic_load_explicit(&sweeper->is_asked, memory_order_relaxed);
        int64_t until = is_asked && settle_ms < sweep_ms ? settle_ms : sweep_ms;
        if (now_ms() >= until)
            break;
        const struct timespec at = {until / 1000, until % 1000 * 1000000};
        (void)pthread_cond_timedwait(&sweeper->wake, &sweeper->lock, &at);
    }
    bool goes_on = !is_ending(sweeper);
    pthread_mutex_unlock(&sweeper->lock);
    return goes_on;
}

static void *run(void *data)
{
    struct srv_s3_sweeper *sweeper = data;
    uint32_t period_s = sweeper->config.day_s / 2;

    period_s = period_s < 1 ? 1 : period_s > PERIOD_MAX_S ? PERIOD_MAX_S : period_s;
    int64_t settle_ms = now_ms(), sweep_ms = now_ms() + period_s * INT64_C(1000);
    while (wait_for_work(sweeper, settle_ms, sweep_ms)) {
        settle(sweeper);
        settle_ms = now_ms() + SETTLE_MS;
        if (now_ms() < sweep_ms)
            continue;
        sweep_all(sweeper);
        sweep_ms = now_ms() + period_s * INT64_C(1000);
    }
    return NULL;
}

gyre_err srv_s3_sweeper_create(const struct srv_s3_sweeper_config *config,
                               struct srv_s3_sweeper **sweeper_out)
{
    struct srv_s3_sweeper *sweeper = calloc(1, sizeof *sweeper);
    pthread_condattr_t attributes;

    *sweeper_out = NULL;
    if (sweeper == NULL)
        return GYRE_NO_MEMORY;
    sweeper->config = *config;
    if (config->day_s == 0)
        sweeper->config.day_s = SRV_S3_LIFECYCLE_DAY_S;
    pthread_mutex_init(&sweeper->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sweeper->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&sweeper->thread, NULL, run, sweeper) != 0) {
        pthread_cond_destroy(&sweeper->wake);
        pthread_mutex_destroy(&sweeper->lock);
        free(sweeper);
        return GYRE_NO_MEMORY;
    }
    *sweeper_out = sweeper;
    return GYRE_OK;
}

void srv_s3_sweeper_destroy(struct srv_s3_sweeper *sweeper)
{
    if (sweeper == NULL)
        return;
    pthread_mutex_lock(&sweeper->lock);
    atomic_store_explicit(&sweeper->is_ending, true, memory_order_relaxed);
    pthread_cond_signal(&sweeper->wake);
    pthread_mutex_unlock(&sweeper->lock);
    pthread_join(sweeper->thread, NULL);
    pthread_cond_destroy(&sweeper->wake);
    pthread_mutex_destroy(&sweeper->lock);
    free(sweeper);
}
