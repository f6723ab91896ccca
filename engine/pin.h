/* Hazard pins: a reader names the extent it reads, and the hand leaves it alone.
 *
 * Reader: store the pin, full fence (A), look at the directory entry again: unchanged -> the bytes
 * stay. Hand:   empty the entry, full fence (B), look at all pins: a pin on the extent -> leave it
 * in place. A pairs with B: either the hand sees the pin or the reader sees the empty entry.
 *
 * Threads: any. Blocks: never. Allocates: nothing (a fixed table; BUSY when it is used up).
 */
#pragma once

#include "engine/store.h"

/* Takes a free pin of the table, empty. BUSY. */
GYRE_MUST_USE gyre_err eng_pin_acquire(struct eng_store *store, uint32_t *pin_out);
/* Publishes the entry's extent and passes fence A. The caller must re-check the entry next. */
void eng_pin_set(struct eng_store *store, uint32_t pin, const struct eng_stripe *stripe,
                 uint64_t entry);
void eng_pin_clear(struct eng_store *store, uint32_t pin); /* keeps the pin taken */
void eng_pin_release(struct eng_store *store, uint32_t pin);

/* Calls fence B, then `visit` with each pinned extent of the stripe that meets [start, end), in
 * units. */
void eng_pin_each(struct eng_store *store, const struct eng_stripe *stripe, uint64_t start,
                  uint64_t end, void (*visit)(void *data, uint64_t start, uint64_t end),
                  void *data);
/* Frees the pins of a process slot whose process is dead, or is this one at its end; how many. */
uint32_t eng_pins_reclaim(struct eng_store *store, uint32_t process);
/* Pins in use now. */
uint32_t eng_pin_count(const struct eng_store *store);
