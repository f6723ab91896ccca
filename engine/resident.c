#include "engine/resident.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "engine/base/bits.h"
#include "engine/format.h"

/* Looks of the last one to two seconds, so that a hot document costs no system call each time. A
 * place is two words: the bitmap of present pages, and first page and second under an exclusive or
 * with the bitmap, so that a half-written place fits no page at all (the trick is that of chess
 * programs' hash tables).
 *
 * Why a stale answer is safe: a page that was dropped since it was seen costs its reader one fault,
 * never a wrong byte, and the kernel drops pages just used last of all. */
#define LOOKS 4096
static struct look {
    _Atomic uint64_t sealed;
    _Atomic uint64_t present;
} looks[LOOKS];

static struct look *look_at(uintptr_t start)
{
    return &looks[(start / ENG_PAGE * UINT64_C(0x9E3779B97F4A7C15)) >> 52];
}

static uint64_t tag_of(uintptr_t start, uint64_t second)
{
    return (uint64_t)(start / ENG_PAGE) << 16 | (second & 0xFFFF);
}

static uint64_t second_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec;
}

static uint64_t bits_of(size_t n_pages)
{
    return n_pages == 64 ? UINT64_MAX : (UINT64_C(1) << n_pages) - 1;
}

/* Whether all pages of the probe were seen to be present a moment ago. */
static bool recall(const struct eng_probe *probe, uint64_t second)
{
    const struct look *look = look_at(probe->start);
    uint64_t present = atomic_load_explicit(&look->present, memory_order_relaxed);
    uint64_t tag = atomic_load_explicit(&look->sealed, memory_order_relaxed) ^ present;
    uint64_t wanted = bits_of(probe->n_pages);
    return (present & wanted) == wanted &&
           (tag == tag_of(probe->start, second) || tag == tag_of(probe->start, second - 1));
}

static void remember(const struct eng_probe *probe, uint64_t second)
{
    uint64_t present = 0;
    for (size_t i = 0; i < probe->n_pages; i++)
        present |= (uint64_t)(probe->present[i] & 1) << i;
    struct look *look = look_at(probe->start);
    atomic_store_explicit(&look->present, present, memory_order_relaxed);
    atomic_store_explicit(&look->sealed, tag_of(probe->start, second) ^ present,
                          memory_order_relaxed);
}

void eng_probe(struct eng_probe *probe, const uint8_t *at, size_t len)
{
    probe->start = eng_align_down((uintptr_t)at, ENG_PAGE);
    uintptr_t end = eng_align_up((uintptr_t)at + len, ENG_PAGE);
    probe->n_pages = (end - probe->start) / ENG_PAGE;
    if (probe->n_pages > ENG_PROBE_PAGES)
        probe->n_pages = ENG_PROBE_PAGES;
    uint64_t second = second_now();
    if (recall(probe, second))
        memset(probe->present, 1, probe->n_pages);
    else if (mincore((void *)probe->start, probe->n_pages * ENG_PAGE, probe->present) == 0)
        remember(probe, second);
    else
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
