#include "server/etag_list.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip(struct srv_str *in, size_t n)
{
    in->base += n;
    in->len -= n;
}

static void skip_blanks(struct srv_str *in)
{
    while (in->len > 0 && is_blank(in->base[0]))
        skip(in, 1);
}

/* Takes one element off the front, without quotes and W/. False at the end or at junk. */
static bool take_tag(struct srv_str *in, struct srv_str *tag_out, bool *weak_out)
{
    while (in->len > 0 && (is_blank(in->base[0]) || in->base[0] == ','))
        skip(in, 1);
    if (in->len == 0)
        return false;
    *weak_out = in->len >= 3 && memcmp(in->base, "W/\"", 3) == 0;
    if (*weak_out)
        skip(in, 2);
    if (in->base[0] == '"') {
        const char *end = memchr(in->base + 1, '"', in->len - 1);
        if (end == NULL)
            return false;
        *tag_out = (struct srv_str){in->base + 1, (size_t)(end - in->base) - 1};
        skip(in, tag_out->len + 2);
        skip_blanks(in);
        return in->len == 0 || in->base[0] == ',';
    }
    const char *comma = memchr(in->base, ',', in->len);
    *tag_out = (struct srv_str){in->base, comma == NULL ? in->len : (size_t)(comma - in->base)};
    skip(in, tag_out->len);
    while (tag_out->len > 0 && is_blank(tag_out->base[tag_out->len - 1]))
        tag_out->len--;
    return true;
}

/* Whether the whole list is an unquoted star. */
static bool is_star(struct srv_str list)
{
    skip_blanks(&list);
    if (list.len == 0 || list.base[0] != '*')
        return false;
    skip(&list, 1);
    skip_blanks(&list);
    return list.len == 0;
}

enum srv_etag_match srv_etag_list_match(struct srv_str list, struct srv_str etag,
                                        enum srv_etag_compare compare)
{
    if (is_star(list))
        return SRV_ETAG_MATCH_ANY;
    struct srv_str tag;
    bool weak;
    while (take_tag(&list, &tag, &weak)) {
        bool counts = !weak || compare == SRV_ETAG_WEAK;
        if (counts && tag.len == etag.len &&
            (tag.len == 0 || memcmp(tag.base, etag.base, tag.len) == 0))
            return SRV_ETAG_MATCH_LISTED;
    }
    return SRV_ETAG_MATCH_NONE;
}
