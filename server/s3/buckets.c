#include "server/s3/bucket_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/check.h"
#include "server/s3/bucket_doc.h"
#include "server/s3/meta.h"
#include "server/s3/name.h"
#include "server/s3/names_scan.h"

static struct srv_str name_of(const struct srv_s3_bucket *bucket)
{
    return (struct srv_str){bucket->name, bucket->name_len};
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && memcmp(a.base, b.base, a.len) == 0;
}

/* FNV-1a: names come from whoever may make buckets, and there are at most SRV_S3_BUCKETS_MAX. */
static size_t chain_of(struct srv_str name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)name.base[i]) * 16777619u;
    return (hash ^ hash >> 16) % SRV_S3_CHAINS;
}

static struct srv_s3_bucket *find_locked(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *at = buckets->chains[chain_of(name)];

    while (at != NULL && !same(name_of(at), name))
        at = at->next;
    return at;
}

static struct srv_s3_bucket_rule find_rule_locked(const struct srv_s3_buckets *buckets,
                                                  struct srv_str name)
{
    struct srv_s3_bucket_rule found = {.etag = buckets->etag};

    for (size_t i = 0; i < buckets->n_rules; i++) {
        const char *rule = buckets->rules[i].bucket;
        if (same((struct srv_str){rule, strlen(rule)}, name))
            found = buckets->rules[i];
    }
    found.bucket = NULL;
    return found;
}

static void note_rules(struct srv_s3_buckets *buckets, const struct srv_s3_facts *facts)
{
    if (facts->lifecycle != NULL)
        atomic_store_explicit(&buckets->have_rules, true, memory_order_relaxed);
}

bool srv_s3_buckets_have_rules(const struct srv_s3_buckets *buckets)
{
    return atomic_load_explicit(&buckets->have_rules, memory_order_relaxed);
}

/* Takes `facts` unless it returns NULL. */
static struct srv_s3_bucket *insert_locked(struct srv_s3_buckets *buckets, struct srv_str name,
                                           enum srv_s3_bucket_state state, int64_t created_ms,
                                           struct srv_s3_facts *facts)
{
    struct srv_s3_bucket *bucket = calloc(1, sizeof *bucket);
    struct srv_s3_bucket **chain = &buckets->chains[chain_of(name)];

    if (bucket == NULL)
        return NULL;
    bucket->state = state;
    atomic_init(&bucket->refs, 1);
    pthread_mutex_init(&bucket->key_lock, NULL);
    pthread_mutex_init(&bucket->change_lock, NULL);
    bucket->facts = facts;
    note_rules(buckets, facts);
    bucket->was_empty = state == SRV_S3_BUCKET_CREATING;
    bucket->rule = find_rule_locked(buckets, name);
    bucket->created_ms = created_ms;
    bucket->name_len = name.len;
    memcpy(bucket->name, name.base, name.len);
    bucket->next = *chain;
    *chain = bucket;
    buckets->n++;
    return bucket;
}

static void unref(struct srv_s3_bucket *bucket)
{
    /* Release: whoever frees must see all that other holders did (their releases, acquired here).
     */
    if (atomic_fetch_sub_explicit(&bucket->refs, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_destroy(&bucket->key_lock);
        pthread_mutex_destroy(&bucket->change_lock);
        srv_s3_facts_release(bucket->facts);
        free(bucket);
    }
}

static void remove_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    struct srv_s3_bucket **at = &buckets->chains[chain_of(name_of(bucket))];

    while (*at != bucket)
        at = &(*at)->next;
    *at = bucket->next;
    bucket->state = SRV_S3_BUCKET_GONE;
    buckets->n--;
    unref(bucket);
}

/* ---- Loading ---- */

struct load {
    struct srv_s3_buckets *buckets;
    gyre_err err;
};

/* A bucket whose facts cannot be read keeps its objects, but belongs to nobody until somebody with
 * rights in it says otherwise. */
static bool load_one(void *data, const struct gyre_handle *handle)
{
    struct load *load = data;
    struct srv_s3_facts *facts;
    struct srv_str name;
    int64_t created_ms;

    gyre_err err = srv_s3_bucket_doc_read(handle, &name, &created_ms, &facts);
    if (err == GYRE_NOT_FOUND || find_locked(load->buckets, name) != NULL) {
        srv_s3_facts_release(facts);
        return true;
    }
    if (facts == NULL)
        facts = srv_s3_facts_create(NULL, 0);
    if (facts == NULL ||
        insert_locked(load->buckets, name, SRV_S3_BUCKET_LIVE, created_ms, facts) == NULL) {
        srv_s3_facts_release(facts);
        load->err = GYRE_NO_MEMORY;
    }
    return load->err == GYRE_OK;
}

/* ---- Making and ending the table ---- */

static void take_rules_locked(struct srv_s3_buckets *buckets, const struct srv_s3_config *config)
{
    buckets->etag = config->etag;
    buckets->rules = config->bucket_rules;
    buckets->n_rules = config->n_bucket_rules;
}

gyre_err srv_s3_buckets_create(const struct srv_s3_config *config, struct srv_names *names,
                               struct srv_s3_buckets **buckets_out)
{
    struct srv_s3_buckets *buckets = calloc(1, sizeof *buckets);

    *buckets_out = NULL;
    if (buckets == NULL)
        return GYRE_NO_MEMORY;
    pthread_rwlock_init(&buckets->lock, NULL);
    buckets->store = config->store;
    buckets->names = names;
    take_rules_locked(buckets, config); /* nobody else knows the table yet */
    struct load load = {buckets, GYRE_OK};
    gyre_err err = gyre_each_meta(config->store, load_one, &load);
    if (err == GYRE_OK)
        err = load.err;
    if (err != GYRE_OK)
        srv_s3_buckets_destroy(buckets);
    else
        *buckets_out = buckets;
    return err;
}

void srv_s3_buckets_destroy(struct srv_s3_buckets *buckets)
{
    if (buckets == NULL)
        return;
    for (size_t i = 0; i < SRV_S3_CHAINS; i++) {
        while (buckets->chains[i] != NULL)
            remove_locked(buckets, buckets->chains[i]);
    }
    pthread_rwlock_destroy(&buckets->lock);
    free(buckets);
}

/* ---- Looking up ---- */

bool srv_s3_bucket_exists(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    bool exists = srv_s3_bucket_is_seen(find_locked(buckets, name));
    pthread_rwlock_unlock(&buckets->lock);
    return exists;
}

struct srv_s3_bucket *srv_s3_bucket_acquire(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_bucket *bucket = find_locked(buckets, name);
    if (!srv_s3_bucket_is_seen(bucket))
        bucket = NULL;
    else
        atomic_fetch_add_explicit(&bucket->refs, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&buckets->lock);
    return bucket;
}

void srv_s3_bucket_release(struct srv_s3_bucket *bucket)
{
    if (bucket != NULL)
        unref(bucket);
}

struct srv_s3_bucket_rule srv_s3_bucket_rule(struct srv_s3_buckets *buckets,
                                             const struct srv_s3_bucket *bucket)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_bucket_rule rule = bucket->rule;
    pthread_rwlock_unlock(&buckets->lock);
    return rule;
}

void srv_s3_buckets_go_by(struct srv_s3_buckets *buckets, const struct srv_s3_config *config)
{
    pthread_rwlock_wrlock(&buckets->lock);
    take_rules_locked(buckets, config);
    for (size_t i = 0; i < SRV_S3_CHAINS; i++)
        for (struct srv_s3_bucket *at = buckets->chains[i]; at != NULL; at = at->next)
            at->rule = find_rule_locked(buckets, name_of(at));
    pthread_rwlock_unlock(&buckets->lock);
}

enum srv_s3_code srv_s3_bucket_enter(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    enum srv_s3_code code = SRV_S3_NONE;

    pthread_rwlock_rdlock(&buckets->lock);
    if (bucket->state == SRV_S3_BUCKET_LIVE)
        atomic_fetch_add_explicit(&bucket->committing, 1, memory_order_relaxed);
    else
        code =
            bucket->state == SRV_S3_BUCKET_GONE ? SRV_S3_NO_SUCH_BUCKET : SRV_S3_OPERATION_ABORTED;
    pthread_rwlock_unlock(&buckets->lock);
    return code;
}

void srv_s3_bucket_leave(struct srv_s3_bucket *bucket, const struct gyre_key *committed)
{
    if (committed != NULL) {
        pthread_mutex_lock(&bucket->key_lock);
        bucket->commits++;
        bucket->last_key = *committed;
        pthread_mutex_unlock(&bucket->key_lock);
    }
    /* Release: a remover that sees the lower count (acquire) also sees the object. */
    atomic_fetch_sub_explicit(&bucket->committing, 1, memory_order_release);
}

/* ---- Facts ---- */

struct srv_s3_facts *srv_s3_bucket_facts(struct srv_s3_buckets *buckets,
                                         struct srv_s3_bucket *bucket)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_facts *facts = srv_s3_facts_acquire(bucket->facts);
    pthread_rwlock_unlock(&buckets->lock);
    return facts;
}

static enum srv_s3_code store_facts(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                    struct srv_s3_facts *facts)
{
    enum srv_s3_code code = srv_s3_bucket_enter(buckets, bucket);

    if (code != SRV_S3_NONE)
        return code;
    gyre_err err =
        srv_s3_bucket_doc_put(buckets->store, name_of(bucket), bucket->created_ms, facts);
    if (err == GYRE_OK) {
        pthread_rwlock_wrlock(&buckets->lock);
        srv_s3_facts_release(bucket->facts);
        bucket->facts = srv_s3_facts_acquire(facts);
        note_rules(buckets, facts);
        pthread_rwlock_unlock(&buckets->lock);
    }
    srv_s3_bucket_leave(bucket, NULL);
    return srv_s3_code_of(err);
}

enum srv_s3_code srv_s3_bucket_change(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                      enum srv_s3_fact fact, struct srv_str value)
{
    pthread_mutex_lock(&bucket->change_lock);
    struct srv_s3_facts *facts = srv_s3_bucket_facts(buckets, bucket);
    struct srv_s3_facts *changed = srv_s3_facts_with(facts, fact, value);
    enum srv_s3_code code = SRV_S3_SLOW_DOWN;
    if (changed != NULL)
        code = store_facts(buckets, bucket, changed);
    srv_s3_facts_release(changed);
    srv_s3_facts_release(facts);
    pthread_mutex_unlock(&bucket->change_lock);
    return code;
}

/* ---- Making and removing buckets ---- */

static void set_state(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                      enum srv_s3_bucket_state state)
{
    pthread_rwlock_wrlock(&buckets->lock);
    if (state == SRV_S3_BUCKET_GONE)
        remove_locked(buckets, bucket);
    else
        bucket->state = state;
    pthread_rwlock_unlock(&buckets->lock);
}

static enum srv_s3_code begin_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                   int64_t now_ms, struct srv_s3_facts *facts,
                                   struct srv_s3_bucket **bucket_out)
{
    enum srv_s3_code code = SRV_S3_NONE;

    *bucket_out = NULL;
    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *found = find_locked(buckets, name);
    if (found != NULL)
        code = found->state == SRV_S3_BUCKET_LIVE ? SRV_S3_BUCKET_ALREADY_OWNED
                                                  : SRV_S3_OPERATION_ABORTED;
    else if (buckets->n >= SRV_S3_BUCKETS_MAX)
        code = SRV_S3_TOO_MANY_BUCKETS;
    else if ((*bucket_out = insert_locked(buckets, name, SRV_S3_BUCKET_CREATING, now_ms, facts)) ==
             NULL)
        code = SRV_S3_SLOW_DOWN;
    else
        srv_s3_facts_acquire(facts);
    pthread_rwlock_unlock(&buckets->lock);
    return code;
}

enum srv_s3_code srv_s3_buckets_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                     struct srv_s3_facts *facts)
{
    struct srv_s3_bucket *bucket;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    enum srv_s3_code code = begin_make(buckets, name, now_ms, facts, &bucket);
    if (code != SRV_S3_NONE)
        return code;
    gyre_err err = srv_s3_bucket_doc_put(buckets->store, name, now_ms, facts);
    set_state(buckets, bucket, err == GYRE_OK ? SRV_S3_BUCKET_LIVE : SRV_S3_BUCKET_GONE);
    return srv_s3_code_of(err);
}

/* LIVE -> CLOSING, unless an object is just being committed. */
static enum srv_s3_code begin_remove(struct srv_s3_buckets *buckets, struct srv_str name,
                                     struct srv_s3_bucket **bucket_out)
{
    enum srv_s3_code code = SRV_S3_NONE;

    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *bucket = find_locked(buckets, name);
    if (bucket == NULL)
        code = SRV_S3_NO_SUCH_BUCKET;
    else if (bucket->state != SRV_S3_BUCKET_LIVE)
        code = SRV_S3_OPERATION_ABORTED;
    else if (atomic_load_explicit(&bucket->committing, memory_order_acquire) > 0)
        code = SRV_S3_BUCKET_NOT_EMPTY;
    else
        bucket->state = SRV_S3_BUCKET_CLOSING;
    pthread_rwlock_unlock(&buckets->lock);
    *bucket_out = code == SRV_S3_NONE ? bucket : NULL;
    return code;
}

struct search {
    struct srv_str bucket;
    bool found;
};

static bool search_one(void *data, const struct gyre_handle *handle)
{
    struct search *search = data;
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);
    struct srv_s3_meta meta;

    search->found = srv_s3_meta_decode(bytes, len, &meta) && same(meta.bucket, search->bucket);
    return !search->found;
}

/* Asks the index, which by then was told of all that was stored in a bucket nobody is in any more.
 * False if it cannot tell. */
static bool ask_index(struct srv_s3_buckets *buckets, struct srv_str name, uint32_t now,
                      bool *holds_out)
{
    struct srv_names_scan scan;
    struct srv_name_row row;

    *holds_out = false;
    if (!srv_names_lists(buckets->names, name))
        return false;
    srv_names_settle(buckets->names);
    if (srv_names_scan_begin(buckets->names, name, now, SIZE_MAX, &scan) != SRV_NAMES_FOUND)
        return false;
    enum srv_names_found found = srv_names_scan_seek(&scan, (struct srv_str){"", 0}, false);
    if (found == SRV_NAMES_FOUND)
        found = srv_names_scan_next(&scan, &row);
    srv_names_scan_end(&scan);
    *holds_out = found == SRV_NAMES_FOUND;
    return found == SRV_NAMES_FOUND || found == SRV_NAMES_END;
}

/* Whether a bucket that is SRV_S3_BUCKET_CLOSING holds an object; the cheap answers come first. */
static gyre_err holds_objects(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                              bool *holds_out)
{
    *holds_out = false;
    pthread_mutex_lock(&bucket->key_lock);
    uint64_t commits = bucket->commits;
    struct gyre_key key = bucket->last_key;
    pthread_mutex_unlock(&bucket->key_lock);
    if (commits == 0 && bucket->was_empty)
        return GYRE_OK;
    uint32_t now = (uint32_t)time(NULL);
    if (commits > 0 && gyre_exists(buckets->store, &key, now, GYRE_STRICT) == GYRE_OK) {
        *holds_out = true;
        return GYRE_OK;
    }
    if (ask_index(buckets, name_of(bucket), now, holds_out))
        return GYRE_OK;
    struct search search = {name_of(bucket), false};
    gyre_err err = gyre_each(buckets->store, GYRE_POOL_MAIN, search_one, &search);
    *holds_out = search.found;
    return err;
}

enum srv_s3_code srv_s3_buckets_remove(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *bucket;
    bool holds;

    enum srv_s3_code code = begin_remove(buckets, name, &bucket);
    if (code != SRV_S3_NONE)
        return code;
    gyre_err err = holds_objects(buckets, bucket, &holds);
    if (err == GYRE_OK && !holds) {
        err = srv_s3_bucket_doc_delete(buckets->store, name);
        if (err == GYRE_NOT_FOUND)
            err = GYRE_OK; /* the document was damaged and dropped: no bucket comes back from it */
    }
    set_state(buckets, bucket, err == GYRE_OK && !holds ? SRV_S3_BUCKET_GONE : SRV_S3_BUCKET_LIVE);
    return holds ? SRV_S3_BUCKET_NOT_EMPTY : srv_s3_code_of(err);
}
