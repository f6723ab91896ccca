/* The runtime segment: volatile state that all processes of a store share and nobody trusts after a
 * reboot: locks, pins, counters, and per directory slot what the hand needs to decide without
 * reading data.
 *
 * It lives in a file of its own (tmpfs if it fits, else beside the volume), because a store to a
 * file-backed page is dirtied again after each writeback, through a fault that can wait for the
 * journal. Everything in it is an offset or an index, never a pointer.
 *
 * Owns:    the mapping, from eng_runtime_create to eng_runtime_close.
 * Threads: fields carry keys: [c] const after open, [a] atomic, [w] written under the stripe's
 * alloc lock, [k] under its clean lock, [f] under facts_lock. Blocks:  creation reserves the pages,
 * so that no later touch can fail.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/gyre_err.h"
#include "engine/base/mutex.h"
#include "engine/format.h"
#include "engine/policy.h"
#include "engine/shadow.h"

#define ENG_RT_VERSION 2
#define ENG_PROCESSES 256
#define ENG_PINS 32768
#define ENG_RINGS (2 * ENG_MAX_POOLS) /* M of a pool: its number; S: ENG_MAX_POOLS behind it */
#define ENG_RUNS 1024                 /* clean runs known per ring */
#define ENG_RESERVATIONS 4096 /* extents being written, per stripe */
#define ENG_GRANULE (16u << 10)
#define ENG_NO_SLOT UINT32_MAX
#define ENG_SAMPLES 1024  /* sampled requests that wait for the shadow, per stripe */
#define ENG_TENANTS 16384 /* tenants are numbered below */
#define ENG_BANS 1024
#define ENG_COUNTER_SHARDS 8

/* X(name) for each counter kept per process and thread shard. */
#define ENG_COUNTERS(X)    \
    X(hits)                \
    X(misses)              \
    X(puts)                \
    X(put_bytes)           \
    X(deletes)             \
    X(evictions)           \
    X(evicted_bytes)       \
    X(displacements)       \
    X(expirations)         \
    X(checksum_failures)   \
    X(tag_collisions)      \
    X(lookup_retries)      \
    X(laps)                \
    X(hops)                \
    X(promotions)          \
    X(copies)              \
    X(copied_bytes)        \
    X(ghost_finds)         \
    X(mode_switches)       \
    X(syncs)               \
    X(recovered_documents) \
    X(bans_met)

struct eng_counters {
#define X(name) _Atomic uint64_t name;
    _Alignas(64) ENG_COUNTERS(X)
#undef X
};

/* A process that has the store open. */
struct eng_process {
    _Atomic uint32_t
        pid; /* [a] 0: free. For messages; liveness is the lock file's byte 16 + index */
    _Atomic uint32_t generation;
    struct eng_counters counters[ENG_COUNTER_SHARDS];
};

/* A hazard pin: an extent whose bytes somebody reads. word: 0 free, 1 taken but empty, else
 * ENG_PIN(stripe, entry). */
struct eng_pin {
    _Atomic uint64_t word;
    _Atomic uint32_t process;
    uint32_t next_free_; /* unused when taken */
};

/* What RT keeps per directory slot (slot = bucket * 7 + i). 16 bytes. word: generation 22 |
 * verified 1 | hits 2 | estimate 1 | grade 2 | epoch 4. The generation changes whenever the slot's
 * entry does, so that a late CAS of a reader cannot mark a newer document. */
struct eng_slot {
    _Atomic uint32_t word; /* [a] */
    uint32_t units;        /* [w] extent length in ENG_UNIT */
    uint32_t next;   /* [w] next slot whose document starts in the same granule; ENG_NO_SLOT ends */
    uint16_t tenant; /* [w] */
    uint8_t retention; /* [w] */
    uint8_t class_;    /* [w] pool and more: engine/slot.h */
};

/* Bytes of a stripe's segment area, both in ENG_UNIT. */
struct eng_run {
    uint64_t start, end;
};

/* An extent that is being written, or a slab. */
struct eng_reservation {
    uint64_t start, end; /* [w] units; start == end: free */
    uint32_t process;    /* [w] */
    uint32_t is_slab;    /* [w] 1: documents inside it may be live already */
};

/* One ring. [w] but for `hand`, which moves under the clean lock and is read under either. */
struct eng_ring {
    uint32_t n_segments;   /* 0: the ring is not in use */
    uint32_t max_segments; /* takes FREE segments up to here */
    uint32_t tail_segment; /* last in succession; a new segment is linked behind it */
    uint32_t write_segment;
    uint64_t cursor; /* units: end of the newest reservation */
    uint32_t hand_segment;
    uint32_t n_runs, first_run; /* circular queue below */
    uint32_t n_left;            /* the oldest runs, that newer ones were written before */
    uint64_t hand;        /* units: everything from `cursor` to here is decided */
    uint64_t clean_units; /* sum of the runs */
    uint64_t laps;
    struct eng_run runs[ENG_RUNS];
};

/* Sampled requests on their way to the shadow. Why a stale answer is safe: a place that is read
 * before it was written, or twice, is one wrong sample among a thousand. */
struct eng_samples {
    _Atomic uint32_t shift; /* [a] one key in 2^shift is sampled */
    _Atomic uint32_t off;   /* [a] 1: none is */
    _Atomic uint64_t head;  /* [a] events written */
    uint64_t tail;          /* [k] events read */
    _Atomic uint64_t at[ENG_SAMPLES];
};

struct eng_stripe_rt {
    struct eng_mutex alloc_lock; /* rank 2: rings, reservations, directory, slots, segment table */
    struct eng_mutex clean_lock; /* rank 1: the hand */
    uint64_t serial;             /* [w] last one given out */
    uint64_t blurred_serial;     /* [w] as the header's */
    _Atomic uint64_t live_units; /* [w], read by anyone */
    _Atomic uint64_t documents;
    _Atomic uint64_t parts;     /* of these, PARTs */
    _Atomic uint64_t estimates; /* of these, with a length that is no more than an upper bound */
    _Atomic uint64_t reserved_units;
    _Atomic uint64_t pool_units[ENG_MAX_POOLS]; /* [w], as live_units, by the documents' pools */
    _Atomic uint64_t kept_units[ENG_MAX_POOLS]; /* [w] of these, with the keep bit */
    uint64_t written_units;                     /* [w] since the last sync */
    uint64_t
        bucket_in_flight; /* [w] bucket + 1 while its version is odd: what a successor repairs */
    uint32_t n_horizon;
    uint32_t horizon[ENG_HORIZON];        /* [w] as in the last header written */
    uint32_t reservations_high;           /* [w] reservations from here on are free */
    _Alignas(64) struct eng_policy policy; /* [w] */
    uint64_t epoch_units;         /* [w] reserved in this epoch */
    _Alignas(64) _Atomic uint32_t epoch; /* [a] counts 64ths of the stripe that were written; on a
                                            line of its own, since every hit reads it */
    _Alignas(64) struct eng_ghost ghost;  /* [w] */
    struct eng_ring rings[ENG_RINGS];
    struct eng_samples samples;
    struct eng_shadow shadow; /* [k] */
    struct eng_reservation reservations[ENG_RESERVATIONS];
    struct eng_segment_row segments[ENG_MAX_SEGMENTS]; /* [w] working copy of the table */
};

/* What a tenant's documents take in all stripes and pools, and what they may. */
struct eng_tenant {
    _Atomic uint64_t units;
    _Atomic uint64_t quota_units; /* 0: no bound */
};

/* One row of the ban table, as in struct eng_ban_row. */
struct eng_ban {
    _Atomic uint64_t hash, time_ms;
    _Atomic uint32_t kind, pool;
};

/* The ban table and an index by hash. [f] written under facts_lock. */
struct eng_bans {
    _Atomic uint32_t n;            /* [f] rows from here on are unused; 0: nothing is banned */
    _Atomic uint32_t version;      /* [f] odd while rows move */
    _Atomic uint64_t newest_ticks; /* [f] of all bans */
    _Atomic uint64_t stored_ticks; /* [a] newest time given to a document */
    struct eng_ban rows[ENG_BANS];
    _Atomic uint16_t index[2 * ENG_BANS]; /* row + 1; open addressing */
};

/* First page of the segment. */
struct eng_runtime_head {
    uint64_t magic;
    uint32_t version;
    uint32_t n_stripes;
    uint8_t uuid[16];
    char boot_id[40];
    uint64_t bytes;
    uint64_t process_off, pin_off;
    uint64_t tenant_off;                        /* struct eng_tenant[ENG_TENANTS] */
    uint64_t ban_off;                           /* struct eng_bans */
    struct eng_mutex facts_lock;                /* rank 0.5: superblock and ban table */
    _Atomic uint64_t pool_epoch[ENG_MAX_POOLS]; /* [f] as in the superblock */
    _Atomic uint32_t features;                  /* [f] feature_compat of the superblock */
    _Atomic uint32_t pins_high; /* [a] pins from here on were never taken; only grows */
    uint32_t zero_;
    uint64_t stripe_off[ENG_MAX_STRIPES];  /* struct eng_stripe_rt */
    uint64_t slot_off[ENG_MAX_STRIPES];    /* struct eng_slot[n_buckets * 7] */
    uint64_t parent_off[ENG_MAX_STRIPES];  /* u64[segment area / 64 KiB] */
    uint64_t ghost_off[ENG_MAX_STRIPES];   /* u16[eng_ghost_places(slots)] */
    uint64_t granule_off[ENG_MAX_STRIPES]; /* u32[segment area / ENG_GRANULE]: first slot,
                                              ENG_NO_SLOT if none */
};

struct eng_runtime {
    struct eng_runtime_head *head;
    uint64_t bytes;
    int fd;
    char path[512];
};

/* Makes a fresh runtime segment for the geometry in `super`: zeroed, locks initialised, no slot
 * listed. Tries `shm_dir` first (NULL: skip), then `store_dir`. DISK_FULL, ACCESS, IO, NO_FILES,
 * NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_runtime_create(const struct eng_superblock *super, const char *shm_dir,
                                          const char *store_dir, struct eng_runtime *rt_out);
/* Unmaps; unlinks the file as well when `unlink_file`. */
void eng_runtime_close(struct eng_runtime *rt, bool unlink_file);
/* Bytes eng_runtime_create would need. */
uint64_t eng_runtime_bytes(const struct eng_superblock *super);
