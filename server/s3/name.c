#include "server/s3/name.h"

#include <string.h>

#include "server/chars.h"
#include "server/utf8.h"

static bool is_lower_alnum(char c)
{
    return srv_is_digit((unsigned char)c) || (c >= 'a' && c <= 'z');
}

/* Four runs of digits with dots between them: such a name would read as a host's address. */
static bool looks_like_ip4(struct srv_str name)
{
    int dots = 0;
    for (size_t i = 0; i < name.len; i++) {
        dots += name.base[i] == '.';
        if (name.base[i] != '.' && !srv_is_digit((unsigned char)name.base[i]))
            return false;
    }
    return dots == 3;
}

bool srv_s3_bucket_valid(struct srv_str name)
{
    if (name.len < SRV_S3_BUCKET_MIN || name.len > SRV_S3_BUCKET_MAX)
        return false;
    if (!is_lower_alnum(name.base[0]) || !is_lower_alnum(name.base[name.len - 1]))
        return false;
    for (size_t i = 1; i < name.len; i++) {
        char c = name.base[i];
        char before = name.base[i - 1];
        if (!is_lower_alnum(c) && c != '.' && c != '-')
            return false;
        if ((c == '.' && !is_lower_alnum(before)) || (c == '-' && before == '.'))
            return false;
    }
    return !looks_like_ip4(name);
}

enum srv_s3_code srv_s3_key_check(struct srv_str key)
{
    if (key.len > SRV_S3_KEY_MAX)
        return SRV_S3_KEY_TOO_LONG;
    return key.len > 0 && srv_utf8_valid(key) ? SRV_S3_NONE : SRV_S3_INVALID_URI;
}
