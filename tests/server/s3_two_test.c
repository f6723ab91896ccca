/* Two gateways on one store: what one does to buckets the other knows at once, and a bucket that
 * one removes gets no object by the other. */
#include "server/s3/bucket_doc.h"
#include "server/s3/buckets.h"
#include "server/s3/call.h"
#include "server/s3/change.h"
#include "server/s3/facts.h"
#include "tests/server/s3_fixture.h"

struct pair {
    struct fixture a, b;
};

/* Two roles that share nothing but the store. */
static void pair_open(struct pair *p)
{
    fixture_init(&p->a);
    p->b = (struct fixture){.store = p->a.store};
    fake_loop_init(&p->b.loop, 64 << 20);
    p->b.pool = srv_pool_create(2, 64);
    CHECK(p->b.pool != NULL);
    struct srv_s3_config config = {.store = p->b.store, .pool = p->b.pool};
    CHECK_OK(srv_s3_create(&config, &p->b.s3));
}

static void pair_close(struct pair *p)
{
    srv_pool_destroy(p->b.pool);
    while (fake_has_work(&p->b.loop))
        fake_turn(&p->b.loop);
    srv_s3_destroy(p->b.s3);
    fake_loop_fini(&p->b.loop);
    fixture_close(&p->a);
}

static const char tags[] = "<Tagging><TagSet><Tag><Key>k</Key><Value>one</Value></Tag></TagSet>"
                           "</Tagging>";

TEST(a_bucket_made_by_one_is_there_for_the_other)
{
    struct srv_exchange ex;
    struct pair p;

    pair_open(&p);
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 404);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(put_status(&p.b, "/bucket/k", "x", 1, NULL), 200);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket/k", NULL), 200);
    CHECK_EQ_INT(ask_status(&p.b, SRV_PUT, "/bucket", NULL), 200); /* made already: it knows */
    make_bucket(&p.a, "/another");
    CHECK_EQ_INT(ask(&p.b, &ex, SRV_GET, "/", NULL), 200);
    CHECK(strstr((const char *)ex.out, "<Name>another</Name>") != NULL);
    fake_fini(&ex);
    make_bucket(&p.a, "/source");
    CHECK_EQ_INT(put_status(&p.a, "/source/k", "y", 1, NULL), 200);
    static const char *const copy[] = {"x-amz-copy-source", "/source/k", NULL};
    CHECK_EQ_INT(ask_status(&p.b, SRV_PUT, "/bucket/copy", copy), 200);
    pair_close(&p);
}

TEST(a_bucket_removed_by_one_is_gone_for_the_other)
{
    struct srv_exchange ex;
    struct pair p;

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 200);
    CHECK_EQ_INT(ask_status(&p.a, SRV_DELETE, "/bucket", NULL), 204);
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 404);
    CHECK_EQ_INT(put_status(&p.b, "/bucket/k", "x", 1, NULL), 404);
    make_bucket(&p.b, "/bucket");
    CHECK_EQ_INT(put_status(&p.a, "/bucket/k", "x", 1, NULL), 200);
    CHECK_EQ_INT(ask(&p.b, &ex, SRV_DELETE, "/bucket", NULL), 409); /* it stored none itself */
    CHECK(has_code(&ex, "BucketNotEmpty"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&p.b, SRV_DELETE, "/bucket/k", NULL), 204);
    CHECK_EQ_INT(ask_status(&p.b, SRV_DELETE, "/bucket", NULL), 204);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket/k", NULL), 404);
    CHECK_EQ_INT(ask_status(&p.a, SRV_HEAD, "/bucket", NULL), 404);
    CHECK_EQ_INT(ask(&p.a, &ex, SRV_GET, "/", NULL), 200);
    CHECK(strstr((const char *)ex.out, "<Name>bucket</Name>") == NULL);
    fake_fini(&ex);
    pair_close(&p);
}

TEST(facts_changed_by_one_are_known_to_the_other_and_none_is_lost)
{
    static const char lifecycle[] =
        "<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Prefix/>"
        "<Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>";
    struct srv_exchange ex;
    struct pair p;

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask_status(&p.b, SRV_GET, "/bucket?tagging", NULL), 404);
    CHECK_EQ_INT(put_status(&p.a, "/bucket?tagging", tags, strlen(tags), NULL), 204);
    CHECK_EQ_INT(ask(&p.b, &ex, SRV_GET, "/bucket?tagging", NULL), 200);
    CHECK(strstr((const char *)ex.out, "one") != NULL);
    fake_fini(&ex);
    CHECK_EQ_INT(put_status(&p.b, "/bucket?lifecycle", lifecycle, strlen(lifecycle), NULL), 200);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket?lifecycle", NULL), 200);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket?tagging", NULL), 200);
    CHECK_EQ_INT(ask_status(&p.b, SRV_DELETE, "/bucket?tagging", NULL), 204);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket?tagging", NULL), 404);
    CHECK_EQ_INT(ask_status(&p.a, SRV_GET, "/bucket?lifecycle", NULL), 200);
    pair_close(&p);
}

/* ---- A commit and a removal at the same time ---- */

/* Commits an object as a handler does, up to where it would be confirmed. */
static struct srv_s3_stored commit(struct srv_s3 *s3, struct srv_str bucket)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)bucket.base, bucket.len}, {(void *)"k", 1}};
    struct srv_s3_stored stored = {.bucket = srv_s3_bucket_acquire(s3->buckets, bucket)};
    struct gyre_put_options options;

    CHECK(stored.bucket != NULL);
    CHECK_OK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &stored.digest));
    gyre_put_options_init(&options);
    CHECK_EQ_INT(srv_s3_bucket_enter(s3->buckets, stored.bucket), SRV_S3_NONE);
    CHECK_OK(gyre_put(s3->store, &stored.digest, &options, "x", 1, &stored.serial));
    srv_s3_bucket_leave(stored.bucket, &stored.digest);
    return stored;
}

TEST(inv_S1_an_object_does_not_stay_in_a_bucket_that_another_process_removed)
{
    struct srv_str name = srv_s3_str("bucket"), key = srv_s3_str("k");
    struct pair p;

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 200);
    struct srv_s3 *s3 = p.b.s3;
    struct srv_s3_stored stored = commit(s3, name);
    CHECK(srv_s3_bucket_is_undisturbed(s3->buckets, stored.bucket));
    /* The index has not been told yet, so whoever removes finds nothing. */
    CHECK_EQ_INT(ask_status(&p.a, SRV_DELETE, "/bucket", NULL), 204);
    CHECK(!srv_s3_bucket_is_undisturbed(s3->buckets, stored.bucket));
    CHECK_EQ_INT(srv_s3_change_confirm(s3->store, s3->names, s3->buckets, &stored, name, key),
                 SRV_S3_NO_SUCH_BUCKET);
    CHECK_ERR(gyre_exists(s3->store, &stored.digest, 1, GYRE_STRICT), GYRE_NOT_FOUND);
    srv_s3_bucket_release(stored.bucket);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask_status(&p.b, SRV_GET, "/bucket/k", NULL), 404);
    pair_close(&p);
}

TEST(inv_S1_a_bucket_that_another_process_looks_through_stays_if_an_object_comes)
{
    struct srv_str name = srv_s3_str("bucket"), key = srv_s3_str("k");
    struct srv_s3_bucket_doc doc;
    struct pair p;
    uint64_t closing;

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 200);
    struct srv_s3 *s3 = p.b.s3;
    CHECK_OK(srv_s3_bucket_doc_get(s3->store, name, &doc));
    uint64_t serial = doc.serial;
    doc.is_closing = true; /* as one does that removes it, before it looks for objects */
    CHECK_OK(srv_s3_bucket_doc_put(s3->store, name, &doc, serial, &closing));
    struct srv_s3_stored stored = commit(s3, name);
    CHECK(!srv_s3_bucket_is_undisturbed(s3->buckets, stored.bucket));
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 200); /* it knows of the search now */
    CHECK(!srv_s3_bucket_is_undisturbed(s3->buckets, stored.bucket));
    CHECK_EQ_INT(srv_s3_change_confirm(s3->store, s3->names, s3->buckets, &stored, name, key),
                 SRV_S3_NONE);
    CHECK_ERR(srv_s3_bucket_doc_delete(s3->store, name, closing), GYRE_CHANGED);
    CHECK_EQ_INT(ask_status(&p.b, SRV_HEAD, "/bucket", NULL), 200);
    CHECK(srv_s3_bucket_is_undisturbed(s3->buckets, stored.bucket));
    srv_s3_facts_release(doc.facts);
    srv_s3_bucket_release(stored.bucket);
    pair_close(&p);
}

/* Who says that a bucket is being looked through may die before it says anything else. */
TEST(a_removal_that_was_cut_short_leaves_a_bucket_like_any_other)
{
    struct srv_str name = srv_s3_str("bucket");
    struct srv_s3_bucket_doc doc;
    struct pair p;

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_OK(srv_s3_bucket_doc_get(p.a.store, name, &doc));
    uint64_t serial = doc.serial;
    doc.is_closing = true;
    CHECK_OK(srv_s3_bucket_doc_put(p.a.store, name, &doc, serial, &serial));
    srv_s3_facts_release(doc.facts);
    CHECK_EQ_INT(put_status(&p.b, "/bucket/k", "x", 1, NULL), 200);
    CHECK_OK(srv_s3_bucket_doc_get(p.a.store, name, &doc));
    CHECK(!doc.is_closing);
    srv_s3_facts_release(doc.facts);
    CHECK_EQ_INT(ask_status(&p.a, SRV_DELETE, "/bucket", NULL), 409);
    CHECK_EQ_INT(ask_status(&p.a, SRV_DELETE, "/bucket/k", NULL), 204);
    CHECK_EQ_INT(ask_status(&p.b, SRV_DELETE, "/bucket", NULL), 204);
    pair_close(&p);
}

/* ---- Uploads ---- */

TEST(uploads_do_not_keep_a_bucket_and_end_with_it)
{
    struct srv_exchange ex;
    struct pair p;
    char target[128];

    pair_open(&p);
    make_bucket(&p.a, "/bucket");
    CHECK_EQ_INT(ask(&p.a, &ex, SRV_POST, "/bucket/k?uploads", NULL), 200);
    const char *id = strstr((const char *)ex.out, "<UploadId>");
    CHECK(id != NULL);
    snprintf(target, sizeof target, "/bucket/k?partNumber=1&uploadId=%.32s", id + 10);
    fake_fini(&ex);
    CHECK_EQ_INT(put_status(&p.a, target, "part", 4, NULL), 200);
    CHECK_EQ_INT(ask_status(&p.a, SRV_DELETE, "/bucket", NULL), 204);
    CHECK_EQ_INT(put(&p.a, &ex, target, "part", 4, NULL), 404);
    CHECK(has_code(&ex, "NoSuchBucket"));
    fake_fini(&ex);
    make_bucket(&p.b, "/bucket");
    CHECK_EQ_INT(put(&p.a, &ex, target, "part", 4, NULL), 404);
    CHECK(has_code(&ex, "NoSuchUpload"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&p.b, &ex, SRV_GET, "/bucket?uploads", NULL), 200);
    CHECK(strstr((const char *)ex.out, "<UploadId>") == NULL);
    fake_fini(&ex);
    pair_close(&p);
}
