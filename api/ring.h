/* Reads of the data files that no thread waits for: io_uring brings bytes into the page cache, and
 * the kernel says when. Where it may not be used (an old kernel, seccomp, a switch of the
 * administrator's), nothing works and the caller waits on a thread of its own.
 *
 * Owns:    its ring and one thread, from the first read to api_ring_stop.
 * Threads: any may ask; `done` is called on the ring's thread and must be short.
 * Blocks:  asking never does; stopping waits for the thread.
 * Allocates: per read a little.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/lock.h"
#include "engine/base/thread.h"

struct api_ring;

/* Bytes of a file. */
struct api_span {
    int fd;
    uint64_t off, len;
};

/* A ring and its thread; NULL where they cannot be had. */
struct api_ring *api_ring_create(void);
/* No read is under way. Not on the ring's own thread. NULL is allowed. */
void api_ring_destroy(struct api_ring *ring);

/* Reads the spans; `done(data)` once all have been, well or badly: whoever needs them finds out
 * when he touches them. False, and nothing is called, when too much is under way. */
bool api_ring_read(struct api_ring *ring, const struct api_span *spans, size_t n,
                   void (*done)(void *data), void *data);
