/* A page of the list of a bucket's uploads. They are few and in no order in the store: all are
 * looked at and sorted.
 *
 * Owns:    copies of what the query asks for and of the uploads found, until fini.
 * Threads: one at a time.
 * Blocks:  collect reads the record of every upload of the store.
 */
#pragma once

#include "server/s3/error.h"

#include "api/gyre.h"

struct srv_xml;

struct srv_s3_upload_row {
    char *key; /* followed by the owner's id */
    size_t key_len;
    size_t owner_len;
    struct gyre_upload_id id;
    uint32_t created;  /* Unix seconds */
    uint8_t algorithm; /* enum srv_checksum */
    bool is_composite;
};

struct srv_s3_upload_page {
    char *text_; /* decoded parameters */
    struct srv_str prefix, delimiter, key_marker, id_marker;
    bool is_url_encoded;
    size_t max;
    struct srv_s3_upload_row *rows;
    size_t n;
    size_t capacity_;
};

/* NONE; INVALID_ARGUMENT; SLOW_DOWN. */
enum srv_s3_code srv_s3_upload_page_init(struct srv_s3_upload_page *page, struct srv_str query,
                                         size_t max);
/* Allowed on a zeroed one. */
void srv_s3_upload_page_fini(struct srv_s3_upload_page *page);

/* NONE, SLOW_DOWN, or what the store answers. */
enum srv_s3_code srv_s3_upload_page_collect(struct srv_s3_upload_page *page,
                                            struct gyre_store *store, struct srv_str bucket);

/* Writes <ListMultipartUploadsResult>. */
void srv_s3_upload_page_write(struct srv_s3_upload_page *page, struct srv_xml *xml,
                              struct srv_str bucket);
