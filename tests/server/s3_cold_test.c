/* Reads of objects that are not in memory, over a store that can be told what is: the loop's thread
 * never waits, and what cannot be read is never sent as if it were. */
#include "server/s3/s3.h"

#include "tests/server/fake_seam.h"
#include "tests/server/fake_store.h"
#include "tests/server/fake_uploads.h"

bool gyre_faulted(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    return handle == NULL && offset + len == 0; /* never */
}

/* The store's own threads. */
struct populate {
    struct gyre_handle *handle;
    uint64_t offset, len;
    void (*done)(void *data, gyre_err err);
    void *data;
};

static void *run_populate(void *arg)
{
    struct populate populate = *(struct populate *)arg;
    free(arg);
    populate.done(populate.data, gyre_populate(populate.handle, populate.offset, populate.len));
    return NULL;
}

uint64_t gyre_capacity_bytes(const struct gyre_store *store)
{
    (void)store;
    return UINT64_C(1) << 30;
}

uint64_t gyre_meta_changes(const struct gyre_store *store)
{
    (void)store;
    return 0;
}

gyre_err gyre_tenant_set_quota(struct gyre_store *store, uint16_t tenant, uint64_t quota_bytes)
{
    (void)store, (void)tenant;
    return quota_bytes == 0 ? GYRE_OK : GYRE_INVALID; /* no bucket here has one */
}

gyre_err gyre_populate_async(struct gyre_handle *handle, uint64_t offset, uint64_t len,
                             void (*done)(void *data, gyre_err err), void *data)
{
    pthread_t thread;
    struct populate *populate = malloc(sizeof *populate);
    *populate = (struct populate){handle, offset, len, done, data};
    CHECK(pthread_create(&thread, NULL, run_populate, populate) == 0);
    pthread_detach(thread);
    return GYRE_OK;
}

enum { LEN = (9 << 20) + 5, SHORT = 5000 };

/* What the handlers under test call besides, and these tests do not come to. */
void gyre_put_options_init(struct gyre_put_options *options)
{
    *options = (struct gyre_put_options){.struct_size = sizeof *options};
}

gyre_err gyre_put_begin(struct gyre_store *store, const struct gyre_key *key,
                        const struct gyre_put_options *options, struct gyre_put **put_out)
{
    (void)store, (void)key, (void)options;
    *put_out = NULL;
    return GYRE_NO_MEMORY;
}

gyre_err gyre_put_write(struct gyre_put *p, const void *bytes, size_t len)
{
    (void)p, (void)bytes, (void)len;
    return GYRE_STATE;
}

gyre_err gyre_put_set_meta(struct gyre_put *p, const void *meta, size_t meta_len,
                           uint64_t etag_hash, uint32_t expires)
{
    (void)p, (void)meta, (void)meta_len, (void)etag_hash, (void)expires;
    return GYRE_STATE;
}

gyre_err gyre_put_commit(struct gyre_put **p, uint64_t *serial_out)
{
    (void)p, (void)serial_out;
    return GYRE_STATE;
}

void gyre_put_abort(struct gyre_put **p)
{
    CHECK(*p == NULL);
}

static int changes_left; /* how often another request comes in between */
static int deletions;

gyre_err gyre_delete(struct gyre_store *store, const struct gyre_key *key,
                     enum gyre_condition condition, uint64_t if_serial, unsigned flags)
{
    struct object *object = find_object(store, key);
    CHECK(condition == GYRE_IF_SERIAL && if_serial == object->info.serial && flags == 0);
    deletions++;
    if (changes_left-- > 0) {
        object->info.serial = ++store->serial;
        return GYRE_CHANGED;
    }
    object->is_dead = true;
    return GYRE_OK;
}

gyre_err gyre_exists(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                     enum gyre_certainty certainty)
{
    (void)store, (void)key, (void)now, (void)certainty;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_each(struct gyre_store *store, enum gyre_pool pool,
                   bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    (void)store, (void)pool, (void)visit, (void)data;
    return GYRE_OK;
}

gyre_err gyre_each_meta(struct gyre_store *store,
                        bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    return gyre_each(store, GYRE_POOL_META, visit, data);
}

/* What the index of names asks for. */

gyre_err gyre_each_since(struct gyre_store *store, enum gyre_pool pool, const void *mark,
                         size_t len, bool (*visit)(void *data, const struct gyre_handle *handle),
                         void *data)
{
    (void)mark, (void)len;
    return gyre_each(store, pool, visit, data);
}

gyre_err gyre_mark(struct gyre_store *store, void *mark_out, size_t size, size_t *len_out)
{
    (void)store, (void)size;
    *(uint8_t *)mark_out = 1;
    *len_out = 1;
    return GYRE_OK;
}

gyre_err gyre_holds(struct gyre_store *store, const struct gyre_key *key, uint64_t place)
{
    (void)store, (void)key, (void)place;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_stat(struct gyre_store *store, struct gyre_stats *stats_out)
{
    (void)store;
    *stats_out = (struct gyre_stats){.struct_size = sizeof *stats_out};
    return GYRE_OK;
}

gyre_err gyre_file_at(struct gyre_store *store, size_t index, struct gyre_file *file_out)
{
    (void)store, (void)index;
    *file_out = (struct gyre_file){.path = test_path("volume")};
    return GYRE_OK;
}

uint64_t gyre_object_max_bytes(const struct gyre_store *store)
{
    (void)store;
    return UINT64_MAX;
}

static uint8_t bytes[LEN];

struct cold {
    struct srv_loop loop;
    struct srv_pool *pool;
    struct srv_s3 *s3;
    struct object *object; /* /bucket/k */
};

static void request(struct cold *c, struct srv_exchange *ex, enum srv_method method,
                    const char *target)
{
    fake_init(ex, &c->loop, method, target);
}

static int finish(struct cold *c, struct srv_exchange *ex)
{
    srv_s3_start(c->s3, ex);
    fake_finish(ex);
    return ex->status;
}

/* An object of `len` bytes, below the limit of bodies that one job stores; longer ones are grown
 * behind the handlers' back. */
static void cold_init(struct cold *c, size_t len)
{
    struct test_rng rng = {5};
    struct srv_exchange ex;

    test_rng_fill(&rng, bytes, sizeof bytes);
    pthread_mutex_init(&the_store.lock, NULL);
    the_store.loop = pthread_self();
    fake_loop_init(&c->loop, 8 << 20);
    c->pool = srv_pool_create(2, 16);
    struct srv_s3_config config = {.store = &the_store, .pool = c->pool};
    CHECK_OK(srv_s3_create(&config, &c->s3));
    request(c, &ex, SRV_PUT, "/bucket");
    CHECK_EQ_INT(finish(c, &ex), 200);
    fake_fini(&ex);
    request(c, &ex, SRV_PUT, "/bucket/k");
    fake_body(&ex, "x", 1);
    CHECK_EQ_INT(finish(c, &ex), 200);
    fake_fini(&ex);
    c->object = the_store.objects;
    pthread_mutex_lock(&the_store.lock); /* the index of names may be looking */
    free(c->object->body);
    c->object->body = malloc(len);
    memcpy(c->object->body, bytes, len);
    c->object->info.length = len;
    c->object->info.parts = len > 64 << 10 ? (uint32_t)(len >> 20) + 1 : 0;
    c->object->resident = 0;
    pthread_mutex_unlock(&the_store.lock);
}

static void damage(struct cold *c, uint64_t at)
{
    pthread_mutex_lock(&the_store.lock);
    c->object->damaged_at = at;
    pthread_mutex_unlock(&the_store.lock);
}

/* Has the object leave memory, its metadata too if that is wanted. */
static void make_cold(struct cold *c, bool with_meta)
{
    pthread_mutex_lock(&the_store.lock);
    c->object->is_cold_meta = with_meta;
    c->object->resident = 0;
    pthread_mutex_unlock(&the_store.lock);
}

static void fake_store_fini(void)
{
    CHECK_EQ_INT(atomic_load(&the_store.handles), 0);
    for (struct object *next, *at = the_store.objects; at != NULL; at = next) {
        next = at->next;
        free(at->meta);
        free(at->body);
        free(at);
    }
    the_store.objects = NULL;
}

static bool has_settled(struct cold *c)
{
    while (fake_has_work(&c->loop))
        fake_turn(&c->loop);
    return atomic_load(&the_store.handles) == 0;
}

static void cold_fini(struct cold *c)
{
    srv_pool_destroy(c->pool);
    /* What was asked of the store asynchronously may still be on its way. */
    CHECK_SOON(has_settled(c));
    srv_s3_destroy(c->s3);
    fake_loop_fini(&c->loop);
    fake_store_fini();
}

static void check_body(struct cold *c, const char *range, size_t first, size_t len)
{
    struct srv_exchange ex;

    request(c, &ex, SRV_GET, "/bucket/k");
    if (range != NULL)
        fake_field(&ex, "range", range);
    CHECK_EQ_INT(finish(c, &ex), range != NULL ? 206 : 200);
    CHECK_EQ_U64(ex.out_len, len);
    CHECK_EQ_MEM(ex.out, bytes + first, len);
    fake_fini(&ex);
}

TEST(a_cold_object_is_read_by_a_worker)
{
    static const size_t lens[] = {SHORT, 64 << 10, (64 << 10) + 1, LEN};

    for (size_t i = 0; i < 8; i++) {
        struct cold c;
        cold_init(&c, lens[i / 2]);
        make_cold(&c, i % 2 == 0);
        check_body(&c, NULL, 0, lens[i / 2]);
        make_cold(&c, i % 2 == 0);
        check_body(&c, "bytes=100-199", 100, 100);
        cold_fini(&c);
    }
}

TEST(a_long_body_comes_in_windows)
{
    struct cold c;

    cold_init(&c, LEN);
    check_body(&c, NULL, 0, LEN);
    CHECK_EQ_U64(c.object->populations, 3); /* of 4 MiB */
    check_body(&c, NULL, 0, LEN);
    CHECK_EQ_U64(c.object->populations, 3);
    cold_fini(&c);
}

TEST(a_head_of_a_cold_object_reads_no_body)
{
    struct cold c;
    struct srv_exchange ex;

    cold_init(&c, LEN);
    make_cold(&c, true);
    request(&c, &ex, SRV_HEAD, "/bucket/k");
    CHECK_EQ_INT(finish(&c, &ex), 200);
    CHECK_EQ_U64(ex.length, LEN);
    fake_fini(&ex);
    CHECK_EQ_U64(c.object->resident, 0);
    cold_fini(&c);
}

TEST(damage_found_before_the_head_is_a_miss)
{
    static const size_t lens[] = {SHORT, LEN};

    for (size_t i = 0; i < 2; i++) {
        struct cold c;
        struct srv_exchange ex;
        cold_init(&c, lens[i]);
        damage(&c, SHORT / 2);
        request(&c, &ex, SRV_GET, "/bucket/k");
        CHECK_EQ_INT(finish(&c, &ex), 404);
        fake_fini(&ex);
        cold_fini(&c);
    }
}

TEST(damage_found_later_cuts_the_body_short)
{
    struct cold c;
    struct srv_exchange ex;

    cold_init(&c, LEN);
    damage(&c, LEN - 1);
    request(&c, &ex, SRV_GET, "/bucket/k");
    CHECK_EQ_INT(finish(&c, &ex), 200);
    CHECK(ex.is_failed && ex.out_len < LEN);
    fake_fini(&ex);
    cold_fini(&c);
}

TEST(a_reader_may_vanish_while_a_worker_reads)
{
    for (int turns = 0; turns < 5; turns++) {
        struct cold c;
        struct srv_exchange ex;
        cold_init(&c, LEN);
        make_cold(&c, true);
        request(&c, &ex, SRV_GET, "/bucket/k");
        srv_s3_start(c.s3, &ex);
        for (int i = 0; i < turns && !ex.is_gone; i++)
            fake_turn(&c.loop);
        fake_fini(&ex);
        cold_fini(&c);
    }
}

TEST(errors_of_the_store_are_answered_as_what_they_are)
{
    static const struct {
        gyre_err err;
        int status;
    } rows[] = {{GYRE_EXPIRED, 404},
                {GYRE_BUSY, 503},
                {GYRE_CLOSED, 503},
                {GYRE_NO_MEMORY, 503},
                {GYRE_IO, 500}};
    struct cold c;
    struct srv_exchange ex;

    cold_init(&c, SHORT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        the_store.get_err = rows[i].err;
        request(&c, &ex, SRV_GET, "/bucket/k");
        int status = finish(&c, &ex);
        CHECK_MSG(status == rows[i].status, "%s: %d", gyre_err_name(rows[i].err), status);
        CHECK((status == 503) == (fake_get(&ex, "retry-after") != NULL));
        fake_fini(&ex);
    }
    the_store.get_err = GYRE_OK;
    cold_fini(&c);
}

TEST(inv_S3_a_conditional_deletion_is_judged_anew_when_the_object_changed)
{
    static const struct {
        int changes, status, deletions;
    } rows[] = {{0, 204, 1}, {2, 204, 3}, {1000, 409, 8}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cold c;
        struct srv_exchange ex;
        cold_init(&c, SHORT);
        changes_left = rows[i].changes;
        deletions = 0;
        request(&c, &ex, SRV_DELETE, "/bucket/k");
        fake_field(&ex, "if-match", "*");
        CHECK_EQ_INT(finish(&c, &ex), rows[i].status);
        CHECK_EQ_INT(deletions, rows[i].deletions);
        fake_fini(&ex);
        cold_fini(&c);
    }
}
