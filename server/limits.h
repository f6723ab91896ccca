/* Who may use a listener, and how much of it.
 *
 * Owns:    the caller owns the struct; nothing is allocated.
 * Threads: any. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/cidr.h"

struct srv_listener_limits {
    struct srv_cidr_list networks; /* who may connect; others are answered 403 */
    uint32_t requests_per_s;       /* of one client address; beyond, 503. 0: any number */
    uint32_t requests_burst;       /* at once; 0: as many as in a second */
};

/* Takes one word of `len` bytes: allow=NETWORK, deny=NETWORK or rate=N[/BURST]. False with what is
 * wrong in *why_out (static) otherwise. */
bool srv_limits_add(struct srv_listener_limits *limits, const char *word, size_t len,
                    const char **why_out);
