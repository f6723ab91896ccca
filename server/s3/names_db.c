#include "server/s3/names_db.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/check.h"
#include "server/s3/names_vfs.h"

enum { APPLICATION_ID = 0x47794e6d, FORMAT = 1 };

static const char *const texts[SRV_NAMES_N_STATEMENTS] = {
    [SRV_NAMES_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SRV_NAMES_BEGIN_READ] = "BEGIN",
    [SRV_NAMES_COMMIT] = "COMMIT",
    [SRV_NAMES_ROLLBACK] = "ROLLBACK",
    [SRV_NAMES_PUT] = "INSERT OR REPLACE INTO names VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
    [SRV_NAMES_DELETE] = "DELETE FROM names WHERE name=?1",
    [SRV_NAMES_FROM] = "SELECT * FROM names WHERE name>=?1 ORDER BY name",
    [SRV_NAMES_AFTER] = "SELECT * FROM names WHERE name>?1 ORDER BY name",
    [SRV_NAMES_STATE] = "SELECT complete, mark, unlisted FROM state WHERE id=1",
    [SRV_NAMES_SET_STATE] = "INSERT OR REPLACE INTO state VALUES(1,?1,?2,?3)",
    [SRV_NAMES_WRITERS] = "SELECT slot, mark FROM writers",
    [SRV_NAMES_SET_WRITER] = "INSERT OR REPLACE INTO writers VALUES(?1,?2)",
    [SRV_NAMES_DELETE_WRITER] = "DELETE FROM writers WHERE slot=?1",
};

/* In one transaction, so that nobody sees a part of it. */
static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS names(name BLOB PRIMARY KEY, place INTEGER NOT NULL,"
    " parts INTEGER NOT NULL, expires INTEGER NOT NULL, size INTEGER NOT NULL,"
    " modified INTEGER NOT NULL, etag BLOB NOT NULL, owner BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS writers(slot INTEGER PRIMARY KEY, mark BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS state(id INTEGER PRIMARY KEY, complete INTEGER NOT NULL,"
    " mark BLOB NOT NULL, unlisted TEXT NOT NULL);"
    "PRAGMA application_id=1199132269;"
    "PRAGMA user_version=1;"
    "COMMIT";

_Static_assert(APPLICATION_ID == 1199132269 && FORMAT == 1, "what the schema says");

/* ---- Faults ---- */

static enum srv_names_fault fault_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return SRV_NAMES_FINE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return SRV_NAMES_BUSY;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return SRV_NAMES_TROUBLE;
    case SQLITE_IOERR:
        return rc == SQLITE_IOERR_DATA || rc == SQLITE_IOERR_READ ||
                       rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_IOERR_CORRUPTFS
                   ? SRV_NAMES_DAMAGED
                   : SRV_NAMES_TROUBLE;
    default: return SRV_NAMES_DAMAGED; /* also a table that is not there */
    }
}

static enum srv_names_fault note(struct srv_names_db *db, int rc)
{
    enum srv_names_fault fault = fault_of(rc);

    if (fault != SRV_NAMES_FINE)
        snprintf(db->message, sizeof db->message, "%s (SQLite's %d)",
                 db->db != NULL ? sqlite3_errmsg(db->db) : sqlite3_errstr(rc), rc);
    return fault;
}

static enum srv_names_fault note_damage(struct srv_names_db *db, const char *what)
{
    snprintf(db->message, sizeof db->message, "%s", what);
    return SRV_NAMES_DAMAGED;
}

/* ---- Open and close ---- */

static int take_number(void *data, int n, char **values, char **names)
{
    (void)names;
    *(long *)data = n > 0 && values[0] != NULL ? strtol(values[0], NULL, 10) : 0;
    return 0;
}

static enum srv_names_fault ask(struct srv_names_db *db, const char *pragma, long *number_out)
{
    *number_out = 0;
    return note(db, sqlite3_exec(db->db, pragma, take_number, number_out, NULL));
}

static enum srv_names_fault set_up(struct srv_names_db *db, bool is_writer, unsigned cache_kib,
                                   unsigned wal_bytes)
{
    char pragmas[320];
    int reserved = SRV_NAMES_RESERVED;

    sqlite3_busy_timeout(db->db, SRV_NAMES_BUSY_MS);
    if (is_writer)
        (void)sqlite3_file_control(db->db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA page_size=%d;PRAGMA mmap_size=0;%sPRAGMA synchronous=NORMAL;"
             "PRAGMA cache_size=-%u;PRAGMA wal_autocheckpoint=%u;PRAGMA journal_size_limit=%u;"
             "PRAGMA trusted_schema=OFF;%s",
             SRV_NAMES_PAGE, is_writer ? "PRAGMA journal_mode=WAL;" : "", cache_kib,
             wal_bytes / SRV_NAMES_PAGE, wal_bytes, is_writer ? "" : "PRAGMA query_only=ON;");
    return note(db, sqlite3_exec(db->db, pragmas, NULL, NULL, NULL));
}

/* Whether the file is one of ours and whole as far as its first page tells. */
static enum srv_names_fault look_at_format(struct srv_names_db *db, bool *is_new_out)
{
    long application, format;
    int reserved = -1;
    enum srv_names_fault fault = ask(db, "PRAGMA application_id", &application);

    *is_new_out = false;
    if (fault == SRV_NAMES_FINE)
        fault = ask(db, "PRAGMA user_version", &format);
    if (fault != SRV_NAMES_FINE)
        return fault;
    *is_new_out = application == 0 && format == 0;
    if (*is_new_out)
        return SRV_NAMES_FINE;
    (void)sqlite3_file_control(db->db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    if (application != APPLICATION_ID || format != FORMAT || reserved != SRV_NAMES_RESERVED)
        return note_damage(db, "not an index of this format");
    return SRV_NAMES_FINE;
}

static enum srv_names_fault prepare(struct srv_names_db *db)
{
    for (int i = 0; i < SRV_NAMES_N_STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(db->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &db->statements[i], NULL);
        if (rc != SQLITE_OK)
            return note(db, rc);
    }
    return SRV_NAMES_FINE;
}

/* For its owner alone; SQLite gives the other files the same mode. A file that is there already is
 * not touched, for closing it would end the locks that this process has on it. */
static void create_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static enum srv_names_fault open_db(struct srv_names_db *db, const char *path, bool is_writer,
                                    unsigned cache_kib, unsigned wal_bytes)
{
    bool is_new;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (is_writer ? SQLITE_OPEN_CREATE : 0);
    enum srv_names_fault fault = note(db, sqlite3_open_v2(path, &db->db, flags, SRV_NAMES_VFS));

    if (fault == SRV_NAMES_FINE)
        fault = set_up(db, is_writer, cache_kib, wal_bytes);
    if (fault == SRV_NAMES_FINE)
        fault = look_at_format(db, &is_new);
    if (fault == SRV_NAMES_FINE && is_new)
        fault = is_writer ? note(db, sqlite3_exec(db->db, schema, NULL, NULL, NULL))
                          : note_damage(db, "the index is empty");
    return fault == SRV_NAMES_FINE ? prepare(db) : fault;
}

enum srv_names_fault srv_names_db_open(struct srv_names_db *db, const char *path, bool is_writer,
                                       unsigned cache_kib, unsigned wal_bytes)
{
    *db = (struct srv_names_db){0};
    if (!srv_names_vfs_register()) {
        snprintf(db->message, sizeof db->message, "SQLite has no file system");
        return SRV_NAMES_TROUBLE;
    }
    struct stat status;
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        snprintf(db->message, sizeof db->message, "this is no plain file: move it away");
        return SRV_NAMES_TROUBLE;
    }
    if (is_writer)
        create_private(path);
    enum srv_names_fault fault = open_db(db, path, is_writer, cache_kib, wal_bytes);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_close(db);
    return fault;
}

void srv_names_db_close(struct srv_names_db *db)
{
    for (int i = 0; i < SRV_NAMES_N_STATEMENTS; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    db->walk_ = NULL;
    sqlite3_close(db->db);
    db->db = NULL;
}

/* ---- Statements ---- */

static struct sqlite3_stmt *begin(struct srv_names_db *db, enum srv_names_statement which)
{
    SRV_CHECK(db->statements[which] != NULL);
    return db->statements[which];
}

/* Runs a statement that gives no row. */
static enum srv_names_fault finish(struct srv_names_db *db, struct sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    enum srv_names_fault fault = note(db, rc);

    sqlite3_reset(statement);
    return fault;
}

enum srv_names_fault srv_names_db_run(struct srv_names_db *db, enum srv_names_statement which)
{
    return finish(db, begin(db, which));
}

void srv_names_db_rollback(struct srv_names_db *db)
{
    srv_names_db_stop(db);
    if (db->db != NULL && sqlite3_get_autocommit(db->db) == 0)
        (void)srv_names_db_run(db, SRV_NAMES_ROLLBACK);
}

/* Names and marks outlive the step they are bound for, hence SQLITE_STATIC. */
static void bind_bytes(struct sqlite3_stmt *statement, int at, const void *bytes, size_t len)
{
    sqlite3_bind_blob(statement, at, len > 0 ? bytes : "", (int)len, SQLITE_STATIC);
}

enum srv_names_fault srv_names_db_put(struct srv_names_db *db, const struct srv_name_row *row)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_PUT);
    uint8_t packed[SRV_NAME_PACKED_MAX];
    size_t packed_len = srv_name_etag_pack(row->etag, row->etag_len, packed);

    bind_bytes(statement, 1, row->name, row->name_len);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)row->place);
    sqlite3_bind_int(statement, 3, row->is_in_parts);
    sqlite3_bind_int64(statement, 4, row->expires);
    sqlite3_bind_int64(statement, 5, (sqlite3_int64)row->size);
    sqlite3_bind_int64(statement, 6, row->modified_ms);
    bind_bytes(statement, 7, packed, packed_len);
    bind_bytes(statement, 8, row->owner, row->owner_len);
    return finish(db, statement);
}

enum srv_names_fault srv_names_db_delete(struct srv_names_db *db, struct srv_str name)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_DELETE);

    bind_bytes(statement, 1, name.base, name.len);
    return finish(db, statement);
}

/* ---- Walking ---- */

void srv_names_db_stop(struct srv_names_db *db)
{
    if (db->walk_ != NULL)
        sqlite3_reset(db->walk_);
    db->walk_ = NULL;
}

enum srv_names_fault srv_names_db_walk(struct srv_names_db *db, struct srv_str name, bool is_after)
{
    srv_names_db_stop(db);
    db->walk_ = begin(db, is_after ? SRV_NAMES_AFTER : SRV_NAMES_FROM);
    return note(db, sqlite3_bind_blob(db->walk_, 1, name.len > 0 ? name.base : "", (int)name.len,
                                      SQLITE_TRANSIENT));
}

static bool take_row(struct sqlite3_stmt *statement, struct srv_name_row *row)
{
    size_t len = (size_t)sqlite3_column_bytes(statement, 0);
    const void *name = sqlite3_column_blob(statement, 0);

    if (len == 0 || len > SRV_NAME_MAX || name == NULL)
        return false;
    memcpy(row->name, name, len);
    row->name_len = len;
    row->place = (uint64_t)sqlite3_column_int64(statement, 1);
    row->is_in_parts = sqlite3_column_int(statement, 2) != 0;
    row->expires = (uint32_t)sqlite3_column_int64(statement, 3);
    row->size = (uint64_t)sqlite3_column_int64(statement, 4);
    row->modified_ms = sqlite3_column_int64(statement, 5);
    size_t packed_len = (size_t)sqlite3_column_bytes(statement, 6);
    const void *packed = sqlite3_column_blob(statement, 6);
    const void *owner = sqlite3_column_blob(statement, 7);
    row->owner_len = (size_t)sqlite3_column_bytes(statement, 7);
    if (row->owner_len > sizeof row->owner)
        return false;
    if (row->owner_len > 0)
        memcpy(row->owner, owner, row->owner_len);
    return packed != NULL && srv_name_etag_unpack(packed, packed_len, row->etag, &row->etag_len);
}

enum srv_names_fault srv_names_db_next(struct srv_names_db *db, struct srv_name_row *row_out,
                                       bool *has_row_out)
{
    *has_row_out = false;
    SRV_CHECK(db->walk_ != NULL);
    int rc = sqlite3_step(db->walk_);
    if (rc != SQLITE_ROW)
        return note(db, rc);
    *has_row_out = take_row(db->walk_, row_out);
    return *has_row_out ? SRV_NAMES_FINE : note_damage(db, "a row makes no sense");
}

/* ---- What is known of the whole ---- */

static bool take_mark(struct sqlite3_stmt *statement, int at, struct srv_names_mark *mark_out)
{
    const void *bytes = sqlite3_column_blob(statement, at);

    mark_out->len = (size_t)sqlite3_column_bytes(statement, at);
    if (mark_out->len > sizeof mark_out->bytes)
        return false;
    if (mark_out->len > 0)
        memcpy(mark_out->bytes, bytes, mark_out->len);
    return true;
}

enum srv_names_fault srv_names_db_state(struct srv_names_db *db, bool *complete_out,
                                        struct srv_names_mark *mark_out, char **unlisted_out)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_STATE);
    int rc = sqlite3_step(statement);
    enum srv_names_fault fault = note(db, rc);

    *complete_out = false;
    mark_out->len = 0;
    *unlisted_out = NULL;
    if (rc == SQLITE_ROW) {
        const char *unlisted = (const char *)sqlite3_column_text(statement, 2);
        *complete_out = sqlite3_column_int(statement, 0) != 0;
        if (!take_mark(statement, 1, mark_out) || unlisted == NULL)
            fault = note_damage(db, "the state makes no sense");
        else if ((*unlisted_out = strdup(unlisted)) == NULL)
            fault = note(db, SQLITE_NOMEM);
    }
    sqlite3_reset(statement);
    return fault;
}

enum srv_names_fault srv_names_db_set_state(struct srv_names_db *db, bool complete,
                                            const struct srv_names_mark *mark, const char *unlisted)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_SET_STATE);

    sqlite3_bind_int(statement, 1, complete);
    bind_bytes(statement, 2, mark->bytes, mark->len);
    sqlite3_bind_text(statement, 3, unlisted, -1, SQLITE_STATIC);
    return finish(db, statement);
}

enum srv_names_fault srv_names_db_writers(struct srv_names_db *db,
                                          void (*visit)(void *data, int slot,
                                                        const struct srv_names_mark *mark),
                                          void *data)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_WRITERS);
    struct srv_names_mark mark;
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!take_mark(statement, 1, &mark)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        visit(data, sqlite3_column_int(statement, 0), &mark);
    }
    sqlite3_reset(statement);
    return note(db, rc);
}

enum srv_names_fault srv_names_db_set_writer(struct srv_names_db *db, int slot,
                                             const struct srv_names_mark *mark)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_SET_WRITER);

    sqlite3_bind_int(statement, 1, slot);
    bind_bytes(statement, 2, mark->bytes, mark->len);
    return finish(db, statement);
}

enum srv_names_fault srv_names_db_delete_writer(struct srv_names_db *db, int slot)
{
    struct sqlite3_stmt *statement = begin(db, SRV_NAMES_DELETE_WRITER);

    sqlite3_bind_int(statement, 1, slot);
    return finish(db, statement);
}
