#include "server/http/cache_status.h"

#include <string.h>

struct text {
    char *at;
    size_t len;
};

static void put(struct text *text, const char *word)
{
    size_t len = strlen(word);
    if (len >= SRV_HTTP_CACHE_STATUS_MAX - text->len)
        return;
    memcpy(text->at + text->len, word, len + 1);
    text->len += len;
}

static void put_number(struct text *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
        digits[--at] = '-';
    put(text, digits + at);
}

static const char *forward_text(enum srv_http_forward forward)
{
    switch (forward) {
    case SRV_HTTP_FORWARD_NONE: return "";
    case SRV_HTTP_FORWARD_MISS: return "uri-miss";
    case SRV_HTTP_FORWARD_VARY_MISS: return "vary-miss";
    case SRV_HTTP_FORWARD_STALE: return "stale";
    case SRV_HTTP_FORWARD_REQUEST: return "request";
    case SRV_HTTP_FORWARD_METHOD: return "method";
    case SRV_HTTP_FORWARD_PARTIAL: return "partial";
    case SRV_HTTP_FORWARD_BYPASS: return "bypass";
    }
    return "";
}

size_t srv_http_cache_status(const struct srv_http_handled *handled,
                             char text_out[SRV_HTTP_CACHE_STATUS_MAX])
{
    struct text text = {.at = text_out};
    put(&text, "gyre");
    if (handled->forward == SRV_HTTP_FORWARD_NONE) {
        put(&text, "; hit; ttl=");
        put_number(&text, handled->ttl_s);
    } else {
        put(&text, "; fwd=");
        put(&text, forward_text(handled->forward));
        if (handled->forward_status != 0) {
            put(&text, "; fwd-status=");
            put_number(&text, handled->forward_status);
        }
        if (handled->is_stored)
            put(&text, "; stored");
        if (handled->is_collapsed)
            put(&text, "; collapsed");
    }
    if (handled->detail != NULL) {
        put(&text, "; detail=");
        put(&text, handled->detail);
    }
    return text.len;
}
