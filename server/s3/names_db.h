/* One connection to the file that the index of names is kept in: SQLite in WAL mode with checksums
 * on its pages (names_vfs.h).
 *
 *   names    name -> what a list says                        struct srv_name_row
 *   writers  slot -> mark: a process that writes; what it stored since its mark may lack a row
 *   state    complete: the names were once all there; mark: and what was stored since it, while
 *            nobody was writing, may lack a row; unlisted: buckets that had no index then
 *
 * Threads: one at a time for each connection. Any number of them, of any processes, use a file.
 * Blocks:  for the disk, and for writers of other processes up to SRV_NAMES_BUSY_MS.
 * Allocates: SQLite's cache, cache_kib at most.
 */
#pragma once

#include "server/s3/names_row.h"

struct sqlite3;
struct sqlite3_stmt;

enum { SRV_NAMES_BUSY_MS = 5000 };

enum srv_names_fault {
    SRV_NAMES_FINE,
    SRV_NAMES_BUSY,    /* others were writing for too long */
    SRV_NAMES_TROUBLE, /* disk full, no permission, no memory: another time perhaps */
    SRV_NAMES_DAMAGED, /* not what was written; only a new file helps */
};

#define SRV_NAMES_STATEMENTS(X) \
    X(BEGIN_WRITE)              \
    X(BEGIN_READ)               \
    X(COMMIT)                   \
    X(ROLLBACK)                 \
    X(PUT)                      \
    X(DELETE)                   \
    X(FROM)                     \
    X(AFTER)                    \
    X(STATE)                    \
    X(SET_STATE)                \
    X(WRITERS)                  \
    X(SET_WRITER)               \
    X(DELETE_WRITER)

enum srv_names_statement {
#define X(name) SRV_NAMES_##name,
    SRV_NAMES_STATEMENTS(X)
#undef X
        SRV_NAMES_N_STATEMENTS
};

struct srv_names_db {
    struct sqlite3 *db; /* NULL: closed */
    struct sqlite3_stmt *statements[SRV_NAMES_N_STATEMENTS];
    struct sqlite3_stmt *walk_;
    char message[160]; /* of the last fault */
};

/* Opens the file; for a writer it is made if there is none. Its write-ahead log is copied back when
 * it has grown to `wal_bytes`. On a fault nothing is open. */
enum srv_names_fault srv_names_db_open(struct srv_names_db *db, const char *path, bool is_writer,
                                       unsigned cache_kib, unsigned wal_bytes);
/* A closed or zeroed one is allowed. */
void srv_names_db_close(struct srv_names_db *db);

/* Runs one of the statements without parameters or rows. */
enum srv_names_fault srv_names_db_run(struct srv_names_db *db, enum srv_names_statement which);
/* Ends a transaction, whatever came of it. */
void srv_names_db_rollback(struct srv_names_db *db);

enum srv_names_fault srv_names_db_put(struct srv_names_db *db, const struct srv_name_row *row);
enum srv_names_fault srv_names_db_delete(struct srv_names_db *db, struct srv_str name);

/* Begins to walk the names from `name` on, or after it. Rows then come from srv_names_db_next until
 * another walk begins or srv_names_db_stop. */
enum srv_names_fault srv_names_db_walk(struct srv_names_db *db, struct srv_str name, bool is_after);
/* FINE with *has_row_out false at the end. */
enum srv_names_fault srv_names_db_next(struct srv_names_db *db, struct srv_name_row *row_out,
                                       bool *has_row_out);
void srv_names_db_stop(struct srv_names_db *db);

/* ---- What is known of the whole ---- */

struct srv_names_mark {
    size_t len; /* 0: none */
    uint8_t bytes[GYRE_MARK_MAX];
};

/* `unlisted` is a text that the caller makes sense of; *unlisted_out is allocated for the caller to
 * free, NULL when there is no state yet. */
enum srv_names_fault srv_names_db_state(struct srv_names_db *db, bool *complete_out,
                                        struct srv_names_mark *mark_out, char **unlisted_out);
enum srv_names_fault srv_names_db_set_state(struct srv_names_db *db, bool complete,
                                            const struct srv_names_mark *mark,
                                            const char *unlisted);
/* Calls `visit` for every writer. */
enum srv_names_fault srv_names_db_writers(struct srv_names_db *db,
                                          void (*visit)(void *data, int slot,
                                                        const struct srv_names_mark *mark),
                                          void *data);
enum srv_names_fault srv_names_db_set_writer(struct srv_names_db *db, int slot,
                                             const struct srv_names_mark *mark);
enum srv_names_fault srv_names_db_delete_writer(struct srv_names_db *db, int slot);
