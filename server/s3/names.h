/* The index of names: which keys each bucket has, in order, kept in a file beside the store. What
 * it says is derived from the store and made again from it whenever it is missing, damaged or
 * behind.
 *
 *   enter -> (the store changes) -> changed -> await ... the row agrees with the store -> done
 *   enter -> (it does not)       -> leave
 *
 * A row is never written from what a request did, but from what the store holds under the name
 * inside of the transaction that writes it. So the order in which requests, threads and processes
 * come by does not matter: whoever comes last sees the last change.
 *
 * Owns:    the file names.sqlite in the store's first directory, a thread, and connections.
 * Threads: any.
 * Blocks:  nothing but create (a second at most), destroy, settle and the scans of names_scan.h.
 * Keeps:   S4, S5.
 */
#pragma once

#include "server/exchange.h"

#include "api/gyre.h"

struct srv_names;

struct srv_names_config {
    struct gyre_store *store;
    /* Names of the buckets that have no index, each with a line feed behind it; NULL: none. Copied.
     */
    const char *unlisted;
};

/* Starts the index. A file that cannot be used is no failure: lists are refused until it can.
 * NO_MEMORY. */
GYRE_MUST_USE gyre_err srv_names_create(const struct srv_names_config *config,
                                        struct srv_names **names_out);
/* Writes down what was noted, and that all of it was. The store is still open, and nobody is inside
 * enter and leave or a scan. NULL is allowed. */
void srv_names_destroy(struct srv_names *names);

/* Whether the bucket has an index. */
bool srv_names_lists(const struct srv_names *names, struct srv_str bucket);

/* Which buckets have none, as srv_names_config says it. It is freed with free until it is put in
 * place. NULL without memory. */
struct srv_names_unlisted *srv_names_unlisted_create(const char *lines);
/* Puts others in place and takes them. Where a bucket gets an index, lists are refused until it is
 * made. What was in place is kept to the end, since nobody takes a lock to look at it. */
void srv_names_set_unlisted(struct srv_names *names, struct srv_names_unlisted *unlisted);

/* Before an object is stored or deleted; the result is for leave or changed. */
unsigned srv_names_enter(struct srv_names *names);
void srv_names_leave(struct srv_names *names, unsigned turn);

/* Afterwards, instead of leave: the object under this name has changed, or may have. Copies both.
 */
void srv_names_changed(struct srv_names *names, unsigned turn, struct srv_str bucket,
                       struct srv_str key);

/* What waits for all changes told before it. */
struct srv_names_note {
    void (*done)(struct srv_names_note *note); /* on the index's thread, once; must not block */
    struct srv_str bucket_, key_;
    struct srv_names_note *next_;
};

/* Calls note->done when lists show what was told to have changed before, or when the index cannot
 * be written and lists are refused until it has caught up. */
void srv_names_await(struct srv_names *names, struct srv_names_note *note);
/* Waits for the same. Blocks. */
void srv_names_settle(struct srv_names *names);

/* Has a name looked at that a list found out of step. Copies it; forgotten without memory. */
void srv_names_touch(struct srv_names *names, struct srv_str bucket, struct srv_str key);

/* Whether every object is listed; otherwise the index is being made. */
bool srv_names_is_ready(const struct srv_names *names);
