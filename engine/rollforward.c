/* Finding documents again that reached the disk while their directory entries did not; see
 * recover_internal.h.
 *
 * After a power loss each page of directory and data is as new or as old as chance had it, so
 * nothing in an announced segment is believed without its checksums. Walking such a segment finds
 * every intact document: behind an intact one the walk goes on, anywhere else it looks at the next
 * 128 bytes. Intact documents cannot overlap, for the later of two writers would have broken the
 * earlier one's checksum.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/log.h"
#include "engine/recover_internal.h"

#define WINDOW_BYTES (UINT64_C(4) << 20)
#define NO_DATA UINT64_MAX

/* ---- Reading ---- */

/* A stretch of the data file in memory. */
struct window {
    int fd;
    uint8_t *bytes;
    uint64_t start, len; /* in the file */
    uint64_t end;        /* the file's */
    uint64_t data_end;   /* no hole before this */
};

/* A page that cannot be read counts as zeros: what lay in it is a miss. */
static void read_pages(struct window *w)
{
    if (eng_pread(w->fd, w->bytes, w->len, w->start) == GYRE_OK)
        return;
    for (uint64_t at = 0; at < w->len; at += ENG_PAGE)
        if (eng_pread(w->fd, w->bytes + at, ENG_PAGE, w->start + at) != GYRE_OK)
            memset(w->bytes + at, 0, ENG_PAGE);
}

/* Bytes from `off` on, *len_inout of them or fewer, never none; `off` is below the end. */
static const uint8_t *bytes_at(struct window *w, uint64_t off, uint64_t *len_inout)
{
    if (off < w->start || off >= w->start + w->len) {
        w->start = eng_align_down(off, ENG_PAGE);
        w->len = w->end - w->start < WINDOW_BYTES ? w->end - w->start : WINDOW_BYTES;
        read_pages(w);
    }
    uint64_t left = w->start + w->len - off;
    *len_inout = *len_inout < left ? *len_inout : left;
    return w->bytes + (off - w->start);
}

static void copy_out(struct window *w, uint64_t off, void *to, uint64_t len)
{
    for (uint64_t done = 0; done < len;) {
        uint64_t n = len - done;
        const uint8_t *from = bytes_at(w, off + done, &n);
        memcpy((uint8_t *)to + done, from, n);
        done += n;
    }
}

static uint32_t crc_of(struct window *w, uint64_t off, uint64_t len)
{
    uint32_t crc = 0;

    for (uint64_t done = 0; done < len;) {
        uint64_t n = len - done;
        const uint8_t *from = bytes_at(w, off + done, &n);
        crc = eng_crc32c(crc, from, n);
        done += n;
    }
    return crc;
}

/* Where, from `off` on, the next bytes that were ever written begin, and in w->data_end where they
 * end: segments that were announced and never written are holes, and cost nothing. A file system
 * that does not tell has written everything. */
static uint64_t next_data(struct window *w, uint64_t off)
{
    if (off < w->data_end)
        return off;
    off_t at = lseek(w->fd, (off_t)off, SEEK_DATA);
    if (at < 0 && errno == ENXIO)
        return w->data_end = w->end;
    off_t end = at < 0 ? -1 : lseek(w->fd, at, SEEK_HOLE);
    w->data_end = end < 0 ? w->end : (uint64_t)end;
    at = at < 0 ? (off_t)off : (off_t)eng_align_down((uint64_t)at, ENG_PAGE);
    return (uint64_t)at > off ? (uint64_t)at : off;
}

/* ---- Walking ---- */

struct intact {
    uint64_t offset; /* units */
    uint64_t serial;
    uint32_t units;
    uint32_t bucket[2];
    uint16_t tag;
    uint8_t kind;
    uint8_t pool;
};

struct list {
    struct intact *rows;
    size_t n, capacity;
};

static gyre_err append(struct list *list, const struct intact *row)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity == 0 ? 1024 : 2 * list->capacity;
        struct intact *rows = realloc(list->rows, capacity * sizeof *rows);
        if (rows == NULL)
            return GYRE_NO_MEMORY;
        list->rows = rows;
        list->capacity = capacity;
    }
    list->rows[list->n++] = *row;
    return GYRE_OK;
}

struct walk {
    struct eng_recovering *r;
    struct window window;
    struct list here;  /* intact documents of one segment, in address order */
    struct list newer; /* those newer than the header, of all segments */
};

static bool is_intact(struct walk *walk, uint64_t offset, struct eng_known_doc *known)
{
    struct window *w = &walk->window;
    uint64_t at = ENG_DATA_START + (offset << ENG_UNIT_SHIFT);
    uint64_t n = sizeof(uint32_t);
    struct eng_doc doc;

    if (eng_load_u32(bytes_at(w, at, &n)) != ENG_DOC_MAGIC)
        return false;
    copy_out(w, at, &doc, sizeof doc);
    return eng_known_doc_check(walk->r, &doc, offset, known) &&
           crc_of(w, at + sizeof doc, doc.meta_len) == doc.meta_crc &&
           crc_of(w, at + eng_doc_body_off(&doc), doc.body_len) == doc.body_crc;
}

static gyre_err note_intact(struct walk *walk, const struct eng_known_doc *known)
{
    const struct intact row = {
        .offset = known->offset,
        .serial = known->doc.serial,
        .units = (uint32_t)known->units,
        .bucket = {known->place.bucket[0], known->place.bucket[1]},
        .tag = known->place.tag,
        .kind = (uint8_t)eng_kind_of_type(known->doc.type),
        .pool = known->doc.pool,
    };
    gyre_err err;

    walk->r->max_serial = row.serial > walk->r->max_serial ? row.serial : walk->r->max_serial;
    TRY(append(&walk->here, &row));
    if (row.serial > walk->r->header->serial_synced)
        TRY(append(&walk->newer, &row));
out:
    return err;
}

static gyre_err walk_segment(struct walk *walk, uint32_t segment)
{
    uint64_t units = walk->r->stripe->segment_units;
    uint64_t end = (segment + 1) * units;
    struct eng_known_doc known;
    gyre_err err = GYRE_OK;

    walk->here.n = 0;
    walk->window.data_end = 0;
    for (uint64_t at = segment * units; at < end;) {
        uint64_t file_off = ENG_DATA_START + (at << ENG_UNIT_SHIFT);
        at += (next_data(&walk->window, file_off) - file_off) >> ENG_UNIT_SHIFT;
        if (at >= end)
            break;
        if (is_intact(walk, at, &known)) {
            TRY(note_intact(walk, &known));
            at += known.units;
        } else {
            at++;
        }
    }
out:
    return err;
}

/* ---- Entries against what was found ---- */

static int by_offset(const void *key, const void *row)
{
    uint64_t offset = *(const uint64_t *)key;
    const struct intact *at = row;

    return offset < at->offset ? -1 : offset > at->offset;
}

static bool has_witness(const struct walk *walk, uint32_t slot, uint64_t entry)
{
    uint64_t offset = eng_entry_offset(entry);
    uint32_t bucket = slot / ENG_BUCKET_ENTRIES;
    const struct intact *row;

    if (walk->here.n == 0)
        return false;
    row = bsearch(&offset, walk->here.rows, walk->here.n, sizeof *row, by_offset);
    return row != NULL && row->kind == eng_entry_kind(entry) && row->tag == eng_entry_tag(entry) &&
           (row->serial & 7) == (entry & 7) &&
           (bucket == row->bucket[0] || bucket == row->bucket[1]);
}

static void drop_unwitnessed(struct walk *walk, uint32_t segment)
{
    struct eng_stripe *stripe = walk->r->stripe;
    uint64_t per_segment = stripe->store->super.segment_bytes / ENG_GRANULE;

    for (uint64_t i = 0; i < per_segment; i++) {
        uint32_t slot = eng_granule_first_locked(stripe, segment * per_segment + i);
        while (slot != ENG_NO_SLOT) {
            uint32_t next = eng_granule_next_locked(stripe, slot);
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (!has_witness(walk, slot, entry))
                (void)eng_directory_remove_locked(stripe, slot, entry);
            slot = next;
        }
    }
}

/* ---- All of it ---- */

static int by_serial(const void *a, const void *b)
{
    const struct intact *x = a;
    const struct intact *y = b;

    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Parts now, the rest is left to eng_recover_objects. */
static gyre_err enter_newer(struct walk *walk, struct eng_newer *newer_out)
{
    const struct list *found = &walk->newer;

    if (found->n == 0)
        return GYRE_OK;
    newer_out->offsets = malloc(found->n * sizeof *newer_out->offsets);
    if (newer_out->offsets == NULL)
        return GYRE_NO_MEMORY;
    qsort(found->rows, found->n, sizeof *found->rows, by_serial);
    for (size_t i = 0; i < found->n; i++) {
        struct eng_known_doc known;
        if (!eng_known_doc_read(walk->r, found->rows[i].offset, &known))
            continue;
        eng_segment_note(walk->r, &known);
        if (known.doc.type == ENG_PART)
            eng_apply(walk->r, known.offset);
        else
            newer_out->offsets[newer_out->n++] = known.offset;
    }
    return GYRE_OK;
}

gyre_err eng_roll_forward(struct eng_recovering *r, struct eng_newer *newer_out)
{
    struct eng_stripe *stripe = r->stripe;
    struct walk walk = {.r = r,
                        .window = {.fd = stripe->fd, .end = ENG_DATA_START + stripe->area_bytes}};
    gyre_err err = GYRE_OK;

    walk.window.bytes = malloc(WINDOW_BYTES);
    if (walk.window.bytes == NULL)
        return GYRE_NO_MEMORY;
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        if (!r->seen[i].announced)
            continue;
        if (r->progress != NULL)
            r->progress(r->progress_data, "looking for documents newer than the last sync", i,
                        stripe->n_segments);
        TRY(walk_segment(&walk, i));
        drop_unwitnessed(&walk, i);
    }
    TRY(enter_newer(&walk, newer_out));
out:
    free(walk.here.rows);
    free(walk.newer.rows);
    free(walk.window.bytes);
    return err;
}
