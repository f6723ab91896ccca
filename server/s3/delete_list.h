/* The body of a DeleteObjects: which objects, and what must be true of each.
 *
 * Owns:    struct srv_delete_list owns the document that its strings point into, until fini.
 * Threads: any, one at a time. Blocks: never, but long bodies take some milliseconds.
 */
#pragma once

#include "server/s3/error.h"
#include "server/xml_read.h"

enum { SRV_DELETE_LIST_MAX = 1000 };

/* One object. */
struct srv_delete_item {
    struct srv_str key;
    struct srv_str version; /* base NULL: none was given */
    struct srv_str etag;    /* the same; without quotes */
    bool has_size, has_modified;
    uint64_t size;
    int64_t modified_s;
    enum srv_s3_code code; /* not NONE: it cannot be asked for like this */
};

struct srv_delete_list {
    struct srv_xml_doc *doc_;
    bool is_quiet;
    size_t n;
    struct srv_delete_item items[SRV_DELETE_LIST_MAX];
};

/* Reads a body. NONE; MALFORMED_XML: no document of this kind, nothing in it, or too much. */
enum srv_s3_code srv_delete_list_init(struct srv_delete_list *list, const char *bytes, size_t len,
                                      int64_t now_s);
/* Allowed on a zeroed one. */
void srv_delete_list_fini(struct srv_delete_list *list);
