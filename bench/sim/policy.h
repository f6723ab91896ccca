/* Running a stream through a policy: the store's own, or one of the references.
 *
 * A request that finds its object is a hit; one that does not puts it. What is counted begins after
 * `warm` requests.
 *
 * Threads: one. Blocks: the store, on its files.
 */
#pragma once

#include "bench/sim/requests.h"

struct sim_result {
    uint64_t requests, hits; /* after the warm-up */
    uint64_t bytes, hit_bytes;
    uint64_t inserted, rewritten; /* bytes, all of the run; references rewrite nothing */
    uint64_t prefix_hits;         /* hits whose chain was there from its beginning on */
    uint64_t mode_switches, hops, promotions, copies, ghost_finds;
    uint32_t mode;    /* at the end */
    bool chain_holds; /* all of the present chain was there so far */
};

struct sim_run {
    const struct sim_requests *requests;
    uint64_t capacity_bytes;
    size_t warm;
    void (*progress)(void *data, size_t done, size_t total); /* NULL: none */
    void *progress_data;
};

/* ---- References: ideal, no space is lost to anything ---- */

struct sim_reference {
    const char *name;
    void (*run)(const struct sim_run *run, struct sim_result *result_out);
};
extern const struct sim_reference sim_references[];
extern const size_t sim_n_references;
const struct sim_reference *sim_reference_of(const char *name);

/* ---- The store ---- */

struct sim_store {
    const char *dir; /* where a directory for it can be made, and is removed again */
    uint64_t segment_bytes;
    uint32_t average_object_bytes; /* 0: chosen from the size */
    uint32_t stripes;
    int retention; /* enum eng_retention */
    bool real;     /* bodies are written, and the keeper runs */
};

/* Makes a store of about the capacity of `run`, through the engine's own policy and allocator; sets
 * run->capacity_bytes to what it really has. False: `message` says why. */
bool sim_store_run(struct sim_run *run, const struct sim_store *store,
                   struct sim_result *result_out, char *message, size_t message_size);

/* Counting, for both. */
void sim_count(const struct sim_run *run, struct sim_result *result, size_t i, bool hit);
