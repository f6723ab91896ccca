#include "engine/resident.h"

#include <sys/mman.h>

#include "engine/base/bits.h"
#include "engine/format.h"

void eng_probe(struct eng_probe *probe, const uint8_t *at, size_t len)
{
    probe->start = eng_align_down((uintptr_t)at, ENG_PAGE);
    uintptr_t end = eng_align_up((uintptr_t)at + len, ENG_PAGE);
    probe->n_pages = (end - probe->start) / ENG_PAGE;
    if (probe->n_pages > ENG_PROBE_PAGES)
        probe->n_pages = ENG_PROBE_PAGES;
    if (mincore((void *)probe->start, probe->n_pages * ENG_PAGE, probe->present) != 0)
        probe->n_pages = 0;
}

bool eng_probe_shows(const struct eng_probe *probe, const uint8_t *at, size_t len)
{
    uintptr_t end = eng_align_up((uintptr_t)at + len, ENG_PAGE);
    uintptr_t covered = probe->start + probe->n_pages * ENG_PAGE;
    uintptr_t page = eng_align_down((uintptr_t)at, ENG_PAGE);
    for (; page < end && page < covered; page += ENG_PAGE)
        if ((probe->present[(page - probe->start) / ENG_PAGE] & 1) == 0)
            return false;
    return page >= end || (probe->n_pages > 0 && eng_memory_resident((void *)page, end - page));
}

bool eng_memory_resident(const void *at, size_t len)
{
    const uint8_t *from = at;
    while (len > 0) {
        struct eng_probe probe;
        eng_probe(&probe, from, len);
        if (probe.n_pages == 0)
            return false;
        for (size_t i = 0; i < probe.n_pages; i++)
            if ((probe.present[i] & 1) == 0)
                return false;
        size_t seen = probe.start + probe.n_pages * ENG_PAGE - (uintptr_t)from;
        from += seen < len ? seen : len;
        len -= seen < len ? seen : len;
    }
    return true;
}
