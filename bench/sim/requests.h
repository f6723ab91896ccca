/* Streams of requests: made up by name, or read from recorded traces.
 *
 * Owns:    the array, from sim_*_make or sim_trace_read to sim_requests_fini.
 * Threads: one. Blocks: on the trace file. Allocates: all requests at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One request. `id` numbers the keys densely from 0, so that references can be plain arrays. */
struct sim_request {
    uint32_t id, size; /* size in bytes, at least 1 */
};

struct sim_requests {
    struct sim_request *at;
    size_t n, room;
    uint32_t n_ids;
    uint64_t footprint_bytes; /* all keys, each with the size of its first request */
    uint32_t *group;          /* chain each request belongs to, one after the other; NULL: none */
};

void sim_requests_fini(struct sim_requests *requests);
/* Exits with a message when memory runs out, as the program would. */
void sim_requests_add(struct sim_requests *requests, uint32_t id, uint32_t size);
/* Sets n_ids and footprint_bytes. */
void sim_requests_close(struct sim_requests *requests);

/* A made-up stream. */
struct sim_stream {
    const char *name, *text;
    uint64_t capacity_bytes; /* of the store it is meant for */
    uint64_t segment_bytes;
    size_t n_requests;
    void (*make)(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed);
};

extern const struct sim_stream sim_streams[];
extern const size_t sim_n_streams;
/* Makes `stream` scaled: capacity divided by `divisor`, which divides the number of requests too.
 */
void sim_stream_make(const struct sim_stream *stream, uint32_t divisor, uint64_t seed,
                     struct sim_requests *requests_out, uint64_t *capacity_out,
                     uint64_t *segment_out);

/* Reads a trace. Formats: "oracleGeneral" (libCacheSim: 24-byte records of u32 time, u64 id, u32
 * size, i64 next), "arc" (lines of first block, count, ...), "lines" (one key a line), "sized"
 * (lines of time, key, size), "address" (lines of an access kind and a hexadecimal address),
 * "mooncake" (JSON lines with "hash_ids": chains of blocks), "u64" and "u32be" (bare binary keys).
 * NULL: by the file's looks. `fixed` bytes an object, where the trace has no sizes or, for nonzero
 * `force`, anyway. At most `most` requests. False: `message` says why. */
bool sim_trace_read(const char *path, const char *format, uint32_t fixed, bool force, size_t most,
                    struct sim_requests *requests_out, char *message, size_t message_size);
