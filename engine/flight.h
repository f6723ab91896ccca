/* The flight table: which misses are being fetched, and by which process, so that several processes
 * that miss the same object fetch it once.
 *
 *   row: FREE -> TAKEN [eng_flight_begin] -> FREE, one generation later [eng_flight_end, or the
 *        owner's death]
 *
 * A row names a hash of the object's name, not the name: two objects of one hash wait for each
 * other, once in 2^64, and lose nothing but time. The table is an aid; who finds no row fetches all
 * the same.
 *
 * Owns:    a flight is its process's, until eng_flight_end or its death.
 * Threads: any. Blocks: eng_flight_begin, for others that begin one, within the store's bound;
 *          eng_flight_wait as long as it is told. Allocates: nothing. Keeps: E56.
 */
#pragma once

#include "engine/store.h"

#define ENG_FLIGHTS 4096
#define ENG_FLIGHT_SET 8u /* rows a hash may be in */
#define ENG_FLIGHT_NONE UINT32_MAX

/* A miss that is being fetched; in the runtime segment; the word's layout is flight.c's. */
struct eng_flight {
    _Atomic uint64_t hash; /* [lock] of the object's name, while the row is taken */
    _Atomic uint32_t word; /* [a] 0 owner: the row is free */
    uint32_t zero_;
};

struct eng_flights {
    struct eng_mutex lock;     /* taking rows */
    _Atomic uint32_t ended;    /* [a] counts the flights that ended; waited on */
    _Atomic uint32_t watchers; /* [a] who waits on `ended`, at least */
    struct eng_flight rows[ENG_FLIGHTS];
};

enum eng_flight_end {
    ENG_FLIGHT_GIVEN_UP, /* somebody else may fetch it */
    ENG_FLIGHT_STORED,   /* look again */
    ENG_FLIGHT_PASSED,   /* it was fetched and is not to be shared: each fetches for itself */
};

/* A flight as it was seen: its row and which use of that. */
struct eng_flight_ref {
    uint32_t row; /* ENG_FLIGHT_NONE: no row was free */
    uint32_t generation;
    uint32_t process; /* slot of its owner */
};

/* OK: it is this process's now, to be ended. EXISTS: another fetches it; the reference can be
 * waited for. NO_SPACE: no row is left for it. BUSY: a process was stopped inside the table. */
GYRE_MUST_USE gyre_err eng_flight_begin(struct eng_store *store, uint8_t pool,
                                        const uint8_t key[32], struct eng_flight_ref *ref_out);
/* Ends one of this process and wakes who waits; a reference without a row is allowed. */
void eng_flight_end(struct eng_store *store, const struct eng_flight_ref *ref,
                    enum eng_flight_end how);

/* Whether it has ended. Where the row was used again since, how it ended is not known any more, and
 * GIVEN_UP is said: whoever looks again finds what was stored. */
bool eng_flight_ended(const struct eng_store *store, const struct eng_flight_ref *ref,
                      enum eng_flight_end *how_out);
/* Waits for that until a point of eng_clock_mono_ns; true once it has. Ends it itself when its
 * process turns out to be dead. */
bool eng_flight_wait(struct eng_store *store, const struct eng_flight_ref *ref,
                     uint64_t deadline_ns, enum eng_flight_end *how_out);

/* How many flights have ended, of all processes; and waiting, for a moment at most, until it is
 * more than `seen`. */
uint32_t eng_flights_ended(const struct eng_store *store);
void eng_flights_wait(struct eng_store *store, uint32_t seen, uint64_t deadline_ns);

/* Ends all flights of a process slot whose process is dead, or leaves; how many. */
uint32_t eng_flights_reclaim(struct eng_store *store, uint32_t process);
