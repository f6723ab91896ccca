#include "engine/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/base/bits.h"
#include "engine/format.h"

enum { WATCHES_MAX = 256, HOLES_MAX = 1024 };

/* A mapping. The handler reads it without a lock.
 *
 * Why a stale answer is safe: a mapping is watched before anybody reads it and until nobody does,
 * so that a fault in it happens after the one and before the other. */
static struct watch {
    _Atomic bool is_taken;
    _Atomic uintptr_t start; /* 0: free; written last */
    uintptr_t end;
    int fd;
    uint64_t file_off;
    _Atomic bool is_full; /* more holes than are kept: all of it counts as one */
} watches[WATCHES_MAX];

/* Pages that were replaced. Only ever appended to; those of a mapping that is gone are emptied.
 *
 * Why a stale answer is safe: a reader that does not see a hole yet has read before it was made, or
 * its own fault has made it, which it sees. */
static struct hole {
    _Atomic uintptr_t start;
    _Atomic uintptr_t end; /* written last; 0: none */
} holes[HOLES_MAX];

static _Atomic size_t n_holes; /* places taken */
static _Atomic uint64_t n_made;
static void (*fault_hook)(void);
static struct sigaction before;

/* ---- The handler: what it calls is safe in one ---- */

static struct watch *watch_of(uintptr_t at)
{
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        uintptr_t start =
            atomic_load_explicit(&watches[i].start, memory_order_acquire /* pairs with A */);
        if (start != 0 && at >= start && at < watches[i].end)
            return &watches[i];
    }
    return NULL;
}

/* Where the hole at `page` ends: behind the end of the file nothing can be had, so that one hole
 * does for all of it. */
static uintptr_t end_of_hole(const struct watch *watch, uintptr_t start, uintptr_t page)
{
    struct stat st;
    if (fstat(watch->fd, &st) != 0)
        return page + ENG_PAGE;
    uint64_t off = watch->file_off + (page - start);
    return off >= eng_align_up((uint64_t)st.st_size, ENG_PAGE) ? watch->end : page + ENG_PAGE;
}

static void note_hole(struct watch *watch, uintptr_t start, uintptr_t end)
{
    size_t at = atomic_fetch_add_explicit(&n_holes, 1, memory_order_relaxed);
    if (at < HOLES_MAX) {
        atomic_store_explicit(&holes[at].start, start, memory_order_relaxed);
        atomic_store_explicit(&holes[at].end, end, memory_order_release /* B */);
    } else {
        atomic_store_explicit(&watch->is_full, true, memory_order_release);
    }
    atomic_fetch_add_explicit(&n_made, 1, memory_order_relaxed);
}

static void pass_on(void)
{
    /* The instruction faults again, and this time ends as it would have without us. */
    sigaction(SIGBUS, &before, NULL);
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t page = eng_align_down((uintptr_t)info->si_addr, ENG_PAGE);
    struct watch *watch = watch_of(page);
    (void)number;
    (void)context;
    if (watch == NULL) {
        pass_on();
        errno = saved;
        return;
    }
    uintptr_t start = atomic_load_explicit(&watch->start, memory_order_relaxed);
    uintptr_t end = end_of_hole(watch, start, page);
    /* Noted first: another thread that reads the zeros must find that they are none. */
    note_hole(watch, page, end);
    if (mmap((void *)page, end - page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        pass_on();
    else if (fault_hook != NULL)
        fault_hook();
    errno = saved;
}

/* ---- Everybody else ---- */

bool eng_fault_guard(void (*hook)(void))
{
    struct sigaction action = {.sa_sigaction = on_sigbus,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    struct sigaction now;
    fault_hook = hook;
    if (sigaction(SIGBUS, NULL, &now) != 0)
        return false;
    if (now.sa_sigaction == on_sigbus)
        return true;
    before = now;
    return sigaction(SIGBUS, &action, NULL) == 0;
}

void eng_fault_watch(const void *base, size_t bytes, int fd, uint64_t file_off)
{
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        struct watch *watch = &watches[i];
        bool is_free = false;
        if (!atomic_compare_exchange_strong_explicit(&watch->is_taken, &is_free, true,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        watch->end = (uintptr_t)base + bytes;
        watch->fd = fd;
        watch->file_off = file_off;
        atomic_store_explicit(&watch->is_full, false, memory_order_relaxed);
        atomic_store_explicit(&watch->start, (uintptr_t)base, memory_order_release /* A */);
        return;
    }
}

/* The addresses may be another mapping's tomorrow. */
static void forget_holes(uintptr_t start, uintptr_t end)
{
    size_t n = atomic_load_explicit(&n_holes, memory_order_relaxed);
    for (size_t i = 0; i < n && i < HOLES_MAX; i++)
        if (atomic_load_explicit(&holes[i].start, memory_order_relaxed) >= start &&
            atomic_load_explicit(&holes[i].end, memory_order_relaxed) <= end)
            atomic_store_explicit(&holes[i].end, 0, memory_order_relaxed);
}

void eng_fault_unwatch(const void *base)
{
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        struct watch *watch = &watches[i];
        if (base == NULL ||
            atomic_load_explicit(&watch->start, memory_order_relaxed) != (uintptr_t)base)
            continue;
        forget_holes((uintptr_t)base, watch->end);
        atomic_store_explicit(&watch->start, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->is_taken, false, memory_order_release);
        return;
    }
}

bool eng_fault_hit(const void *at, size_t len)
{
    size_t n = atomic_load_explicit(&n_holes, memory_order_relaxed);
    if (n == 0)
        return false;
    uintptr_t from = (uintptr_t)at;
    for (size_t i = 0; i < n && i < HOLES_MAX; i++) {
        uintptr_t end =
            atomic_load_explicit(&holes[i].end, memory_order_acquire /* pairs with B */);
        if (from < end && atomic_load_explicit(&holes[i].start, memory_order_relaxed) < from + len)
            return true;
    }
    const struct watch *watch = n > HOLES_MAX ? watch_of(from) : NULL;
    return watch != NULL && atomic_load_explicit(&watch->is_full, memory_order_acquire);
}

uint64_t eng_fault_count(void)
{
    return atomic_load_explicit(&n_made, memory_order_relaxed);
}
