/* Lists of entity tags, as If-Match and If-None-Match carry them (RFC 9110, 8.8.3).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Beyond the grammar, tags without quotes are understood up to the next comma, because S3 and its
 * clients use them.
 */
#pragma once

#include "server/exchange.h"

enum srv_etag_compare {
    SRV_ETAG_STRONG, /* equal and neither weak: If-Match, If-Range */
    SRV_ETAG_WEAK,   /* equal: If-None-Match */
};

enum srv_etag_match {
    SRV_ETAG_MATCH_NONE,
    SRV_ETAG_MATCH_LISTED,
    SRV_ETAG_MATCH_ANY, /* the list is "*" */
};

/* Whether `list` names `etag`, the quoteless tag of what is stored; that one is never weak. Empty
 * elements are passed over; junk in a list ends it, and what came before counts. */
enum srv_etag_match srv_etag_list_match(struct srv_str list, struct srv_str etag,
                                        enum srv_etag_compare compare);
