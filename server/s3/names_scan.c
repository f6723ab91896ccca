#include "server/s3/names_scan.h"

#include <string.h>

#include "server/s3/names_internal.h"

enum { CACHE_KIB = 2 << 10 };

/* ---- Connections ---- */

/* An idle connection to the file of this generation; those to older ones are closed on the way. */
static bool take_reader(struct srv_names *names, uint64_t generation, struct srv_names_db *db_out)
{
    bool found = false;

    pthread_mutex_lock(&names->readers_lock);
    while (names->n_readers > 0 && !found) {
        struct srv_names_db *last = &names->readers[--names->n_readers];
        found = names->reader_generations[names->n_readers] == generation;
        if (found)
            *db_out = *last;
        else
            srv_names_db_close(last);
        *last = (struct srv_names_db){0};
    }
    pthread_mutex_unlock(&names->readers_lock);
    return found;
}

static void give_reader(struct srv_names *names, uint64_t generation, struct srv_names_db *db)
{
    pthread_mutex_lock(&names->readers_lock);
    bool keep = names->n_readers < SRV_NAMES_READERS_MAX &&
                generation == atomic_load_explicit(&names->generation, memory_order_acquire);
    if (keep) {
        names->readers[names->n_readers] = *db;
        names->reader_generations[names->n_readers++] = generation;
    }
    pthread_mutex_unlock(&names->readers_lock);
    if (!keep)
        srv_names_db_close(db);
}

void srv_names_close_readers(struct srv_names *names)
{
    pthread_mutex_lock(&names->readers_lock);
    while (names->n_readers > 0)
        srv_names_db_close(&names->readers[--names->n_readers]);
    pthread_mutex_unlock(&names->readers_lock);
}

/* Opens the file that the index writes to, and no other that was put in its place since. */
static enum srv_names_fault open_reader(struct srv_names *names, struct srv_names_db *db)
{
    enum srv_names_fault fault = SRV_NAMES_TROUBLE;

    pthread_mutex_lock(&names->readers_lock);
    if (srv_names_is_in_place(names))
        fault = srv_names_db_open(db, names->path, false, CACHE_KIB, names->wal_bytes);
    if (fault == SRV_NAMES_FINE && !srv_names_is_in_place(names)) {
        srv_names_db_close(db);
        fault = SRV_NAMES_TROUBLE;
    }
    pthread_mutex_unlock(&names->readers_lock);
    return fault;
}

/* ---- A scan ---- */

static enum srv_names_found refuse(struct srv_names_scan *scan, enum srv_names_fault fault)
{
    if (fault == SRV_NAMES_DAMAGED)
        srv_names_suspect(scan->names);
    return fault == SRV_NAMES_FINE ? SRV_NAMES_FOUND : SRV_NAMES_NOT_NOW;
}

enum srv_names_found srv_names_scan_begin(struct srv_names *names, struct srv_str bucket,
                                          uint32_t now, size_t budget,
                                          struct srv_names_scan *scan_out)
{
    enum srv_names_fault fault = SRV_NAMES_FINE;

    *scan_out =
        (struct srv_names_scan){.names = names, .bucket = bucket, .now = now, .budget_ = budget};
    if (!srv_names_is_ready(names) ||
        atomic_load_explicit(&names->is_suspect, memory_order_acquire))
        return SRV_NAMES_NOT_NOW;
    scan_out->generation_ = atomic_load_explicit(&names->generation, memory_order_acquire);
    if (!take_reader(names, scan_out->generation_, &scan_out->db_))
        fault = open_reader(names, &scan_out->db_);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_run(&scan_out->db_, SRV_NAMES_BEGIN_READ);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_close(&scan_out->db_);
    return refuse(scan_out, fault);
}

void srv_names_scan_end(struct srv_names_scan *scan)
{
    srv_names_db_rollback(&scan->db_);
    give_reader(scan->names, scan->generation_, &scan->db_);
    scan->db_ = (struct srv_names_db){0};
}

enum srv_names_found srv_names_scan_seek(struct srv_names_scan *scan, struct srv_str key,
                                         bool is_after)
{
    char name[SRV_NAME_MAX];
    size_t len = srv_name_write(scan->bucket, key, name);

    return refuse(scan, srv_names_db_walk(&scan->db_, (struct srv_str){name, len}, is_after));
}

static bool is_in_bucket(const struct srv_names_scan *scan, const struct srv_name_row *row)
{
    size_t len = scan->bucket.len;

    return row->name_len > len + 1 && row->name[len] == 0 &&
           memcmp(row->name, scan->bucket.base, len) == 0;
}

/* Whether the row's object is there; a row that is out of step is corrected, and the index told.
 * The directory is believed about objects of one piece, for they are gone with their entry. */
static gyre_err look(struct srv_names_scan *scan, struct srv_name_row *row)
{
    struct srv_names *names = scan->names;
    struct srv_str key = srv_names_scan_key(scan, row);
    struct gyre_key digest = srv_name_key(scan->bucket, key);
    bool is_old = row->expires != 0 && scan->now >= row->expires;
    uint64_t place = row->place;

    if (!row->is_in_parts && !is_old && gyre_holds(names->store, &digest, place) == GYRE_OK)
        return GYRE_OK;
    gyre_err err =
        srv_name_look(names->store, (struct srv_str){row->name, row->name_len}, scan->now, row);
    if (err == GYRE_NOT_FOUND || (err == GYRE_OK && row->place != place))
        srv_names_touch(names, scan->bucket, key);
    return err;
}

enum srv_names_found srv_names_scan_next(struct srv_names_scan *scan, struct srv_name_row *row_out)
{
    bool has_row;

    for (;;) {
        enum srv_names_fault fault = srv_names_db_next(&scan->db_, row_out, &has_row);
        if (fault != SRV_NAMES_FINE)
            return refuse(scan, fault);
        if (!has_row || !is_in_bucket(scan, row_out))
            return SRV_NAMES_END;
        size_t name_len = row_out->name_len;
        gyre_err err = look(scan, row_out);
        if (err == GYRE_OK)
            return SRV_NAMES_FOUND;
        if (err != GYRE_NOT_FOUND)
            return SRV_NAMES_NOT_NOW;
        row_out->name_len = name_len;
        if (scan->budget_ == 0)
            return SRV_NAMES_SPENT;
        scan->budget_--;
    }
}
