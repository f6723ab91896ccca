#include "engine/pin.h"

#include "engine/base/check.h"
#include "engine/directory.h"

/* word: 0 free | 63 set | 62..55 process slot | 46..41 stripe | 40..7 offset | 6..0 size class. A
 * taken pin that names nothing is not set and has class 1, so it differs from a free one in process
 * 0 too. Process and pin are one word, so a process that dies anywhere leaves no pin that is
 * nobody's. */
enum {
    PIN_FREE = 0,
    PIN_EMPTY = 1,
    PIN_PROCESS_SHIFT = 55,
    STRIPE_SHIFT = 41,
    PIN_OFFSET_SHIFT = 7,
};
#define PIN_SET (UINT64_C(1) << 63)
#define PIN_OFFSET_MASK ((UINT64_C(1) << 34) - 1)

/* Threads start to search in blocks of their own, so that they rarely meet on a cache line. */
enum { PINS_PER_THREAD = 64, PINS_PER_PROCESS = 37 * PINS_PER_THREAD };
static _Atomic uint32_t threads_seen;
static _Thread_local uint32_t search_from;
static _Thread_local bool search_begun;

static uint64_t owner_bits(const struct eng_store *store)
{
    return (uint64_t)store->process_index << PIN_PROCESS_SHIFT;
}

static uint32_t first_to_try(const struct eng_store *store)
{
    if (unlikely(!search_begun)) {
        uint32_t ordinal = atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed);
        search_from =
            (store->process_index * PINS_PER_PROCESS + ordinal * PINS_PER_THREAD) % ENG_PINS;
        search_begun = true;
    }
    return search_from;
}

/* The hand looks no further than this mark. It is raised before fence A of the same pin, so the
 * same pairing that shows the pin to the hand shows the mark. */
static void raise_high(struct eng_store *store, uint32_t pin)
{
    _Atomic uint32_t *high = &store->rt.head->pins_high;
    uint32_t now = atomic_load_explicit(high, memory_order_relaxed);
    while (unlikely(now <= pin) &&
           !atomic_compare_exchange_weak_explicit(high, &now, pin + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

gyre_err eng_pin_acquire(struct eng_store *store, uint32_t *pin_out)
{
    uint32_t from = first_to_try(store);
    uint64_t taken = owner_bits(store) | PIN_EMPTY;
    *pin_out = UINT32_MAX;
    for (uint32_t i = 0; i < ENG_PINS; i++) {
        uint32_t pin = (from + i) % ENG_PINS;
        struct eng_pin *at = &store->pins[pin];
        uint64_t free = PIN_FREE;
        if (atomic_load_explicit(&at->word, memory_order_relaxed) != PIN_FREE)
            continue;
        /* Acquire: what its last owner read comes before what this one makes of it (D). */
        if (!atomic_compare_exchange_strong_explicit(&at->word, &free, taken, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        raise_high(store, pin);
        search_from = pin;
        *pin_out = pin;
        return GYRE_OK;
    }
    return GYRE_BUSY;
}

void eng_pin_set(struct eng_store *store, uint32_t pin, const struct eng_stripe *stripe,
                 uint64_t entry)
{
    uint64_t word = PIN_SET | owner_bits(store) | (uint64_t)stripe->index << STRIPE_SHIFT |
                    eng_entry_offset(entry) << PIN_OFFSET_SHIFT | eng_entry_class(entry);
    atomic_store_explicit(&store->pins[pin].word, word, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* A */
}

/* Release (D): all reads of the extent are over when the hand, whose loads acquire, sees it
 * unpinned. */
void eng_pin_clear(struct eng_store *store, uint32_t pin)
{
    atomic_store_explicit(&store->pins[pin].word, owner_bits(store) | PIN_EMPTY,
                          memory_order_release);
}

void eng_pin_release(struct eng_store *store, uint32_t pin)
{
    search_from = pin;
    search_begun = true;
    atomic_store_explicit(&store->pins[pin].word, PIN_FREE, memory_order_release);
}

/* Why a stale answer is safe: a pin that is set after fence B belongs to a reader that is about to
 * find its entry gone; a pin that is cleared during the look is left in place one lap longer than
 * needed. */
void eng_pin_each(struct eng_store *store, const struct eng_stripe *stripe, uint64_t start,
                  uint64_t end, void (*visit)(void *data, uint64_t start, uint64_t end), void *data)
{
    atomic_thread_fence(memory_order_seq_cst); /* B */
    uint32_t high = atomic_load_explicit(&store->rt.head->pins_high, memory_order_relaxed);
    for (uint32_t pin = 0; pin < high; pin++) {
        uint64_t word = atomic_load_explicit(&store->pins[pin].word, memory_order_acquire); /* D */
        if ((word & PIN_SET) == 0 || (word >> STRIPE_SHIFT & 0x3F) != stripe->index)
            continue;
        uint64_t pin_start = word >> PIN_OFFSET_SHIFT & PIN_OFFSET_MASK;
        uint64_t pin_end = pin_start + eng_size_class_units(word & 0x7F);
        if (pin_start < end && start < pin_end)
            visit(data, pin_start, pin_end);
    }
}

uint32_t eng_pin_count(const struct eng_store *store)
{
    uint32_t count = 0;
    uint32_t high = atomic_load_explicit(&store->rt.head->pins_high, memory_order_relaxed);
    for (uint32_t pin = 0; pin < high; pin++)
        if (atomic_load_explicit(&store->pins[pin].word, memory_order_relaxed) != PIN_FREE)
            count++;
    return count;
}

/* Relaxed but for the exchange: nobody else changes a dead process's pins. All of the table, not
 * only up to the mark: it may have died before it raised that. */
uint32_t eng_pins_reclaim(struct eng_store *store, uint32_t process)
{
    uint32_t count = 0;
    for (uint32_t pin = 0; pin < ENG_PINS; pin++) {
        _Atomic uint64_t *at = &store->pins[pin].word;
        uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
        if (word == PIN_FREE || (word >> PIN_PROCESS_SHIFT & 0xFF) != process)
            continue;
        atomic_store_explicit(at, PIN_FREE, memory_order_release); /* D */
        count++;
    }
    return count;
}
