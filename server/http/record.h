/* The record kept beside a stored response: its facts and its fields, as bytes.
 *
 * Format (little endian): 0 magic "GHR1", 4 status u16, 6 kind u8, 7 zero, 8 flags u32, 12 number
 * of fields u32, 16 received_ms, 24 initial_age_ms, 32 lifetime_s, 40 while_revalidate_s, 48
 * if_error_s, 56 date_s, 64 generation (i64 each); then for each field its name's and its value's
 * length (u16, u32) and their bytes. Nothing follows. A record that reads differently is not one.
 *
 * Lends:   a record read points into its bytes.
 * Threads: any. Blocks: never. Allocates: srv_http_record_write, the bytes.
 */
#pragma once

#include "server/http/facts.h"

enum { SRV_HTTP_FIELDS_MAX = 256 };

enum srv_http_record_kind {
    SRV_HTTP_RECORD_RESPONSE, /* the body is the response's */
    SRV_HTTP_RECORD_INDEX,    /* fields are named "vary", a value for each set of names in use, last
                                 used first; the variants lie elsewhere */
};

struct srv_http_record {
    enum srv_http_record_kind kind;
    struct srv_http_facts facts;
    uint64_t generation; /* of an index: part of its variants' keys */
    size_t n_fields;
    struct srv_field fields[SRV_HTTP_FIELDS_MAX];
};

static inline struct srv_http_fields srv_http_record_fields(const struct srv_http_record *record)
{
    return (struct srv_http_fields){record->fields, record->n_fields};
}

/* Writes a record; NULL without memory or with more than SRV_HTTP_FIELDS_MAX fields. The caller
 * frees it. */
void *srv_http_record_write(enum srv_http_record_kind kind, const struct srv_http_facts *facts,
                            uint64_t generation, struct srv_http_fields fields, size_t *len_out);

/* Reads one. False, and an empty one, for bytes that are none. */
bool srv_http_record_read(const void *bytes, size_t len, struct srv_http_record *record_out);
