/* Percent-decoding of paths and queries, strict and without any normalisation.
 *
 * Lends:   query items point into the query given.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

/* Decodes %XX in `text` into `bytes_out`. `plus_is_space` is for queries: in a path '+' is a plus.
 * True with *len_out set (never more than text.len); false, and 0 there, for a '%' without two hex
 * digits or when more than `capacity` bytes come out. The bytes may be any, zero included. */
bool srv_uri_decode(struct srv_str text, bool plus_is_space, char *bytes_out, size_t capacity,
                    size_t *len_out);

/* Takes the next item of a query off the front of *rest_inout; empty items ("&&") are passed over.
 * False at the end. *name_out and *value_out are raw; value_out->base is NULL when the item has no
 * '='. */
bool srv_query_next(struct srv_str *rest_inout, struct srv_str *name_out,
                    struct srv_str *value_out);

/* Whether a query has an item of that name, with or without a value; *value_out (may be NULL) gets
 * the first one's raw value. Names are compared decoded and with case. */
bool srv_query_find(struct srv_str query, const char *name, struct srv_str *value_out);
