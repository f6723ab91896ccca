/* Groups of changes, written in one transaction each. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/log.h"
#include "server/s3/names_internal.h"

enum { BUSY_TRIES = 3, GONE_MAX = 256 };

static void free_note(struct srv_names_note *note)
{
    free(note);
}

void srv_names_again(struct srv_names *names, struct srv_str name)
{
    struct srv_str bucket, key;
    struct srv_names_note *note = malloc(sizeof *note + name.len);

    if (note == NULL || name.len == 0)
        goto out;
    memcpy(note + 1, name.base, name.len);
    if (!srv_name_split((struct srv_str){(char *)(note + 1), name.len}, &bucket, &key))
        goto out;
    *note = (struct srv_names_note){.done = free_note, .bucket_ = bucket, .key_ = key};
    *names->again_tail = note;
    names->again_tail = &note->next_;
    names->n_again++;
    return;
out:
    free(note);
}

/* All that waits: what requests noted, and what is to be looked at again. */
static struct srv_names_note *take_all(struct srv_names *names)
{
    pthread_mutex_lock(&names->lock);
    struct srv_names_note *first = names->head;
    if (first != NULL)
        *names->tail = names->again;
    names->head = NULL;
    names->tail = &names->head;
    pthread_mutex_unlock(&names->lock);
    if (first == NULL)
        first = names->again;
    names->again = NULL;
    names->again_tail = &names->again;
    names->n_again = 0;
    return first;
}

/* ---- Marks ---- */

/* Begins to move the mark: it may be written once everybody who was inside by now has noted. */
static void begin_marking(struct srv_names *names)
{
    struct srv_names_mark *mark = &names->next_mark;

    if (gyre_mark(names->store, mark->bytes, sizeof mark->bytes, &mark->len) != GYRE_OK)
        return;
    names->marking_turn = atomic_fetch_add_explicit(&names->turn, 1, memory_order_seq_cst);
    names->is_marking = true;
    names->noted = 0;
}

/* Must be asked before the notes are taken that go into the same transaction. */
static bool may_mark(const struct srv_names *names)
{
    return names->is_marking &&
           atomic_load_explicit(&names->inside[names->marking_turn & 1], memory_order_seq_cst) == 0;
}

static void end_marking(struct srv_names *names)
{
    names->mark = names->next_mark;
    names->is_marking = false;
}

/* ---- A group ---- */

static enum srv_names_fault bring_into_step(struct srv_names *names,
                                            const struct srv_names_note *note, uint32_t now)
{
    struct srv_name_row row;
    char bytes[SRV_NAME_MAX];
    struct srv_str name = {bytes, srv_name_write(note->bucket_, note->key_, bytes)};
    gyre_err err = GYRE_NOT_FOUND;

    if (srv_names_lists(names, note->bucket_))
        err = srv_name_look(names->store, name, now, &row);
    if (err == GYRE_OK)
        return srv_names_db_put(&names->db, &row);
    if (err == GYRE_NOT_FOUND)
        return srv_names_db_delete(&names->db, name);
    names->has_missed = true; /* the store could not say: found again from the mark */
    return SRV_NAMES_TROUBLE;
}

static enum srv_names_fault write_group(struct srv_names *names, const struct srv_names_note *first,
                                        bool with_mark)
{
    uint32_t now = (uint32_t)time(NULL);
    enum srv_names_fault fault = srv_names_db_run(&names->db, SRV_NAMES_BEGIN_WRITE);

    for (const struct srv_names_note *at = first; at != NULL && fault == SRV_NAMES_FINE;
         at = at->next_)
        if (at->bucket_.len > 0)
            fault = bring_into_step(names, at, now);
    if (fault == SRV_NAMES_FINE && with_mark && names->slot >= 0)
        fault = srv_names_db_set_writer(&names->db, names->slot, &names->next_mark);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_run(&names->db, SRV_NAMES_COMMIT);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_rollback(&names->db);
    return fault;
}

void srv_names_fail(struct srv_names *names, enum srv_names_fault fault)
{
    atomic_store_explicit(&names->is_ready, false, memory_order_release);
    names->is_damaged = names->is_damaged || fault == SRV_NAMES_DAMAGED;
    names->is_marking = false;
    names->is_failing = true;
    if (!names->has_complained && fault != SRV_NAMES_FINE)
        srv_log(SRV_LOG_WARN, "%s: the index of names %s: %s; lists are refused until then",
                names->path,
                names->is_damaged ? "is damaged and made anew" : "cannot be written for now",
                names->db.message);
    names->has_complained = true;
    srv_names_db_close(&names->db);
}

static size_t finish(struct srv_names_note *first)
{
    size_t n = 0;

    for (struct srv_names_note *next; first != NULL; first = next) {
        next = first->next_; /* `done` gives the note away */
        first->done(first);
        n++;
    }
    return n;
}

size_t srv_names_flush(struct srv_names *names)
{
    enum srv_names_fault fault = SRV_NAMES_BUSY;
    bool is_ready = srv_names_is_ready(names);

    if (is_ready && !names->is_marking && names->noted > 0)
        begin_marking(names);
    bool with_mark = is_ready && may_mark(names);
    struct srv_names_note *first = take_all(names);
    if (first == NULL && !with_mark)
        return 0;
    if (names->db.db == NULL) {
        names->has_missed = true;
        return finish(first);
    }
    for (int i = 0; i < BUSY_TRIES && fault == SRV_NAMES_BUSY; i++)
        fault = write_group(names, first, with_mark);
    if (fault != SRV_NAMES_FINE) {
        names->has_missed = true;
        srv_names_fail(names, fault);
    } else if (with_mark) {
        end_marking(names);
    }
    size_t n = finish(first);
    names->noted += n;
    return n;
}

/* ---- Sweeping ---- */

/* Whether the directory says that the object is gone or another one; cheap and never blocking. A
 * list looks closer. */
static bool seems_gone(const struct srv_names *names, const struct srv_name_row *row, uint32_t now)
{
    struct srv_str bucket, key;

    if (!srv_name_split((struct srv_str){row->name, row->name_len}, &bucket, &key) ||
        (row->expires != 0 && now >= row->expires))
        return true;
    struct gyre_key digest = srv_name_key(bucket, key);
    return row->is_in_parts
               ? gyre_exists(names->store, &digest, now, GYRE_PROBABLE) == GYRE_NOT_FOUND
               : gyre_holds(names->store, &digest, row->place) == GYRE_NOT_FOUND;
}

void srv_names_sweep(struct srv_names *names, size_t n)
{
    struct srv_name_row row;
    bool has_row = true;
    uint32_t now = (uint32_t)time(NULL);
    enum srv_names_fault fault = srv_names_db_walk(
        &names->db, (struct srv_str){names->cursor, names->cursor_len}, names->cursor_len > 0);

    for (; n > 0 && fault == SRV_NAMES_FINE && has_row && names->n_again < GONE_MAX; n--) {
        fault = srv_names_db_next(&names->db, &row, &has_row);
        if (fault != SRV_NAMES_FINE)
            break;
        names->cursor_len = has_row ? row.name_len : 0;
        if (!has_row)
            break;
        memcpy(names->cursor, row.name, row.name_len);
        if (seems_gone(names, &row, now))
            srv_names_again(names, (struct srv_str){row.name, row.name_len});
    }
    srv_names_db_stop(&names->db);
    if (fault == SRV_NAMES_DAMAGED)
        srv_names_fail(names, fault);
}
