/* From rows in order to one page of a list: which keys, which common prefixes, and where the next
 * page begins. Knows neither the index nor XML.
 *
 * A group of names that share a common prefix is skipped as a whole by going to where it ends, so a
 * page takes as many steps as it has entries, however many names it stands for.
 *
 * Threads: any, one at a time for each page. Blocks: as its rows do. Allocates: nothing.
 */
#pragma once

#include "server/s3/list_query.h"
#include "server/s3/names_row.h"

enum srv_list_step {
    SRV_LIST_ROW,    /* *row_out and *key_out are set */
    SRV_LIST_END,    /* there are no more */
    SRV_LIST_SPENT,  /* none for now; *key_out is how far it got */
    SRV_LIST_FAILED, /* the rows cannot be read */
};

/* Where rows come from. */
struct srv_list_rows {
    void *data;
    /* Goes to the first key from `key` on, or after it. False: FAILED. */
    bool (*seek)(void *data, struct srv_str key, bool is_after);
    enum srv_list_step (*next)(void *data, const struct srv_name_row **row_out,
                               struct srv_str *key_out);
};

/* Where entries go, in order. */
struct srv_list_sink {
    void *data;
    void (*key)(void *data, struct srv_str key, const struct srv_name_row *row);
    void (*prefix)(void *data, struct srv_str prefix);
};

struct srv_list_page {
    size_t n_keys, n_prefixes;
    bool is_truncated;
    bool is_exact;  /* as in struct srv_list_query, for the page that follows */
    bool is_failed; /* nothing else counts */
    size_t last_len;
    char last[SRV_S3_KEY_MAX]; /* of a truncated page: the last entry, or how far it got */
};

void srv_list_page(const struct srv_list_query *query, const struct srv_list_rows *rows,
                   const struct srv_list_sink *sink, struct srv_list_page *page_out);
