#include "server/cidr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { TEXT_MAX = 64, MAPPED_BITS = 96 };

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

/* Reads up to three digits; false for anything else. */
static bool read_bits(const char *text, unsigned max, unsigned *bits_out)
{
    unsigned n = 0;
    size_t len = strlen(text);
    *bits_out = 0;
    if (len == 0 || len > 3)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (unsigned)(text[i] - '0');
    }
    *bits_out = n;
    return n <= max;
}

static bool parse_address(const char *text, struct srv_cidr *entry)
{
    memcpy(entry->address, MAPPED, sizeof MAPPED);
    if (inet_pton(AF_INET, text, entry->address + sizeof MAPPED) == 1) {
        entry->bits = 128;
        return true;
    }
    entry->bits = 0; /* not IPv4 */
    return inet_pton(AF_INET6, text, entry->address) == 1;
}

static bool agrees(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Whether no bit is set behind the mask: 10.0.0.1/8 is more likely a slip than a network. */
static bool is_masked(const struct srv_cidr *entry)
{
    for (unsigned bit = entry->bits; bit < 128; bit++)
        if ((entry->address[bit / 8] >> (7 - bit % 8) & 1) != 0)
            return false;
    return true;
}

bool srv_cidr_add(struct srv_cidr_list *list, const char *text, size_t len, bool is_allowed,
                  const char **why_out)
{
    char copy[TEXT_MAX];
    struct srv_cidr entry = {.is_allowed = is_allowed};
    unsigned bits = 0;
    *why_out = "not a network: expected ADDR or ADDR/BITS, such as 10.0.0.0/8 or 2001:db8::/32";
    if (len == 0 || len >= sizeof copy || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    char *slash = strchr(copy, '/');
    if (slash != NULL)
        *slash++ = '\0';
    if (!parse_address(copy, &entry))
        return false;
    bool is_v4 = entry.bits == 128;
    entry.bits = 128;
    if (slash != NULL) {
        if (!read_bits(slash, is_v4 ? 32 : 128, &bits))
            return false;
        entry.bits = (uint8_t)(is_v4 ? MAPPED_BITS + bits : bits);
    }
    *why_out = "the address has bits behind the mask";
    if (!is_masked(&entry))
        return false;
    *why_out = "too many networks for one listener";
    if (list->n == SRV_CIDR_MAX)
        return false;
    list->entries[list->n++] = entry;
    return true;
}

bool srv_cidr_address(const struct sockaddr *from, uint8_t address_out[16])
{
    memset(address_out, 0, 16);
    if (from->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, from, sizeof v4);
        memcpy(address_out, MAPPED, sizeof MAPPED);
        memcpy(address_out + sizeof MAPPED, &v4.sin_addr, 4);
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy(&v6, from, sizeof v6);
    memcpy(address_out, &v6.sin6_addr, 16);
    return true;
}

bool srv_cidr_admits(const struct srv_cidr_list *list, const uint8_t address[16])
{
    bool has_friends = false;
    for (size_t i = 0; i < list->n; i++) {
        const struct srv_cidr *entry = &list->entries[i];
        if (agrees(entry->address, address, entry->bits))
            return entry->is_allowed;
        has_friends = has_friends || entry->is_allowed;
    }
    return !has_friends;
}
