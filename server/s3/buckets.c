#include "server/s3/buckets.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/check.h"
#include "server/s3/meta.h"
#include "server/s3/name.h"

enum { N_CHAINS = 1024 };
enum { DOC_CREATED_OFF = 8, DOC_NAME_OFF = 16, DOC_MAX = DOC_NAME_OFF + SRV_S3_BUCKET_MAX };

static const char doc_magic[8] = {'G', 'B', 'K', '1'};

enum bucket_state { CREATING, LIVE, CLOSING, GONE };

/* [c] const once in the table  [w] under the table's lock, held for writing  [k] under key_lock
 * [a] atomic */
struct srv_s3_bucket {
    struct srv_s3_bucket *next;  /* [w] */
    enum bucket_state state;     /* [w] */
    _Atomic uint32_t refs;       /* [a] the table's and one for each acquire */
    _Atomic uint32_t committing; /* [a] raised under the lock while LIVE, lowered anywhere */
    bool was_empty;              /* [c] made by this process, hence without objects at first */
    enum srv_s3_etag etag;       /* [c] */
    int64_t created_ms;          /* [w] */
    pthread_mutex_t key_lock;
    uint64_t commits;             /* [k] objects stored by this process */
    struct gyre_key last_key;     /* [k] of the latest of them, which is likely to be there still */
    size_t name_len;              /* [c] */
    char name[SRV_S3_BUCKET_MAX]; /* [c] */
};

struct srv_s3_buckets {
    pthread_rwlock_t lock;
    struct gyre_store *store;               /* [c] */
    enum srv_s3_etag etag;                  /* [c] */
    struct srv_s3_bucket_etag *rules;       /* [c] names are copies */
    size_t n_rules;                         /* [c] */
    size_t n;                               /* [w] in the chains */
    struct srv_s3_bucket *chains[N_CHAINS]; /* [w] */
};

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
    return (hash ^ hash >> 16) % N_CHAINS;
}

static struct srv_s3_bucket *find_locked(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *at = buckets->chains[chain_of(name)];

    while (at != NULL && !same(name_of(at), name))
        at = at->next;
    return at;
}

static bool is_seen(const struct srv_s3_bucket *bucket)
{
    return bucket != NULL && (bucket->state == LIVE || bucket->state == CLOSING);
}

static enum srv_s3_etag etag_rule(const struct srv_s3_buckets *buckets, struct srv_str name)
{
    for (size_t i = 0; i < buckets->n_rules; i++) {
        const char *rule = buckets->rules[i].bucket;
        if (same((struct srv_str){rule, strlen(rule)}, name))
            return buckets->rules[i].etag;
    }
    return buckets->etag;
}

static struct srv_s3_bucket *insert_locked(struct srv_s3_buckets *buckets, struct srv_str name,
                                           enum bucket_state state, int64_t created_ms)
{
    struct srv_s3_bucket *bucket = calloc(1, sizeof *bucket);
    struct srv_s3_bucket **chain = &buckets->chains[chain_of(name)];

    if (bucket == NULL)
        return NULL;
    bucket->state = state;
    atomic_init(&bucket->refs, 1);
    pthread_mutex_init(&bucket->key_lock, NULL);
    bucket->was_empty = state == CREATING;
    bucket->etag = etag_rule(buckets, name);
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
        free(bucket);
    }
}

static void remove_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    struct srv_s3_bucket **at = &buckets->chains[chain_of(name_of(bucket))];

    while (*at != bucket)
        at = &(*at)->next;
    *at = bucket->next;
    bucket->state = GONE;
    buckets->n--;
    unref(bucket);
}

/* ---- Documents ---- */

static struct gyre_key doc_key(struct srv_str name)
{
    struct iovec parts[2] = {{(void *)name.base, name.len}, {(void *)"", 0}};
    struct gyre_key key;

    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &key) == GYRE_OK);
    return key;
}

static gyre_err put_doc(struct srv_s3_buckets *buckets, struct srv_str name, int64_t created_ms)
{
    uint8_t meta[DOC_MAX];
    uint64_t created = htole64((uint64_t)created_ms);
    struct gyre_key key = doc_key(name);
    struct gyre_put_options options;

    memcpy(meta, doc_magic, sizeof doc_magic);
    memcpy(meta + DOC_CREATED_OFF, &created, sizeof created);
    memcpy(meta + DOC_NAME_OFF, name.base, name.len);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    options.flags = GYRE_PUT_SYNC;
    options.created = (uint32_t)(created_ms / 1000);
    options.meta = meta;
    options.meta_len = DOC_NAME_OFF + name.len;
    return gyre_put(buckets->store, &key, &options, NULL, 0, NULL);
}

struct load {
    struct srv_s3_buckets *buckets;
    gyre_err err;
};

static bool load_one(void *data, const struct gyre_handle *handle)
{
    struct load *load = data;
    size_t len;
    const uint8_t *meta = gyre_handle_meta(handle, &len);
    uint64_t created;

    if (len <= DOC_NAME_OFF || len > DOC_MAX || memcmp(meta, doc_magic, sizeof doc_magic) != 0)
        return true;
    struct srv_str name = {(const char *)meta + DOC_NAME_OFF, len - DOC_NAME_OFF};
    memcpy(&created, meta + DOC_CREATED_OFF, sizeof created);
    if (!srv_s3_bucket_valid(name) || find_locked(load->buckets, name) != NULL)
        return true;
    if (insert_locked(load->buckets, name, LIVE, (int64_t)le64toh(created)) == NULL)
        load->err = GYRE_NO_MEMORY;
    return load->err == GYRE_OK;
}

/* ---- Making and ending the table ---- */

static bool copy_rules(struct srv_s3_buckets *buckets, const struct srv_s3_config *config)
{
    if (config->n_bucket_etags == 0)
        return true;
    buckets->rules = calloc(config->n_bucket_etags, sizeof *buckets->rules);
    for (; buckets->rules != NULL && buckets->n_rules < config->n_bucket_etags;
         buckets->n_rules++) {
        struct srv_s3_bucket_etag *rule = &buckets->rules[buckets->n_rules];
        *rule = config->bucket_etags[buckets->n_rules];
        rule->bucket = strdup(rule->bucket);
        if (rule->bucket == NULL)
            return false;
    }
    return buckets->rules != NULL;
}

gyre_err srv_s3_buckets_create(const struct srv_s3_config *config,
                               struct srv_s3_buckets **buckets_out)
{
    struct srv_s3_buckets *buckets = calloc(1, sizeof *buckets);

    *buckets_out = NULL;
    if (buckets == NULL)
        return GYRE_NO_MEMORY;
    pthread_rwlock_init(&buckets->lock, NULL);
    buckets->store = config->store;
    buckets->etag = config->etag;
    struct load load = {buckets, copy_rules(buckets, config) ? GYRE_OK : GYRE_NO_MEMORY};
    gyre_err err = load.err;
    if (err == GYRE_OK)
        err = gyre_each_meta(config->store, load_one, &load);
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
    for (size_t i = 0; i < N_CHAINS; i++) {
        while (buckets->chains[i] != NULL)
            remove_locked(buckets, buckets->chains[i]);
    }
    for (size_t i = 0; i < buckets->n_rules; i++)
        free((char *)buckets->rules[i].bucket);
    free(buckets->rules);
    pthread_rwlock_destroy(&buckets->lock);
    free(buckets);
}

/* ---- Looking up ---- */

bool srv_s3_bucket_exists(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    bool exists = is_seen(find_locked(buckets, name));
    pthread_rwlock_unlock(&buckets->lock);
    return exists;
}

struct srv_s3_bucket *srv_s3_bucket_acquire(struct srv_s3_buckets *buckets, struct srv_str name)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_bucket *bucket = find_locked(buckets, name);
    if (!is_seen(bucket))
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

enum srv_s3_etag srv_s3_bucket_etag(const struct srv_s3_bucket *bucket)
{
    return bucket->etag;
}

enum srv_s3_code srv_s3_bucket_enter(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    enum srv_s3_code code = SRV_S3_NONE;

    pthread_rwlock_rdlock(&buckets->lock);
    if (bucket->state == LIVE)
        atomic_fetch_add_explicit(&bucket->committing, 1, memory_order_relaxed);
    else
        code = bucket->state == GONE ? SRV_S3_NO_SUCH_BUCKET : SRV_S3_OPERATION_ABORTED;
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

/* ---- Making and removing buckets ---- */

static void set_state(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                      enum bucket_state state)
{
    pthread_rwlock_wrlock(&buckets->lock);
    if (state == GONE)
        remove_locked(buckets, bucket);
    else
        bucket->state = state;
    pthread_rwlock_unlock(&buckets->lock);
}

static enum srv_s3_code begin_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                   int64_t now_ms, struct srv_s3_bucket **bucket_out)
{
    enum srv_s3_code code = SRV_S3_NONE;

    *bucket_out = NULL;
    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *found = find_locked(buckets, name);
    if (found != NULL)
        code = found->state == LIVE ? SRV_S3_BUCKET_ALREADY_OWNED : SRV_S3_OPERATION_ABORTED;
    else if (buckets->n >= SRV_S3_BUCKETS_MAX)
        code = SRV_S3_TOO_MANY_BUCKETS;
    else if ((*bucket_out = insert_locked(buckets, name, CREATING, now_ms)) == NULL)
        code = SRV_S3_SLOW_DOWN;
    pthread_rwlock_unlock(&buckets->lock);
    return code;
}

enum srv_s3_code srv_s3_buckets_make(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *bucket;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    enum srv_s3_code code = begin_make(buckets, name, now_ms, &bucket);
    if (code != SRV_S3_NONE)
        return code;
    gyre_err err = put_doc(buckets, name, now_ms);
    set_state(buckets, bucket, err == GYRE_OK ? LIVE : GONE);
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
    else if (bucket->state != LIVE)
        code = SRV_S3_OPERATION_ABORTED;
    else if (atomic_load_explicit(&bucket->committing, memory_order_acquire) > 0)
        code = SRV_S3_BUCKET_NOT_EMPTY;
    else
        bucket->state = CLOSING;
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

/* Whether a bucket that is CLOSING holds an object; the cheap answers come first. */
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
        struct gyre_key key = doc_key(name);
        err = gyre_delete(buckets->store, &key, GYRE_ALWAYS, 0, GYRE_PUT_SYNC);
        if (err == GYRE_NOT_FOUND)
            err = GYRE_OK; /* the document was damaged and dropped: no bucket comes back from it */
    }
    set_state(buckets, bucket, err == GYRE_OK && !holds ? GONE : LIVE);
    return holds ? SRV_S3_BUCKET_NOT_EMPTY : srv_s3_code_of(err);
}

/* ---- Listing ---- */

struct row {
    size_t name_len;
    int64_t created_ms;
    char name[SRV_S3_BUCKET_MAX];
};

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, len);

    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

/* A copy of what is there, so that the lock is not held while the list is sorted and written. */
static struct row *copy_rows(struct srv_s3_buckets *buckets, size_t *n_out)
{
    size_t n = 0;

    pthread_rwlock_rdlock(&buckets->lock);
    struct row *rows = malloc((buckets->n + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < N_CHAINS; i++) {
        for (struct srv_s3_bucket *at = buckets->chains[i]; at != NULL; at = at->next) {
            if (!is_seen(at))
                continue;
            rows[n].name_len = at->name_len;
            rows[n].created_ms = at->created_ms;
            memcpy(rows[n++].name, at->name, at->name_len);
        }
    }
    pthread_rwlock_unlock(&buckets->lock);
    *n_out = n;
    return rows;
}

bool srv_s3_buckets_each(struct srv_s3_buckets *buckets,
                         void (*visit)(void *data, struct srv_str name, int64_t created_ms),
                         void *data)
{
    size_t n;
    struct row *rows = copy_rows(buckets, &n);

    if (rows == NULL)
        return false;
    qsort(rows, n, sizeof *rows, by_name);
    for (size_t i = 0; i < n; i++)
        visit(data, (struct srv_str){rows[i].name, rows[i].name_len}, rows[i].created_ms);
    free(rows);
    return true;
}
