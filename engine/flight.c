#include "engine/flight.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/locks.h"
#include "engine/process.h"

/* word: owner's process slot + 1, 0 free: 8..0 | somebody waits: 9 | how the use before ended:
 * 11..10 | generation: 31..12 */
#define OWNER UINT32_C(0x1FF)
#define WAITED UINT32_C(0x200)
#define END_SHIFT 10
#define GENERATION_SHIFT 12
#define GENERATIONS (UINT32_C(1) << (32 - GENERATION_SHIFT))

/* Between two looks whether the owner is alive. */
#define LOOK_NS UINT64_C(50000000)

static long futex(const _Atomic uint32_t *word, int op, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* Sleeps while the word has that value, up to a look or the deadline. */
static void sleep_on(const _Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
    uint64_t now_ns = eng_clock_mono_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    if (left_ns > LOOK_NS)
        left_ns = LOOK_NS;
    const struct timespec timeout = {.tv_nsec = (long)left_ns};
    if (left_ns > 0)
        (void)!futex(word, FUTEX_WAIT, value, &timeout);
}

static uint32_t generation_of(uint32_t word)
{
    return word >> GENERATION_SHIFT;
}

static uint32_t ended_word(uint32_t word, enum eng_flight_end how)
{
    return ((generation_of(word) + 1) % GENERATIONS) << GENERATION_SHIFT | (uint32_t)how
                                                                               << END_SHIFT;
}

static uint32_t owner_of(const struct eng_store *store)
{
    return store->process_index + 1;
}

static uint64_t hash_of(const struct eng_store *store, uint8_t pool, const uint8_t key[32])
{
    const struct eng_superblock *super = &store->super;
    return eng_key_hash(key, super->hash_seed[0] ^ eng_mix64(pool + 1u), super->hash_seed[1]);
}

/* Takes the one that is there, or a free one. Rows are taken under the lock and freed without, so
 * a row that is seen free stays so. */
static gyre_err take_row_locked(struct eng_store *store, uint64_t hash,
                                struct eng_flight_ref *ref_out)
{
    uint32_t first = (uint32_t)(hash % (ENG_FLIGHTS / ENG_FLIGHT_SET)) * ENG_FLIGHT_SET;
    uint32_t free_row = ENG_FLIGHT_NONE;
    for (uint32_t row = first; row < first + ENG_FLIGHT_SET; row++) {
        struct eng_flight *flight = &store->flights->rows[row];
        /* Acquire pairs with B: what was stored in a flight that is seen ended is found. */
        uint32_t word = atomic_load_explicit(&flight->word, memory_order_acquire);
        if ((word & OWNER) == 0) {
            free_row = free_row == ENG_FLIGHT_NONE ? row : free_row;
        } else if (atomic_load_explicit(&flight->hash, memory_order_relaxed) == hash) {
            *ref_out = (struct eng_flight_ref){row, generation_of(word), (word & OWNER) - 1};
            return GYRE_EXISTS;
        }
    }
    if (free_row == ENG_FLIGHT_NONE)
        return GYRE_NO_SPACE;
    struct eng_flight *flight = &store->flights->rows[free_row];
    uint32_t word = atomic_load_explicit(&flight->word, memory_order_relaxed);
    atomic_store_explicit(&flight->hash, hash, memory_order_relaxed);
    GYRE_STEP("flight.begin.hash");
    atomic_store_explicit(&flight->word, (word & ~(OWNER | WAITED)) | owner_of(store),
                          memory_order_release);
    *ref_out = (struct eng_flight_ref){free_row, generation_of(word), store->process_index};
    return GYRE_OK;
}

/* Each row is whole by itself, whenever the lock's holder died. */
gyre_err eng_flight_begin(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                          struct eng_flight_ref *ref_out)
{
    *ref_out = (struct eng_flight_ref){.row = ENG_FLIGHT_NONE};
    enum eng_mutex_result result = eng_lock_bounded(store, &store->flights->lock);
    if (result == ENG_MUTEX_BUSY)
        return GYRE_BUSY;
    if (result == ENG_MUTEX_OWNER_DEAD)
        eng_mutex_consistent(&store->flights->lock);
    gyre_err err = take_row_locked(store, hash_of(store, pool, key), ref_out);
    eng_mutex_unlock(&store->flights->lock);
    return err;
}

/* Frees the row unless that was done already. */
static bool end_row(struct eng_store *store, uint32_t row, uint32_t generation, uint32_t owner,
                    enum eng_flight_end how)
{
    _Atomic uint32_t *at = &store->flights->rows[row].word;
    uint32_t word = atomic_load_explicit(at, memory_order_relaxed);
    do {
        if (generation_of(word) != generation || (word & OWNER) != owner)
            return false;
        /* Release: what was stored is found by whoever sees the end (B). */
    } while (!atomic_compare_exchange_weak_explicit(at, &word, ended_word(word, how),
                                                    memory_order_release, memory_order_relaxed));
    GYRE_STEP("flight.end.word");
    if (word & WAITED)
        (void)!futex(at, FUTEX_WAKE, INT_MAX, NULL);
    atomic_fetch_add_explicit(&store->flights->ended, 1, memory_order_release);
    if (atomic_load_explicit(&store->flights->watchers, memory_order_seq_cst) != 0)
        (void)!futex(&store->flights->ended, FUTEX_WAKE, INT_MAX, NULL);
    return true;
}

void eng_flight_end(struct eng_store *store, const struct eng_flight_ref *ref,
                    enum eng_flight_end how)
{
    if (ref->row != ENG_FLIGHT_NONE)
        (void)end_row(store, ref->row, ref->generation, owner_of(store), how);
}

bool eng_flight_ended(const struct eng_store *store, const struct eng_flight_ref *ref,
                      enum eng_flight_end *how_out)
{
    *how_out = ENG_FLIGHT_GIVEN_UP;
    uint32_t word =
        atomic_load_explicit(&store->flights->rows[ref->row].word, memory_order_acquire); /* B */
    if (generation_of(word) == ref->generation)
        return false;
    if (generation_of(word) == (ref->generation + 1) % GENERATIONS)
        *how_out = (enum eng_flight_end)(word >> END_SHIFT & 3);
    return true;
}

/* The mark comes before the sleep and is part of the word slept on, so an end that did not see it
 * is seen by the kernel. */
static void wait_a_while(struct eng_store *store, const struct eng_flight_ref *ref,
                         uint64_t deadline_ns)
{
    _Atomic uint32_t *at = &store->flights->rows[ref->row].word;
    uint32_t word = atomic_load_explicit(at, memory_order_relaxed);
    if (generation_of(word) != ref->generation)
        return;
    if ((word & WAITED) == 0 &&
        !atomic_compare_exchange_strong_explicit(at, &word, word | WAITED, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    sleep_on(at, word | WAITED, deadline_ns);
}

bool eng_flight_wait(struct eng_store *store, const struct eng_flight_ref *ref,
                     uint64_t deadline_ns, enum eng_flight_end *how_out)
{
    uint64_t looked_ns = eng_clock_mono_ns();
    while (!eng_flight_ended(store, ref, how_out)) {
        uint64_t now_ns = eng_clock_mono_ns();
        if (now_ns >= deadline_ns)
            return false;
        if (now_ns - looked_ns >= LOOK_NS) {
            looked_ns = now_ns;
            (void)eng_process_reap(store, ref->process);
            continue;
        }
        wait_a_while(store, ref, deadline_ns);
    }
    return true;
}

uint32_t eng_flights_ended(const struct eng_store *store)
{
    return atomic_load_explicit(&store->flights->ended, memory_order_acquire);
}

/* One that dies in here leaves a count that costs later ends a system call. */
void eng_flights_wait(struct eng_store *store, uint32_t seen, uint64_t deadline_ns)
{
    atomic_fetch_add_explicit(&store->flights->watchers, 1, memory_order_seq_cst);
    sleep_on(&store->flights->ended, seen, deadline_ns);
    atomic_fetch_sub_explicit(&store->flights->watchers, 1, memory_order_relaxed);
}

uint32_t eng_flights_reclaim(struct eng_store *store, uint32_t process)
{
    uint32_t count = 0;
    for (uint32_t row = 0; row < ENG_FLIGHTS; row++) {
        uint32_t word = atomic_load_explicit(&store->flights->rows[row].word, memory_order_relaxed);
        if ((word & OWNER) == process + 1)
            count += end_row(store, row, generation_of(word), process + 1, ENG_FLIGHT_GIVEN_UP);
    }
    return count;
}
