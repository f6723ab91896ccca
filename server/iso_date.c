#include "server/iso_date.h"

#include <string.h>
#include <time.h>

#include "server/chars.h"
#include "server/http_date.h"

static bool take_number(struct srv_str *in, size_t digits, int *value_out)
{
    int value = 0;

    if (in->len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (!srv_is_digit((unsigned char)in->base[i]))
            return false;
        value = value * 10 + (in->base[i] - '0');
    }
    *value_out = value;
    *in = (struct srv_str){in->base + digits, in->len - digits};
    return true;
}

static bool take_char(struct srv_str *in, char c)
{
    if (in->len == 0 || in->base[0] != c)
        return false;
    *in = (struct srv_str){in->base + 1, in->len - 1};
    return true;
}

/* `between` stands between the fields of the long form; the short one has nothing there. */
static bool take_between(struct srv_str *in, bool is_short, char between)
{
    return is_short || take_char(in, between);
}

static bool take_fraction(struct srv_str *in)
{
    int digit;

    if (!take_char(in, '.'))
        return true;
    if (!take_number(in, 1, &digit))
        return false;
    while (take_number(in, 1, &digit)) {
    }
    return true;
}

/* "Z", "+02:00" or nothing, in seconds to subtract. */
static bool take_zone(struct srv_str *in, int64_t *offset_s_out)
{
    int hours, minutes;
    bool is_east = in->len > 0 && in->base[0] == '+';

    *offset_s_out = 0;
    if (in->len == 0 || take_char(in, 'Z'))
        return true;
    if (!take_char(in, is_east ? '+' : '-') || !take_number(in, 2, &hours))
        return false;
    take_char(in, ':');
    if (!take_number(in, 2, &minutes) || hours > 14 || minutes > 59)
        return false;
    *offset_s_out = (is_east ? 60 : -60) * (hours * 60 + minutes);
    return true;
}

static bool take_clock(struct srv_str *in, bool is_short, struct tm *tm)
{
    return take_number(in, 2, &tm->tm_hour) && take_between(in, is_short, ':') &&
           take_number(in, 2, &tm->tm_min) && take_between(in, is_short, ':') &&
           take_number(in, 2, &tm->tm_sec) && tm->tm_hour < 24 && tm->tm_min < 60 &&
           tm->tm_sec < 60;
}

/* The calendar's own arithmetic moves the 31st of April to May: such a date is none. */
static bool to_unix(const struct tm *tm, int64_t *unix_s_out)
{
    struct tm again = *tm;
    int64_t unix_s = timegm(&again);

    *unix_s_out = unix_s;
    return again.tm_mday == tm->tm_mday && again.tm_mon == tm->tm_mon;
}

bool srv_iso_date_parse(struct srv_str text, int64_t *unix_s_out)
{
    bool is_short = text.len > 4 && text.base[4] != '-';
    struct tm tm = {0};
    int64_t offset_s = 0, unix_s;

    *unix_s_out = 0;
    if (!take_number(&text, 4, &tm.tm_year) || !take_between(&text, is_short, '-') ||
        !take_number(&text, 2, &tm.tm_mon) || !take_between(&text, is_short, '-') ||
        !take_number(&text, 2, &tm.tm_mday))
        return false;
    if (text.len > 0 && !(take_char(&text, 'T') && take_clock(&text, is_short, &tm) &&
                          take_fraction(&text) && take_zone(&text, &offset_s)))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (text.len > 0 || !to_unix(&tm, &unix_s))
        return false;
    unix_s -= offset_s;
    if (unix_s < 0 || unix_s > SRV_DATE_MAX_S)
        return false;
    *unix_s_out = unix_s;
    return true;
}

void srv_iso_short_write(int64_t unix_s, char text_out[SRV_ISO_SHORT_LEN + 1])
{
    static const uint8_t kept[SRV_ISO_SHORT_LEN - 1] = {0,  1,  2,  3,  5,  6,  8, 9,
                                                        10, 11, 12, 14, 15, 17, 18};
    char whole[SRV_ISO_DATE_LEN + 1];

    unix_s = unix_s < 0 ? 0 : unix_s > SRV_DATE_MAX_S ? SRV_DATE_MAX_S : unix_s;
    srv_iso_date_write(unix_s * 1000, whole);
    for (size_t i = 0; i < sizeof kept; i++)
        text_out[i] = whole[kept[i]];
    text_out[SRV_ISO_SHORT_LEN - 1] = 'Z';
    text_out[SRV_ISO_SHORT_LEN] = '\0';
}
