#include "bench/sim/requests.h"

#include <string.h>

#include "bench/sim/random.h"

void sim_requests_fini(struct sim_requests *requests)
{
    free(requests->at);
    free(requests->group);
    *requests = (struct sim_requests){0};
}

void sim_requests_add(struct sim_requests *requests, uint32_t id, uint32_t size)
{
    if (requests->n == requests->room) {
        requests->room = requests->room > 0 ? 2 * requests->room : 1 << 16;
        struct sim_request *at = realloc(requests->at, requests->room * sizeof *at);
        if (at == NULL) {
            fprintf(stderr, "policy_sim: out of memory: take a shorter trace\n");
            exit(1);
        }
        requests->at = at;
    }
    requests->at[requests->n++] = (struct sim_request){id, size > 0 ? size : 1};
}

/* Keys in the order they appear get the numbers from 0 on. */
void sim_requests_close(struct sim_requests *requests)
{
    size_t room = 1024;
    while (room < 2 * requests->n)
        room *= 2;
    uint32_t *table = sim_alloc(room, sizeof *table);
    uint32_t *key_of = sim_alloc(requests->n, sizeof *key_of);
    requests->n_ids = 0;
    requests->footprint_bytes = 0;
    for (size_t i = 0; i < requests->n; i++) {
        uint32_t key = requests->at[i].id;
        size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (room - 1);
        while (table[at] != 0 && key_of[table[at] - 1] != key)
            at = (at + 1) & (room - 1);
        if (table[at] == 0) {
            key_of[requests->n_ids] = key;
            table[at] = ++requests->n_ids;
            requests->footprint_bytes += requests->at[i].size;
        }
        requests->at[i].id = table[at] - 1;
    }
    free(key_of);
    free(table);
}
