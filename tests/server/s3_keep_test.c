/* Buckets that never evict: full means refused, and what was taken stays. */
#include "tests/server/s3_fixture.h"

#include "tests/harness/test.h"

enum { BYTES = 1 << 20, OTHERS = 300 };

static int put_numbered(struct fixture *f, struct srv_exchange *ex, const char *bucket, int i)
{
    static char body[BYTES];
    char target[64];

    snprintf(target, sizeof target, "/%s/k%d", bucket, i);
    memset(body, 'a' + i % 26, sizeof body);
    return put(f, ex, target, body, sizeof body, NULL);
}

TEST(a_bucket_that_never_evicts_refuses_when_full_and_keeps_all)
{
    static const struct srv_s3_bucket_rule rules[] = {{.bucket = "kept", .never_evicts = true}};
    const struct srv_s3_config config = {.bucket_rules = rules, .n_bucket_rules = 1};
    struct srv_exchange ex;
    struct fixture f;
    char error[100];
    int n = 0, status;

    fixture_init(&f);
    struct srv_s3_next *next = srv_s3_prepare(&config, error, sizeof error);
    CHECK(next != NULL);
    srv_s3_commit(f.s3, next);
    make_bucket(&f, "/kept");
    make_bucket(&f, "/other");
    while ((status = put_numbered(&f, &ex, "kept", n)) == 200 && n < OTHERS) {
        fake_fini(&ex);
        n++;
    }
    CHECK_EQ_INT(status, 507);
    CHECK(has_code(&ex, "InsufficientStorage"));
    fake_fini(&ex);
    CHECK(n > 4);
    /* Others are stored and evicted as ever, more than the store can hold. */
    for (int i = 0; i < OTHERS; i++) {
        CHECK_EQ_INT(put_numbered(&f, &ex, "other", i), 200);
        fake_fini(&ex);
    }
    for (int i = 0; i < n; i++) {
        char target[64];
        snprintf(target, sizeof target, "/kept/k%d", i);
        CHECK_EQ_INT(ask(&f, &ex, SRV_GET, target, NULL), 200);
        CHECK(ex.out_len == BYTES && ex.out[BYTES - 1] == 'a' + i % 26);
        fake_fini(&ex);
    }
    /* What is removed makes room. */
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/kept/k0", NULL), 204);
    CHECK_EQ_INT(put_numbered(&f, &ex, "kept", 0), 200);
    fake_fini(&ex);
    fixture_close(&f);
}
