#include "engine/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check_internal.h"
#include "engine/locks.h"
#include "engine/reader.h"
#include "engine/writer.h"

#define LINES_MAX 200

static void say(struct eng_checking *c, const char *line)
{
    if (c->say == NULL || c->said > LINES_MAX)
        return;
    c->said++;
    c->say(c->data, c->said > LINES_MAX ? "and more; the totals count all of them" : line);
}

void eng_check_violated(struct eng_checking *c, const struct eng_stripe *stripe,
                        const char *invariant, const char *what, ...)
{
    char detail[256];
    char line[400];
    va_list args;

    c->report->violations++;
    va_start(args, what);
    vsnprintf(detail, sizeof detail, what, args);
    va_end(args);
    snprintf(line, sizeof line, "stripe %" PRIu32 ": %s does not hold: %s", stripe->index,
             invariant, detail);
    say(c, line);
}

void eng_check_damaged(struct eng_checking *c, const struct eng_stripe *stripe, const char *what,
                       ...)
{
    char detail[256];
    char line[400];
    va_list args;

    va_start(args, what);
    vsnprintf(detail, sizeof detail, what, args);
    va_end(args);
    snprintf(line, sizeof line, "stripe %" PRIu32 ": %s", stripe->index, detail);
    say(c, line);
}

/* ---- Objects in parts ---- */

/* Whether the part a row names is there, and its bytes are what the row says. */
static bool part_whole(struct eng_checking *c, const struct eng_ref *head,
                       const struct eng_part_row *row)
{
    uint8_t key[32];
    struct eng_ref part;

    eng_part_key(head->doc->key, head->doc->object_serial, row->part_no, row->attempt, row->sub,
                 key);
    const struct eng_want want = {key, head->doc->pool, true, head->doc->object_serial};
    if (eng_find(c->store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE, &part) != GYRE_OK)
        return false;
    bool whole = part.doc->body_len == row->length;
    if (whole && c->bodies)
        whole = part.doc->body_crc == row->crc && eng_verify(&part, 0, row->length) == GYRE_OK;
    eng_ref_release(&part);
    return whole;
}

static bool parts_whole(struct eng_checking *c, const struct eng_ref *head)
{
    uint64_t total = 0;
    uint64_t n = head->doc->body_len / sizeof(struct eng_part_row);

    for (uint64_t i = 0; i < n; i++) {
        struct eng_part_row row;
        memcpy(&row, head->body + i * sizeof row, sizeof row);
        if (!part_whole(c, head, &row))
            return false;
        total += row.length;
    }
    return total == head->doc->total_len;
}

/* Looked up as a reader would, without locks: an object that was replaced meanwhile is looked at as
 * it is now, one that left is nobody's loss. */
static void check_object(struct eng_checking *c, const struct eng_check_head *head)
{
    const struct eng_want want = {head->key, head->pool, false, 0};
    struct eng_ref ref;

    if (eng_find(c->store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE, &ref) != GYRE_OK)
        return;
    /* One that lacks a part is what eviction leaves for a while: counted, but no finding. */
    if (ref.doc->type != ENG_HEAD || parts_whole(c, &ref))
        c->report->objects++;
    else
        c->report->objects_incomplete++;
    eng_ref_release(&ref);
}

/* ---- All ---- */

static gyre_err check_stripe(struct eng_checking *c, struct eng_stripe *stripe)
{
    eng_clean_lock(stripe);
    eng_alloc_lock(stripe);
    gyre_err err = eng_check_index(c, stripe);
    eng_alloc_unlock(stripe);
    eng_clean_unlock(stripe);
    return err == GYRE_OK ? eng_check_documents(c, stripe) : err;
}

gyre_err eng_check(struct eng_store *store, bool bodies,
                   void (*say_line)(void *data, const char *line), void *data,
                   struct eng_check_report *report_out)
{
    struct eng_checking c = {
        .store = store, .bodies = bodies, .say = say_line, .data = data, .report = report_out};
    gyre_err err = GYRE_OK;

    *report_out = (struct eng_check_report){0};
    for (uint32_t i = 0; i < store->n_stripes && err == GYRE_OK; i++)
        err = check_stripe(&c, &store->stripes[i]);
    for (size_t i = 0; i < c.n_heads && err == GYRE_OK; i++)
        check_object(&c, &c.heads[i]);
    free(c.heads);
    if (err == GYRE_OK && (report_out->violations | report_out->documents_bad) != 0)
        err = GYRE_DAMAGED;
    return err;
}
