#include "server/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "server/quantity.h"

enum { PLACE_MAX = 128 };

/* Splits host and port; *port_out points into `text`. */
static bool split(const char *text, char host_out[SRV_ADDRESS_MAX], const char **port_out,
                  bool *brackets_out)
{
    const char *end;
    *brackets_out = text[0] == '[';
    if (*brackets_out) {
        text++;
        end = strchr(text, ']');
        if (end == NULL || end[1] != ':')
            return false;
        *port_out = end + 2;
    } else {
        end = strrchr(text, ':');
        if (end == NULL)
            return false;
        *port_out = end + 1;
    }
    size_t len = (size_t)(end - text);
    if (len >= SRV_ADDRESS_MAX)
        return false;
    memcpy(host_out, text, len);
    host_out[len] = '\0';
    return true;
}

static bool set_bucket(const char *name, size_t len, struct srv_address *address,
                       const char **why_out)
{
    *why_out = "bucket names one bucket, such as bucket=my-bucket";
    if (len == 0 || len >= sizeof address->bucket || address->bucket[0] != '\0')
        return false;
    memcpy(address->bucket, name, len);
    address->bucket[len] = '\0';
    return true;
}

/* Reads the words behind the address, each after a comma. */
static bool parse_words(const char *at, struct srv_address *address, const char **why_out)
{
    static const char BUCKET[] = "bucket=";
    const size_t name_len = sizeof BUCKET - 1;

    while (*at == ',') {
        size_t len = strcspn(++at, ",");
        bool ok = len >= name_len && memcmp(at, BUCKET, name_len) == 0
                      ? set_bucket(at + name_len, len - name_len, address, why_out)
                      : srv_limits_add(&address->limits, at, len, why_out);
        if (!ok)
            return false;
        at += len;
    }
    return true;
}

bool srv_address_parse(const char *text, struct srv_address *address_out, const char **why_out)
{
    struct srv_address address = {0};
    char place[PLACE_MAX];
    size_t len = strcspn(text, ",");
    const char *port;
    bool brackets;
    uint64_t number;
    unsigned char binary[16];
    *address_out = address;
    *why_out = NULL;
    if (len >= sizeof place) {
        *why_out = "it is longer than any address";
        return false;
    }
    memcpy(place, text, len);
    place[len] = '\0';
    if (!parse_words(text + len, &address, why_out))
        return false;
    text = place;
    if (strncmp(text, "tls:", 4) == 0) {
        address.is_tls = true;
        text += 4;
    }
    if (!split(text, address.host, &port, &brackets)) {
        *why_out = "give ADDR:PORT, such as 127.0.0.1:9000, [::1]:9000 or tls:0.0.0.0:9443";
        return false;
    }
    if (!srv_count_parse(port, 65535, &number)) {
        *why_out = "the port after the last ':' is a number from 0 to 65535";
        return false;
    }
    address.port = (uint16_t)number;
    if (!brackets && strcmp(address.host, "localhost") == 0)
        strcpy(address.host, "127.0.0.1");
    else if (!brackets && (strcmp(address.host, "*") == 0 || address.host[0] == '\0'))
        strcpy(address.host, "0.0.0.0");
    address.is_ip6 = brackets;
    if (inet_pton(brackets ? AF_INET6 : AF_INET, address.host, binary) != 1) {
        *why_out = strchr(address.host, ':') != NULL && !brackets
                       ? "an IPv6 address stands in brackets, such as [::1]:9000"
                       : "the address is numeric, such as 127.0.0.1 or [::1], or \"localhost\", or "
                         "\"*\" for all";
        return false;
    }
    *address_out = address;
    return true;
}

bool srv_address_is_loopback(const struct srv_address *address)
{
    return address->is_ip6 ? strcmp(address->host, "::1") == 0
                           : strncmp(address->host, "127.", 4) == 0;
}

void srv_address_url(const struct srv_address *address, uint16_t port, char url_out[SRV_URL_MAX])
{
    const char *host = address->host;
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    else if (strcmp(host, "::") == 0)
        host = "::1";
    const char *format = address->is_ip6 ? "%s://[%s]:%u" : "%s://%s:%u";
    snprintf(url_out, SRV_URL_MAX, format, address->is_tls ? "https" : "http", host,
             (unsigned)port);
}
