/* Fetches of this process: who fetches an object, who reads along, who waits.
 *
 *   FETCHING -> BEGUN [gyre_fill_begin] -> STORED [gyre_fill_commit]
 *   FETCHING, BEGUN -> PASSED [gyre_fill_pass], BROKEN [gyre_fill_abort]
 *
 * A flight is in its store's table from the miss to its end, and lives on until the last follower
 * has left: what followers may still read is pinned, or copied if it is small.
 *
 * Locks: api_misses.lock guards the table and [t], api_flight.lock guards [f]. The second may be
 * held when watch_lock is taken, and neither is ever taken inside the other.
 * Threads: any. Allocates: a flight, a fill and a follower each.
 */
#pragma once

#include "engine/base/lock.h"
#include "engine/base/thread.h"
#include "engine/flight.h"
#include "engine/writer.h"

#include "api/gyre.h"

#define API_FLIGHT_CHAINS 256u

enum api_flight_state { API_FETCHING, API_BEGUN, API_STORED, API_PASSED, API_BROKEN };

/* Bytes of the object that lie in the log. */
struct api_extent {
    int fd;
    uint64_t file_off, start, len; /* start: offset in the object */
    uint32_t pin;
};

/* Somebody to be called when there is something new. */
struct api_waker {
    struct api_waker *next;
    uint64_t offset;
    void (*wake)(void *data);
    void *data;
    bool waits_for_begin; /* else for bytes past `offset` */
    bool listed;
};

struct api_flight {
    struct gyre_store *store;
    struct gyre_key key;       /* [c] */
    uint8_t pool;              /* [c] */
    uint32_t life, shard;      /* [c] of its claim on the store */
    struct eng_flight_ref row; /* [c] in the table of all processes */
    struct api_flight *next;   /* [t] */
    uint32_t refs;             /* [t] its fill, its followers, and who waits for it */
    struct eng_lock lock;
    struct eng_cond changed;
    enum api_flight_state state; /* [f] */
    gyre_err err;                /* [f] BROKEN: what followers get */
    struct gyre_put *put;        /* [f] while BEGUN */
    struct gyre_info info;       /* [f], const once BEGUN */
    void *meta;                  /* [f], const once BEGUN; owned */
    bool failed;                 /* [f] followers get `err`, whatever becomes of the object */
    uint64_t readable;           /* [f] bytes that followers may read */
    uint32_t followers;          /* [f] */
    uint32_t reading;            /* [f] reads of the log under way without the lock */
    struct api_waker *wakers;    /* [f] */
    uint8_t *small;              /* [f] STORED: all of a small object; owned */
    struct api_extent *extents;  /* [f] STORED: of a big one; owned, and pinned */
    size_t n_extents;
};

struct api_seek_call; /* seek_async.c */

struct api_misses {
    struct eng_lock lock;
    struct eng_cond settled;                      /* a flight has ended */
    struct api_flight *chains[API_FLIGHT_CHAINS]; /* [t] */
    uint32_t n_flights;                           /* [t] in the chains */
    struct eng_lock watch_lock;                   /* guards what follows */
    struct eng_cond watch;
    struct api_seek_call *watched; /* asynchronous calls that wait */
    struct eng_thread watcher;     /* started by the first of those */
    bool has_watcher, stop;
};

void api_misses_init(struct api_misses *misses);
/* Ends the watcher's thread; no call waits any more. */
void api_misses_stop(struct api_misses *misses);

/* ---- flight.c ---- */

/* Takes a flight out of the table: nobody new finds it. */
void api_flight_unlist(struct api_flight *flight);
/* Gives one reference back; the last frees it. */
void api_flight_unref(struct api_flight *flight);
/* Calls the wakers that are due, and wakes who waits. */
void api_flight_wake_locked(struct api_flight *flight);
/* Takes a waker back: it is not called any more. */
void api_waker_unlist_locked(struct api_flight *flight, struct api_waker *waker);

/* ---- fill.c and follow.c ---- */

/* NULL without memory; takes over the flight's first reference. */
struct gyre_fill *api_fill_make(struct api_flight *flight);
/* Ends a flight that nothing was stored of, with the reference of its fill. */
void api_flight_end(struct api_flight *flight, enum api_flight_state state, gyre_err err);
/* NULL without memory; takes over a reference. */
struct gyre_follow *api_follow_make_locked(struct api_flight *flight);
