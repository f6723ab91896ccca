#include "server/limits.h"

#include <string.h>

#include "server/quantity.h"

enum { NUMBER_MAX = 16, RATE_MAX = 1000000 };

/* Reads a number from 1 to RATE_MAX out of `len` bytes. */
static bool read_number(const char *text, size_t len, uint32_t *number_out)
{
    char copy[NUMBER_MAX];
    uint64_t number;
    *number_out = 0;
    if (len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!srv_count_parse(copy, RATE_MAX, &number) || number == 0)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

static bool set_rate(struct srv_listener_limits *limits, const char *text, size_t len,
                     const char **why_out)
{
    const char *slash = memchr(text, '/', len);
    size_t rate_len = slash == NULL ? len : (size_t)(slash - text);
    *why_out = "rate is requests a second, such as rate=100, or with how many at once: "
               "rate=100/500";
    if (!read_number(text, rate_len, &limits->requests_per_s))
        return false;
    limits->requests_burst = 0;
    return slash == NULL || read_number(slash + 1, len - rate_len - 1, &limits->requests_burst);
}

bool srv_limits_add(struct srv_listener_limits *limits, const char *word, size_t len,
                    const char **why_out)
{
    const char *value = memchr(word, '=', len);
    size_t name_len = value == NULL ? len : (size_t)(value - word);
    size_t value_len = value == NULL ? 0 : len - name_len - 1;
    *why_out = "behind the address may stand allow=NETWORK, deny=NETWORK, rate=N[/BURST] and "
               "bucket=NAME";
    if (value == NULL)
        return false;
    value++;
    if (name_len == 5 && memcmp(word, "allow", 5) == 0)
        return srv_cidr_add(&limits->networks, value, value_len, true, why_out);
    if (name_len == 4 && memcmp(word, "deny", 4) == 0)
        return srv_cidr_add(&limits->networks, value, value_len, false, why_out);
    if (name_len == 4 && memcmp(word, "rate", 4) == 0)
        return set_rate(limits, value, value_len, why_out);
    return false;
}
