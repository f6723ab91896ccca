#include "server/range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/chars.h"
#include "server/target.h"

/* Takes digits off the front of *text. A number beyond 64 bits counts as the largest: it only says
 * "very far". Returns how many digits there were. */
static size_t take_number(struct srv_str *text, uint64_t *number_out)
{
    uint64_t sum = 0;
    size_t n = 0;
    for (; n < text->len && srv_is_digit((unsigned char)text->base[n]); n++) {
        uint64_t digit = (uint64_t)(text->base[n] - '0');
        sum = sum > (UINT64_MAX - digit) / 10 ? UINT64_MAX : sum * 10 + digit;
    }
    text->base += n;
    text->len -= n;
    *number_out = sum;
    return n;
}

static void trim(struct srv_str *text)
{
    while (text->len > 0 && (text->base[0] == ' ' || text->base[0] == '\t'))
        text->base++, text->len--;
    while (text->len > 0 && (text->base[text->len - 1] == ' ' || text->base[text->len - 1] == '\t'))
        text->len--;
}

static struct srv_range decide_suffix(uint64_t count, uint64_t length)
{
    if (count == 0)
        return (struct srv_range){.kind = SRV_RANGE_UNSATISFIABLE};
    if (length == 0)
        return (struct srv_range){.kind = SRV_RANGE_WHOLE};
    return (struct srv_range){SRV_RANGE_PART, count < length ? length - count : 0, length - 1};
}

struct srv_range srv_range_decide(const struct srv_str *value, uint64_t length)
{
    const struct srv_range whole = {.kind = SRV_RANGE_WHOLE};
    if (value == NULL)
        return whole;
    struct srv_str text = *value;
    trim(&text);
    if (text.len < 6 ||
        !srv_str_equal_nocase((struct srv_str){text.base, 6}, (struct srv_str){"bytes=", 6}))
        return whole;
    text.base += 6;
    text.len -= 6;
    trim(&text);
    uint64_t first, last;
    size_t first_digits = take_number(&text, &first);
    if (text.len == 0 || text.base[0] != '-')
        return whole;
    text.base++;
    text.len--;
    size_t last_digits = take_number(&text, &last);
    if (text.len != 0 || (first_digits == 0 && last_digits == 0))
        return whole;
    if (first_digits == 0)
        return decide_suffix(last, length);
    if (last_digits == 0)
        last = UINT64_MAX;
    else if (last < first)
        return whole;
    if (first >= length)
        return (struct srv_range){.kind = SRV_RANGE_UNSATISFIABLE};
    return (struct srv_range){SRV_RANGE_PART, first, last < length ? last : length - 1};
}

size_t srv_range_write(const struct srv_range *range, uint64_t length,
                       char text_out[SRV_CONTENT_RANGE_MAX])
{
    int n;
    if (range->kind == SRV_RANGE_PART)
        n = snprintf(text_out, SRV_CONTENT_RANGE_MAX, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                     range->first, range->last, length);
    else
        n = snprintf(text_out, SRV_CONTENT_RANGE_MAX, "bytes */%" PRIu64, length);
    return (size_t)n;
}
