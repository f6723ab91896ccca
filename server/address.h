/* Addresses to listen on, as options name them.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/limits.h"

enum {
    SRV_ADDRESS_MAX = 46,        /* longest numeric address with its terminator */
    SRV_ADDRESS_BUCKET_MAX = 64, /* the same of a bucket's name */
};

/* One place to listen on. */
struct srv_address {
    char host[SRV_ADDRESS_MAX]; /* numeric IPv4 or IPv6, without brackets */
    uint16_t port;              /* 0: any free one */
    bool is_ip6;
    bool is_tls;
    struct srv_listener_limits limits;
    char bucket[SRV_ADDRESS_BUCKET_MAX]; /* empty: none; not checked to be a bucket's name */
};

/* Reads [tls:]ADDR:PORT[,LIMIT | ,bucket=NAME]... (limits as srv_limits_add), where ADDR is numeric
 * (IPv6 in brackets), "localhost" for 127.0.0.1, or "*" for 0.0.0.0. True; false with what is wrong
 * in *why_out (static) otherwise. */
bool srv_address_parse(const char *text, struct srv_address *address_out, const char **why_out);

/* Whether only this machine can connect. */
bool srv_address_is_loopback(const struct srv_address *address);

enum { SRV_URL_MAX = 80 };

/* Writes the URL under which a client on this machine reaches a listener that got `port`. */
void srv_address_url(const struct srv_address *address, uint16_t port, char url_out[SRV_URL_MAX]);
