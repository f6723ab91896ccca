/* Exact lengths for documents whose length the directory alone told; see hand.h. */
#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/hand.h"
#include "engine/locks.h"
#include "engine/slot.h"

struct guess {
    uint64_t entry;
    uint32_t slot, units;
};

/* Documents of a granule that are worth a look at their headers. */
static uint32_t list_granule(struct eng_stripe *stripe, uint64_t granule,
                             struct guess guesses[ENG_GRANULE_UNITS])
{
    uint32_t n = 0;
    eng_alloc_lock(stripe);
    uint32_t slot = eng_granule_first_locked(stripe, granule);
    for (; slot != ENG_NO_SLOT && n < ENG_GRANULE_UNITS;
         slot = eng_granule_next_locked(stripe, slot)) {
        uint32_t word = atomic_load_explicit(&stripe->slots[slot].word, memory_order_relaxed);
        if ((word & ENG_SLOT_ESTIMATE) == 0 || (word & ENG_SLOT_HITS) == 0)
            continue;
        guesses[n++] = (struct guess){
            .entry = eng_directory_entry(stripe, slot),
            .slot = slot,
            .units = stripe->slots[slot].units,
        };
    }
    eng_alloc_unlock(stripe);
    return n;
}

static void settle(struct eng_stripe *stripe, const struct guess *guess)
{
    struct eng_doc doc;
    uint64_t offset = eng_entry_offset(guess->entry);
    uint64_t at = ENG_DATA_START + (offset << ENG_UNIT_SHIFT);
    if (eng_pread(stripe->fd, &doc, sizeof doc, at) != GYRE_OK)
        return; /* the estimate stands */
    bool good = eng_doc_check(&doc, stripe->crc_seed, offset, guess->units) == GYRE_OK;
    eng_alloc_lock(stripe);
    uint32_t slot = eng_directory_locate_locked(stripe, guess->slot, guess->entry);
    if (slot != ENG_NO_SLOT && !good) {
        (void)eng_directory_remove_locked(stripe, slot, guess->entry);
    } else if (slot != ENG_NO_SLOT) {
        const struct eng_slot record = eng_slot_of_doc(&doc, eng_doc_extent_units(&doc));
        eng_slot_measure_locked(stripe, slot, guess->entry, &record);
    }
    eng_alloc_unlock(stripe);
}

void eng_measure(struct eng_stripe *stripe, uint64_t start, uint64_t end)
{
    struct guess guesses[ENG_GRANULE_UNITS];
    if (atomic_load_explicit(&stripe->rt->estimates, memory_order_relaxed) == 0)
        return;
    for (uint64_t g = start / ENG_GRANULE_UNITS; g * ENG_GRANULE_UNITS < end; g++) {
        uint32_t n = list_granule(stripe, g, guesses);
        for (uint32_t i = 0; i < n; i++)
            settle(stripe, &guesses[i]);
    }
}
