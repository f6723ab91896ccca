#include "engine/heat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/hash.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/directory.h"
#include "engine/locks.h"

#define MAGIC UINT64_C(0x7461654865727947) /* "GyreHeat" */
#define VERSION 1
#define BATCH 16384 /* u16 at a time; the alloc lock is held for as many of the ghost */

enum { HITS_SHIFT = 2, CHECK_SHIFT = 4, CHECK_MASK = 0xFFF };

struct head {
    uint64_t magic;
    uint32_t version, n_stripes;
    uint8_t uuid[16];
    uint32_t crc, zero_;
};

struct stripe_head {
    uint32_t n_slots, n_ghost;
    uint64_t window, in_epoch;
    uint32_t epoch, mode;
};

_Static_assert(sizeof(struct head) == 40 && sizeof(struct stripe_head) == 32, "as on disk");

/* A file that is gone through from its beginning. */
struct walk {
    int fd;
    uint64_t at;
    uint32_t crc; /* of what was passed since the stripe's beginning */
    uint16_t buffer[BATCH];
};

static uint32_t slots_of(const struct eng_stripe *stripe)
{
    return stripe->n_buckets * ENG_BUCKET_ENTRIES;
}

uint64_t eng_heat_bytes(const struct eng_superblock *super)
{
    uint64_t bytes = sizeof(struct head);
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        uint64_t n_slots = (uint64_t)super->stripes[i].n_buckets * ENG_BUCKET_ENTRIES;
        bytes += sizeof(struct stripe_head) + sizeof(uint32_t) +
                 (n_slots + eng_ghost_places(n_slots)) * sizeof(uint16_t);
    }
    return bytes;
}

/* DIR/name of the directory that the volume is in; the caller frees it. */
static char *path_of(const struct eng_store *store, const char *name)
{
    char *path;
    const char *slash = strrchr(store->volume_path, '/');
    int len = slash != NULL ? (int)(slash - store->volume_path) : 0;
    return asprintf(&path, "%.*s/%s", len, store->volume_path, name) < 0 ? NULL : path;
}

/* ---- Saving ---- */

static gyre_err put(struct walk *walk, const void *bytes, size_t len)
{
    gyre_err err = eng_pwrite(walk->fd, bytes, len, walk->at);
    walk->crc = eng_crc32c(walk->crc, bytes, len);
    walk->at += len;
    return err;
}

static uint16_t check_of(uint64_t entry)
{
    return (uint16_t)(eng_mix64(entry) & CHECK_MASK) << CHECK_SHIFT;
}

static uint16_t pack(uint64_t entry, uint32_t word)
{
    uint32_t hits = (word & ENG_SLOT_HITS) / ENG_SLOT_HIT;
    uint32_t grade = (word & ENG_SLOT_GRADE) >> ENG_SLOT_GRADE_SHIFT;
    return entry == 0 ? 0 : (uint16_t)(check_of(entry) | hits << HITS_SHIFT | grade);
}

/* Why a stale answer is safe: a counter that is a little old, or, where slot and entry are not of
 * one moment, that of another document, is a wrong guess about one document. */
static gyre_err put_slots(struct walk *walk, const struct eng_stripe *stripe)
{
    uint32_t n = slots_of(stripe);
    for (uint32_t from = 0; from < n; from += BATCH) {
        uint32_t len = n - from < BATCH ? n - from : BATCH;
        for (uint32_t i = 0; i < len; i++)
            walk->buffer[i] =
                pack(eng_directory_entry(stripe, from + i),
                     atomic_load_explicit(&stripe->slots[from + i].word, memory_order_relaxed));
        gyre_err err = put(walk, walk->buffer, len * sizeof walk->buffer[0]);
        if (err != GYRE_OK)
            return err;
    }
    return GYRE_OK;
}

static gyre_err put_ghost(struct walk *walk, struct eng_stripe *stripe)
{
    for (uint64_t from = 0; from < stripe->n_ghost; from += BATCH) {
        uint64_t len = stripe->n_ghost - from < BATCH ? stripe->n_ghost - from : BATCH;
        gyre_err err = eng_alloc_lock_bounded(stripe);
        if (err != GYRE_OK)
            return err;
        memcpy(walk->buffer, stripe->ghost + from, len * sizeof walk->buffer[0]);
        eng_alloc_unlock(stripe);
        err = put(walk, walk->buffer, len * sizeof walk->buffer[0]);
        if (err != GYRE_OK)
            return err;
    }
    return GYRE_OK;
}

static gyre_err put_stripe(struct walk *walk, struct eng_stripe *stripe)
{
    gyre_err err;
    struct stripe_head head = {.n_slots = slots_of(stripe), .n_ghost = (uint32_t)stripe->n_ghost};
    TRY(eng_alloc_lock_bounded(stripe));
    head.window = stripe->rt->ghost.window;
    head.in_epoch = stripe->rt->ghost.in_epoch;
    head.epoch = stripe->rt->ghost.epoch;
    head.mode = eng_policy_mode(&stripe->rt->policy);
    eng_alloc_unlock(stripe);
    walk->crc = 0;
    TRY(put(walk, &head, sizeof head));
    TRY(put_slots(walk, stripe));
    GYRE_STEP("heat.save.half");
    TRY(put_ghost(walk, stripe));
    uint32_t crc = walk->crc;
    err = put(walk, &crc, sizeof crc);
out:
    return err;
}

static gyre_err put_all(struct walk *walk, struct eng_store *store)
{
    gyre_err err;
    struct head head = {.magic = MAGIC, .version = VERSION, .n_stripes = store->n_stripes};
    memcpy(head.uuid, store->super.uuid, sizeof head.uuid);
    head.crc = eng_crc32c(0, &head, offsetof(struct head, crc));
    TRY(put(walk, &head, sizeof head));
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(put_stripe(walk, &store->stripes[i]));
    err = eng_sync_data(walk->fd);
out:
    return err;
}

gyre_err eng_heat_save(struct eng_store *store)
{
    char *to = path_of(store, ENG_HEAT_NAME);
    char *path = path_of(store, ENG_HEAT_NEW_NAME);
    struct walk *walk = calloc(1, sizeof *walk);
    gyre_err err = GYRE_NO_MEMORY;
    if (to == NULL || path == NULL || walk == NULL)
        goto out;
    TRY(eng_open_regular(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &walk->fd));
    err = put_all(walk, store);
    eng_close(&walk->fd);
    GYRE_STEP("heat.save.written");
    if (err == GYRE_OK && rename(path, to) != 0)
        err = eng_err_of_errno(errno);
    if (err != GYRE_OK)
        unlink(path);
out:
    free(walk);
    free(path);
    free(to);
    return err;
}

/* ---- Loading ---- */

static bool take(struct walk *walk, void *out, size_t len)
{
    if (eng_pread(walk->fd, out, len, walk->at) != GYRE_OK)
        return false;
    walk->crc = eng_crc32c(walk->crc, out, len);
    walk->at += len;
    return true;
}

static void warm(struct eng_stripe *stripe, uint32_t slot, uint16_t saved)
{
    uint64_t entry = eng_directory_entry(stripe, slot);
    if (entry == 0 || (saved >> CHECK_SHIFT & CHECK_MASK) << CHECK_SHIFT != check_of(entry))
        return;
    uint32_t hits = saved >> HITS_SHIFT & 3;
    uint32_t grade = saved & 3;
    atomic_fetch_or_explicit(&stripe->slots[slot].word,
                             hits * ENG_SLOT_HIT | grade << ENG_SLOT_GRADE_SHIFT,
                             memory_order_relaxed);
}

static bool take_slots(struct walk *walk, struct eng_stripe *stripe)
{
    uint32_t n = slots_of(stripe);
    for (uint32_t from = 0; from < n; from += BATCH) {
        uint32_t len = n - from < BATCH ? n - from : BATCH;
        if (!take(walk, walk->buffer, len * sizeof walk->buffer[0]))
            return false;
        for (uint32_t i = 0; i < len; i++)
            warm(stripe, from + i, walk->buffer[i]);
    }
    return true;
}

static bool take_stripe(struct walk *walk, struct eng_stripe *stripe)
{
    struct stripe_head head;
    uint32_t crc, expected;
    walk->crc = 0;
    if (!take(walk, &head, sizeof head) || head.n_slots != slots_of(stripe) ||
        head.n_ghost != stripe->n_ghost || !take_slots(walk, stripe) ||
        !take(walk, stripe->ghost, stripe->n_ghost * sizeof stripe->ghost[0]))
        return false;
    expected = walk->crc;
    if (!take(walk, &crc, sizeof crc) || crc != expected)
        return false;
    stripe->rt->ghost.window = head.window;
    stripe->rt->ghost.in_epoch = head.in_epoch;
    stripe->rt->ghost.epoch = head.epoch;
    if (stripe->rt->policy.retention == ENG_RETENTION_AUTO)
        atomic_store_explicit(&stripe->rt->policy.mode, head.mode & 1, memory_order_relaxed);
    return true;
}

/* As if nothing had been loaded. */
static void chill(struct eng_stripe *stripe)
{
    memset(stripe->ghost, 0, stripe->n_ghost * sizeof stripe->ghost[0]);
    for (uint32_t slot = 0; slot < slots_of(stripe); slot++)
        atomic_fetch_and_explicit(&stripe->slots[slot].word, ~(ENG_SLOT_HITS | ENG_SLOT_GRADE),
                                  memory_order_relaxed);
}

/* Where a stripe's bytes begin is known from the layout alone, so one that is damaged costs no
 * other. */
static uint32_t take_all(struct walk *walk, struct eng_store *store)
{
    struct head head;
    uint32_t n = 0;
    if (!take(walk, &head, sizeof head) || head.magic != MAGIC || head.version != VERSION ||
        head.n_stripes != store->n_stripes ||
        memcmp(head.uuid, store->super.uuid, sizeof head.uuid) != 0 ||
        head.crc != eng_crc32c(0, &head, offsetof(struct head, crc)))
        return 0;
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        uint64_t next = walk->at + sizeof(struct stripe_head) + sizeof(uint32_t) +
                        (slots_of(stripe) + stripe->n_ghost) * sizeof(uint16_t);
        if (take_stripe(walk, stripe))
            n++;
        else
            chill(stripe);
        walk->at = next;
    }
    return n;
}

uint32_t eng_heat_load(struct eng_store *store)
{
    char *path = path_of(store, ENG_HEAT_NAME);
    struct walk *walk = calloc(1, sizeof *walk);
    uint32_t n = 0;
    if (path != NULL && walk != NULL &&
        eng_open_regular(AT_FDCWD, path, O_RDONLY, 0, &walk->fd) == GYRE_OK) {
        n = take_all(walk, store);
        eng_close(&walk->fd);
    }
    free(walk);
    free(path);
    return n;
}
