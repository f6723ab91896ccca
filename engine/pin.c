#include "engine/pin.h"

#include "engine/base/check.h"
#include "engine/directory.h"

/* word: 0 free | 1 taken, names nothing | set 1 (bit 63), stripe 6, offset 34, size class 7. */
enum { PIN_FREE = 0, PIN_EMPTY = 1, STRIPE_SHIFT = 41, PIN_OFFSET_SHIFT = 7 };
#define PIN_SET (UINT64_C(1) << 63)
#define PIN_OFFSET_MASK ((UINT64_C(1) << 34) - 1)

/* Threads start to search in blocks of their own, so that they rarely meet on a cache line. */
enum { PINS_PER_THREAD = 64 };
static _Atomic uint32_t threads_seen;
static _Thread_local uint32_t search_from;
static _Thread_local bool search_begun;

static uint32_t first_to_try(void)
{
    if (unlikely(!search_begun)) {
        uint32_t ordinal = atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed);
        search_from = ordinal * PINS_PER_THREAD % ENG_PINS;
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
    uint32_t from = first_to_try();
    *pin_out = UINT32_MAX;
    for (uint32_t i = 0; i < ENG_PINS; i++) {
        uint32_t pin = (from + i) % ENG_PINS;
        struct eng_pin *at = &store->pins[pin];
        uint64_t free = PIN_FREE;
        if (atomic_load_explicit(&at->word, memory_order_relaxed) != PIN_FREE)
            continue;
        /* Acquire: what its last owner read comes before what this one makes of it (D). */
        if (!atomic_compare_exchange_strong_explicit(&at->word, &free, PIN_EMPTY,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        atomic_store_explicit(&at->process, store->process_index, memory_order_relaxed);
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
    uint64_t word = PIN_SET | (uint64_t)stripe->index << STRIPE_SHIFT |
                    eng_entry_offset(entry) << PIN_OFFSET_SHIFT | eng_entry_class(entry);
    atomic_store_explicit(&store->pins[pin].word, word, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* A */
}

/* Release (D): all reads of the extent are over when the hand, whose loads acquire, sees it
 * unpinned. */
void eng_pin_clear(struct eng_store *store, uint32_t pin)
{
    atomic_store_explicit(&store->pins[pin].word, PIN_EMPTY, memory_order_release);
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
