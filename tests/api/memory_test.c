/* Running out of memory: the k-th allocation of a step fails, for every k until none is left. The
 * step then answers NO_MEMORY, nothing is half done, nothing is lost, and the next try succeeds.
 *
 * The allocator is interposed here; sanitizers have one of their own, so their builds skip this.
 */
#include "tests/api/fixture.h"

#include <errno.h>

#define INTERPOSED (!TEST_SANITIZED)

static _Thread_local unsigned fail_in; /* 0: none fails */
static _Thread_local bool failed;

#if INTERPOSED
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *old, size_t len);
void *__libc_memalign(size_t align, size_t len);

static bool is_due(void)
{
    if (fail_in == 0 || --fail_in > 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t len)
{
    return is_due() ? NULL : __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
    return is_due() ? NULL : __libc_calloc(n, len);
}

void *realloc(void *old, size_t len)
{
    return is_due() ? NULL : __libc_realloc(old, len);
}

void *aligned_alloc(size_t align, size_t len)
{
    return is_due() ? NULL : __libc_memalign(align, len);
}
#endif

struct step {
    const char *name;
    gyre_err (*run)(struct gyre_store *store);
};

static uint8_t bytes[3 << 20];

static gyre_err put_small(struct gyre_store *store)
{
    struct gyre_key key = key_of(1);
    return gyre_put(store, &key, NULL, bytes, 1000, NULL);
}

static gyre_err put_large(struct gyre_store *store)
{
    struct gyre_key key = key_of(2);
    return gyre_put(store, &key, NULL, bytes, 2000000, NULL);
}

static gyre_err put_stream(struct gyre_store *store)
{
    struct gyre_key key = key_of(3);
    struct gyre_put_options options;
    struct gyre_put *put;
    gyre_put_options_init(&options);
    options.meta = "meta";
    options.meta_len = 4;
    gyre_err err = gyre_put_begin(store, &key, &options, &put);
    if (err != GYRE_OK)
        return err;
    size_t offset = 0;
    for (unsigned i = 0; offset < sizeof bytes && err == GYRE_OK; i++) {
        size_t len = sizeof bytes - offset < 65536 ? sizeof bytes - offset : 65536;
        void *at = NULL;
        if (i % 2 == 0)
            err = gyre_put_write(put, bytes + offset, len);
        else
            err = gyre_put_reserve(put, &len, &at);
        if (err == GYRE_OK && at != NULL) {
            memcpy(at, bytes + offset, len);
            err = gyre_put_advance(put, len);
        }
        offset += len;
    }
    if (err == GYRE_OK)
        err = gyre_put_set_meta(put, "other", 5, 0, 0);
    if (err != GYRE_OK) {
        gyre_put_abort(&put);
        return err;
    }
    return gyre_put_commit(&put, NULL);
}

static gyre_err get_all(struct gyre_store *store)
{
    struct gyre_handle *handles[3] = {0};
    gyre_err err = GYRE_OK;
    for (uint64_t n = 1; n <= 3 && err == GYRE_OK; n++) {
        struct gyre_key key = key_of(n);
        err = gyre_get(store, &key, 0, 0, &handles[n - 1]);
        if (err == GYRE_OK)
            check_pieces(handles[n - 1], 9);
    }
    for (size_t i = 0; i < 3; i++)
        gyre_release(handles[i]);
    return err;
}

static bool stop_at_once(void *data, const struct gyre_handle *handle)
{
    (void)data, (void)handle;
    return false;
}

static gyre_err visit(struct gyre_store *store)
{
    return gyre_each(store, GYRE_POOL_MAIN, stop_at_once, NULL);
}

static void ignore_handle(void *data, gyre_err err, struct gyre_handle *handle)
{
    (void)data, (void)err;
    gyre_release(handle);
}

static gyre_err get_later(struct gyre_store *store)
{
    struct gyre_key key = key_of(1);
    return gyre_get_async(store, &key, 0, 0, ignore_handle, NULL);
}

static gyre_err delete_one(struct gyre_store *store)
{
    struct gyre_key key = key_of(2);
    gyre_err err = gyre_delete(store, &key, GYRE_ALWAYS, 0, 0);
    fail_in = 0;
    if (err == GYRE_OK)
        CHECK_OK(put_large(store)); /* for the next one */
    return err;
}

TEST(every_failing_allocation_is_an_error_and_nothing_more)
{
    static const struct step steps[] = {
        {"put small", put_small}, {"put large", put_large}, {"put stream", put_stream},
        {"get", get_all},         {"each", visit},          {"get async", get_later},
        {"delete", delete_one},
    };
    if (!INTERPOSED)
        test_skip("the sanitizer's allocator cannot be made to fail");
    struct gyre_options roomy = options_for("roomy", 1024 * MIB); /* nothing is evicted */
    roomy.segment_bytes = MIB;
    struct gyre_store *store = open_with(&roomy);
    struct gyre_stats stats = {.struct_size = sizeof stats};
    pattern_fill(9, 0, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (unsigned k = 1; k < 1000; k++) {
            failed = false;
            fail_in = k;
            gyre_err err = steps[i].run(store);
            fail_in = 0;
            CHECK_MSG(err == GYRE_OK || (failed && err == GYRE_NO_MEMORY), "%s, allocation %u: %s",
                      steps[i].name, k, gyre_err_name(err));
            if (err != GYRE_OK)
                CHECK_MSG((err = steps[i].run(store)) == GYRE_OK, "%s, again after %u: %s",
                          steps[i].name, k, gyre_err_name(err));
            if (!failed)
                break;
        }
    }
    CHECK_OK(get_all(store));
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.pins, 0);
    struct gyre_check_report report = {.struct_size = sizeof report};
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    close_store(store);
}

TEST(opening_without_memory_holds_nothing)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    if (!INTERPOSED)
        test_skip("the sanitizer's allocator cannot be made to fail");
    close_store(open_with(&options));
    for (unsigned k = 1; k < 1000; k++) {
        struct gyre_store *store;
        char message[256];
        failed = false;
        fail_in = k;
        gyre_err err = gyre_open(&options, &store, message, sizeof message);
        fail_in = 0;
        CHECK_MSG(err == GYRE_OK || (failed && err == GYRE_NO_MEMORY), "allocation %u: %s: %s", k,
                  gyre_err_name(err), message);
        CHECK((err == GYRE_OK) == (store != NULL));
        CHECK((err == GYRE_OK) == (message[0] == '\0'));
        if (err != GYRE_OK)
            store = open_with(&options);
        close_store(store);
        if (!failed)
            break;
    }
}
