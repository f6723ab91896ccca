/* Lines of the access log: both forms, nothing secret, nothing that a client could forge. */
#include "server/access_entry.h"

#include <jansson.h>
#include <string.h>

#include "tests/harness/test.h"

static char line[SRV_ACCESS_LINE_MAX + 1];

static struct srv_access_bytes bytes(const char *text)
{
    return (struct srv_access_bytes){text, strlen(text)};
}

static struct srv_access_entry sample(void)
{
    return (struct srv_access_entry){.ended_ms = 784111777123,
                                     .client = "127.0.0.1",
                                     .method = bytes("GET"),
                                     .path = bytes("/b/k"),
                                     .host = bytes("h"),
                                     .agent = bytes("curl/7"),
                                     .version = 11,
                                     .status = 200,
                                     .result = "hit",
                                     .role = "s3",
                                     .operation = "GET_object",
                                     .id = "0123456789ABCDEF",
                                     .bytes_in = 1,
                                     .bytes_out = 4096,
                                     .first_byte_us = 12,
                                     .total_us = 345};
}

static const char *combined(const struct srv_access_entry *entry)
{
    size_t len = srv_access_write(SRV_ACCESS_COMBINED, entry, line, SRV_ACCESS_LINE_MAX);
    CHECK(len > 0);
    line[len] = '\0';
    return line;
}

/* The line as JSON, of which there is one object and a line's end. */
static json_t *json(const struct srv_access_entry *entry)
{
    json_error_t error;
    size_t len = srv_access_write(SRV_ACCESS_JSON, entry, line, SRV_ACCESS_LINE_MAX);
    CHECK(len > 0 && line[len - 1] == '\n' && memchr(line, '\n', len - 1) == NULL);
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    CHECK_MSG(root != NULL, "%s: %.*s", error.text, (int)len, line);
    return root;
}

static const char *text_of(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    CHECK_MSG(text != NULL, "no %s", key);
    return text;
}

TEST(the_combined_form)
{
    struct srv_access_entry entry = sample();
    CHECK_EQ_STR(combined(&entry),
                 "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /b/k HTTP/1.1\" 200 4096 \"-\" "
                 "\"curl/7\" hit 12 345 0123456789ABCDEF -\n");
    entry.is_tls = true;
    entry.version = 20;
    entry.user = "al ice";
    entry.referer = bytes("http://r/");
    CHECK_EQ_STR(combined(&entry), "127.0.0.1 - al ice [06/Nov/1994:08:49:37 +0000] \"GET /b/k "
                                   "HTTP/2.0\" 200 4096 \"http://r/\" \"curl/7\" hit 12 345 "
                                   "0123456789ABCDEF tls\n");
    struct srv_access_entry rejected = {
        .client = "::1", .status = 400, .result = "refused", .id = "-"};
    CHECK_EQ_STR(combined(&rejected),
                 "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\" "
                 "refused 0 0 - -\n");
}

TEST(the_json_form)
{
    struct srv_access_entry entry = sample();
    entry.query = bytes("list-type=2&prefix=a%20b");
    json_t *root = json(&entry);
    CHECK_EQ_STR(text_of(root, "time"), "1994-11-06T08:49:37.123Z");
    CHECK_EQ_STR(text_of(root, "target"), "/b/k?list-type=2&prefix=a%20b");
    CHECK_EQ_STR(text_of(root, "operation"), "get_object");
    CHECK_EQ_INT(json_integer_value(json_object_get(root, "status")), 200);
    CHECK_EQ_INT(json_integer_value(json_object_get(root, "bytes_out")), 4096);
    CHECK(json_is_false(json_object_get(root, "tls")));
    CHECK(json_object_get(root, "user") == NULL && json_object_get(root, "referer") == NULL);
    json_decref(root);
}

TEST(secrets_are_left_out)
{
    static const struct {
        const char *query, *want;
    } rows[] = {
        {"X-Amz-Signature=abc", "X-Amz-Signature=-"},
        {"a=1&X-Amz-Credential=AKIA/x&b=2", "a=1&X-Amz-Credential=-&b=2"},
        {"x-amz-signatur%65=abc&%58-Amz-Security-Token=s",
         "x-amz-signatur%65=-&%58-Amz-Security-Token=-"},
        {"Signature=s%2Fs&AWSAccessKeyId=k&Expires=1", "Signature=-&AWSAccessKeyId=-&Expires=1"},
        {"X-Amz-Signature", "X-Amz-Signature"},
        {"X-Amz-Signature=a=b=c", "X-Amz-Signature=-"},
        {"NotSignature=x", "NotSignature=x"},
        {"&&=&", "&&=&"},
        {"%=1&%5=2&%zz=3", "%=1&%5=2&%zz=3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char target[256], url[256];
        struct srv_access_entry entry = sample();
        entry.query = bytes(rows[i].query);
        snprintf(url, sizeof url, "https://user:pw@host/p@th?%s", rows[i].query);
        entry.referer = bytes(url);
        json_t *root = json(&entry);
        snprintf(target, sizeof target, "/b/k?%s", rows[i].want);
        CHECK_EQ_STR(text_of(root, "target"), target);
        snprintf(target, sizeof target, "https://@host/p@th?%s", rows[i].want);
        CHECK_EQ_STR(text_of(root, "referer"), target);
        json_decref(root);
        snprintf(target, sizeof target, "/b/k?%s HTTP", rows[i].want);
        CHECK(strstr(combined(&entry), target) != NULL && strstr(line, "pw@") == NULL);
    }
}

TEST(what_clients_send_forges_nothing)
{
    struct srv_access_entry entry = sample();
    entry.path = (struct srv_access_bytes){"/\"\\\n\0\x1b\x7f\xc3\xa9", 9};
    entry.agent = bytes("a\r\n\" \",\"status\":1");
    entry.user = "x\ny";
    const char *text = combined(&entry);
    CHECK(strstr(text, "\"GET /\\\"\\\\\\x0a\\x00\\x1b\\x7f\\xc3\\xa9 HTTP/1.1\"") != NULL);
    CHECK(strstr(text, "a\\x0d\\x0a\\\" \\\",\\\"status\\\":1") != NULL);
    CHECK(strchr(text, '\n') == text + strlen(text) - 1);
    json_t *root = json(&entry);
    CHECK_EQ_STR(text_of(root, "user_agent"), "a\r\n\" \",\"status\":1");
    CHECK_EQ_INT(json_integer_value(json_object_get(root, "status")), 200);
    CHECK_EQ_STR(text_of(root, "user"), "x\ny");
    json_decref(root);
}

/* The longest line there can be fits, and less room than that gives nothing rather than a part. */
TEST(lines_are_bounded)
{
    enum { LONG = 64 << 10 };
    static char wild[LONG];
    memset(wild, 1, sizeof wild);
    const struct srv_access_bytes all = {wild, LONG};
    struct srv_access_entry entry = sample();
    entry.method = entry.path = entry.query = entry.host = entry.referer = entry.agent = all;
    json_t *root = json(&entry);
    CHECK(strlen(text_of(root, "target")) < 3 * 4096);
    json_decref(root);
    combined(&entry);
    memcpy(wild, "http://", 7);
    wild[1000] = '?';
    memset(wild + 1001, '&', LONG - 1001);
    root = json(&entry);
    json_decref(root);
    entry = sample();
    size_t len = srv_access_write(SRV_ACCESS_JSON, &entry, line, SRV_ACCESS_LINE_MAX);
    for (size_t room = 1; room <= len; room++)
        CHECK_EQ_U64(srv_access_write(SRV_ACCESS_JSON, &entry, line, room), 0);
    CHECK_EQ_U64(srv_access_write(SRV_ACCESS_JSON, &entry, line, len + 1), len);
}
