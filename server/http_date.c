#include "server/http_date.h"

#include <stdio.h>
#include <string.h>

#include "server/chars.h"

enum { DAY_S = 86400 };

static const char day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const long_day_names[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct civil {
    int year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
    int hour, minute, second;
    int weekday; /* 0: Sunday */
};

/* Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Years are counted from March
 * so that the leap day comes last (Howard Hinnant, "chrono-compatible low-level date algorithms").
 */
static int64_t days_from_civil(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

/* The reverse, for times from 1970 on. */
static void civil_from_unix(int64_t unix_s, struct civil *out)
{
    int64_t z = unix_s / DAY_S + 719468;
    int64_t era = z / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    int second_of_day = (int)(unix_s % DAY_S);
    out->day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    out->month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    out->year = (int)(year_of_era + era * 400 + (out->month <= 2));
    out->hour = second_of_day / 3600;
    out->minute = second_of_day / 60 % 60;
    out->second = second_of_day % 60;
    out->weekday = (int)((unix_s / DAY_S + 4) % 7);
}

static int64_t clamp(int64_t value, int64_t max)
{
    return value < 0 ? 0 : value > max ? max : value;
}

static char *put_digits(char *at, int value, int n)
{
    for (int i = n - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + n;
}

static char *put_text(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

static inline void put_two(char *at, int value)
{
    at[0] = (char)('0' + value / 10);
    at[1] = (char)('0' + value % 10);
}

/* A day's text, with a time to be filled in. */
struct day_text {
    uint32_t day; /* since 1970, from 1 on; 0: none yet */
    char text[SRV_HTTP_DATE_LEN + 1];
};

static void write_day(int64_t unix_s, struct day_text *out)
{
    struct civil c;
    civil_from_unix(unix_s, &c);
    out->day = (uint32_t)(unix_s / DAY_S) + 1;
    memcpy(out->text, "Sun, 00 Jan 0000 00:00:00 GMT", SRV_HTTP_DATE_LEN + 1);
    memcpy(out->text, day_names[c.weekday], 3);
    put_two(out->text + 5, c.day);
    memcpy(out->text + 8, month_names[c.month - 1], 3);
    put_two(out->text + 12, c.year / 100);
    put_two(out->text + 14, c.year % 100);
}

/* Every answer about an object has a date, most often of the same day as the one before. */
void srv_http_date_write(int64_t unix_s, char text_out[SRV_HTTP_DATE_LEN + 1])
{
    static _Thread_local struct day_text last;
    unix_s = clamp(unix_s, SRV_DATE_MAX_S);
    if (last.day != (uint32_t)(unix_s / DAY_S) + 1)
        write_day(unix_s, &last);
    unsigned second_of_day = (unsigned)(unix_s % DAY_S);
    memcpy(text_out, last.text, SRV_HTTP_DATE_LEN + 1);
    put_two(text_out + 17, (int)(second_of_day / 3600));
    put_two(text_out + 20, (int)(second_of_day / 60 % 60));
    put_two(text_out + 23, (int)(second_of_day % 60));
}

void srv_iso_date_write(int64_t unix_ms, char text_out[SRV_ISO_DATE_LEN + 1])
{
    int64_t ms = clamp(unix_ms, SRV_DATE_MAX_S * 1000 + 999);
    struct civil c;
    civil_from_unix(ms / 1000, &c);
    char *at = put_digits(text_out, c.year, 4);
    at = put_digits(put_text(at, "-"), c.month, 2);
    at = put_digits(put_text(at, "-"), c.day, 2);
    at = put_digits(put_text(at, "T"), c.hour, 2);
    at = put_digits(put_text(at, ":"), c.minute, 2);
    at = put_digits(put_text(at, ":"), c.second, 2);
    at = put_digits(put_text(at, "."), (int)(ms % 1000), 3);
    memcpy(at, "Z", 2);
}

/* ---- Reading ---- */

static bool take_text(struct srv_str *in, const char *text)
{
    size_t len = strlen(text);
    if (in->len < len || memcmp(in->base, text, len) != 0)
        return false;
    in->base += len;
    in->len -= len;
    return true;
}

/* Exactly `n` digits. */
static bool take_digits(struct srv_str *in, int n, int *value_out)
{
    int value = 0;
    if (in->len < (size_t)n)
        return false;
    for (int i = 0; i < n; i++) {
        if (!srv_is_digit((unsigned char)in->base[i]))
            return false;
        value = value * 10 + (in->base[i] - '0');
    }
    in->base += n;
    in->len -= (size_t)n;
    *value_out = value;
    return true;
}

static bool take_month(struct srv_str *in, int *month_out)
{
    for (int i = 0; i < 12; i++)
        if (take_text(in, month_names[i])) {
            *month_out = i + 1;
            return true;
        }
    return false;
}

static bool take_clock(struct srv_str *in, struct civil *c)
{
    return take_digits(in, 2, &c->hour) && take_text(in, ":") && take_digits(in, 2, &c->minute) &&
           take_text(in, ":") && take_digits(in, 2, &c->second);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", after the day's name. */
static bool take_fixdate(struct srv_str *in, struct civil *c)
{
    return take_text(in, ", ") && take_digits(in, 2, &c->day) && take_text(in, " ") &&
           take_month(in, &c->month) && take_text(in, " ") && take_digits(in, 4, &c->year) &&
           take_text(in, " ") && take_clock(in, c) && take_text(in, " GMT");
}

/* "Sunday, 06-Nov-94 08:49:37 GMT", after the day's name. */
static bool take_rfc850(struct srv_str *in, int64_t now_s, struct civil *c)
{
    if (!(take_text(in, ", ") && take_digits(in, 2, &c->day) && take_text(in, "-") &&
          take_month(in, &c->month) && take_text(in, "-") && take_digits(in, 2, &c->year) &&
          take_text(in, " ") && take_clock(in, c) && take_text(in, " GMT")))
        return false;
    struct civil now;
    civil_from_unix(clamp(now_s, SRV_DATE_MAX_S), &now);
    c->year += now.year - now.year % 100;
    if (c->year > now.year + 50)
        c->year -= 100;
    else if (c->year <= now.year - 50)
        c->year += 100;
    return true;
}

/* "Sun Nov  6 08:49:37 1994", after the day's name. */
static bool take_asctime(struct srv_str *in, struct civil *c)
{
    if (!take_text(in, " ") || !take_month(in, &c->month) || !take_text(in, " "))
        return false;
    bool day = take_text(in, " ") ? take_digits(in, 1, &c->day) : take_digits(in, 2, &c->day);
    return day && take_text(in, " ") && take_clock(in, c) && take_text(in, " ") &&
           take_digits(in, 4, &c->year);
}

static bool civil_valid(const struct civil *c)
{
    static const int month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (c->year % 4 == 0 && c->year % 100 != 0) || c->year % 400 == 0;
    if (c->month < 1 || c->day < 1 || c->day > month_days[c->month - 1] + (c->month == 2 && leap))
        return false;
    return c->hour < 24 && c->minute < 60 && c->second <= 60; /* 60: a leap second */
}

bool srv_http_date_parse(struct srv_str text, int64_t now_s, int64_t *unix_s_out)
{
    *unix_s_out = 0;
    struct civil c = {0};
    bool ok = false;
    for (int i = 0; i < 7 && !ok; i++) {
        struct srv_str in = text;
        if (take_text(&in, long_day_names[i]))
            ok = take_rfc850(&in, now_s, &c) && in.len == 0;
        else if (take_text(&in, day_names[i]))
            ok =
                (in.len > 0 && in.base[0] == ',' ? take_fixdate(&in, &c) : take_asctime(&in, &c)) &&
                in.len == 0;
    }
    if (!ok || !civil_valid(&c))
        return false;
    *unix_s_out =
        days_from_civil(c.year, c.month, c.day) * DAY_S + c.hour * 3600 + c.minute * 60 + c.second;
    return true;
}
