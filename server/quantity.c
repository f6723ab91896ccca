#include "server/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/chars.h"

/* A decimal number as whole part and thousandths: enough for "1.5" and free of floating point. */
struct decimal {
    uint64_t whole;
    unsigned thousandths;
};

/* Takes a number off the front of *text_inout; digits after the third of the fraction must not be
 * there. */
static bool take_decimal(const char **text_inout, struct decimal *out)
{
    const char *at = *text_inout;
    *out = (struct decimal){0};
    if (!srv_is_digit((unsigned char)*at))
        return false;
    for (; srv_is_digit((unsigned char)*at); at++) {
        if (out->whole > (uint64_t)INT64_MAX / 10 - 1)
            return false;
        out->whole = out->whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        at++;
        unsigned place = 100;
        if (!srv_is_digit((unsigned char)*at))
            return false;
        for (; srv_is_digit((unsigned char)*at); at++, place /= 10) {
            if (place == 0)
                return false;
            out->thousandths += place * (unsigned)(*at - '0');
        }
    }
    *text_inout = at;
    return true;
}

/* number * unit, rounded down; false when it exceeds `max`. */
static bool scale(struct decimal number, uint64_t unit, uint64_t max, uint64_t *out)
{
    uint64_t whole, sum;
    uint64_t part = unit / 1000 * number.thousandths + unit % 1000 * number.thousandths / 1000;
    if (__builtin_mul_overflow(number.whole, unit, &whole) ||
        __builtin_add_overflow(whole, part, &sum) || sum > max)
        return false;
    *out = sum;
    return true;
}

bool srv_size_parse(const char *text, uint64_t *bytes_out)
{
    static const char letters[] = "KMGTP";
    *bytes_out = 0;
    struct decimal number;
    if (!take_decimal(&text, &number))
        return false;
    if (*text == ' ' && text[1] != '\0')
        text++;
    uint64_t unit = 1;
    const char *letter =
        isalpha((unsigned char)*text) ? strchr(letters, toupper((unsigned char)*text)) : NULL;
    if (letter != NULL) {
        unit = UINT64_C(1) << (10 * (letter - letters + 1));
        text++;
        if (*text == 'i' && text[1] != 'B')
            return false;
    }
    if (unit > 1 && strncmp(text, "iB", 2) == 0)
        text += 2;
    else if (*text == 'B' || *text == 'b')
        text++;
    if (*text != '\0' || (unit == 1 && number.thousandths != 0))
        return false;
    uint64_t bytes;
    if (!scale(number, unit, (uint64_t)INT64_MAX, &bytes) || bytes == 0)
        return false;
    *bytes_out = bytes;
    return true;
}

bool srv_duration_parse(const char *text, uint64_t *ms_out)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const uint64_t max_ms = UINT64_C(10) * 365 * 86400 * 1000;
    *ms_out = 0;
    struct decimal number;
    if (!take_decimal(&text, &number))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(text, units[i].name) == 0)
            return scale(number, units[i].ms, max_ms, ms_out);
    return false;
}

bool srv_count_parse(const char *text, uint64_t max, uint64_t *count_out)
{
    *count_out = 0;
    struct decimal number;
    if (!take_decimal(&text, &number) || *text != '\0' || number.thousandths != 0 ||
        number.whole > max)
        return false;
    *count_out = number.whole;
    return true;
}

void srv_size_write(uint64_t bytes, char text_out[SRV_SIZE_TEXT_MAX])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text_out, SRV_SIZE_TEXT_MAX, "%" PRIu64 " B", bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(text_out, SRV_SIZE_TEXT_MAX, value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}
