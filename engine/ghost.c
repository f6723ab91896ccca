#include "engine/ghost.h"

#include <stddef.h>

#include "engine/base/hash.h"

enum {
    FINGERPRINT_BITS = 11,
    FINGERPRINT_MASK = (1 << FINGERPRINT_BITS) - 1,
    EPOCHS = 32,    /* that can be told apart */
    WINDOW = 16,    /* of which so many are remembered */
    WINDOW_MIN = 64 /* evictions; epochs of less than four tell nothing apart */
};

/* Where an identity belongs. A fingerprint is never 0, so neither is a place in use. */
struct spot {
    uint16_t *set;
    uint16_t fingerprint;
};

static struct spot spot_of(const uint16_t *table, uint64_t n_places, uint64_t identity)
{
    uint64_t mixed = eng_mix64(identity + UINT64_C(0x9E3779B97F4A7C15));
    uint64_t n_sets = n_places / ENG_GHOST_WAYS;
    uint64_t set = (mixed >> 32) * n_sets >> 32;
    return (struct spot){
        .set = (uint16_t *)(uintptr_t)table + set * ENG_GHOST_WAYS,
        .fingerprint = (uint16_t)(1 + mixed % FINGERPRINT_MASK),
    };
}

static uint32_t age_of(const struct eng_ghost *ghost, uint16_t place)
{
    return (ghost->epoch - (place >> FINGERPRINT_BITS)) % EPOCHS;
}

static bool remembered(const struct eng_ghost *ghost, uint16_t place)
{
    return place != 0 && age_of(ghost, place) < WINDOW;
}

uint64_t eng_ghost_places(uint64_t n_slots)
{
    uint64_t documents = n_slots * 85 / 100;
    uint64_t sets = (2 * documents + ENG_GHOST_WAYS - 1) / ENG_GHOST_WAYS;
    return (sets > 0 ? sets : 1) * ENG_GHOST_WAYS;
}

/* An epoch number comes back after twice the window, and each eviction looks at as many sets as
 * bring it round the table within less. */
static void sweep(struct eng_ghost *ghost, uint16_t *table, uint64_t n_places)
{
    uint64_t n_sets = n_places / ENG_GHOST_WAYS;
    uint64_t steps = 2 * n_sets / ghost->window + 1;
    for (; steps > 0; steps--) {
        uint64_t at = ghost->sweep < n_sets ? ghost->sweep : 0;
        uint16_t *set = table + at * ENG_GHOST_WAYS;
        for (int i = 0; i < ENG_GHOST_WAYS; i++)
            if (!remembered(ghost, set[i]))
                set[i] = 0;
        ghost->sweep = (uint32_t)(at + 1);
    }
}

static void advance(struct eng_ghost *ghost, uint64_t window)
{
    ghost->puts++;
    ghost->window = window < WINDOW_MIN ? WINDOW_MIN : window;
    if (++ghost->in_epoch < ghost->window / WINDOW)
        return;
    ghost->in_epoch = 0;
    ghost->epoch = (ghost->epoch + 1) % EPOCHS;
}

void eng_ghost_put(struct eng_ghost *ghost, uint16_t *table, uint64_t n_places, uint64_t identity,
                   uint64_t window)
{
    struct spot spot = spot_of(table, n_places, identity);
    int chosen = 0;
    uint32_t oldest = 0;
    advance(ghost, window);
    sweep(ghost, table, n_places);
    for (int i = 0; i < ENG_GHOST_WAYS; i++) {
        uint16_t place = spot.set[i];
        bool same = (place & FINGERPRINT_MASK) == spot.fingerprint;
        uint32_t age = same                        ? EPOCHS + 1
                       : !remembered(ghost, place) ? EPOCHS
                                                   : age_of(ghost, place);
        if (age >= oldest) {
            oldest = age;
            chosen = i;
        }
    }
    spot.set[chosen] = (uint16_t)(ghost->epoch << FINGERPRINT_BITS | spot.fingerprint);
}

static uint16_t *find(const struct eng_ghost *ghost, const uint16_t *table, uint64_t n_places,
                      uint64_t identity)
{
    struct spot spot = spot_of(table, n_places, identity);
    for (int i = 0; i < ENG_GHOST_WAYS; i++)
        if ((spot.set[i] & FINGERPRINT_MASK) == spot.fingerprint && remembered(ghost, spot.set[i]))
            return &spot.set[i];
    return NULL;
}

bool eng_ghost_has(const struct eng_ghost *ghost, const uint16_t *table, uint64_t n_places,
                   uint64_t identity)
{
    return find(ghost, table, n_places, identity) != NULL;
}

bool eng_ghost_take(struct eng_ghost *ghost, uint16_t *table, uint64_t n_places, uint64_t identity)
{
    uint16_t *place = find(ghost, table, n_places, identity);
    if (place == NULL)
        return false;
    *place = 0;
    ghost->finds++;
    return true;
}
