#include "server/s3/bucket_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

struct srv_s3_bucket *srv_s3_bucket_find_locked(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *at = buckets->chains[chain_of(name)];

    while (at != NULL && !same(srv_s3_bucket_name(at), name))
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

struct srv_s3_bucket *srv_s3_bucket_insert_locked(struct srv_s3_buckets *buckets,
                                                  struct srv_str name,
                                                  enum srv_s3_bucket_state state,
                                                  const struct srv_s3_bucket_doc *doc)
{
    struct srv_s3_bucket *bucket = calloc(1, sizeof *bucket);
    struct srv_s3_bucket **chain = &buckets->chains[chain_of(name)];

    if (bucket == NULL)
        return NULL;
    bucket->state = state;
    atomic_init(&bucket->refs, 1);
    pthread_mutex_init(&bucket->key_lock, NULL);
    pthread_mutex_init(&bucket->change_lock, NULL);
    bucket->facts = doc->facts;
    note_rules(buckets, doc->facts);
    bucket->rule = find_rule_locked(buckets, name);
    bucket->created_ms = doc->created_ms;
    bucket->serial = doc->serial;
    bucket->is_closing = doc->is_closing;
    bucket->name_len = name.len;
    memcpy(bucket->name, name.base, name.len);
    bucket->next = *chain;
    *chain = bucket;
    buckets->n++;
    srv_s3_bucket_count_locked(buckets, bucket, 1);
    srv_s3_bucket_bound_locked(buckets, bucket);
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

void srv_s3_bucket_remove_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    struct srv_s3_bucket **at = &buckets->chains[chain_of(srv_s3_bucket_name(bucket))];

    while (*at != bucket)
        at = &(*at)->next;
    *at = bucket->next;
    bucket->state = SRV_S3_BUCKET_GONE;
    srv_s3_bucket_count_locked(buckets, bucket, -1);
    buckets->n--;
    unref(bucket);
}

void srv_s3_bucket_take_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                               const struct srv_s3_bucket_doc *doc)
{
    /* Versions of one document are numbered upwards while anybody has the store open. */
    if (doc->serial <= bucket->serial)
        return;
    if (bucket->state != SRV_S3_BUCKET_GONE)
        srv_s3_bucket_count_locked(buckets, bucket, -1);
    bool has_moved = bucket->facts->tenant != doc->facts->tenant;
    srv_s3_facts_release(bucket->facts);
    bucket->facts = srv_s3_facts_acquire(doc->facts);
    note_rules(buckets, doc->facts);
    if (bucket->state != SRV_S3_BUCKET_GONE) {
        srv_s3_bucket_count_locked(buckets, bucket, 1);
        if (has_moved)
            srv_s3_bucket_bound_locked(buckets, bucket);
    }
    bucket->created_ms = doc->created_ms;
    bucket->serial = doc->serial;
    bucket->is_closing = doc->is_closing;
}

void srv_s3_bucket_take(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                        const struct srv_s3_bucket_doc *doc)
{
    pthread_rwlock_wrlock(&buckets->lock);
    srv_s3_bucket_take_locked(buckets, bucket, doc);
    pthread_rwlock_unlock(&buckets->lock);
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
    pthread_mutex_init(&buckets->pass_lock, NULL);
    buckets->store = config->store;
    buckets->names = names;
    take_rules_locked(buckets, config); /* nobody else knows the table yet */
    gyre_err err = srv_s3_buckets_refresh(buckets);
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
            srv_s3_bucket_remove_locked(buckets, buckets->chains[i]);
    }
    pthread_rwlock_destroy(&buckets->lock);
    pthread_mutex_destroy(&buckets->pass_lock);
    free(buckets);
}

/* ---- Looking up ---- */

bool srv_s3_bucket_exists(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    bool exists = srv_s3_bucket_is_seen(srv_s3_bucket_find_locked(buckets, name));
    pthread_rwlock_unlock(&buckets->lock);
    return exists;
}

struct srv_s3_bucket *srv_s3_bucket_acquire(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
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
    rule.tenant = bucket->facts->tenant;
    pthread_rwlock_unlock(&buckets->lock);
    return rule;
}

void srv_s3_buckets_go_by(struct srv_s3_buckets *buckets, const struct srv_s3_config *config)
{
    pthread_rwlock_wrlock(&buckets->lock);
    take_rules_locked(buckets, config);
    for (size_t i = 0; i < SRV_S3_CHAINS; i++)
        for (struct srv_s3_bucket *at = buckets->chains[i]; at != NULL; at = at->next) {
            at->rule = find_rule_locked(buckets, srv_s3_bucket_name(at));
            srv_s3_bucket_bound_locked(buckets, at);
        }
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
