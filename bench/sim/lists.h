/* Doubly linked lists of keys in arrays, each key in one list at most, with the bytes of each list.
 *
 * Threads: one. Allocates: at init.
 */
#pragma once

#include "bench/sim/random.h"

enum { SIM_LISTS = 4 };

struct sim_lists {
    uint32_t n; /* keys; list k's end is number n + k */
    uint32_t *prev, *next;
    uint32_t *size;
    uint8_t *in; /* list + 1; 0: none */
    uint64_t bytes[SIM_LISTS];
    uint32_t count[SIM_LISTS];
};

static inline void sim_lists_init(struct sim_lists *lists, uint32_t n)
{
    *lists = (struct sim_lists){
        .n = n,
        .prev = sim_alloc(n + SIM_LISTS, sizeof(uint32_t)),
        .next = sim_alloc(n + SIM_LISTS, sizeof(uint32_t)),
        .size = sim_alloc(n, sizeof(uint32_t)),
        .in = sim_alloc(n, 1),
    };
    for (uint32_t k = 0; k < SIM_LISTS; k++)
        lists->prev[n + k] = lists->next[n + k] = n + k;
}

static inline void sim_lists_fini(struct sim_lists *lists)
{
    free(lists->prev), free(lists->next), free(lists->size), free(lists->in);
}

static inline void sim_list_push(struct sim_lists *lists, uint32_t list, uint32_t id)
{
    uint32_t end = lists->n + list;
    uint32_t first = lists->next[end];
    lists->next[end] = id, lists->prev[id] = end;
    lists->next[id] = first, lists->prev[first] = id;
    lists->in[id] = (uint8_t)(list + 1);
    lists->bytes[list] += lists->size[id];
    lists->count[list]++;
}

static inline void sim_list_remove(struct sim_lists *lists, uint32_t id)
{
    uint32_t list = lists->in[id] - 1u;
    lists->next[lists->prev[id]] = lists->next[id];
    lists->prev[lists->next[id]] = lists->prev[id];
    lists->in[id] = 0;
    lists->bytes[list] -= lists->size[id];
    lists->count[list]--;
}

/* The one pushed longest ago, or, with an empty list, its end. */
static inline uint32_t sim_list_last(const struct sim_lists *lists, uint32_t list)
{
    return lists->prev[lists->n + list];
}

static inline bool sim_list_empty(const struct sim_lists *lists, uint32_t list)
{
    return lists->count[list] == 0;
}
