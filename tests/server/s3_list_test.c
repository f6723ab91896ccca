/* Parameters of lists, and pages of them against a model that knows nothing of skipping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

#include "server/s3/list_pages.h"
#include "server/s3/list_write.h"

static struct srv_str str_of(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

/* ---- Parameters ---- */

static struct srv_list_query query_of(enum srv_list_kind kind, const char *raw)
{
    struct srv_list_query query;
    const char *message;
    enum srv_s3_code code = srv_list_query_init(&query, kind, str_of(raw), &message);
    CHECK_MSG(code == SRV_S3_NONE, "%s: %s", raw, message != NULL ? message : "");
    return query;
}

static bool is(struct srv_str text, const char *expected)
{
    return text.len == strlen(expected) && memcmp(text.base, expected, text.len) == 0;
}

TEST(parameters_are_decoded_and_bounded)
{
    struct srv_list_query query = query_of(
        SRV_LIST_V1, "prefix=a%2Fb+c&delimiter=%25&marker=%0A&max-keys=7&encoding-type=url&x-id=y");
    CHECK(is(query.prefix, "a/b c") && is(query.delimiter, "%") && is(query.marker, "\n"));
    CHECK(query.max_keys == 7 && query.encodes && query.fetches_owner && is(query.from, "\n"));
    CHECK(query.token.base == NULL);
    srv_list_query_fini(&query);
    query = query_of(SRV_LIST_V2, "list-type=2&delimiter=&prefix=&start-after=k&fetch-owner=true");
    CHECK(query.delimiter.len == 0 && is(query.from, "k") && query.fetches_owner);
    srv_list_query_fini(&query);
    query = query_of(SRV_LIST_V2, "list-type=2&continuation-token=&start-after=k");
    CHECK(query.token.base != NULL && query.token.len == 0 && is(query.from, "k"));
    CHECK(!query.fetches_owner && query.max_keys == 1000);
    srv_list_query_fini(&query);
    query = query_of(SRV_LIST_VERSIONS, "versions&key-marker=k&version-id-marker=null");
    CHECK(is(query.from, "k") && is(query.version_marker, "null") && query.fetches_owner);
    srv_list_query_fini(&query);
    static const struct {
        const char *raw;
        size_t max_keys;
    } numbers[] = {{"max-keys=0", 0},
                   {"max-keys=", 1000},
                   {"max-keys", 1000},
                   {"max-keys=999", 999},
                   {"max-keys=1000", 1000},
                   {"max-keys=1001", 1000},
                   {"max-keys=2147483647", 1000}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        query = query_of(SRV_LIST_V1, numbers[i].raw);
        CHECK_EQ_U64(query.max_keys, numbers[i].max_keys);
        srv_list_query_fini(&query);
    }
}

TEST(senseless_parameters_are_refused)
{
    static const struct {
        enum srv_list_kind kind;
        const char *raw;
    } rows[] = {
        {SRV_LIST_V1, "max-keys=blah"},
        {SRV_LIST_V1, "max-keys=-1"},
        {SRV_LIST_V1, "max-keys=2147483648"},
        {SRV_LIST_V1, "max-keys=1e3"},
        {SRV_LIST_V1, "prefix=%4"},
        {SRV_LIST_V1, "encoding-type=base64"},
        {SRV_LIST_V2, "continuation-token=!"},
        {SRV_LIST_V2, "continuation-token=A"},
        {SRV_LIST_V2, "continuation-token=AAAA"},
        {SRV_LIST_V2, "continuation-token=AWJ"}, /* bits left over */
        {SRV_LIST_VERSIONS, "version-id-marker=null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_list_query query;
        const char *message;
        CHECK_MSG(srv_list_query_init(&query, rows[i].kind, str_of(rows[i].raw), &message) ==
                          SRV_S3_INVALID_ARGUMENT &&
                      message != NULL,
                  "%s", rows[i].raw);
    }
}

TEST(tokens_come_back_as_they_were)
{
    struct test_rng rng = {test_seed()};
    char raw[64 + SRV_LIST_TOKEN_MAX], last[SRV_S3_KEY_MAX];
    for (size_t len = 0; len <= SRV_S3_KEY_MAX; len += len < 20 ? 1 : 251) {
        test_rng_fill(&rng, last, len);
        size_t n = (size_t)snprintf(raw, sizeof raw, "continuation-token=");
        n += srv_list_token_write((struct srv_str){last, len}, len % 2 == 0, raw + n);
        CHECK(n < sizeof raw);
        raw[n] = 0;
        struct srv_list_query query = query_of(SRV_LIST_V2, raw);
        CHECK(query.from.len == len && memcmp(query.from.base, last, len) == 0);
        CHECK_EQ_INT(query.is_exact, len % 2 == 0);
        srv_list_query_fini(&query);
    }
}

TEST(names_are_percent_encoded_as_s3_does)
{
    char out[64];
    static const char text[] = "foo+1/b r\xc3\xa9%~.\x01";
    size_t len = srv_list_encode((struct srv_str){text, sizeof text - 1}, out);
    CHECK_EQ_MEM(out, "foo%2B1/b%20r%C3%A9%25~.%01", len);
    CHECK_EQ_U64(len, strlen("foo%2B1/b%20r%C3%A9%25~.%01"));
}

/* ---- Pages ---- */

enum { KEYS_MAX = 200, TEXT_MAX = 16384 };

/* Keys in order, and how they are read: some are there no more, and a step may find too many of
 * those. */
struct shelf {
    size_t n, at, steps;
    const char *keys[KEYS_MAX];
    struct srv_name_row row;
    size_t spent_every; /* 0: never */
};

static int compare(struct srv_str a, struct srv_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.base, b.base, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static bool shelf_seek(void *data, struct srv_str key, bool is_after)
{
    struct shelf *shelf = data;
    for (shelf->at = 0; shelf->at < shelf->n; shelf->at++) {
        int order = compare(str_of(shelf->keys[shelf->at]), key);
        if (order > 0 || (order == 0 && !is_after))
            break;
    }
    return true;
}

static enum srv_list_step shelf_next(void *data, const struct srv_name_row **row_out,
                                     struct srv_str *key_out)
{
    struct shelf *shelf = data;
    if (shelf->at == shelf->n)
        return SRV_LIST_END;
    *row_out = &shelf->row;
    *key_out = str_of(shelf->keys[shelf->at]);
    shelf->steps++;
    if (shelf->spent_every != 0 && shelf->steps % shelf->spent_every == 0)
        return SRV_LIST_SPENT; /* "the one at hand was not there" */
    shelf->at++;
    return SRV_LIST_ROW;
}

struct text {
    size_t len;
    char bytes[TEXT_MAX];
};

static void add(struct text *text, const char *mark, struct srv_str name)
{
    CHECK(text->len + name.len + 4 < TEXT_MAX);
    text->len += (size_t)snprintf(text->bytes + text->len, TEXT_MAX - text->len, "%s%.*s ", mark,
                                  (int)name.len, name.base);
}

static void add_key(void *data, struct srv_str key, const struct srv_name_row *row)
{
    (void)row;
    add(data, "", key);
}

static void add_prefix(void *data, struct srv_str prefix)
{
    add(data, "@", prefix);
}

static struct srv_list_page page_of(struct shelf *shelf, const struct srv_list_query *query,
                                    struct text *text)
{
    const struct srv_list_rows rows = {shelf, shelf_seek, shelf_next};
    const struct srv_list_sink sink = {text, add_key, add_prefix};
    struct srv_list_page page;
    srv_list_page(query, &rows, &sink, &page);
    CHECK(!page.is_failed);
    return page;
}

/* The entries of a list as its definition says: every key that begins with the prefix, or what it
 * is rolled up into, once each. */
static void model(const struct shelf *shelf, const struct srv_list_query *query, struct text *text)
{
    struct srv_str last = {NULL, 0};
    for (size_t i = 0; i < shelf->n; i++) {
        struct srv_str key = str_of(shelf->keys[i]);
        if (key.len < query->prefix.len ||
            memcmp(key.base, query->prefix.base, query->prefix.len) != 0)
            continue;
        const char *at = query->delimiter.len == 0
                             ? NULL
                             : strstr(key.base + query->prefix.len, query->delimiter.base);
        if (at == NULL) {
            add(text, "", key);
            continue;
        }
        struct srv_str group = {key.base, (size_t)(at - key.base) + query->delimiter.len};
        if (last.base == NULL || compare(last, group) != 0)
            add(text, "@", group);
        last = group;
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void fill_shelf(struct shelf *shelf, struct test_rng *rng)
{
    static char bytes[KEYS_MAX][12];
    size_t n = test_rng_below(rng, KEYS_MAX);
    *shelf = (struct shelf){.n = 0};
    for (size_t i = 0; i < n; i++) {
        size_t len = 1 + test_rng_below(rng, 8);
        for (size_t k = 0; k < len; k++)
            bytes[i][k] = "ab/-\xff"[test_rng_below(rng, 5)];
        bytes[i][len] = 0;
        shelf->keys[i] = bytes[i];
    }
    qsort(shelf->keys, n, sizeof shelf->keys[0], by_bytes);
    for (size_t i = 0; i < n; i++)
        if (shelf->n == 0 || strcmp(shelf->keys[shelf->n - 1], shelf->keys[i]) != 0)
            shelf->keys[shelf->n++] = shelf->keys[i];
}

/* Goes from page to page as clients do, by tokens or by markers. */
static void list_all(struct shelf *shelf, struct srv_list_query *query, bool by_marker,
                     struct text *text)
{
    struct srv_list_page page;
    char raw[64 + SRV_LIST_TOKEN_MAX];
    for (size_t pages = 0;; pages++) {
        page = page_of(shelf, query, text);
        CHECK(pages < 1000 && page.n_keys + page.n_prefixes <= query->max_keys);
        if (!page.is_truncated)
            return;
        if (by_marker) {
            query->from = (struct srv_str){memcpy(raw, page.last, page.last_len), page.last_len};
            continue;
        }
        size_t n = (size_t)snprintf(raw, sizeof raw, "continuation-token=");
        n += srv_list_token_write((struct srv_str){page.last, page.last_len}, page.is_exact,
                                  raw + n);
        raw[n] = 0;
        struct srv_list_query next = query_of(SRV_LIST_V2, raw);
        next.prefix = query->prefix;
        next.delimiter = query->delimiter;
        next.max_keys = query->max_keys;
        srv_list_query_fini(query);
        *query = next;
    }
}

TEST(pages_add_up_to_the_whole_list_whatever_prefix_delimiter_and_length)
{
    static const char *const prefixes[] = {"", "a", "a/", "/", "ab/", "\xff", "zz", "a-b"};
    static const char *const delimiters[] = {"", "/", "a", "ab", "-/", "\xff"};
    struct test_rng rng = {test_seed()};
    static struct shelf shelf;
    for (unsigned i = 0; i < (test_full() ? 200000 : 4000); i++) {
        struct text expected = {.len = 0}, got = {.len = 0};
        fill_shelf(&shelf, &rng);
        struct srv_list_query query = query_of(SRV_LIST_V2, "");
        query.prefix = str_of(prefixes[test_rng_below(&rng, 8)]);
        query.delimiter = str_of(delimiters[test_rng_below(&rng, 6)]);
        query.max_keys = 1 + test_rng_below(&rng, 20);
        model(&shelf, &query, &expected);
        list_all(&shelf, &query, i % 2 == 0, &got);
        srv_list_query_fini(&query);
        CHECK_EQ_STR(got.bytes, expected.bytes);
    }
}

/* A page that had to stop between two entries goes on where it stopped. */
TEST(tokens_tell_how_far_a_page_got)
{
    struct test_rng rng = {test_seed()};
    static struct shelf shelf;
    for (unsigned i = 0; i < 1000; i++) {
        struct text got = {.len = 0};
        fill_shelf(&shelf, &rng);
        shelf.spent_every = 2 + test_rng_below(&rng, 5);
        struct srv_list_query query = query_of(SRV_LIST_V2, "");
        query.delimiter = str_of(i % 2 == 0 ? "" : "/");
        query.max_keys = 1000;
        list_all(&shelf, &query, false, &got);
        srv_list_query_fini(&query);
        /* What was passed over was not there; the rest is listed once each, in order. */
        char *rest = got.bytes, last[32] = "";
        for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
            word += word[0] == '@';
            CHECK(strcmp(last, word) < 0);
            snprintf(last, sizeof last, "%s", word);
        }
    }
}

TEST(a_group_costs_one_step_however_many_names_it_stands_for)
{
    static char bytes[KEYS_MAX][12];
    static struct shelf shelf;
    for (size_t i = 0; i < KEYS_MAX; i++) {
        snprintf(bytes[i], sizeof bytes[i], "%zu/%03zu", i / 100, i);
        shelf.keys[shelf.n++] = bytes[i];
    }
    struct text text = {.len = 0};
    struct srv_list_query query = query_of(SRV_LIST_V1, "delimiter=/");
    struct srv_list_page page = page_of(&shelf, &query, &text);
    CHECK_EQ_STR(text.bytes, "@0/ @1/ ");
    CHECK(!page.is_truncated && page.n_prefixes == 2 && shelf.steps == 2);
    srv_list_query_fini(&query);
}

TEST(markers_inside_a_group_leave_it_out)
{
    static struct shelf shelf = {
        .n = 5, .keys = {"asdf", "boo/bar", "boo/baz/xyzzy", "cquux/bla", "cquux/thud"}};
    static const struct {
        const char *raw, *expected, *last;
    } rows[] = {
        {"delimiter=/&max-keys=1", "asdf ", "asdf"},
        {"delimiter=/&max-keys=1&marker=asdf", "@boo/ ", "boo/"},
        {"delimiter=/&max-keys=1&marker=boo/", "@cquux/ ", NULL},
        {"delimiter=/&marker=boo/bar", "@cquux/ ", NULL},
        {"delimiter=/&max-keys=2", "asdf @boo/ ", "boo/"},
        {"delimiter=/&prefix=boo/&max-keys=1", "boo/bar ", "boo/bar"},
        {"delimiter=/&prefix=boo/&max-keys=1&marker=boo/bar", "@boo/baz/ ", NULL},
        {"marker=boo/bar", "boo/baz/xyzzy cquux/bla cquux/thud ", NULL},
        {"marker=zz", "", NULL},
        {"prefix=boo&marker=zz", "", NULL},
        {"prefix=boo&marker=a", "boo/bar boo/baz/xyzzy ", NULL},
        {"max-keys=0", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct text text = {.len = 0};
        struct srv_list_query query = query_of(SRV_LIST_V1, rows[i].raw);
        struct srv_list_page page = page_of(&shelf, &query, &text);
        CHECK_MSG(strcmp(text.bytes, rows[i].expected) == 0, "%s: %s", rows[i].raw, text.bytes);
        CHECK_MSG(page.is_truncated == (rows[i].last != NULL), "%s", rows[i].raw);
        if (rows[i].last != NULL)
            CHECK(is((struct srv_str){page.last, page.last_len}, rows[i].last));
        srv_list_query_fini(&query);
    }
}

/* ---- Documents ---- */

TEST(long_names_of_any_bytes_make_a_document)
{
    static struct shelf shelf = {.n = 2, .keys = {"a\x01<&>\"", "b/c"}};
    static const char *const kinds[] = {"ListBucketResult", "ListBucketResult",
                                        "ListVersionsResult"};
    shelf.row.etag_len = 3;
    memcpy(shelf.row.etag, "tag", 3);
    for (int kind = SRV_LIST_V1; kind <= SRV_LIST_VERSIONS; kind++) {
        struct srv_list_query query = query_of((enum srv_list_kind)kind, "delimiter=/&max-keys=2");
        struct srv_list_writer writer;
        struct srv_list_page page;
        struct srv_xml xml;
        srv_list_writer_init(&writer, &query, str_of("bucket"));
        const struct srv_list_rows rows = {&shelf, shelf_seek, shelf_next};
        const struct srv_list_sink sink = srv_list_writer_sink(&writer);
        srv_list_page(&query, &rows, &sink, &page);
        srv_list_writer_finish(&writer, &page, &xml);
        struct srv_str document = srv_xml_view(&xml);
        CHECK(document.base != NULL);
        char *text = calloc(1, document.len + 1);
        CHECK(text != NULL);
        memcpy(text, document.base, document.len);
        CHECK(strstr(text, kinds[kind]) != NULL);
        CHECK(strstr(text, "<Key>a&#x1;&lt;&amp;&gt;&quot;</Key>") != NULL);
        CHECK(strstr(text, "<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>") != NULL);
        CHECK((strstr(text, "<KeyCount>2</KeyCount>") != NULL) == (kind == SRV_LIST_V2));
        CHECK((strstr(text, "<Owner>") != NULL) == (kind != SRV_LIST_V2));
        CHECK((strstr(text, "<VersionId>null</VersionId>") != NULL) == (kind == SRV_LIST_VERSIONS));
        free(text);
        srv_xml_fini(&xml);
        srv_list_writer_fini(&writer);
        srv_list_query_fini(&query);
    }
}
