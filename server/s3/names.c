#include "server/s3/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/log.h"
#include "server/s3/names_internal.h"

enum { TICK_MS = 1000, AWAIT_MS = 1000, MOURN_TICKS = 10, IDLE_SWEEP = 200 };
/* Rows without objects are at most as many as changes since the last round: twice the names. */
enum { SWEEP_MIN = 256, CHANGES_PER_ROW = 2 };

#define FILE_NAME "names.sqlite"

/* ---- Changes ---- */

unsigned srv_names_enter(struct srv_names *names)
{
    /* The thread that has just ended a turn may have seen its count before we raised it. Then we
     * belong to the next one. */
    unsigned turn = atomic_load_explicit(&names->turn, memory_order_seq_cst);

    for (;;) {
        atomic_fetch_add_explicit(&names->inside[turn & 1], 1, memory_order_seq_cst);
        unsigned now = atomic_load_explicit(&names->turn, memory_order_seq_cst);
        if (now == turn)
            return turn;
        atomic_fetch_sub_explicit(&names->inside[turn & 1], 1, memory_order_seq_cst);
        turn = now;
    }
}

void srv_names_leave(struct srv_names *names, unsigned turn)
{
    /* Release: whoever sees the lower count also sees the note. */
    atomic_fetch_sub_explicit(&names->inside[turn & 1], 1, memory_order_release);
}

static void append(struct srv_names *names, struct srv_names_note *note)
{
    note->next_ = NULL;
    pthread_mutex_lock(&names->lock);
    bool was_empty = names->head == NULL;
    *names->tail = note;
    names->tail = &note->next_;
    pthread_mutex_unlock(&names->lock);
    if (was_empty)
        pthread_cond_signal(&names->wake);
}

static void free_note(struct srv_names_note *note)
{
    free(note);
}

/* False without memory. */
static bool append_copy(struct srv_names *names, struct srv_str bucket, struct srv_str key)
{
    struct srv_names_note *note = malloc(sizeof *note + bucket.len + key.len);

    if (note == NULL)
        return false;
    char *bytes = (char *)(note + 1);
    memcpy(bytes, bucket.base, bucket.len);
    memcpy(bytes + bucket.len, key.base, key.len);
    *note = (struct srv_names_note){
        .done = free_note, .bucket_ = {bytes, bucket.len}, .key_ = {bytes + bucket.len, key.len}};
    append(names, note);
    return true;
}

void srv_names_changed(struct srv_names *names, unsigned turn, struct srv_str bucket,
                       struct srv_str key)
{
    if (!append_copy(names, bucket, key))
        atomic_store_explicit(&names->has_lost, true, memory_order_release);
    srv_names_leave(names, turn);
}

void srv_names_touch(struct srv_names *names, struct srv_str bucket, struct srv_str key)
{
    (void)append_copy(names, bucket, key); /* the next list finds it again */
}

void srv_names_await(struct srv_names *names, struct srv_names_note *note)
{
    note->bucket_ = note->key_ = (struct srv_str){NULL, 0};
    append(names, note);
}

struct settling {
    struct srv_names_note note;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_done;
};

static void on_settled(struct srv_names_note *note)
{
    struct settling *settling = (struct settling *)note;

    pthread_mutex_lock(&settling->lock);
    settling->is_done = true;
    pthread_cond_signal(&settling->wake);
    pthread_mutex_unlock(&settling->lock);
}

void srv_names_settle(struct srv_names *names)
{
    struct settling settling = {.note.done = on_settled,
                                .lock = PTHREAD_MUTEX_INITIALIZER,
                                .wake = PTHREAD_COND_INITIALIZER};

    srv_names_await(names, &settling.note);
    pthread_mutex_lock(&settling.lock);
    while (!settling.is_done)
        pthread_cond_wait(&settling.wake, &settling.lock);
    pthread_mutex_unlock(&settling.lock);
    pthread_mutex_destroy(&settling.lock);
    pthread_cond_destroy(&settling.wake);
}

bool srv_names_lists(const struct srv_names *names, struct srv_str bucket)
{
    /* Pairs with U. */
    const struct srv_names_unlisted *unlisted =
        atomic_load_explicit(&names->unlisted, memory_order_acquire);

    for (const char *line = unlisted->lines; *line != 0;) {
        size_t len = strcspn(line, "\n");
        if (len == bucket.len && memcmp(line, bucket.base, len) == 0)
            return false;
        line += len + (line[len] != 0);
    }
    return true;
}

struct srv_names_unlisted *srv_names_unlisted_create(const char *lines)
{
    size_t size = strlen(lines) + 1;
    struct srv_names_unlisted *unlisted = malloc(sizeof *unlisted + size);

    if (unlisted == NULL)
        return NULL;
    unlisted->former = NULL;
    memcpy(unlisted->lines, lines, size);
    return unlisted;
}

void srv_names_set_unlisted(struct srv_names *names, struct srv_names_unlisted *unlisted)
{
    struct srv_names_unlisted *former =
        atomic_load_explicit(&names->unlisted, memory_order_relaxed);

    if (strcmp(former->lines, unlisted->lines) == 0) {
        free(unlisted);
        return;
    }
    unlisted->former = former;
    pthread_mutex_lock(&names->lock);
    /* Lists of a bucket that has just got an index must not be answered by what is there. */
    atomic_store_explicit(&names->is_ready, false, memory_order_release);
    /* Release U: whoever looks at it sees its lines. */
    atomic_store_explicit(&names->unlisted, unlisted, memory_order_release);
    atomic_store_explicit(&names->is_resized, true, memory_order_release);
    pthread_cond_signal(&names->wake);
    pthread_mutex_unlock(&names->lock);
}

bool srv_names_is_ready(const struct srv_names *names)
{
    return atomic_load_explicit(&names->is_ready, memory_order_acquire);
}

/* ---- The thread ---- */

static struct timespec after_ms(long ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += ms % 1000 * 1000000;
    at.tv_sec += ms / 1000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

bool srv_names_is_stopping(struct srv_names *names)
{
    pthread_mutex_lock(&names->lock);
    bool stops = names->is_stopping;
    pthread_mutex_unlock(&names->lock);
    return stops;
}

static bool is_urgent(struct srv_names *names)
{
    return atomic_load_explicit(&names->is_suspect, memory_order_acquire) ||
           atomic_load_explicit(&names->is_resized, memory_order_acquire);
}

/* Until something was noted, the time has come, or the end. False at the end, with nothing noted.
 */
static bool wait_for_notes(struct srv_names *names, const struct timespec *until)
{
    pthread_mutex_lock(&names->lock);
    while (names->head == NULL && !names->is_stopping && !is_urgent(names) &&
           pthread_cond_timedwait(&names->wake, &names->lock, until) == 0) {
    }
    bool goes_on = names->head != NULL || !names->is_stopping;
    pthread_mutex_unlock(&names->lock);
    return goes_on;
}

/* Damage is dealt with at once, and once: what does not help is tried again with the next tick. */
static void mend(struct srv_names *names)
{
    if (atomic_exchange_explicit(&names->is_suspect, false, memory_order_acq_rel) &&
        names->db.db != NULL) {
        snprintf(names->db.message, sizeof names->db.message, "a list met bytes nobody wrote");
        srv_names_fail(names, SRV_NAMES_DAMAGED);
    }
    if (atomic_exchange_explicit(&names->has_lost, false, memory_order_acq_rel)) {
        names->has_missed = true;
        srv_names_fail(names, SRV_NAMES_FINE);
    }
    /* Joining finds out what other buckets having an index means, and writes down which those are.
     */
    if (atomic_exchange_explicit(&names->is_resized, false, memory_order_acq_rel)) {
        names->has_missed = true; /* what was stored while a bucket had none */
        srv_names_fail(names, SRV_NAMES_FINE);
    }
    if (names->is_failing) {
        names->is_failing = false;
        if (names->db.db == NULL) /* else a tick has mended it */
            srv_names_join(names);
    }
}

void srv_names_suspect(struct srv_names *names)
{
    atomic_store_explicit(&names->is_suspect, true, memory_order_release);
    pthread_mutex_lock(&names->lock);
    pthread_cond_signal(&names->wake);
    pthread_mutex_unlock(&names->lock);
}

/* What is looked after once a second. */
static void tick(struct srv_names *names, unsigned count)
{
    if (names->db.db != NULL && !srv_names_is_in_place(names)) {
        srv_log(SRV_LOG_WARN, "%s: another file took the place of the index of names, or none",
                names->path);
        names->was_moved = true;
        srv_names_fail(names, SRV_NAMES_FINE);
    }
    if (names->db.db == NULL)
        srv_names_join(names);
    if (names->db.db == NULL)
        return;
    srv_names_sweep(names, IDLE_SWEEP);
    if (count % MOURN_TICKS == 0)
        srv_names_mourn(names);
    srv_names_flush(names);
}

static void *run(void *arg)
{
    struct srv_names *names = arg;
    struct timespec now, next = after_ms(TICK_MS);
    size_t n_unswept = 0;

    srv_names_join(names);
    mend(names);
    pthread_mutex_lock(&names->lock);
    names->is_awaited = true;
    pthread_cond_broadcast(&names->joined);
    pthread_mutex_unlock(&names->lock);
    for (unsigned count = 1; wait_for_notes(names, &next);) {
        n_unswept += srv_names_flush(names);
        if (n_unswept >= SWEEP_MIN && names->db.db != NULL) {
            srv_names_sweep(names, n_unswept / CHANGES_PER_ROW);
            n_unswept = 0;
        }
        mend(names);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!is_before(&now, &next)) {
            tick(names, count++);
            next = after_ms(TICK_MS);
        }
    }
    srv_names_part(names);
    return NULL;
}

/* ---- Create and destroy ---- */

static bool find_path(struct srv_names *names)
{
    struct gyre_file volume;

    if (gyre_file_at(names->store, 0, &volume) != GYRE_OK)
        return false;
    const char *slash = strrchr(volume.path, '/');
    int dir_len = slash != NULL ? (int)(slash - volume.path) : 1;
    int len = snprintf(names->path, sizeof names->path, "%.*s/" FILE_NAME, dir_len,
                       slash != NULL ? volume.path : ".");
    return len > 0 && (size_t)len < sizeof names->path - sizeof "-wal";
}

static void init(struct srv_names *names)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&names->wake, &attr);
    pthread_cond_init(&names->joined, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&names->lock, NULL);
    pthread_mutex_init(&names->readers_lock, NULL);
    names->tail = &names->head;
    names->again_tail = &names->again;
    names->slot = names->lock_fd = -1;
}

static void fini(struct srv_names *names)
{
    if (names->lock_fd >= 0)
        close(names->lock_fd);
    for (size_t i = 0; i < names->n_readers; i++)
        srv_names_db_close(&names->readers[i]);
    pthread_mutex_destroy(&names->readers_lock);
    pthread_mutex_destroy(&names->lock);
    pthread_cond_destroy(&names->joined);
    pthread_cond_destroy(&names->wake);
    struct srv_names_unlisted *unlisted =
        atomic_load_explicit(&names->unlisted, memory_order_relaxed);
    while (unlisted != NULL) {
        struct srv_names_unlisted *former = unlisted->former;
        free(unlisted);
        unlisted = former;
    }
    free(names);
}

/* Usually there is nothing to catch up with, and then lists should work from the first request. */
static void await_first_joining(struct srv_names *names)
{
    struct timespec until = after_ms(AWAIT_MS);

    pthread_mutex_lock(&names->lock);
    while (!names->is_awaited &&
           pthread_cond_timedwait(&names->joined, &names->lock, &until) == 0) {
    }
    pthread_mutex_unlock(&names->lock);
}

/* A long write-ahead log makes changes cheap and takes room beside the store: a 32nd of it, 4 to
 * 64 MiB. */
static unsigned wal_bytes_for(uint64_t capacity)
{
    const uint64_t least = 4 << 20, most = 64 << 20;
    uint64_t bytes = capacity / 32;
    return (unsigned)(bytes < least ? least : bytes > most ? most : bytes);
}

gyre_err srv_names_create(const struct srv_names_config *config, struct srv_names **names_out)
{
    struct srv_names *names = calloc(1, sizeof *names);

    *names_out = NULL;
    if (names == NULL)
        return GYRE_NO_MEMORY;
    init(names);
    names->store = config->store;
    names->wal_bytes = wal_bytes_for(gyre_capacity_bytes(names->store));
    struct srv_names_unlisted *unlisted =
        srv_names_unlisted_create(config->unlisted != NULL ? config->unlisted : "");
    atomic_init(&names->unlisted, unlisted);
    gyre_err err = unlisted != NULL ? GYRE_OK : GYRE_NO_MEMORY;
    if (err == GYRE_OK && !find_path(names))
        err = GYRE_INVALID;
    /* Before any change of ours, so that all of them are newer. */
    if (err == GYRE_OK)
        err =
            gyre_mark(names->store, names->mark.bytes, sizeof names->mark.bytes, &names->mark.len);
    if (err == GYRE_OK && pthread_create(&names->thread, NULL, run, names) != 0)
        err = GYRE_NO_MEMORY;
    if (err != GYRE_OK) {
        fini(names);
        return err;
    }
    await_first_joining(names);
    *names_out = names;
    return GYRE_OK;
}

void srv_names_destroy(struct srv_names *names)
{
    if (names == NULL)
        return;
    pthread_mutex_lock(&names->lock);
    names->is_stopping = true;
    pthread_cond_signal(&names->wake);
    pthread_mutex_unlock(&names->lock);
    pthread_join(names->thread, NULL);
    fini(names);
}
