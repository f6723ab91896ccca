/* Lists of networks that may or may not connect.
 *
 * A list is read from left to right and the first network that holds the address decides, so that
 * an exception stands before its rule. An address that none holds may connect unless the list has
 * an `allow`: who names friends means nobody else.
 *
 * Owns:    the caller owns struct srv_cidr_list; nothing is allocated.
 * Threads: a finished list may be read on any. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

enum { SRV_CIDR_MAX = 32 };

/* An IPv6 network, or an IPv4 one in its mapped form (::ffff:a.b.c.d). */
struct srv_cidr {
    uint8_t address[16];
    uint8_t bits; /* of 128 that must agree */
    bool is_allowed;
};

struct srv_cidr_list {
    struct srv_cidr entries[SRV_CIDR_MAX];
    size_t n;
};

/* Appends ADDR or ADDR/BITS (`len` bytes). False when it is none, has bits behind its mask, or the
 * list is full; *why_out (static) then says so. */
bool srv_cidr_add(struct srv_cidr_list *list, const char *text, size_t len, bool is_allowed,
                  const char **why_out);

/* The 16 bytes that stand for a socket's address; false for one that is neither IPv4 nor IPv6. */
bool srv_cidr_address(const struct sockaddr *from, uint8_t address_out[16]);

/* Whether the address may connect. */
bool srv_cidr_admits(const struct srv_cidr_list *list, const uint8_t address[16]);
