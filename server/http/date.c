#include "server/http/date.h"

#include <string.h>

#include "server/http/directives.h"
#include "server/http_date.h"

enum { DATE_MAX = 48 }; /* longer than any form */

/* Letters of either case, as a run of them is written in dates: the first upper case; GMT all. */
static void spell(char *text, size_t len)
{
    bool in_word = false;
    for (size_t i = 0; i < len; i++) {
        bool is_letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
        if (is_letter)
            text[i] = (char)(in_word ? text[i] | 0x20 : text[i] & ~0x20);
        in_word = is_letter;
    }
    if (len >= 3 && memcmp(text + len - 3, "Gmt", 3) == 0)
        memcpy(text + len - 3, "GMT", 3);
}

bool srv_http_date(struct srv_str text, int64_t now_s, int64_t *unix_s_out)
{
    char spelled[DATE_MAX];
    *unix_s_out = 0;
    if (text.len == 0 || text.len > sizeof spelled)
        return false;
    memcpy(spelled, text.base, text.len);
    spell(spelled, text.len);
    return srv_http_date_parse((struct srv_str){spelled, text.len}, now_s, unix_s_out);
}

bool srv_http_date_field(struct srv_http_fields fields, struct srv_str name, int64_t now_s,
                         int64_t *unix_s_out)
{
    struct srv_str value;
    *unix_s_out = 0;
    return srv_http_first(fields, name, &value) &&
           srv_http_date(srv_http_trim(value), now_s, unix_s_out);
}

int64_t srv_http_age_field(struct srv_http_fields fields)
{
    struct srv_http_members walk = {.name = SRV_STR("age")};
    struct srv_str member;
    int64_t seconds = 0;
    if (srv_http_next_member(fields, &walk, &member) && srv_http_seconds(member, &seconds))
        return seconds;
    return 0;
}
