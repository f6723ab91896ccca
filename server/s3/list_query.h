/* What a request for a list of objects asks for: ListObjects (version 1), ListObjectsV2 and
 * ListObjectVersions.
 *
 * Owns:    the decoded strings, from a successful init to fini.
 * Threads: any, one at a time.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/error.h"

enum srv_list_kind { SRV_LIST_V1, SRV_LIST_V2, SRV_LIST_VERSIONS };

enum { SRV_LIST_KEYS_MAX = 1000 }; /* of one page */

struct srv_list_query {
    enum srv_list_kind kind;
    struct srv_str prefix;
    struct srv_str delimiter;      /* empty: none */
    struct srv_str marker;         /* as sent: marker, start-after, key-marker */
    struct srv_str version_marker; /* as sent */
    struct srv_str token; /* of version 2, as sent; base NULL: none, empty: the beginning */
    bool encodes;         /* encoding-type=url */
    bool fetches_owner;
    size_t max_keys;     /* of this page, at most SRV_LIST_KEYS_MAX */
    struct srv_str from; /* the page begins after this: marker or what the token holds */
    bool is_exact; /* `from` is the last key that was looked at, not the last that was listed: the
                      group of names that it is in has not been listed */
    char *bytes_;
};

/* NONE, or INVALID_ARGUMENT with a telling *message_out (static), SLOW_DOWN without memory; after
 * those there is nothing to end. */
enum srv_s3_code srv_list_query_init(struct srv_list_query *query, enum srv_list_kind kind,
                                     struct srv_str raw, const char **message_out);
/* Allowed on a zeroed one. */
void srv_list_query_fini(struct srv_list_query *query);

/* A token for the page after `last`: base64 with letters that need no escaping. Returns its length,
 * which is SRV_LIST_TOKEN_MAX at most; `last` is no longer than a key. */
enum { SRV_LIST_TOKEN_MAX = 4 * ((1 + 1024 + 2) / 3) };
size_t srv_list_token_write(struct srv_str last, bool is_exact, char token_out[SRV_LIST_TOKEN_MAX]);

/* Percent-encodes all but letters, digits and "-._~/", as encoding-type=url asks for. `out` has
 * room for three times as much. Returns the length. */
size_t srv_list_encode(struct srv_str text, char *out);
