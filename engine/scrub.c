#include "engine/scrub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/doc.h"
#include "engine/log.h"
#include "engine/seal.h"

#define WINDOW_BYTES (UINT64_C(2) << 20)
#define ALIGN UINT64_C(4096) /* of direct reads */
#define LINES_MAX 200

/* A document to be read. */
struct row {
    uint64_t entry;
    uint32_t slot;
};

/* What of a data file is in memory. */
struct window {
    int fd;
    bool direct;
    uint8_t *bytes;
    uint64_t off, len;
};

struct scrubbing {
    struct eng_store *store;
    const struct eng_scrub *how;
    struct eng_scrub_report *report;
    struct window window;
    uint64_t total, done; /* bytes, by the entries */
    uint64_t begun_ns;
    uint64_t said;
};

enum verdict { SOUND, DAMAGED, UNREADABLE, PURGED };

/* ---- Reading ---- */

static gyre_err open_window(struct scrubbing *s, const struct eng_stripe *stripe)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", stripe->fd);
    s->window.len = 0;
    s->window.direct = true;
    s->window.fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (s->window.fd < 0) {
        s->window.direct = false;
        s->window.fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return s->window.fd >= 0 ? GYRE_OK : eng_err_of_errno(errno);
}

/* Some file systems open for direct reads and then refuse them. */
static void go_buffered(struct window *window)
{
    int flags = fcntl(window->fd, F_GETFL);
    if (flags >= 0)
        (void)!fcntl(window->fd, F_SETFL, flags & ~O_DIRECT);
    window->direct = false;
}

/* No more than was asked for in the time since it began. */
static void pace(const struct scrubbing *s)
{
    uint64_t rate = s->how->bytes_per_second;
    if (rate == 0)
        return;
    uint64_t due_ns = (uint64_t)((double)s->report->bytes / (double)rate * 1e9);
    uint64_t now_ns = eng_clock_mono_ns() - s->begun_ns;
    if (due_ns <= now_ns)
        return;
    uint64_t ahead_ns = due_ns - now_ns;
    const struct timespec nap = {.tv_sec = (time_t)(ahead_ns / 1000000000),
                                 .tv_nsec = (long)(ahead_ns % 1000000000)};
    nanosleep(&nap, NULL);
}

static gyre_err fill_window(struct scrubbing *s, uint64_t off)
{
    struct window *window = &s->window;
    uint64_t start = eng_align_down(off, ALIGN);
    ssize_t n;
    pace(s);
    window->len = 0;
    do {
        n = pread(window->fd, window->bytes, WINDOW_BYTES, (off_t)start);
        if (n < 0 && errno == EINVAL && window->direct) {
            go_buffered(window);
            continue;
        }
        if (n >= 0 || errno != EINTR)
            break;
    } while (true);
    if (n <= 0 || start + (uint64_t)n <= off)
        return GYRE_IO;
    window->off = start;
    window->len = (uint64_t)n;
    s->report->bytes += (uint64_t)n;
    if (!window->direct) /* what comes next, while this is summed up */
        (void)!posix_fadvise(window->fd, (off_t)(start + window->len), (off_t)WINDOW_BYTES,
                             POSIX_FADV_WILLNEED);
    return GYRE_OK;
}

/* The bytes from `off` on, as many as the window has of the `len`. */
static gyre_err look(struct scrubbing *s, uint64_t off, uint64_t len, const uint8_t **at_out,
                     uint64_t *n_out)
{
    struct window *window = &s->window;
    if (window->len == 0 || off < window->off || off >= window->off + window->len) {
        gyre_err err = fill_window(s, off);
        if (err != GYRE_OK)
            return err;
    }
    uint64_t left = window->off + window->len - off;
    *at_out = window->bytes + (off - window->off);
    *n_out = left < len ? left : len;
    return GYRE_OK;
}

static gyre_err copy(struct scrubbing *s, uint64_t off, void *to, uint64_t len)
{
    uint8_t *at = to;
    while (len > 0) {
        const uint8_t *from;
        uint64_t n;
        gyre_err err = look(s, off, len, &from, &n);
        if (err != GYRE_OK)
            return err;
        memcpy(at, from, n);
        at += n;
        off += n;
        len -= n;
    }
    return GYRE_OK;
}

static gyre_err sum(struct scrubbing *s, uint64_t off, uint64_t len, uint32_t *crc_out)
{
    *crc_out = 0;
    while (len > 0) {
        const uint8_t *from;
        uint64_t n;
        gyre_err err = look(s, off, len, &from, &n);
        if (err != GYRE_OK)
            return err;
        *crc_out = eng_crc32c(*crc_out, from, n);
        off += n;
        len -= n;
    }
    return GYRE_OK;
}

/* ---- Judging ---- */

static bool is_purged(const struct eng_store *store, const struct eng_doc *doc)
{
    uint64_t epoch =
        store->rt.head != NULL
            ? atomic_load_explicit(&store->rt.head->pool_epoch[doc->pool], memory_order_acquire)
            : store->super.pools[doc->pool].epoch;
    return doc->pool_epoch != (uint32_t)epoch;
}

static enum verdict judge(struct scrubbing *s, const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t offset = eng_entry_offset(entry);
    uint64_t room = stripe->segment_units - offset % stripe->segment_units;
    uint64_t at = ENG_DATA_START + (offset << ENG_UNIT_SHIFT);
    struct eng_doc doc;
    uint32_t meta_crc, body_crc;
    if (copy(s, at, &doc, sizeof doc) != GYRE_OK)
        return UNREADABLE;
    if (eng_doc_check(&doc, stripe->crc_seed, offset, room) != GYRE_OK ||
        doc.pool >= s->store->super.n_pools)
        return DAMAGED;
    if (is_purged(s->store, &doc))
        return PURGED;
    if (sum(s, at + sizeof doc, doc.meta_len, &meta_crc) != GYRE_OK ||
        sum(s, at + eng_doc_body_off(&doc), doc.body_len, &body_crc) != GYRE_OK)
        return UNREADABLE;
    return meta_crc == doc.meta_crc && body_crc == doc.body_crc ? SOUND : DAMAGED;
}

/* Acquire: a document whose bytes were written over has lost its entry before. */
static bool stands(const struct eng_stripe *stripe, const struct row *row)
{
    atomic_thread_fence(memory_order_acquire);
    return eng_directory_entry(stripe, row->slot) == row->entry;
}

static void say(struct scrubbing *s, const struct eng_stripe *stripe, const struct row *row,
                enum verdict verdict)
{
    char line[512];
    if (s->how->say == NULL || s->said++ >= LINES_MAX)
        return;
    snprintf(line, sizeof line, "%s: the document at byte %" PRIu64 " %s", stripe->path,
             ENG_DATA_START + (eng_entry_offset(row->entry) << ENG_UNIT_SHIFT),
             verdict == UNREADABLE ? "cannot be read"
                                   : "is not what was stored: it reads as a miss");
    s->how->say(s->how->data, line);
}

/* What looks damaged is read once more, past what was read ahead of it, if it still stands. */
static void scrub_document(struct scrubbing *s, const struct eng_stripe *stripe,
                           const struct row *row)
{
    enum verdict verdict = judge(s, stripe, row->entry);
    if ((verdict == DAMAGED || verdict == UNREADABLE) && stands(stripe, row)) {
        s->window.len = 0;
        verdict = judge(s, stripe, row->entry);
    }
    if (verdict == PURGED || !stands(stripe, row)) {
        s->report->gone++;
        return;
    }
    s->report->documents++;
    if (verdict == SOUND)
        return;
    s->report->documents_bad++;
    s->report->unreadable += verdict == UNREADABLE;
    if (stripe->slots != NULL)
        eng_slot_distrust(&stripe->slots[row->slot]); /* the next reader looks for himself */
    say(s, stripe, row, verdict);
}

/* ---- Walking ---- */

static int by_offset(const void *a, const void *b)
{
    uint64_t x = eng_entry_offset(((const struct row *)a)->entry);
    uint64_t y = eng_entry_offset(((const struct row *)b)->entry);
    return x < y ? -1 : x > y;
}

/* NULL without memory. The directory may lead anywhere: what cannot be an extent is left out. */
static struct row *collect(const struct eng_stripe *stripe, size_t *n_out)
{
    uint32_t n_slots = stripe->n_buckets * ENG_BUCKET_ENTRIES;
    uint64_t area_units = stripe->area_bytes >> ENG_UNIT_SHIFT;
    size_t n = 0, capacity = 1024;
    struct row *rows = malloc(capacity * sizeof *rows);
    *n_out = 0;
    for (uint32_t slot = 0; slot < n_slots && rows != NULL; slot++) {
        uint64_t entry = eng_directory_entry(stripe, slot);
        if (entry == 0 || eng_entry_offset(entry) >= area_units)
            continue;
        if (n == capacity) {
            capacity *= 2;
            struct row *more = realloc(rows, capacity * sizeof *rows);
            if (more == NULL)
                free(rows);
            rows = more;
            if (rows == NULL)
                break;
        }
        rows[n++] = (struct row){entry, slot};
    }
    if (rows != NULL && n > 0)
        qsort(rows, n, sizeof *rows, by_offset);
    *n_out = rows != NULL ? n : 0;
    return rows;
}

static void report_progress(struct scrubbing *s, const struct row *row)
{
    s->done += eng_entry_units_bound(row->entry) << ENG_UNIT_SHIFT;
    if (s->how->progress != NULL)
        s->how->progress(s->how->data, s->done < s->total ? s->done : s->total, s->total);
}

static gyre_err scrub_stripe(struct scrubbing *s, const struct eng_stripe *stripe)
{
    size_t n;
    struct row *rows = collect(stripe, &n);
    if (rows == NULL)
        return GYRE_NO_MEMORY;
    gyre_err err = open_window(s, stripe);
    for (size_t i = 0; i < n && err == GYRE_OK; i++) {
        scrub_document(s, stripe, &rows[i]);
        report_progress(s, &rows[i]);
    }
    eng_close(&s->window.fd);
    free(rows);
    return err;
}

static uint64_t total_bytes(const struct eng_store *store)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        const struct eng_stripe *stripe = &store->stripes[i];
        for (uint32_t slot = 0; slot < stripe->n_buckets * ENG_BUCKET_ENTRIES; slot++) {
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (entry != 0)
                bytes += eng_entry_units_bound(entry) << ENG_UNIT_SHIFT;
        }
    }
    return bytes;
}

gyre_err eng_scrub(struct eng_store *store, const struct eng_scrub *how,
                   struct eng_scrub_report *report_out)
{
    struct scrubbing s = {.store = store,
                          .how = how,
                          .report = report_out,
                          .window = {.fd = -1},
                          .begun_ns = eng_clock_mono_ns()};
    gyre_err err = GYRE_OK;
    *report_out = (struct eng_scrub_report){0};
    s.window.bytes = aligned_alloc(ALIGN, WINDOW_BYTES);
    if (s.window.bytes == NULL)
        return GYRE_NO_MEMORY;
    s.total = total_bytes(store);
    for (uint32_t i = 0; i < store->n_stripes && err == GYRE_OK; i++)
        err = scrub_stripe(&s, &store->stripes[i]);
    free(s.window.bytes);
    if (err == GYRE_OK && report_out->documents_bad > 0)
        err = GYRE_DAMAGED;
    return err;
}
