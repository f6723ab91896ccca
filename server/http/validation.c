#include "server/http/validation.h"

#include "server/chars.h"
#include "server/http/forwarding.h"

size_t srv_http_conditions(struct srv_http_fields stored,
                           struct srv_field out[SRV_HTTP_CONDITIONS_MAX])
{
    struct srv_str value;
    size_t n = 0;
    if (srv_http_first(stored, SRV_STR("etag"), &value) && value.len > 0)
        out[n++] = (struct srv_field){SRV_STR("if-none-match"), value};
    if (srv_http_first(stored, SRV_STR("last-modified"), &value) && value.len > 0)
        out[n++] = (struct srv_field){SRV_STR("if-modified-since"), value};
    return n;
}

static struct srv_str without_weak(struct srv_str etag)
{
    return etag.len >= 2 && etag.base[0] == 'W' && etag.base[1] == '/'
               ? (struct srv_str){etag.base + 2, etag.len - 2}
               : etag;
}

/* Whether both carry the field and its values differ; entity tags are compared weakly. */
static bool differs(struct srv_http_fields stored, struct srv_http_fields answer,
                    struct srv_str name)
{
    struct srv_str old, new;
    if (!srv_http_first(stored, name, &old) || !srv_http_first(answer, name, &new))
        return false;
    return !srv_str_equal(without_weak(old), without_weak(new));
}

enum srv_http_validated srv_http_validated(const struct srv_http_facts *stored,
                                           struct srv_http_fields stored_fields,
                                           const struct srv_http_directives *asked, int status,
                                           struct srv_http_fields answer, int64_t now_ms,
                                           const struct srv_http_policy *policy)
{
    if (status == 304)
        return differs(stored_fields, answer, SRV_STR("etag")) ? SRV_HTTP_AGAIN : SRV_HTTP_FRESHEN;
    if (srv_http_may_stand_in(stored, asked, status, now_ms, policy))
        return SRV_HTTP_STAND_IN;
    return SRV_HTTP_REPLACE;
}

/* RFC 9111, 3.2: these describe the bytes that are stored, or one connection. */
static bool is_kept(struct srv_str name)
{
    return srv_str_equal(name, SRV_STR("content-length")) ||
           srv_str_equal(name, SRV_STR("content-encoding")) ||
           srv_str_equal(name, SRV_STR("content-range"));
}

static bool takes_place(struct srv_http_fields answer, struct srv_str name)
{
    return !is_kept(name) && !srv_http_is_hop(answer, name);
}

size_t srv_http_update(struct srv_http_fields stored, struct srv_http_fields answer,
                       struct srv_field *out)
{
    size_t n = 0;
    for (size_t i = 0; i < stored.n; i++) {
        struct srv_str name = stored.at[i].name;
        /* An Age that the answer does not carry is that of the response it replaces. */
        bool is_old = (srv_http_has(answer, name) && takes_place(answer, name)) ||
                      srv_str_equal(name, SRV_STR("age"));
        if (!is_old)
            out[n++] = stored.at[i];
    }
    for (size_t i = 0; i < answer.n; i++)
        if (takes_place(answer, answer.at[i].name))
            out[n++] = answer.at[i];
    return n;
}

static bool length_differs(uint64_t stored_length, struct srv_http_fields answer)
{
    struct srv_str value;
    uint64_t length = 0;
    if (!srv_http_first(answer, SRV_STR("content-length"), &value))
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (!srv_is_digit((unsigned char)value.base[i]) || length > UINT64_MAX / 10 - 1)
            return true;
        length = length * 10 + (uint64_t)(value.base[i] - '0');
    }
    return length != stored_length;
}

enum srv_http_validated srv_http_head_says(struct srv_http_fields stored, uint64_t stored_length,
                                           struct srv_http_fields answer)
{
    bool is_other = differs(stored, answer, SRV_STR("etag")) ||
                    differs(stored, answer, SRV_STR("last-modified")) ||
                    length_differs(stored_length, answer);
    return is_other ? SRV_HTTP_REPLACE : SRV_HTTP_FRESHEN;
}
