/* S3's errors: one table of code, HTTP status and message (error.def), what the store's errors
 * become, and the XML document.
 *
 * Threads: any. Blocks: never. Allocates: srv_s3_error_write only, through the XML writer.
 */
#pragma once

#include "server/exchange.h"

#include "api/gyre.h"

struct srv_xml;

enum srv_s3_code {
    SRV_S3_NONE, /* no error */
#define X(name, code, status, message) SRV_S3_##name,
#include "server/s3/error.def"
#undef X
    SRV_S3_CODE_COUNT
};

/* "NoSuchKey", static. */
const char *srv_s3_code_name(enum srv_s3_code code);
/* HTTP status, 400 to 599. */
int srv_s3_code_status(enum srv_s3_code code);
/* The table's sentence, static. */
const char *srv_s3_code_message(enum srv_s3_code code);

/* What an object operation that ended in `err` answers; NONE for GYRE_OK. */
enum srv_s3_code srv_s3_code_of(gyre_err err);

/* One more child of the error document, such as ActualObjectSize. */
struct srv_s3_detail {
    const char *name;
    struct srv_str value;
};

/* All that an error document says. Strings without a base are left out. */
struct srv_s3_error {
    enum srv_s3_code code;
    const char *message;   /* NULL: the table's */
    struct srv_str bucket; /* written as BucketName unless there is a key */
    struct srv_str key;
    struct srv_str resource; /* the request's raw path */
    struct srv_str request_id;
    struct srv_str host_id;
    const struct srv_s3_detail *details;
    size_t n_details;
};

/* Writes the document into `xml`, which was just begun. */
void srv_s3_error_write(struct srv_xml *xml, const struct srv_s3_error *error);
