/* Who is connected, by address: how many connections each has, how fast it asks, and how much
 * memory it makes us hold. An IPv6 client is its /64, which is what one customer is given.
 *
 *   FREE -> HERE [enter] -> AWAY [leave, the last] -> HERE [enter] | FREE [for another, oldest
 * first]
 *
 * Owns:    the table owns its entries; an entry lent by enter stays until the matching leave.
 * Threads: any.
 * Blocks:  never for long: enter and leave take a lock for some 100 ns.
 * Allocates: all entries at create, and never more: who has left is forgotten when another needs
 * the place.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_clients;

/* [w] under the table's lock  [a] atomic */
struct srv_client {
    uint8_t address[16];           /* [w] */
    uint32_t n_conns;              /* [w] */
    bool is_listed;                /* [w] in the table */
    _Atomic size_t buffered_bytes; /* [a] of receive buffers; may outlast its connections */
    _Atomic uint64_t due_us;       /* [a] when all requests so far have been paid for */
    _Atomic uint32_t n_refused;    /* [a] connections that wait to be told they are too many */
    struct srv_client *next;       /* [w] in its chain */
    struct srv_client *older;      /* [w] of those away */
    struct srv_client *newer;      /* [w] */
};

/* A table for `n` clients at a time; NULL without memory. */
struct srv_clients *srv_clients_create(size_t n);
void srv_clients_destroy(struct srv_clients *clients);

/* One more connection from the address, counted even beyond `limit`, which *is_over_out tells. NULL
 * when the table is full of clients that are here, *is_over_out then being true. */
struct srv_client *srv_clients_enter(struct srv_clients *clients, const uint8_t address[16],
                                     uint32_t limit, bool *is_over_out);

/* One connection less; NULL is allowed. */
void srv_clients_leave(struct srv_clients *clients, struct srv_client *client);

/* Whether the client may have one more request at `now_us`, at `per_s` a second and `burst` at
 * once. One that is refused is not counted. */
bool srv_client_ask(struct srv_client *client, uint64_t now_us, uint32_t per_s, uint32_t burst);
