#include "server/fault.h"

#include <stdatomic.h>
#include <sys/socket.h>

#include "api/gyre.h"

/* Touched by the handler on the thread that reads, between two of its own instructions. */
static _Thread_local _Atomic bool has_faulted;
static _Thread_local _Atomic int reading_for = -1;
static _Atomic uint64_t n_faults;

static void on_fault(void)
{
    int fd = atomic_load_explicit(&reading_for, memory_order_relaxed);
    atomic_fetch_add_explicit(&n_faults, 1, memory_order_relaxed);
    if (fd == -1)
        atomic_store_explicit(&has_faulted, true, memory_order_relaxed);
    else
        shutdown(fd, SHUT_RDWR);
}

bool srv_fault_guard(void)
{
    return gyre_guard_faults(on_fault) == GYRE_OK;
}

bool srv_fault_taken(void)
{
    bool taken = atomic_load_explicit(&has_faulted, memory_order_relaxed);
    if (taken)
        atomic_store_explicit(&has_faulted, false, memory_order_relaxed);
    return taken;
}

void srv_fault_begin(int fd)
{
    if (srv_fault_taken())
        shutdown(fd, SHUT_RDWR);
    atomic_store_explicit(&reading_for, fd, memory_order_relaxed);
}

void srv_fault_end(void)
{
    atomic_store_explicit(&reading_for, -1, memory_order_relaxed);
}

uint64_t srv_fault_count(void)
{
    return atomic_load_explicit(&n_faults, memory_order_relaxed);
}
