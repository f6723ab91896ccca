#include "server/s3/ttl.h"

#include <string.h>

#include "server/http_date.h"
#include "server/quantity.h"
#include "server/s3/numbers.h"

#define METADATA "metadata:"

/* ---- Rules ---- */

static bool parse_name(const char *text, struct srv_s3_ttl *ttl)
{
    size_t len = strlen(text);

    if (len == 0 || len >= sizeof ttl->name)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool is_token =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        if (!is_token)
            return false;
    }
    memcpy(ttl->name, text, len + 1);
    return true;
}

bool srv_s3_ttl_parse(const char *text, struct srv_s3_ttl *ttl_out)
{
    uint64_t ms;

    *ttl_out = (struct srv_s3_ttl){.kind = SRV_S3_TTL_NONE};
    if (strcmp(text, "none") == 0)
        return true;
    if (strcmp(text, "headers") == 0) {
        ttl_out->kind = SRV_S3_TTL_HEADERS;
        return true;
    }
    if (strncmp(text, METADATA, sizeof METADATA - 1) == 0) {
        ttl_out->kind = SRV_S3_TTL_METADATA;
        return parse_name(text + sizeof METADATA - 1, ttl_out);
    }
    if (!srv_duration_parse(text, &ms) || ms < 1000 || ms / 1000 > INT32_MAX)
        return false;
    ttl_out->kind = SRV_S3_TTL_FIXED;
    ttl_out->seconds = (uint32_t)(ms / 1000);
    return true;
}

/* ---- Objects ---- */

static bool is(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.base, word, text.len) == 0;
}

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && (text.base[0] == ' ' || text.base[0] == '\t'))
        text.base++, text.len--;
    while (text.len > 0 && (text.base[text.len - 1] == ' ' || text.base[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Takes the next directive off the front of a Cache-Control value; commas in quotes are not
 * expected in those that count. */
static bool next_directive(struct srv_str *rest, struct srv_str *name, struct srv_str *value)
{
    if (rest->len == 0)
        return false;
    const char *comma = memchr(rest->base, ',', rest->len);
    size_t len = comma != NULL ? (size_t)(comma - rest->base) : rest->len;
    struct srv_str item = {rest->base, len};
    *rest = (struct srv_str){rest->base + len, rest->len - len};
    if (rest->len > 0)
        rest->base++, rest->len--;
    const char *equals = memchr(item.base, '=', item.len);
    size_t name_len = equals != NULL ? (size_t)(equals - item.base) : item.len;
    *name = trim((struct srv_str){item.base, name_len});
    *value = (struct srv_str){NULL, 0};
    if (equals != NULL)
        *value = trim((struct srv_str){equals + 1, item.len - name_len - 1});
    if (value->len >= 2 && value->base[0] == '"' && value->base[value->len - 1] == '"')
        *value = (struct srv_str){value->base + 1, value->len - 2};
    return true;
}

/* The seconds of s-maxage, which is meant for shared caches, or of max-age. */
static bool age_of(struct srv_str cache_control, uint64_t *seconds_out)
{
    struct srv_str name, value;
    uint64_t seconds;
    bool found = false;

    *seconds_out = 0;
    while (next_directive(&cache_control, &name, &value)) {
        bool is_shared = is(name, "s-maxage");
        if ((!is_shared && (found || !is(name, "max-age"))) || !srv_s3_parse_u64(value, &seconds))
            continue;
        *seconds_out = seconds;
        found = true;
        if (is_shared)
            break;
    }
    return found;
}

static bool find_user(const struct srv_s3_meta *meta, const char *name, struct srv_str *value_out)
{
    for (size_t i = 0; i < meta->n_user; i++) {
        if (!is(meta->user[i].name, name))
            continue;
        *value_out = meta->user[i].value;
        return true;
    }
    return false;
}

/* As the store counts: from 1970 to 2106, and 0 is never. */
static uint32_t in_seconds(int64_t at_s)
{
    return at_s < 1 ? 1 : at_s > UINT32_MAX ? UINT32_MAX : (uint32_t)at_s;
}

static uint32_t after(int64_t now_s, uint64_t seconds)
{
    return in_seconds(now_s + (int64_t)(seconds < UINT32_MAX ? seconds : UINT32_MAX));
}

uint32_t srv_s3_ttl_expires(const struct srv_s3_ttl *ttl, const struct srv_s3_meta *meta,
                            int64_t now_s)
{
    struct srv_str value;
    uint64_t seconds;
    int64_t at_s;

    switch (ttl->kind) {
    case SRV_S3_TTL_NONE: break;
    case SRV_S3_TTL_FIXED: return after(now_s, ttl->seconds);
    case SRV_S3_TTL_HEADERS:
        if (meta->cache_control.base != NULL && age_of(meta->cache_control, &seconds))
            return after(now_s, seconds);
        if (meta->expires.base != NULL && srv_http_date_parse(meta->expires, now_s, &at_s))
            return in_seconds(at_s);
        break;
    case SRV_S3_TTL_METADATA:
        if (find_user(meta, ttl->name, &value) && srv_s3_parse_u64(value, &seconds))
            return after(now_s, seconds);
        break;
    }
    return 0;
}
