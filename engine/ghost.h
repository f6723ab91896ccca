/* The ghost: who was evicted lately, 16 bits for each. A document that comes back while it is
 * remembered has shown that it is worth a place in the main ring.
 *
 * The table is made of sets of eight places; a place holds an epoch of 5 bits (how long ago) and a
 * fingerprint of 11. An epoch ends after a sixteenth of the window, so an eviction is remembered
 * for 15 to 16 epochs; places are swept before epochs repeat. One absent document in 256 is taken
 * for a remembered one at worst, which costs it a lap in the wrong ring. Ghost lists come from
 * S3-FIFO (Yang et al., 2023).
 *
 * Owns:    nothing: state and table are flat memory of the caller, shared by processes.
 * Threads: the stripe's alloc lock. Blocks: never. Allocates: nothing. Keeps: E71.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ENG_GHOST_WAYS 8

/* Any bytes in it are safe; it stays consistent after every single store. */
struct eng_ghost {
    uint64_t window;   /* evictions that are remembered; follows the number of objects */
    uint64_t in_epoch; /* evictions in the epoch that runs */
    uint32_t epoch;
    uint32_t sweep;       /* the set looked at next for what is forgotten */
    uint64_t puts, finds; /* since the store was opened */
};

/* Places a table should have for a stripe of n_slots directory slots: two for each document it is
 * made for, in whole sets. */
uint64_t eng_ghost_places(uint64_t n_slots);

/* Remembers an eviction. `window`: the objects there are now. */
void eng_ghost_put(struct eng_ghost *ghost, uint16_t *table, uint64_t n_places, uint64_t identity,
                   uint64_t window);
/* Whether it was evicted within the window. */
bool eng_ghost_has(const struct eng_ghost *ghost, const uint16_t *table, uint64_t n_places,
                   uint64_t identity);
/* The same, and forgets it. */
bool eng_ghost_take(struct eng_ghost *ghost, uint16_t *table, uint64_t n_places, uint64_t identity);
