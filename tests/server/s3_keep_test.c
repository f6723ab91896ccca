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

/* ---- Quotas ---- */

static void configure(struct fixture *f, const struct srv_s3_bucket_rule *rules, size_t n)
{
    const struct srv_s3_config config = {.bucket_rules = rules, .n_bucket_rules = n};
    char error[100];
    struct srv_s3_next *next = srv_s3_prepare(&config, error, sizeof error);

    CHECK(next != NULL);
    srv_s3_commit(f->s3, next);
}

static int put_until_refused(struct fixture *f, const char *bucket, int first)
{
    struct srv_exchange ex;
    int n = first, status;

    while ((status = put_numbered(f, &ex, bucket, n)) == 200 && n < OTHERS) {
        fake_fini(&ex);
        n++;
    }
    CHECK_EQ_INT(status, 507);
    CHECK(has_code(&ex, "InsufficientStorage"));
    fake_fini(&ex);
    return n;
}

TEST(a_bucket_takes_no_more_than_its_quota_before_and_after_a_restart)
{
    static const struct srv_s3_bucket_rule rules[] = {{.bucket = "small", .quota_bytes = 5 << 20},
                                                      {.bucket = "tiny", .quota_bytes = 3 << 20}};
    struct srv_exchange ex;
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/small"); /* before it has a quota */
    CHECK_EQ_INT(put_numbered(&f, &ex, "small", 0), 200);
    fake_fini(&ex);
    configure(&f, rules, 2);
    make_bucket(&f, "/tiny");
    make_bucket(&f, "/free");
    CHECK_EQ_INT(put_until_refused(&f, "small", 1), 4); /* headers and padding take the rest */
    CHECK_EQ_INT(put_until_refused(&f, "tiny", 0), 2);
    CHECK_EQ_INT(put_numbered(&f, &ex, "small", 0), 200); /* in place of another */
    fake_fini(&ex);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ_INT(put_numbered(&f, &ex, "free", i), 200);
        fake_fini(&ex);
    }
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/small/k1", NULL), 204);
    CHECK_EQ_INT(put_until_refused(&f, "small", 4), 5);
    fixture_close(&f);
    fixture_open(&f);
    configure(&f, rules, 2);
    CHECK_EQ_INT(put_until_refused(&f, "small", 5), 5);
    CHECK_EQ_INT(put_until_refused(&f, "tiny", 2), 2);
    configure(&f, rules + 1, 1); /* no quota any more */
    CHECK_EQ_INT(put_numbered(&f, &ex, "small", 5), 200);
    fake_fini(&ex);
    fixture_close(&f);
}

TEST(parts_of_uploads_count_for_the_quota_while_they_are_there)
{
    static const struct srv_s3_bucket_rule rules[] = {
        {.bucket = "small", .quota_bytes = 3 << 20, .never_evicts = true}};
    static char body[BYTES];
    struct srv_exchange ex;
    struct fixture f;
    char target[128];
    int status = 200;

    fixture_init(&f);
    configure(&f, rules, 1);
    make_bucket(&f, "/small");
    CHECK_EQ_INT(ask(&f, &ex, SRV_POST, "/small/k?uploads", NULL), 200);
    const char *at = strstr((const char *)ex.out, "<UploadId>");
    CHECK(at != NULL);
    char id[33];
    snprintf(id, sizeof id, "%.32s", at + 10);
    fake_fini(&ex);
    int n = 0;
    while (status == 200 && n < 20) {
        snprintf(target, sizeof target, "/small/k?partNumber=%d&uploadId=%s", ++n, id);
        status = put_status(&f, target, body, sizeof body, NULL);
    }
    CHECK_EQ_INT(status, 507);
    CHECK_EQ_INT(n, 3);
    snprintf(target, sizeof target, "/small/k?uploadId=%s", id);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, target, NULL), 204);
    CHECK_EQ_INT(put_until_refused(&f, "small", 0), 2);
    fixture_close(&f);
}
