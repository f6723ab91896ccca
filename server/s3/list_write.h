/* The documents of the three kinds of lists.
 *
 * Owns:    struct srv_list_writer owns its text until fini.
 * Threads: any, one at a time. Blocks: never.
 * Allocates: the document, some 300 bytes a key.
 */
#pragma once

#include "server/s3/list_pages.h"
#include "server/xml.h"

struct srv_list_writer {
    const struct srv_list_query *query;
    struct srv_str bucket;
    struct srv_xml entries, prefixes;
};

/* Ready to be the sink of a page. The query and the name live until fini. */
void srv_list_writer_init(struct srv_list_writer *writer, const struct srv_list_query *query,
                          struct srv_str bucket);
void srv_list_writer_fini(struct srv_list_writer *writer);

struct srv_list_sink srv_list_writer_sink(struct srv_list_writer *writer);

/* Writes the whole document into `xml_out`, which the caller ends in any case; without memory it
 * says so. */
void srv_list_writer_finish(struct srv_list_writer *writer, const struct srv_list_page *page,
                            struct srv_xml *xml_out);
