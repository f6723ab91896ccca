/* Reading a bucket's names in order: what is there as the store says now, not what once was noted.
 *
 * Owns:    a scan has a connection of its own between begin and end.
 * Threads: one at a time for each scan; any number of them.
 * Blocks:  for cold pages of the index, and for the store's metadata where the directory alone does
 *          not tell. Keeps: S4.
 */
#pragma once

#include "server/s3/names.h"
#include "server/s3/names_db.h"

enum srv_names_found {
    SRV_NAMES_FOUND, /* a row whose object is there */
    SRV_NAMES_END,   /* the bucket has no more */
    SRV_NAMES_SPENT, /* looked at as many rows as one scan may; begin another one after row->name */
    SRV_NAMES_NOT_NOW, /* the index cannot tell at present: 503 */
};

struct srv_names_scan {
    struct srv_names *names;
    struct srv_str bucket;
    uint32_t now;
    size_t budget_; /* rows that may still be looked at */
    uint64_t generation_;
    struct srv_names_db db_;
};

/* Begins to read; `budget` bounds how many rows are looked at that are no longer there. FOUND, or
 * NOT_NOW, and then there is nothing to end. */
enum srv_names_found srv_names_scan_begin(struct srv_names *names, struct srv_str bucket,
                                          uint32_t now, size_t budget,
                                          struct srv_names_scan *scan_out);
/* Goes to the first key from `key` on, or after it. FOUND or NOT_NOW. */
enum srv_names_found srv_names_scan_seek(struct srv_names_scan *scan, struct srv_str key,
                                         bool is_after);
/* The next object. With SPENT the row has a name and nothing else. */
enum srv_names_found srv_names_scan_next(struct srv_names_scan *scan, struct srv_name_row *row_out);
void srv_names_scan_end(struct srv_names_scan *scan);

/* The key of a row of this scan; lent by the row. */
static inline struct srv_str srv_names_scan_key(const struct srv_names_scan *scan,
                                                const struct srv_name_row *row)
{
    size_t skip = scan->bucket.len + 1;
    return (struct srv_str){row->name + skip, row->name_len - skip};
}
