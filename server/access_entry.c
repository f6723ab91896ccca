#include "server/access_entry.h"

#include <string.h>
#include <strings.h>

#include "server/http_date.h"

/* Bytes of a client that are shown: of a path, which may be a key of S3 with every byte escaped,
 * and of anything else. */
enum { PATH_MAX_LEN = 4096, FIELD_MAX_LEN = 1024, NAME_MAX_LEN = 64 };

/* Where a line grows; `at` stops at `end`, and the line is then not used. */
struct line {
    char *at;
    char *end;
    bool is_json;
};

static void put(struct line *line, const char *bytes, size_t len)
{
    size_t room = (size_t)(line->end - line->at);
    if (len > room)
        len = room;
    memcpy(line->at, bytes, len);
    line->at += len;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void put_decimal(struct line *line, uint64_t n)
{
    char digits[20];
    size_t len = 0;
    do {
        digits[sizeof digits - ++len] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put(line, digits + sizeof digits - len, len);
}

/* Bytes of a client: printable ASCII as it is, all else as \xHH or, in JSON, \u00HH, where a byte
 * stands for the character of that number. */
static void put_escaped(struct line *line, const char *bytes, size_t len, size_t max)
{
    static const char hex[] = "0123456789abcdef";
    size_t shown = len > max ? max : len;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
            put(line, bytes + i, 1);
        } else if (c == '"' || c == '\\') {
            const char pair[2] = {'\\', (char)c};
            put(line, pair, 2);
        } else {
            const char code[2] = {hex[c >> 4], hex[c & 15]};
            put_text(line, line->is_json ? "\\u00" : "\\x");
            put(line, code, 2);
        }
    }
    if (shown < len)
        put_text(line, "...");
}

/* ---- Secrets ---- */

/* Parameters whose values let somebody else in, or name who may. */
static const char *const secrets[] = {
    "x-amz-signature", "x-amz-credential", "x-amz-security-token",
    "signature",       "awsaccesskeyid",   "access_token",
    "token",           "password",
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a parameter's name is secret however it is spelt. */
static bool is_secret(const char *name, size_t len)
{
    char plain[NAME_MAX_LEN];
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (c == '%' && len - i > 2 && hex_value(name[i + 1]) >= 0 && hex_value(name[i + 2]) >= 0) {
            c = (char)(hex_value(name[i + 1]) << 4 | hex_value(name[i + 2]));
            i += 2;
        }
        if (n == sizeof plain - 1)
            return false;
        plain[n++] = c;
    }
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (strcasecmp(plain, secrets[i]) == 0)
            return true;
    return false;
}

/* A query whose secret values are left out. */
static void put_query(struct line *line, const char *query, size_t len)
{
    size_t at = 0;
    while (at < len) {
        const char *part = query + at;
        const char *amp = memchr(part, '&', len - at);
        size_t part_len = amp != NULL ? (size_t)(amp - part) : len - at;
        const char *equals = memchr(part, '=', part_len);
        if (at >= FIELD_MAX_LEN) {
            put_text(line, "...");
            return;
        }
        size_t max = FIELD_MAX_LEN - at;
        if (equals != NULL && is_secret(part, (size_t)(equals - part))) {
            put_escaped(line, part, (size_t)(equals - part), max);
            put_text(line, "=-");
        } else {
            put_escaped(line, part, part_len, max);
        }
        at += part_len;
        if (amp != NULL) {
            put(line, "&", 1);
            at++;
        }
    }
}

/* A target or URL; userinfo of the latter is nobody's business either. */
static void put_url(struct line *line, struct srv_access_bytes url)
{
    if (url.len == 0)
        return;
    const char *mark = memchr(url.base, '?', url.len);
    size_t len = mark != NULL ? (size_t)(mark - url.base) : url.len;
    const char *scheme = memmem(url.base, len, "://", 3);
    const char *host = scheme != NULL ? scheme + 3 : url.base;
    size_t rest = len - (size_t)(host - url.base);
    const char *slash = memchr(host, '/', rest);
    size_t authority = slash != NULL ? (size_t)(slash - host) : rest;
    const char *at = scheme != NULL ? memrchr(host, '@', authority) : NULL;
    if (at != NULL) {
        put_escaped(line, url.base, (size_t)(host - url.base), FIELD_MAX_LEN);
        put_escaped(line, at, len - (size_t)(at - url.base), FIELD_MAX_LEN);
    } else {
        put_escaped(line, url.base, len, FIELD_MAX_LEN);
    }
    if (mark != NULL) {
        put(line, "?", 1);
        put_query(line, mark + 1, url.len - len - 1);
    }
}

static void put_target(struct line *line, const struct srv_access_entry *entry)
{
    put_escaped(line, entry->path.base, entry->path.len, PATH_MAX_LEN);
    if (entry->query.len > 0) {
        put(line, "?", 1);
        put_query(line, entry->query.base, entry->query.len);
    }
}

static const char *protocol(int version)
{
    return version == 20 ? "HTTP/2.0" : version == 11 ? "HTTP/1.1" : "HTTP/1.0";
}

/* ---- The two forms ---- */

static void put_quoted_or_dash(struct line *line, struct srv_access_bytes bytes)
{
    put_text(line, " \"");
    if (bytes.len == 0)
        put(line, "-", 1);
    put_url(line, bytes);
    put(line, "\"", 1);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" as "06/Nov/1994:08:49:37 +0000". */
static void put_date(struct line *line, const char *date)
{
    put(line, date + 5, 2);
    put(line, "/", 1);
    put(line, date + 8, 3);
    put(line, "/", 1);
    put(line, date + 12, 4);
    put(line, ":", 1);
    put(line, date + 17, 8);
    put_text(line, " +0000");
}

/* What other servers write, and behind it what is known here besides. */
static void put_combined(struct line *line, const struct srv_access_entry *entry)
{
    char date[SRV_HTTP_DATE_LEN + 1];
    srv_http_date_write(entry->ended_ms / 1000, date);
    put_text(line, entry->client);
    put_text(line, " - ");
    if (entry->user == NULL)
        put(line, "-", 1);
    else
        put_escaped(line, entry->user, strlen(entry->user), FIELD_MAX_LEN);
    put_text(line, " [");
    put_date(line, date);
    put_text(line, "] \"");
    if (entry->method.len == 0) {
        put(line, "-", 1);
    } else {
        put_escaped(line, entry->method.base, entry->method.len, FIELD_MAX_LEN);
        put(line, " ", 1);
        put_target(line, entry);
        put(line, " ", 1);
        put_text(line, protocol(entry->version));
    }
    put_text(line, "\" ");
    put_decimal(line, (uint64_t)entry->status);
    put(line, " ", 1);
    put_decimal(line, entry->bytes_out);
    put_quoted_or_dash(line, entry->referer);
    put_quoted_or_dash(line, entry->agent);
    put(line, " ", 1);
    put_text(line, entry->result);
    put(line, " ", 1);
    put_decimal(line, entry->first_byte_us);
    put(line, " ", 1);
    put_decimal(line, entry->total_us);
    put(line, " ", 1);
    put_text(line, entry->id);
    put_text(line, entry->is_tls ? " tls\n" : " -\n");
}

static void put_key(struct line *line, const char *key)
{
    put_text(line, line->at[-1] == '{' ? "\"" : ",\"");
    put_text(line, key);
    put_text(line, "\":");
}

static void put_string(struct line *line, const char *key, struct srv_access_bytes bytes)
{
    put_key(line, key);
    put(line, "\"", 1);
    put_url(line, bytes);
    put(line, "\"", 1);
}

static void put_word(struct line *line, const char *key, const char *word)
{
    put_key(line, key);
    put(line, "\"", 1);
    put_escaped(line, word, strlen(word), FIELD_MAX_LEN);
    put(line, "\"", 1);
}

static void put_lower(struct line *line, const char *name)
{
    for (; *name != '\0'; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name | 0x20) : *name;
        put(line, &c, 1);
    }
}

static void put_number(struct line *line, const char *key, uint64_t n)
{
    put_key(line, key);
    put_decimal(line, n);
}

static void put_json(struct line *line, const struct srv_access_entry *entry)
{
    char date[SRV_ISO_DATE_LEN + 1];
    srv_iso_date_write(entry->ended_ms, date);
    put(line, "{", 1);
    put_word(line, "time", date);
    put_word(line, "id", entry->id);
    put_word(line, "client", entry->client);
    if (entry->user != NULL)
        put_word(line, "user", entry->user);
    put_word(line, "protocol", protocol(entry->version));
    put_key(line, "tls");
    put_text(line, entry->is_tls ? "true" : "false");
    put_string(line, "method", entry->method);
    put_string(line, "host", entry->host);
    put_key(line, "target");
    put(line, "\"", 1);
    put_target(line, entry);
    put(line, "\"", 1);
    put_number(line, "status", (uint64_t)entry->status);
    put_word(line, "role", entry->role);
    put_key(line, "operation");
    put_text(line, "\"");
    put_lower(line, entry->operation);
    put_text(line, "\"");
    put_word(line, "result", entry->result);
    put_number(line, "bytes_in", entry->bytes_in);
    put_number(line, "bytes_out", entry->bytes_out);
    put_number(line, "first_byte_us", entry->first_byte_us);
    put_number(line, "total_us", entry->total_us);
    if (entry->referer.len > 0)
        put_string(line, "referer", entry->referer);
    if (entry->agent.len > 0)
        put_string(line, "user_agent", entry->agent);
    put_text(line, "}\n");
}

size_t srv_access_write(enum srv_access_format format, const struct srv_access_entry *entry,
                        char *to, size_t size)
{
    struct line line = {to, to + size, format == SRV_ACCESS_JSON};
    if (format == SRV_ACCESS_JSON)
        put_json(&line, entry);
    else
        put_combined(&line, entry);
    return line.at == line.end ? 0 : (size_t)(line.at - to);
}
