/* An open store: files, mappings and stripes, in this process.
 *
 * Owns:    everything below, from eng_store_open to the last eng_store_unref.
 * Threads: const after open but for the atomics.
 * Keeps:   see engine/README.md.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/gyre_err.h"
#include "engine/format.h"
#include "engine/runtime.h"

/* 64 bytes, one cache line. ctl: version in the low 32 bits, odd while a writer is at work. */
struct eng_bucket {
    _Atomic uint64_t ctl;
    _Atomic uint64_t entry[ENG_BUCKET_ENTRIES];
};

struct eng_slab_cache; /* engine/slab.h */
struct eng_flights;    /* engine/flight.h */
struct eng_lockfile;   /* engine/lockfile.h */
struct eng_keeper;     /* engine/keeper.h */

struct eng_stripe {
    struct eng_store *store;        /* [c] */
    struct eng_stripe_rt *rt;       /* [c] */
    struct eng_slot *slots;         /* [c] in RT */
    _Atomic uint32_t *granules;     /* [c] in RT */
    _Atomic uint64_t *parents;      /* [c] in RT; engine/parent.h */
    uint16_t *ghost;                /* [c] in RT; written under the alloc lock */
    uint64_t n_ghost;               /* [c] places in it */
    struct eng_bucket *buckets;     /* [c] shared mapping of the volume file */
    const uint8_t *data;            /* [c] read-only mapping of the segment area */
    uint64_t area_bytes;            /* [c] n_segments * segment_bytes */
    uint64_t segment_units;         /* [c] */
    uint32_t n_buckets, n_segments; /* [c] */
    uint32_t index;                 /* [c] */
    uint32_t crc_seed;              /* [c] of document headers: from uuid and stripe */
    int fd;                         /* [c] data file */
    char *path;                     /* [c] */
    struct eng_slab_cache *slabs;   /* this process's; own locking */
};

struct eng_dir {
    char *path;
    uint64_t size_bytes;
};

/* What the caller of eng_store_open decides; mirrors gyre_options. */
struct eng_open {
    const struct eng_dir *dirs;
    uint32_t n_dirs;
    uint64_t size_bytes;
    bool may_create, reset, replace_lost;
    bool read_only; /* nothing is locked, made or written: to look at the files alone */
    uint64_t segment_bytes;
    uint32_t stripes, average_object_bytes;
    uint32_t sync_interval_ms;
    const struct eng_pool_want *pools; /* geometry.h */
    uint32_t n_pools;
    uint32_t lock_wait_ms; /* for other processes that open or close it; 0: half a minute */
    enum eng_retention retention;
    bool hollow; /* bodies are not written, files not allocated, no thread is started: for
                    simulations of policy and space */
    void (*progress)(void *data, const char *what, uint64_t done, uint64_t total);
    void *progress_data;
    char *message; /* gets the sentence on failure */
    size_t message_size;
};

struct eng_store {
    struct eng_superblock super; /* [c] newest valid copy */
    struct eng_runtime rt;       /* [c] */
    struct eng_process *process; /* [c] this process's slot */
    struct eng_pin *pins;        /* [c] ENG_PINS of them */
    struct eng_tenant *tenants;  /* [c] ENG_TENANTS of them, in RT */
    struct eng_bans *bans;       /* [c] in RT */
    struct eng_flights *flights; /* [c] in RT */
    struct eng_stripe stripes[ENG_MAX_STRIPES];
    uint32_t n_stripes;
    uint32_t stripe_end[ENG_MAX_STRIPES]; /* [c] segments of this and the stripes before: shares of
                                             the keys */
    bool directory_locked;                /* [c] the directories cannot be paged out */
    uint32_t process_index;               /* [c] valid once `joined` */
    bool read_only; /* [c] only super, volume and the stripes' files are there */
    bool joined;    /* this process has a slot */
    bool opened;    /* the opening succeeded */
    int volume_fd;
    uint8_t *volume; /* mapping of the whole volume file */
    char *volume_path;
    struct eng_lockfile *lock; /* engine/lockfile.h */
    _Atomic uint32_t refs;     /* handles and puts keep it alive after close */
    _Atomic uint32_t closing;  /* 1: new work is refused */
    _Atomic uint32_t active;   /* calls in progress that a close waits for */
    uint32_t sync_interval_ms;
    uint64_t lock_wait_ns;     /* [c] bound on waiting for another process in a stripe's lock */
    bool hollow;               /* [c] as asked for in eng_open */
    struct eng_keeper *keeper; /* engine/keeper.h; NULL while none runs */
};

/* Opens or makes a store and recovers it. Results as gyre_open; open->message gets the sentence. */
GYRE_MUST_USE gyre_err eng_store_open(const struct eng_open *open, struct eng_store **store_out);

/* Stops the keeper, syncs, writes clean headers and drops the opener's reference; files stay locked
 * while references remain. With `clean` false the headers stay unclean. IO when the sync failed. */
GYRE_MUST_USE gyre_err eng_store_close(struct eng_store *store, bool clean);

void eng_store_ref(struct eng_store *store);
/* The last one unmaps, unlocks and frees. */
void eng_store_unref(struct eng_store *store);

/* The stripe of a key hash. */
struct eng_stripe *eng_stripe_of(struct eng_store *store, uint64_t hash);

/* The counters this thread adds to. */
struct eng_counters *eng_counters(struct eng_store *store);
#define ENG_COUNT(store, name, n) \
    atomic_fetch_add_explicit(&eng_counters(store)->name, (n), memory_order_relaxed)
