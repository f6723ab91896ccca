/* What supervisor and workers of a torture share, in memory that outlives any of them. */
#pragma once

#include <stdatomic.h>

#include "tests/torture/torture.h"

enum {
    KEYS = 240,
    WORKERS_MAX = 4,
    WRITERS = 2, /* threads of a worker */
    THREADS = 6,
    COUNTERS = 4,
    SLOTS = WORKERS_MAX * WRITERS, /* each key belongs to one */
};

/* A thread of a worker: when its present call began. */
struct beat {
    _Atomic uint64_t since_ns; /* 0: it is not in one */
};

struct board {
    struct torture torture;
    uint64_t capacity_bytes; /* from the first worker; a stale 0 means: not known yet */
    _Atomic uint32_t stop, failed, opened;
    char failure[512];
    _Atomic uint64_t puts, put_bytes, gets, found, held, deletes, refused, counted;
    _Atomic uint64_t version[KEYS]; /* newest one begun */
    _Atomic uint64_t seen[KEYS];    /* newest one that was read, or acknowledged */
    _Atomic uint64_t tried[COUNTERS], acknowledged[COUNTERS];
    struct beat beats[WORKERS_MAX][THREADS];
};

/* Ends the calling worker; the first of them is reported. */
__attribute__((format(printf, 2, 3))) _Noreturn void board_fail(struct board *board,
                                                                const char *format, ...);

/* The life of a worker, in a process of its own, until board->stop. */
void worker_run(struct board *board, unsigned index, uint64_t seed);
