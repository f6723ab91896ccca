/* What workers do to store an object or a part of an upload: hash, check, write, and commit once
 * everything agrees.
 *
 *   NEW -> FED [run] ... -> STORED [run with is_last] | FAILED [any run]
 *
 * A body that comes in one piece is stored by one call; a longer one through a put that is open
 * between runs. Nothing is visible before STORED, and FAILED has dropped what was written.
 *
 * Owns:    copies of all it needs of the request, the open put, and `buf` while it runs.
 * Threads: init and fini on the exchange's loop; run on one worker at a time.
 * Blocks:  run: for cold metadata and where gyre_put_write does.
 */
#pragma once

#include "server/s3/aws_chunked.h"
#include "server/s3/change.h"
#include "server/s3/checksum.h"
#include "server/s3/digest.h"
#include "server/s3/labels.h"
#include "server/s3/precondition.h"

struct srv_buf;

struct srv_s3_put_work {
    struct gyre_store *store;
    struct srv_s3_buckets *buckets;
    struct srv_names *names;
    struct srv_s3_bucket *bucket; /* acquired */
    struct gyre_key key;
    uint64_t length; /* bytes of the object, or SRV_LENGTH_UNKNOWN */
    struct srv_s3_precondition precondition;
    struct srv_aws_chunked *framing; /* of a body as aws-chunked, else NULL */
    struct srv_digest_plan plan;
    struct srv_digest digest;
    uint8_t *record; /* metadata without its final ETag and time */
    size_t record_len;
    struct gyre_put *put;
    struct srv_s3_state state; /* what the conditions were decided for */
    bool is_begun;
    bool keeps_etag;     /* `etag` is set already, and the bytes are known to be right */
    bool keeps_checksum; /* `checksum` is */
    struct iovec bytes_; /* of this run */

    bool is_part; /* a part of an upload rather than an object */
    struct gyre_upload_id upload;
    uint32_t part_number;

    struct srv_buf *buf; /* in: the next bytes, or NULL; released by run */
    bool is_last;        /* in: nothing follows */

    enum srv_s3_code code;              /* out: not NONE once FAILED */
    const char *message;                /* out: for `code`, or NULL for the table's; static */
    const char *condition;              /* out: the field, with PRECONDITION_FAILED */
    uint64_t stored_bytes;              /* out */
    uint64_t serial;                    /* out: of the object, once STORED */
    int64_t modified_ms;                /* in: kept, unless it is 0; out: once STORED */
    char etag[SRV_S3_ETAG_LEN_MAX + 1]; /* out: likewise, without quotes */
    struct srv_s3_checksum checksum;    /* out: likewise; NONE if there is none */
    uint32_t expires;                   /* out: Unix seconds, 0 for never */
    struct srv_s3_labels labels_;
};

/* Reads and checks the head of a PutObject. NONE, or what to answer with *message_out as
 * `message` above; fini is due in either case. */
enum srv_s3_code srv_s3_put_work_init(struct srv_s3_put_work *work, const struct srv_s3_call *call,
                                      const char **message_out);
/* The same for the part of an upload that the query names. */
enum srv_s3_code srv_s3_put_work_init_part(struct srv_s3_put_work *work,
                                           const struct srv_s3_call *call,
                                           const char **message_out);
/* The same for bytes that come from somewhere else than the request's body: for the record
 * `record`, which is copied. NONE, NO_SUCH_BUCKET, SLOW_DOWN. */
enum srv_s3_code srv_s3_put_work_init_inner(struct srv_s3_put_work *work,
                                            const struct srv_s3_call *call, const uint8_t *record,
                                            size_t record_len, uint64_t length,
                                            const struct srv_digest_plan *plan);
/* Drops an unfinished put. Allowed on a zeroed one. */
void srv_s3_put_work_fini(struct srv_s3_put_work *work);

void srv_s3_put_work_run(struct srv_s3_put_work *work);

/* What was STORED, for srv_s3_task_await_stored. */
static inline struct srv_s3_stored srv_s3_put_work_stored(const struct srv_s3_put_work *work)
{
    return (struct srv_s3_stored){work->bucket, work->key, work->serial};
}

/* As run for bytes that are lent instead of `buf`. */
void srv_s3_put_work_feed(struct srv_s3_put_work *work, const void *bytes, size_t len,
                          bool is_last);
