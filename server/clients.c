#include "server/clients.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/check.h"

enum { MICROS = 1000000 };

/* [c] const after create  [w] under `lock` */
struct srv_clients {
    pthread_mutex_t lock;
    size_t n;                   /* [c] entries */
    size_t n_chains;            /* [c] a power of two */
    uint64_t seed;              /* [c] so that nobody can choose addresses of one chain */
    struct srv_client **chains; /* [w] */
    struct srv_client *entries;
    size_t n_used;             /* [w] entries[0, n_used) have been listed once */
    struct srv_client *oldest; /* [w] who is away longest */
    struct srv_client *newest; /* [w] */
};

struct srv_clients *srv_clients_create(size_t n)
{
    struct srv_clients *clients = calloc(1, sizeof *clients);
    if (clients == NULL)
        return NULL;
    clients->n = n;
    for (clients->n_chains = 1; clients->n_chains < n; clients->n_chains *= 2)
        ;
    clients->chains = calloc(clients->n_chains, sizeof(struct srv_client *));
    clients->entries = calloc(n, sizeof *clients->entries);
    pthread_mutex_init(&clients->lock, NULL);
    clients->seed = (uint64_t)(uintptr_t)clients->entries * UINT64_C(0x9e3779b97f4a7c15);
    if (clients->chains == NULL || clients->entries == NULL) {
        srv_clients_destroy(clients);
        return NULL;
    }
    return clients;
}

void srv_clients_destroy(struct srv_clients *clients)
{
    if (clients == NULL)
        return;
    pthread_mutex_destroy(&clients->lock);
    free(clients->chains);
    free(clients->entries);
    free(clients);
}

/* IPv4 as a whole, IPv6 up to the half that its owner fills in as he likes. */
static void client_of(const uint8_t address[16], uint8_t out[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(out, address, 16);
    if (memcmp(address, mapped, sizeof mapped) != 0)
        memset(out + 8, 0, 8);
}

static struct srv_client **chain_of(const struct srv_clients *clients, const uint8_t address[16])
{
    uint64_t words[2];
    memcpy(words, address, sizeof words);
    uint64_t x = (words[0] ^ clients->seed) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 29 ^ words[1]) * UINT64_C(0x94d049bb133111eb);
    return &clients->chains[(x ^ x >> 32) & (clients->n_chains - 1)];
}

static void unlink_away_locked(struct srv_clients *clients, struct srv_client *client)
{
    *(client->older != NULL ? &client->older->newer : &clients->oldest) = client->newer;
    *(client->newer != NULL ? &client->newer->older : &clients->newest) = client->older;
    client->older = client->newer = NULL;
}

static void link_away_locked(struct srv_clients *clients, struct srv_client *client)
{
    client->older = clients->newest;
    client->newer = NULL;
    *(client->older != NULL ? &client->older->newer : &clients->oldest) = client;
    clients->newest = client;
}

static void unlist_locked(struct srv_clients *clients, struct srv_client *client)
{
    struct srv_client **at = chain_of(clients, client->address);
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    client->is_listed = false;
}

/* An entry nobody needs: a fresh one, or the oldest that is away and holds no memory; else NULL. */
static struct srv_client *find_place_locked(struct srv_clients *clients)
{
    if (clients->n_used < clients->n)
        return &clients->entries[clients->n_used++];
    struct srv_client *client = clients->oldest;
    while (client != NULL &&
           atomic_load_explicit(&client->buffered_bytes, memory_order_acquire) > 0)
        client = client->newer;
    if (client == NULL)
        return NULL;
    unlink_away_locked(clients, client);
    unlist_locked(clients, client);
    return client;
}

/* The entry of an address, here; NULL when there is no place. */
static struct srv_client *list_locked(struct srv_clients *clients, const uint8_t address[16])
{
    struct srv_client **chain = chain_of(clients, address);
    struct srv_client *client = *chain;
    while (client != NULL && memcmp(client->address, address, 16) != 0)
        client = client->next;
    if (client != NULL) {
        if (client->n_conns == 0)
            unlink_away_locked(clients, client);
        return client;
    }
    client = find_place_locked(clients);
    if (client == NULL)
        return NULL;
    memcpy(client->address, address, 16);
    atomic_store_explicit(&client->due_us, 0, memory_order_relaxed);
    client->n_conns = 0;
    client->is_listed = true;
    client->next = *chain;
    *chain = client;
    return client;
}

struct srv_client *srv_clients_enter(struct srv_clients *clients, const uint8_t address[16],
                                     uint32_t limit, bool *is_over_out)
{
    uint8_t own[16];
    client_of(address, own);
    pthread_mutex_lock(&clients->lock);
    struct srv_client *client = list_locked(clients, own);
    *is_over_out = client == NULL || client->n_conns >= limit;
    if (client != NULL)
        client->n_conns++;
    pthread_mutex_unlock(&clients->lock);
    return client;
}

void srv_clients_leave(struct srv_clients *clients, struct srv_client *client)
{
    if (client == NULL)
        return;
    pthread_mutex_lock(&clients->lock);
    SRV_CHECK(client->n_conns > 0 && client->is_listed);
    if (--client->n_conns == 0)
        link_away_locked(clients, client);
    pthread_mutex_unlock(&clients->lock);
}

/* Requests are paid for with time: each adds its share of a second to what is due, and the client
 * may be in debt for a burst (the generic cell rate algorithm of ITU-T I.371). One word, so that
 * loops need no lock. */
bool srv_client_ask(struct srv_client *client, uint64_t now_us, uint32_t per_s, uint32_t burst)
{
    uint64_t price = MICROS / per_s;
    uint64_t credit = (uint64_t)burst * MICROS / per_s;
    uint64_t due = atomic_load_explicit(&client->due_us, memory_order_relaxed);
    uint64_t after;
    do {
        after = (due > now_us ? due : now_us) + price;
        if (after - now_us > credit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&client->due_us, &due, after,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}
