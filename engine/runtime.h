/* The runtime segment: volatile state that all processes of a store share and nobody trusts after a
 * reboot (a process's death leaves it as it is, and the next one goes on with it): locks, pins,
 * counters, and per directory slot what the hand needs to decide without reading data.
 *
 * It lives in a file of its own (tmpfs if it fits, else beside the volume), because a store to a
 * file-backed page is dirtied again after each writeback, through a fault that can wait for the
 * journal. Everything in it is an offset or an index, never a pointer.
 *
 * Owns:    the mapping, from eng_runtime_create or _attach to eng_runtime_close.
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
#include "engine/counters.h"
#include "engine/format.h"

#define ENG_RT_VERSION 4
#define ENG_PROCESSES 256
#define ENG_NOBODY ENG_PROCESSES /* owner of a reservation that is over but not yet ended */
#define ENG_PINS 32768
#define ENG_RUNS 1024         /* clean runs known per ring */
#define ENG_RESERVATIONS 4096 /* extents being written, per stripe */
#define ENG_GRANULE (16u << 10)
#define ENG_NO_SLOT UINT32_MAX
#define ENG_TENANTS 16384 /* tenants are numbered below */
#define ENG_BANS 1024

/* A process that has the store open. Counters outlive it: totals are sums over all slots. */
struct eng_process {
    _Atomic uint32_t pid;        /* [a] 0: free. For messages; alive is who holds byte 16 + index */
    _Atomic uint32_t generation; /* [a] of the slot: odd while it is in use */
    _Atomic uint32_t keeping;    /* [a] calls between eng_keep_begin and eng_keep_end */
    _Atomic uint32_t changing;   /* [a] changes of the meta pool that are under way */
    struct eng_counters counters[ENG_COUNTER_SHARDS];
};

/* A hazard pin: an extent whose bytes somebody reads, and the process slot that reads them. The
 * word's layout is pin.c's; 0 is free. Four to a cache line. */
struct eng_pin {
    _Atomic uint64_t word;
    uint64_t zero_;
};

/* What RT keeps per directory slot (slot = bucket * 7 + i). 16 bytes. word: generation 24 |
 * verified 1 | hits 2 | spare 5. The generation changes whenever the slot's entry does, so that a
 * late CAS of a reader cannot mark a newer document. */
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
    uint64_t start, end;      /* [w] units; start == end: free */
    _Atomic uint32_t process; /* [a] slot of its owner, who alone may set it to ENG_NOBODY */
    uint32_t is_slab;         /* [w] 1: documents inside it may be live already */
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
    uint32_t runs_in_flight;    /* [w] 1: the queue is being changed */
    uint64_t hand;              /* units: everything from `cursor` to here is decided */
    uint64_t clean_units;       /* sum of the runs */
    uint64_t laps;
    struct eng_run runs[ENG_RUNS];
};

struct eng_stripe_rt {
    struct eng_mutex alloc_lock; /* rings, reservations, directory, slots, segment table */
    struct eng_mutex clean_lock; /* the hand */
    struct eng_mutex sync_lock;  /* one sync at a time; taken before the others */
    uint64_t serial;             /* [w] last one given out */
    uint64_t blurred_serial;     /* [w] as the header's */
    _Atomic uint64_t live_units; /* [w], read by anyone */
    _Atomic uint64_t documents;
    _Atomic uint64_t reserved_units;
    _Atomic uint64_t pool_units[ENG_MAX_POOLS]; /* [w], as live_units, by the documents' pools */
    _Atomic uint64_t kept_units[ENG_MAX_POOLS]; /* [w] of these, with the keep bit */
    uint64_t written_units;                     /* [w] since the last sync */
    uint64_t bucket_in_flight;       /* [w] bucket + 1 while its version is odd; for a successor */
    uint64_t slot_in_flight;         /* [w] slot + 1 while its record may belong to the entry before
                                        or after */
    uint32_t slot_counted;           /* [w] that slot's record is part of the totals */
    uint64_t data_dev, data_ino;     /* [c] the data file */
    uint64_t header_generation;      /* [w] of the newest header */
    uint64_t serial_synced;          /* [w] as in that header */
    _Atomic uint64_t syncs_begun;    /* [a] */
    uint64_t sync_done;              /* [sync_lock] the last that succeeded, by its syncs_begun */
    uint32_t horizon_all, n_horizon; /* [w] 1: it announces every segment; rows below */
    uint32_t horizon[ENG_HORIZON];   /* [w] as in the last header written */
    uint32_t reservations_high;      /* [w] reservations from here on are free */
    struct eng_ring rings[ENG_MAX_POOLS]; /* by pool; kind M only until a policy splits them */
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

/*   MAKING -> OPEN [the opener that made it] -> CLEAN [the last to close] -> OPEN [who attaches] */
enum eng_rt_state { ENG_RT_MAKING, ENG_RT_OPEN, ENG_RT_CLEAN };

/* First page of the segment. */
struct eng_runtime_head {
    uint64_t magic;
    uint32_t version;
    uint32_t n_stripes;
    uint8_t uuid[16];
    char boot_id[40];
    uint64_t bytes;
    uint64_t layout; /* [c] sizes of the structures above: other builds do not attach */
    uint64_t process_off, pin_off;
    uint64_t tenant_off, ban_off;                  /* struct eng_tenant[ENG_TENANTS], eng_bans */
    uint64_t flight_off;                           /* struct eng_flights */
    struct eng_mutex facts_lock;                   /* superblock and ban table */
    _Atomic uint64_t pool_epoch[ENG_MAX_POOLS];    /* [f] as in the superblock */
    _Atomic uint32_t features;                     /* [f] feature_compat of the superblock */
    struct eng_mutex table_lock;                   /* process slots */
    struct eng_mutex leader_lock;                  /* maintenance, for a pass */
    _Atomic uint32_t state;                        /* [a] enum eng_rt_state */
    _Atomic uint32_t meta_used;                    /* [a] 1: the meta pool may hold something */
    _Atomic uint64_t changes_begun, changes_ended; /* [a] puts and deletions in the meta pool */
    _Atomic uint64_t pass_begun_ns;                /* [a] of the last maintenance pass */
    _Atomic uint64_t synced_ns;                    /* [a] when all stripes were last synced */
    _Atomic uint64_t swept_ns;             /* [a] when what is kept was last swept; 0: not yet */
    _Atomic uint64_t keeps_begun;          /* [a] calls of eng_keep_begin */
    _Atomic uint32_t abandoned;            /* [a] 1: there may be reservations of ENG_NOBODY */
    _Atomic uint32_t pins_high;            /* [a] pins from here on were never taken; only grows */
    uint64_t stripe_off[ENG_MAX_STRIPES];  /* struct eng_stripe_rt */
    uint64_t slot_off[ENG_MAX_STRIPES];    /* struct eng_slot[n_buckets * 7] */
    uint64_t granule_off[ENG_MAX_STRIPES]; /* u32 for each granule: first slot, or ENG_NO_SLOT */
};

struct eng_runtime {
    struct eng_runtime_head *head;
    uint64_t bytes;
    int fd;
    bool made; /* by this opening, and nobody knows of it yet */
    char path[512];
};

/* Makes a fresh runtime segment for the geometry in `super`: zeroed, locks initialised, no slot
 * listed. Tries `shm_dir` first (NULL: skip), then `store_dir`. DISK_FULL, ACCESS, IO, NO_FILES,
 * NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_runtime_create(const struct eng_superblock *super, const char *shm_dir,
                                          const char *store_dir, struct eng_runtime *rt_out);
/* Maps the segment that the file of this device and number at `path` is. NO_STORE: no such file.
 * INCOMPATIBLE: of another boot, store, geometry or build. STATE: its making never ended. ACCESS,
 * IO, NO_FILES, NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_runtime_attach(const struct eng_superblock *super, const char *path,
                                          uint64_t dev, uint64_t ino, struct eng_runtime *rt_out);
/* Says that the segment is in use: other stores' openings leave it alone for an hour. */
void eng_runtime_touch(const struct eng_runtime *rt);
/* Unmaps; unlinks the file as well when `unlink_file`. */
void eng_runtime_close(struct eng_runtime *rt, bool unlink_file);
/* Bytes eng_runtime_create would need. */
uint64_t eng_runtime_bytes(const struct eng_superblock *super);
