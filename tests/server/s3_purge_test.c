/* PURGE of one object, a folder, a bucket and a tag; what caches say of themselves. */
#include "tests/server/s3_fixture.h"

#include "tests/harness/test.h"

static void store(struct fixture *f, const char *target, const char *field, const char *value)
{
    CHECK_EQ_INT(put_status(f, target, "x", 1, FIELDS(field, value)), 200);
}

static bool lists(struct fixture *f, const char *target, const char *key)
{
    struct srv_exchange ex;
    char element[100];

    snprintf(element, sizeof element, "<Key>%s</Key>", key);
    CHECK_EQ_INT(ask(f, &ex, SRV_GET, target, NULL), 200);
    bool found = strstr((const char *)ex.out, element) != NULL;
    fake_fini(&ex);
    return found;
}

static void fill(struct fixture *f)
{
    make_bucket(f, "/bucket");
    make_bucket(f, "/other");
    store(f, "/bucket/top", "surrogate-key", "red  blue");
    store(f, "/bucket/a/1", "surrogate-key", "red");
    store(f, "/bucket/a/b/2", "cache-tag", "blue, a tag");
    store(f, "/bucket/ab/3", "content-type", "text/plain");
    store(f, "/other/a/1", "surrogate-key", "red");
}

struct group {
    const char *target, *field, *value;
    const char *gone; /* of "top", "a/1", "a/b/2", "ab/3" and the other bucket's "a/1": + or - */
};

static const struct group groups[] = {
    {"/bucket?prefix=a/", NULL, NULL, "+--++"},
    {"/bucket?prefix=a%2Fb%2F", NULL, NULL, "++-++"},
    {"/bucket?prefix=none/", NULL, NULL, "+++++"},
    {"/bucket?prefix=&confirm=bucket", NULL, NULL, "----+"},
    {"/bucket?tag=red", NULL, NULL, "--+++"},
    {"/bucket?tag=a+tag", NULL, NULL, "++-++"},
    {"/bucket?tag=red&tag=blue", NULL, NULL, "---++"},
    {"/bucket", "surrogate-key", "blue", "-+-++"},
    {"/bucket", "cache-tag", "a tag,none", "++-++"},
};

static void check_group(const struct group *group)
{
    static const char *const targets[] = {"/bucket/top", "/bucket/a/1", "/bucket/a/b/2",
                                          "/bucket/ab/3", "/other/a/1"};
    struct fixture f;

    fixture_init(&f);
    fill(&f);
    CHECK(lists(&f, "/bucket?list-type=2", "a/1"));
    CHECK_MSG(ask_status(&f, SRV_PURGE, group->target,
                         group->field == NULL ? NULL : FIELDS(group->field, group->value)) == 200,
              "%s", group->target);
    for (size_t i = 0; i < 5; i++) {
        bool stays = group->gone[i] == '+';
        const char *list = i < 4 ? "/bucket?list-type=2" : "/other?list-type=2";
        const char *key = strchr(targets[i] + 1, '/') + 1;
        CHECK_MSG(ask_status(&f, SRV_GET, targets[i], NULL) == (stays ? 200 : 404), "%s: %s",
                  group->target, targets[i]);
        CHECK_MSG(lists(&f, list, key) == stays, "%s: %s in the list", group->target, key);
    }
    store(&f, "/bucket/a/b/2", "surrogate-key", "red blue");
    CHECK_MSG(ask_status(&f, SRV_GET, "/bucket/a/b/2", NULL) == 200, "%s: stored again",
              group->target);
    fixture_close(&f);
}

TEST(groups_are_purged_and_no_others)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        check_group(&groups[i]);
}

TEST(what_would_purge_too_much_or_nothing_is_refused)
{
    static const struct {
        const char *target;
        int status;
        const char *code;
    } rows[] = {
        {"/bucket", 400, "InvalidRequest"},
        {"/bucket?prefix", 400, "InvalidRequest"},
        {"/bucket?prefix=", 400, "InvalidRequest"},
        {"/bucket?prefix=&confirm=other", 400, "InvalidRequest"},
        {"/bucket?prefix=&confirm=", 400, "InvalidRequest"},
        {"/bucket?prefix=a", 400, "InvalidRequest"},
        {"/bucket?prefix=/////////////////", 400, "InvalidRequest"},
        {"/bucket?tag=", 400, "InvalidRequest"},
        {"/bucket?tag", 400, "InvalidRequest"},
        {"/nobucket?prefix=a/", 404, "NoSuchBucket"},
        {"/nobucket/k", 404, "NoSuchBucket"},
        {"/bucket/none", 404, "NoSuchKey"},
        {"/", 405, "MethodNotAllowed"},
    };
    struct srv_exchange ex;
    struct fixture f;

    fixture_init(&f);
    fill(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_MSG(ask(&f, &ex, SRV_PURGE, rows[i].target, NULL) == rows[i].status &&
                      has_code(&ex, rows[i].code),
                  "%s: %d", rows[i].target, ex.status);
        fake_fini(&ex);
    }
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/a/1", NULL), 200);
    fixture_close(&f);
}

TEST(one_object_is_purged_and_an_emptied_bucket_can_go)
{
    struct fixture f;

    fixture_init(&f);
    fill(&f);
    CHECK_EQ_INT(ask_status(&f, SRV_PURGE, "/bucket/top", NULL), 200);
    CHECK_EQ_INT(ask_status(&f, SRV_PURGE, "/bucket/top", NULL), 404);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/top", NULL), 404);
    CHECK(!lists(&f, "/bucket?list-type=2", "top"));
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 409);
    CHECK_EQ_INT(ask_status(&f, SRV_PURGE, "/bucket?prefix=&confirm=bucket", NULL), 200);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 204);
    fixture_close(&f);
}

TEST(a_copy_has_the_tags_of_its_source)
{
    struct fixture f;

    fixture_init(&f);
    fill(&f);
    CHECK_EQ_INT(
        ask_status(&f, SRV_PUT, "/bucket/copy", FIELDS("x-amz-copy-source", "/bucket/top")), 200);
    CHECK_EQ_INT(ask_status(&f, SRV_PURGE, "/bucket?tag=blue", NULL), 200);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/copy", NULL), 404);
    fixture_close(&f);
}

TEST(too_many_tags_are_refused)
{
    char tags[600] = "";
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (int i = 0; i < 16; i++)
        snprintf(tags + strlen(tags), sizeof tags - strlen(tags), "tag-%d ", i);
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "x", 1, FIELDS("surrogate-key", tags)), 200);
    snprintf(tags + strlen(tags), sizeof tags - strlen(tags), "more");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "x", 1, FIELDS("surrogate-key", tags)), 400);
    fixture_close(&f);
}

TEST(hits_and_misses_say_what_they_are)
{
    struct srv_exchange ex;
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/brief");
    make_bucket(&f, "/bucket");
    store(&f, "/brief/k", "x-amz-meta-ttl", "1000");
    store(&f, "/bucket/k", "x-amz-meta-ttl", "1000");
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k", NULL), 200);
    CHECK_EQ_STR(fake_get(&ex, "cache-status"), "gyre; hit");
    CHECK(fake_get(&ex, "age") != NULL && strspn(fake_get(&ex, "age"), "0123456789") > 0);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_HEAD, "/brief/k", NULL), 200);
    CHECK(strncmp(fake_get(&ex, "cache-status"), "gyre; hit; ttl=", 15) == 0);
    int ttl = atoi(fake_get(&ex, "cache-status") + 15);
    CHECK(ttl > 900 && ttl <= 1000);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k", FIELDS("if-none-match", "*")), 304);
    CHECK_EQ_STR(fake_get(&ex, "cache-status"), "gyre; hit");
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/none", NULL), 404);
    CHECK_EQ_STR(fake_get(&ex, "cache-status"), "gyre; detail=miss");
    fake_fini(&ex);
    CHECK_EQ_INT(
        ask(&f, &ex, SRV_GET, "/bucket/none", FIELDS("cache-control", "max-age=0, Only-If-Cached")),
        504);
    CHECK(has_code(&ex, "NotCached"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/k", FIELDS("cache-control", "only-if-cached")),
                 200);
    fixture_close(&f);
}
