/* What is kept beside an object changes in place: its bytes and the parts it came in stay. */
#include "tests/server/s3_fixture.h"

#include "tests/harness/test.h"

enum { FIRST_LEN = 5 << 20, LAST_LEN = 1000 };

#define TAGGING "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"

static int send(struct fixture *f, struct srv_exchange *ex, enum srv_method method,
                const char *target, const char *body)
{
    fake_init(ex, &f->loop, method, target);
    fake_body(ex, body, strlen(body));
    run(f, ex);
    return ex->status;
}

static int send_status(struct fixture *f, enum srv_method method, const char *target,
                       const char *body)
{
    struct srv_exchange ex;
    int status = send(f, &ex, method, target, body);

    fake_fini(&ex);
    return status;
}

static void copy_between(const char *text, const char *before, const char *after, char *out,
                         size_t size)
{
    const char *begin = strstr(text, before);
    CHECK(begin != NULL);
    begin += strlen(before);
    const char *end = strstr(begin, after);
    CHECK(end != NULL && (size_t)(end - begin) < size);
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = '\0';
}

static void put_part(struct fixture *f, const char *target, const char *id, int number, size_t len,
                     char etag_out[80])
{
    struct srv_exchange ex;
    char part[200], *body = malloc(len);

    CHECK(body != NULL);
    memset(body, 'a' + number, len);
    snprintf(part, sizeof part, "%s?partNumber=%d&uploadId=%s", target, number, id);
    CHECK_EQ_INT(put(f, &ex, part, body, len, NULL), 200);
    snprintf(etag_out, 80, "%s", fake_get(&ex, "etag"));
    fake_fini(&ex);
    free(body);
}

/* Stores an object of two parts. */
static void upload(struct fixture *f, const char *target, const char *const *fields)
{
    struct srv_exchange ex;
    char begin[120], id[80], etags[2][80], list[600], complete[200];

    snprintf(begin, sizeof begin, "%s?uploads", target);
    CHECK_EQ_INT(ask(f, &ex, SRV_POST, begin, fields), 200);
    copy_between((const char *)ex.out, "<UploadId>", "</UploadId>", id, sizeof id);
    fake_fini(&ex);
    put_part(f, target, id, 1, FIRST_LEN, etags[0]);
    put_part(f, target, id, 2, LAST_LEN, etags[1]);
    snprintf(list, sizeof list,
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
             "<Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>",
             etags[0], etags[1]);
    snprintf(complete, sizeof complete, "%s?uploadId=%s", target, id);
    CHECK_EQ_INT(send_status(f, SRV_POST, complete, list), 200);
}

/* Whether the object is of two parts, and says so. */
static void check_parts(struct fixture *f, const char *target)
{
    struct srv_exchange ex;
    char query[120];

    snprintf(query, sizeof query, "%s?partNumber=2", target);
    CHECK_EQ_INT(ask(f, &ex, SRV_GET, query, NULL), 206);
    CHECK_EQ_U64(ex.out_len, LAST_LEN);
    CHECK(ex.out[0] == 'c');
    CHECK_EQ_STR(fake_get(&ex, "x-amz-mp-parts-count"), "2");
    fake_fini(&ex);
    snprintf(query, sizeof query, "%s?attributes", target);
    CHECK_EQ_INT(ask(f, &ex, SRV_GET, query, FIELDS("x-amz-object-attributes", "ObjectParts,ETag")),
                 200);
    CHECK(strstr((const char *)ex.out, "PartsCount>2<") != NULL ||
          strstr((const char *)ex.out, "TotalPartsCount>2<") != NULL);
    fake_fini(&ex);
}

TEST(tags_and_lists_of_an_uploaded_object_leave_its_parts)
{
    struct fixture f;
    struct srv_exchange ex;
    char before[80], stored[40];

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    upload(&f, "/bucket/k", NULL);
    check_parts(&f, "/bucket/k");
    CHECK_EQ_INT(ask(&f, &ex, SRV_HEAD, "/bucket/k", NULL), 200);
    snprintf(before, sizeof before, "%s", fake_get(&ex, "etag"));
    snprintf(stored, sizeof stored, "%s", fake_get(&ex, "last-modified"));
    fake_fini(&ex);

    CHECK_EQ_INT(send_status(&f, SRV_PUT, "/bucket/k?tagging", TAGGING), 200);
    check_parts(&f, "/bucket/k");
    CHECK_EQ_INT(ask_status(&f, SRV_PUT, "/bucket/k?acl", FIELDS("x-amz-acl", "public-read")), 200);
    check_parts(&f, "/bucket/k");
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k?tagging", NULL), 200);
    CHECK(strstr((const char *)ex.out, "<Key>a</Key>") != NULL);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/k?tagging", NULL), 204);
    check_parts(&f, "/bucket/k");
    CHECK_EQ_INT(ask(&f, &ex, SRV_HEAD, "/bucket/k", NULL), 200);
    CHECK_EQ_STR(fake_get(&ex, "etag"), before);
    CHECK_EQ_STR(fake_get(&ex, "last-modified"), stored);
    CHECK(fake_get(&ex, "x-amz-tagging-count") == NULL);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket?list-type=2", NULL), 200);
    CHECK(strstr((const char *)ex.out, "<Key>k</Key>") != NULL);
    fake_fini(&ex);
    fixture_close(&f);
}

TEST(what_is_not_there_cannot_be_tagged)
{
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(send_status(&f, SRV_PUT, "/bucket/none?tagging", TAGGING), 404);
    CHECK_EQ_INT(send_status(&f, SRV_PUT, "/nobucket/k?tagging", TAGGING), 404);
    fixture_close(&f);
}

TEST(an_uploaded_object_expires_by_its_buckets_rule)
{
    struct fixture f;
    struct gyre_handle *handle;
    struct iovec parts[2] = {{(void *)(uintptr_t) "brief", 5}, {(void *)(uintptr_t) "k", 1}};
    struct gyre_key key;

    fixture_init(&f);
    make_bucket(&f, "/brief");
    upload(&f, "/brief/k", FIELDS("x-amz-meta-ttl", "1000"));
    CHECK_OK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &key));
    CHECK_OK(gyre_get(f.store, &key, 1, GYRE_GET_HEAD, &handle));
    const struct gyre_info *info = gyre_handle_info(handle);
    CHECK(info->expires >= info->created + 990 && info->expires <= info->created + 1010);
    gyre_release(handle);
    fixture_close(&f);
}
