#include "engine/process.h"

#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/filelock.h"
#include "engine/base/step.h"
#include "engine/flight.h"
#include "engine/lockfile.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pin.h"

static struct eng_process *slot_at(const struct eng_store *store, uint32_t index)
{
    uint8_t *base = (uint8_t *)store->rt.head;
    return (struct eng_process *)(void *)(base + store->rt.head->process_off) + index;
}

/* Each slot is whole by itself, whenever its owner died. */
static gyre_err table_lock(struct eng_store *store)
{
    enum eng_mutex_result result = eng_lock_bounded(store, &store->rt.head->table_lock);
    if (result == ENG_MUTEX_OWNER_DEAD)
        eng_mutex_consistent(&store->rt.head->table_lock);
    return result == ENG_MUTEX_BUSY ? GYRE_BUSY : GYRE_OK;
}

static void table_unlock(struct eng_store *store)
{
    eng_mutex_unlock(&store->rt.head->table_lock);
}

static uint32_t pid_of(const struct eng_process *slot)
{
    return atomic_load_explicit(&slot->pid, memory_order_relaxed);
}

/* Extents that nobody writes any more: what was published in them is the directory's, the rest is
 * found empty by the hand. BUSY. */
static gyre_err end_reservations(struct eng_stripe *stripe, uint32_t process)
{
    struct eng_stripe_rt *rt = stripe->rt;
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    for (uint32_t i = rt->reservations_high; i-- > 0;)
        if (i < rt->reservations_high && rt->reservations[i].start != rt->reservations[i].end &&
            atomic_load_explicit(&rt->reservations[i].process, memory_order_acquire) == process)
            eng_log_end_locked(stripe, i);
    eng_alloc_unlock(stripe);
    return GYRE_OK;
}

static gyre_err end_all_reservations(struct eng_store *store, uint32_t process)
{
    gyre_err first = GYRE_OK;
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        gyre_err err = end_reservations(&store->stripes[i], process);
        first = first == GYRE_OK ? err : first;
    }
    return first;
}

/* Pins before reservations, the number last: who dies in here, or cannot have a stripe's lock,
 * leaves the rest to the next. BUSY. */
static gyre_err take_back_locked(struct eng_store *store, uint32_t index)
{
    struct eng_process *slot = slot_at(store, index);
    GYRE_STEP("process.take_back.begin");
    (void)eng_pins_reclaim(store, index);
    (void)eng_flights_reclaim(store, index);
    gyre_err err = end_all_reservations(store, index);
    if (err != GYRE_OK)
        return err;
    GYRE_STEP("process.take_back.done");
    /* What it was changing in the meta pool stays as it is now. */
    uint32_t changing = atomic_exchange_explicit(&slot->changing, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->rt.head->changes_ended, changing, memory_order_seq_cst);
    atomic_store_explicit(&slot->keeping, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&slot->generation, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->generation, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->pid, 0, memory_order_relaxed);
    return GYRE_OK;
}

static uint64_t byte_of(uint32_t index)
{
    return ENG_LOCK_ALIVE + (uint64_t)index;
}

/* A byte that can be taken is nobody's; if its slot is in use, its process is dead. */
gyre_err eng_process_join(struct eng_store *store)
{
    gyre_err err = table_lock(store);
    if (err != GYRE_OK)
        return err;
    err = GYRE_BUSY;
    for (uint32_t i = 0; i < ENG_PROCESSES; i++) {
        gyre_err taken = eng_filelock_try(store->lock->fd, byte_of(i), ENG_FILELOCK_EXCLUSIVE);
        if (taken == GYRE_LOCKED)
            continue;
        err = taken;
        if (err != GYRE_OK)
            break;
        struct eng_process *slot = slot_at(store, i);
        if (pid_of(slot) != 0 && take_back_locked(store, i) != GYRE_OK) {
            eng_filelock_drop(store->lock->fd, byte_of(i));
            err = GYRE_BUSY;
            continue;
        }
        GYRE_STEP("process.join.taken");
        atomic_store_explicit(&slot->pid, (uint32_t)getpid(), memory_order_relaxed);
        atomic_fetch_or_explicit(&slot->generation, 1, memory_order_relaxed);
        store->process = slot;
        store->process_index = i;
        store->joined = true;
        break;
    }
    table_unlock(store);
    return err;
}

void eng_process_leave(struct eng_store *store)
{
    if (!store->joined)
        return;
    /* What cannot be given back now is taken back as a dead process's. */
    if (table_lock(store) == GYRE_OK) {
        (void)take_back_locked(store, store->process_index);
        table_unlock(store);
    }
    store->joined = false;
}

bool eng_processes_others(const struct eng_store *store, pid_t *pid_out)
{
    bool held = true;
    pid_t pid = 0;
    gyre_err err =
        eng_filelock_probe_range(store->lock->fd, ENG_LOCK_ALIVE, ENG_PROCESSES, &held, &pid);
    if (pid_out != NULL)
        *pid_out = pid;
    return err != GYRE_OK || held;
}

/* A lock of this process does not show in a probe, so its own slot is left out. */
static bool is_dead(const struct eng_store *store, uint32_t index)
{
    bool held = true;
    pid_t pid;
    if (index == store->process_index || pid_of(slot_at(store, index)) == 0)
        return false;
    return eng_filelock_probe(store->lock->fd, byte_of(index), &held, &pid) == GYRE_OK && !held;
}

/* Looked at twice: between the first look and the lock somebody may have taken the slot back and a
 * new process have got it. BUSY: the table cannot be had. */
static gyre_err reap(struct eng_store *store, uint32_t index, uint32_t *count)
{
    if (!is_dead(store, index))
        return GYRE_OK;
    gyre_err err = table_lock(store);
    if (err != GYRE_OK)
        return err;
    *count += is_dead(store, index) && take_back_locked(store, index) == GYRE_OK;
    table_unlock(store);
    return GYRE_OK;
}

bool eng_process_reap(struct eng_store *store, uint32_t index)
{
    uint32_t count = 0;
    if (store->lock == NULL || !store->joined)
        return false;
    return reap(store, index, &count) == GYRE_OK && count > 0;
}

uint32_t eng_processes_reap(struct eng_store *store)
{
    uint32_t count = 0;
    if (store->lock == NULL || !store->joined)
        return 0;
    if (atomic_exchange_explicit(&store->rt.head->abandoned, 0, memory_order_acquire) != 0 &&
        end_all_reservations(store, ENG_NOBODY) != GYRE_OK)
        atomic_store_explicit(&store->rt.head->abandoned, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < ENG_PROCESSES; i++)
        if (reap(store, i, &count) != GYRE_OK)
            break;
    return count;
}

uint32_t eng_processes_count(const struct eng_store *store)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENG_PROCESSES; i++)
        count += pid_of(slot_at(store, i)) != 0;
    return count;
}

bool eng_processes_keep(const struct eng_store *store)
{
    for (uint32_t i = 0; i < ENG_PROCESSES; i++)
        if (atomic_load_explicit(&slot_at(store, i)->keeping, memory_order_relaxed) != 0)
            return true;
    return false;
}
