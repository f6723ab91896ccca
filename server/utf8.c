#include "server/utf8.h"

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t srv_utf8_sequence(struct srv_str text)
{
    const unsigned char *s = (const unsigned char *)text.base;
    if (text.len == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        return text.len >= 2 && is_continuation(s[1]) ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        if (text.len < 3 || !is_continuation(s[1]) || !is_continuation(s[2]))
            return 0;
        bool overlong = s[0] == 0xe0 && s[1] < 0xa0;
        bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
        return overlong || surrogate ? 0 : 3;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        if (text.len < 4 || !is_continuation(s[1]) || !is_continuation(s[2]) ||
            !is_continuation(s[3]))
            return 0;
        bool overlong = s[0] == 0xf0 && s[1] < 0x90;
        bool too_large = s[0] == 0xf4 && s[1] >= 0x90;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

bool srv_utf8_valid(struct srv_str text)
{
    while (text.len > 0) {
        size_t n = srv_utf8_sequence(text);
        if (n == 0)
            return false;
        text.base += n;
        text.len -= n;
    }
    return true;
}
