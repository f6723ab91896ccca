#include "server/s3/put_work.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/buf.h"
#include "server/check.h"
#include "server/s3/base64.h"
#include "server/s3/put_head.h"
#include "server/s3/upload_record.h"

enum { ATTEMPTS = 8 }; /* to store a short body while others change the object */

/* ---- Init ---- */

static enum srv_s3_code keep_record(struct srv_s3_put_work *work, const uint8_t *record, size_t len)
{
    work->record = malloc(len + 1);
    if (work->record == NULL)
        return SRV_S3_SLOW_DOWN;
    if (len > 0)
        memcpy(work->record, record, len);
    work->record_len = len;
    return SRV_S3_NONE;
}

static enum srv_s3_code make_record(struct srv_s3_put_work *work, const struct srv_s3_call *call)
{
    uint8_t record[SRV_S3_META_RECORD_MAX];
    size_t len;
    enum srv_s3_code code = srv_s3_put_head_record(call, record, &len);

    return code == SRV_S3_NONE ? keep_record(work, record, len) : code;
}

static enum srv_s3_code take_target(struct srv_s3_put_work *work, const struct srv_s3_call *call)
{
    work->store = call->s3->store;
    work->buckets = call->s3->buckets;
    work->names = call->s3->names;
    work->bucket = srv_s3_bucket_acquire(work->buckets, call->route.bucket);
    work->key = srv_s3_object_key(call);
    return work->bucket != NULL ? SRV_S3_NONE : SRV_S3_NO_SUCH_BUCKET;
}

static enum srv_s3_code take_framing(struct srv_s3_put_work *work, const struct srv_s3_call *call,
                                     const char **message_out)
{
    struct srv_aws_framing framing;
    bool is_framed;

    enum srv_s3_code code = srv_s3_framing_of(call, &framing, &is_framed, message_out);
    if (code == SRV_S3_NONE && is_framed) {
        work->framing = malloc(sizeof *work->framing);
        if (work->framing == NULL)
            return SRV_S3_SLOW_DOWN;
        srv_aws_chunked_init(work->framing, &framing);
    }
    OPENSSL_cleanse(&framing.key, sizeof framing.key);
    return code;
}

enum srv_s3_code srv_s3_put_work_init(struct srv_s3_put_work *work, const struct srv_s3_call *call,
                                      const char **message_out)
{
    *message_out = NULL;
    enum srv_s3_code code = take_target(work, call);
    if (code != SRV_S3_NONE)
        return code;
    bool wants_md5 = srv_s3_bucket_rule(work->buckets, work->bucket).etag == SRV_S3_ETAG_MD5;
    code = take_framing(work, call, message_out);
    if (code == SRV_S3_NONE)
        code = srv_s3_put_head_check(call, wants_md5,
                                     work->framing != NULL ? &work->framing->framing : NULL,
                                     &work->plan, &work->length, message_out);
    if (code == SRV_S3_NONE)
        code = make_record(work, call);
    if (code == SRV_S3_NONE)
        code = srv_s3_precondition_init(&work->precondition, call->req);
    return code;
}

enum srv_s3_code srv_s3_put_work_init_part(struct srv_s3_put_work *work,
                                           const struct srv_s3_call *call, const char **message_out)
{
    *message_out = NULL;
    work->is_part = true;
    enum srv_s3_code code = take_target(work, call);
    if (code != SRV_S3_NONE)
        return code;
    code = srv_s3_part_number_read(call->req, &work->part_number);
    if (code == SRV_S3_NONE)
        code = srv_s3_upload_id_read(call->req, &work->upload);
    if (code == SRV_S3_NONE)
        code = take_framing(work, call, message_out);
    bool wants_md5 = srv_s3_bucket_rule(work->buckets, work->bucket).etag == SRV_S3_ETAG_MD5;
    return code != SRV_S3_NONE
               ? code
               : srv_s3_put_head_check(call, wants_md5,
                                       work->framing != NULL ? &work->framing->framing : NULL,
                                       &work->plan, &work->length, message_out);
}

enum srv_s3_code srv_s3_put_work_init_inner(struct srv_s3_put_work *work,
                                            const struct srv_s3_call *call, const uint8_t *record,
                                            size_t record_len, uint64_t length,
                                            const struct srv_digest_plan *plan)
{
    enum srv_s3_code code = take_target(work, call);

    work->plan = *plan;
    work->length = length;
    return code == SRV_S3_NONE ? keep_record(work, record, record_len) : code;
}

void srv_s3_put_work_fini(struct srv_s3_put_work *work)
{
    srv_buf_release(work->buf);
    work->buf = NULL;
    gyre_put_abort(&work->put);
    srv_digest_fini(&work->digest);
    if (work->framing != NULL)
        srv_aws_chunked_fini(work->framing);
    free(work->framing);
    work->framing = NULL;
    srv_s3_precondition_fini(&work->precondition);
    free(work->record);
    work->record = NULL;
    srv_s3_bucket_release(work->bucket);
    work->bucket = NULL;
}

/* ---- Run ---- */

/* Takes note of a failure; true if there is none. */
static bool note(struct srv_s3_put_work *work, enum srv_s3_code code)
{
    work->code = code;
    return code == SRV_S3_NONE;
}

static bool note_err(struct srv_s3_put_work *work, gyre_err err)
{
    return note(work, srv_s3_code_of(err));
}

static bool note_fault(struct srv_s3_put_work *work, enum srv_digest_fault fault)
{
    return note(work, srv_s3_put_head_fault(fault, &work->message));
}

/* Decides the conditions against what is stored now. */
static bool decide(struct srv_s3_put_work *work)
{
    enum srv_s3_code code = SRV_S3_NONE;

    work->state = (struct srv_s3_state){.condition = GYRE_ALWAYS};
    if (srv_s3_precondition_is_set(&work->precondition))
        (void)srv_s3_precondition_decide(&work->precondition, work->store, &work->key, time(NULL),
                                         0, &code, &work->state);
    work->condition = work->state.field;
    return note(work, code);
}

/* Parts are checked in the way that was chosen for the upload when it began. */
static bool join_upload(struct srv_s3_put_work *work)
{
    struct srv_s3_upload_record record;
    struct gyre_handle *handle;
    size_t len;

    gyre_err err = gyre_upload_get(work->store, &work->key, &work->upload, &handle);
    if (err != GYRE_OK)
        return note(work, err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_UPLOAD : srv_s3_code_of(err));
    const void *bytes = gyre_handle_meta(handle, &len);
    bool ok = srv_s3_upload_record_decode(bytes, len, &record);
    gyre_release(handle);
    if (!ok)
        return note(work, SRV_S3_NO_SUCH_UPLOAD);
    if (work->plan.checksum == SRV_CHECKSUM_NONE)
        work->plan.checksum = record.checksum;
    if (record.checksum == SRV_CHECKSUM_NONE || work->plan.checksum == record.checksum)
        return true;
    work->message = "The part's checksum is of another algorithm than the upload's.";
    return note(work, SRV_S3_INVALID_REQUEST);
}

static bool begin(struct srv_s3_put_work *work)
{
    work->is_begun = true;
    return (!work->is_part || join_upload(work)) && decide(work) &&
           note_fault(work, srv_digest_init(&work->digest, &work->plan));
}

static void set_options(struct srv_s3_put_work *work, struct gyre_put_options *options)
{
    const struct srv_s3_bucket_rule rule = srv_s3_bucket_rule(work->buckets, work->bucket);
    struct srv_s3_meta meta;

    /* It was encoded here. */
    SRV_CHECK(srv_s3_meta_decode(work->record, work->record_len, &meta));
    srv_s3_labels_of(&meta, &work->labels_);
    gyre_put_options_init(options);
    options->length = work->length;
    options->condition = work->state.condition;
    options->if_serial = work->state.serial;
    options->labels = work->labels_.at;
    options->n_labels = work->labels_.n;
    srv_s3_keep_options(&rule, options);
}

/* Ends the hashes and makes the ETag, unless the body is not what the client says it is. */
static bool finish_digest(struct srv_s3_put_work *work, uint8_t etag_out[16])
{
    if (!note_fault(work, srv_digest_finish(&work->digest, etag_out)))
        return false;
    if (!work->keeps_checksum) {
        work->checksum.algorithm = work->plan.checksum;
        memcpy(work->checksum.value, work->digest.value, sizeof work->checksum.value);
    }
    if (work->keeps_etag) {
        memcpy(etag_out, work->etag, 16);
        return true;
    }
    if (!work->plan.wants_md5 && RAND_bytes(etag_out, 16) != 1)
        return note(work, SRV_S3_INTERNAL_ERROR);
    srv_hex_encode(etag_out, 16, work->etag);
    return true;
}

/* The record as it is stored, with the ETag and the time of now. */
static bool finish_record(struct srv_s3_put_work *work, uint8_t record[SRV_S3_META_RECORD_MAX],
                          size_t *len_out)
{
    uint8_t sum[SRV_S3_CHECKSUM_ENCODED_MAX];
    struct srv_s3_meta meta;
    struct timespec now;

    *len_out = 0;
    if (!srv_s3_meta_decode(work->record, work->record_len, &meta))
        return note(work, SRV_S3_INTERNAL_ERROR);
    clock_gettime(CLOCK_REALTIME, &now);
    if (work->modified_ms == 0)
        work->modified_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    meta.etag = srv_s3_str(work->etag);
    meta.modified_ms = work->modified_ms;
    const struct srv_s3_ttl ttl = srv_s3_bucket_rule(work->buckets, work->bucket).ttl;
    work->expires = srv_s3_ttl_expires(&ttl, &meta, work->modified_ms / 1000);
    size_t sum_len = srv_s3_checksum_encode(&work->checksum, sum);
    if (sum_len > 0)
        meta.checksum = (struct srv_str){(const char *)sum, sum_len};
    if (!srv_s3_meta_encode(&meta, record, SRV_S3_META_RECORD_MAX, len_out))
        return note(work, SRV_S3_INTERNAL_ERROR);
    return true;
}

static bool is_race(gyre_err err, const struct srv_s3_put_work *work)
{
    return err == GYRE_EXISTS || err == GYRE_CHANGED ||
           (err == GYRE_NOT_FOUND && work->state.condition == GYRE_IF_SERIAL);
}

static bool begin_change(struct srv_s3_put_work *work, struct srv_s3_change *change)
{
    return note(work, srv_s3_change_begin(change, work->names, work->buckets, work->bucket));
}

static void end_change(struct srv_s3_put_work *work, struct srv_s3_change *change, gyre_err err)
{
    struct srv_s3_meta meta;

    /* It was decoded when the record was finished. */
    SRV_CHECK(srv_s3_meta_decode(work->record, work->record_len, &meta));
    srv_s3_change_end(change, meta.bucket, meta.key, err == GYRE_OK ? &work->key : NULL);
}

static gyre_err put_whole(struct srv_s3_put_work *work, const struct gyre_put_options *options,
                          struct srv_s3_change *change)
{
    gyre_err err = gyre_put(work->store, &work->key, options, work->bytes_.iov_base,
                            work->bytes_.iov_len, &work->serial);
    end_change(work, change, err);
    return err;
}

/* Stores a body that is all there. What another request changes meanwhile is looked at anew: the
 * conditions may hold for it as well. */
static void store_whole(struct srv_s3_put_work *work)
{
    uint8_t record[SRV_S3_META_RECORD_MAX], etag[16];
    struct gyre_put_options options;
    struct srv_s3_change change;
    size_t record_len;

    if (!finish_digest(work, etag) || !finish_record(work, record, &record_len))
        return;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        set_options(work, &options);
        options.length = work->bytes_.iov_len;
        options.meta = record;
        options.meta_len = record_len;
        options.expires = work->expires;
        memcpy(&options.etag_hash, etag, sizeof options.etag_hash);
        if (!begin_change(work, &change))
            return;
        gyre_err err = put_whole(work, &options, &change);
        if (!is_race(err, work)) {
            note_err(work, err);
            return;
        }
        if (!decide(work))
            return;
    }
    note(work, SRV_S3_CONDITIONAL_CONFLICT);
}

static bool note_part(struct srv_s3_put_work *work, gyre_err err)
{
    return note(work, err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_UPLOAD : srv_s3_code_of(err));
}

static bool write_piece(struct srv_s3_put_work *work)
{
    struct gyre_put_options options;

    if (work->put == NULL && work->is_part) {
        bool is_kept = srv_s3_bucket_rule(work->buckets, work->bucket).never_evicts;
        unsigned flags = is_kept ? GYRE_PUT_SYNC : 0;
        gyre_err err = gyre_upload_put(work->store, &work->key, &work->upload, work->part_number,
                                       work->length, flags, &work->put);
        if (!note_part(work, err))
            return false;
    } else if (work->put == NULL) {
        set_options(work, &options);
        options.meta = work->record;
        options.meta_len = work->record_len;
        if (!note_err(work, gyre_put_begin(work->store, &work->key, &options, &work->put)))
            return false;
    }
    if (work->bytes_.iov_len == 0)
        return true;
    return note_err(work, gyre_put_write(work->put, work->bytes_.iov_base, work->bytes_.iov_len));
}

/* Publishes an open put. Its bytes are gone if the race is lost, so the client has to send them
 * again unless the conditions fail anyhow. */
static void commit(struct srv_s3_put_work *work)
{
    uint8_t record[SRV_S3_META_RECORD_MAX], etag[16];
    struct srv_s3_change change;
    uint64_t etag_hash;
    size_t len;

    if (!finish_digest(work, etag) || !finish_record(work, record, &len))
        return;
    memcpy(&etag_hash, etag, sizeof etag_hash);
    if (!note_err(work, gyre_put_set_meta(work->put, record, len, etag_hash, work->expires)) ||
        !begin_change(work, &change))
        return;
    gyre_err err = gyre_put_commit(&work->put, &work->serial);
    end_change(work, &change, err);
    if (!is_race(err, work))
        note_err(work, err);
    else if (decide(work))
        note(work, SRV_S3_CONDITIONAL_CONFLICT);
}

/* Makes what was written the part of its number. */
static void commit_part(struct srv_s3_put_work *work)
{
    uint8_t sum[SRV_S3_CHECKSUM_ENCODED_MAX], etag[16];
    struct timespec now;

    if (!finish_digest(work, etag))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    work->modified_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    size_t len = srv_s3_checksum_encode(&work->checksum, sum);
    if (note_err(work, gyre_put_set_meta(work->put, sum, len, 0, 0)) &&
        note_err(work, gyre_put_set_md5(work->put, etag)))
        note_part(work, gyre_put_commit(&work->put, NULL));
}

/* The body has ended: is it whole, and what does its trailer say? */
static bool end_framing(struct srv_s3_put_work *work)
{
    struct srv_str value;

    if (!note(work, srv_aws_chunked_finish(work->framing)))
        return false;
    if (!work->plan.is_trailing)
        return true;
    const char *name = srv_checksum_field(work->plan.checksum);
    if (!srv_aws_chunked_trailer(work->framing, name, &value)) {
        work->message = "The trailer that x-amz-trailer announces is missing.";
        return note(work, SRV_S3_INVALID_REQUEST);
    }
    if (!srv_digest_set_value(&work->digest, value)) {
        work->message = "Value for x-amz-checksum trailing header is invalid.";
        return note(work, SRV_S3_INVALID_REQUEST);
    }
    return true;
}

/* Takes the framing off the bytes, in place: they are the buffer's. */
static bool unframe(struct srv_s3_put_work *work)
{
    if (work->framing == NULL)
        return true;
    if (!note(work, srv_aws_chunked_feed(work->framing, work->bytes_.iov_base, work->bytes_.iov_len,
                                         &work->bytes_.iov_len)))
        return false;
    return !work->is_last || end_framing(work);
}

static void step(struct srv_s3_put_work *work)
{
    if ((!work->is_begun && !begin(work)) || !unframe(work))
        return;
    work->stored_bytes += work->bytes_.iov_len;
    if (work->bytes_.iov_len > 0 &&
        !note_fault(work,
                    srv_digest_update(&work->digest, work->bytes_.iov_base, work->bytes_.iov_len)))
        return;
    if (work->is_last && work->put == NULL && !work->is_part) {
        store_whole(work);
        return;
    }
    if (!write_piece(work) || !work->is_last)
        return;
    if (work->is_part)
        commit_part(work);
    else
        commit(work);
}

void srv_s3_put_work_run(struct srv_s3_put_work *work)
{
    struct srv_buf *buf = work->buf;

    if (buf != NULL)
        srv_s3_put_work_feed(work, buf->base, buf->len, work->is_last);
    else
        srv_s3_put_work_feed(work, NULL, 0, work->is_last);
    srv_buf_release(buf);
    work->buf = NULL;
}

void srv_s3_put_work_feed(struct srv_s3_put_work *work, const void *bytes, size_t len, bool is_last)
{
    work->bytes_ = (struct iovec){(void *)(uintptr_t)bytes, len};
    work->is_last = is_last;
    step(work);
    if (work->code != SRV_S3_NONE || work->is_last) {
        gyre_put_abort(&work->put);
        srv_digest_fini(&work->digest);
    }
}
