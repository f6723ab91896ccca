#include "server/s3/upload_complete.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/s3/base64.h"
#include "server/s3/body_task.h"
#include "server/s3/change.h"
#include "server/s3/labels.h"
#include "server/s3/numbers.h"
#include "server/s3/object_head.h"
#include "server/s3/precondition.h"
#include "server/s3/upload_parts.h"
#include "server/s3/upload_record.h"
#include "server/target.h"
#include "server/xml.h"
#include "server/xml_read.h"

enum {
    BODY_MAX = 4 << 20, /* ten thousand parts with all that can be said of them */
    ATTEMPTS = 8,       /* while others change the object */
    PART_SUMS_MAX = 8 << 10,
};

struct completion {
    struct srv_s3_body_task body; /* first */
    struct gyre_key key;
    struct gyre_upload_id id;
    uint64_t serial; /* of the object */
    struct srv_s3_bucket *bucket;
    struct srv_s3_precondition precondition;
    struct srv_digest_plan claimed; /* the checksum that the head states of the whole object */
    struct srv_s3_upload_parts parts;
    struct gyre_handle *upload;
    struct srv_s3_upload_record record; /* points into the upload */
    bool has_size;
    uint64_t size;
    bool has_type, is_composite; /* x-amz-checksum-type */
    char etag[SRV_S3_ETAG_LEN_MAX + 1];
    struct srv_s3_checksum checksum;
    struct srv_s3_bucket_rule rule;
    struct srv_s3_labels labels;
};

static void fini(struct srv_s3_body_task *body)
{
    struct completion *c = (struct completion *)body;

    srv_s3_bucket_release(c->bucket);
    srv_s3_precondition_fini(&c->precondition);
    srv_s3_upload_parts_fini(&c->parts);
    gyre_release(c->upload);
}

static bool fail(struct completion *c, enum srv_s3_code code, const char *message)
{
    c->body.code = code;
    c->body.message = message;
    return code == SRV_S3_NONE;
}

/* ---- What is there ---- */

static bool open_upload(struct completion *c)
{
    size_t len;

    gyre_err err = gyre_upload_get(c->body.task.call.s3->store, &c->key, &c->id, &c->upload);
    if (err != GYRE_OK)
        return fail(c, err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_UPLOAD : srv_s3_code_of(err), NULL);
    const void *bytes = gyre_handle_meta(c->upload, &len);
    return srv_s3_upload_record_decode(bytes, len, &c->record) ||
           fail(c, SRV_S3_NO_SUCH_UPLOAD, NULL);
}

/* Whether the object that is there now came of this upload: then all is done already. */
static bool is_done_already(struct completion *c)
{
    struct gyre_handle *handle;
    struct srv_s3_meta meta;
    size_t len;

    gyre_err err = gyre_get(c->body.task.call.s3->store, &c->key, (uint32_t)time(NULL),
                            GYRE_GET_HEAD, &handle);
    if (err != GYRE_OK)
        return false;
    const void *bytes = gyre_handle_meta(handle, &len);
    bool is_same = srv_s3_meta_decode(bytes, len, &meta) && meta.upload.len == sizeof c->id &&
                   memcmp(meta.upload.base, &c->id, sizeof c->id) == 0;
    if (is_same) {
        memcpy(c->etag, meta.etag.base, meta.etag.len);
        c->etag[meta.etag.len] = '\0';
        (void)srv_s3_checksum_decode(meta.checksum, &c->checksum);
    }
    gyre_release(handle);
    return is_same;
}

static bool choose(struct completion *c)
{
    struct srv_xml_doc *doc =
        srv_xml_doc_create(c->body.bytes, c->body.len, 8 * (GYRE_UPLOAD_PARTS_MAX + 1));

    if (doc == NULL)
        return fail(c, SRV_S3_MALFORMED_XML, NULL);
    enum srv_s3_code code = srv_s3_upload_parts_collect(
        c->body.task.call.s3->store, &c->key, &c->id, 0, GYRE_UPLOAD_PARTS_MAX, &c->parts);
    if (code == SRV_S3_NONE)
        code = srv_s3_upload_parts_choose(&c->parts, srv_xml_root(doc));
    srv_xml_doc_destroy(doc);
    return fail(c, code, NULL);
}

/* ---- Is it what the client means? ---- */

static bool check_claims(struct completion *c)
{
    size_t size = srv_checksum_size(c->claimed.checksum);

    if (c->has_size && c->size != srv_s3_upload_parts_length(&c->parts))
        return fail(c, SRV_S3_INVALID_REQUEST,
                    "The parts have another length together than x-amz-mp-object-size says.");
    if (c->has_type && c->record.checksum != SRV_CHECKSUM_NONE &&
        c->is_composite != c->record.is_composite)
        return fail(c, SRV_S3_INVALID_REQUEST,
                    "The upload was begun with another x-amz-checksum-type.");
    /* A composite value comes as text with the number of parts, which no plan takes. */
    if (!c->claimed.has_value || c->checksum.is_composite)
        return true;
    if (c->claimed.checksum != c->checksum.algorithm)
        return fail(c, SRV_S3_INVALID_REQUEST,
                    "The checksum is of another algorithm than the upload's.");
    return memcmp(c->claimed.value, c->checksum.value, size) == 0 ||
           fail(c, SRV_S3_BAD_DIGEST, NULL);
}

static bool sum_up(struct completion *c)
{
    if (!srv_s3_upload_parts_etag(&c->parts, c->etag))
        return fail(c, SRV_S3_SLOW_DOWN, NULL);
    if (!srv_s3_upload_parts_checksum(&c->parts, c->record.checksum, c->record.is_composite,
                                      &c->checksum))
        return fail(c, SRV_S3_INVALID_PART, "A part lacks the checksum of the upload's algorithm.");
    return check_claims(c);
}

/* ---- Making the object ---- */

/* The values of the parts, to be shown by GetObjectAttributes and checked by readers of single
 * parts; of very many parts they are not kept. */
static size_t write_part_sums(const struct completion *c, uint8_t bytes[PART_SUMS_MAX])
{
    size_t size = srv_checksum_size(c->checksum.algorithm);

    if (size == 0 || c->parts.n > PART_SUMS_MAX / size)
        return 0;
    for (size_t i = 0; i < c->parts.n; i++)
        memcpy(bytes + i * size, c->parts.at[i].checksum.value, size);
    return c->parts.n * size;
}

static bool make_record(struct completion *c, uint8_t record[SRV_S3_META_RECORD_MAX],
                        size_t *len_out, uint32_t *expires_out)
{
    const struct srv_s3_ttl ttl = c->rule.ttl;
    uint8_t sum[SRV_S3_CHECKSUM_ENCODED_MAX], part_sums[PART_SUMS_MAX];
    struct srv_s3_meta meta;
    struct timespec now;

    if (!srv_s3_meta_decode(c->record.object.base, c->record.object.len, &meta))
        return fail(c, SRV_S3_INTERNAL_ERROR, NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    meta.etag = srv_s3_str(c->etag);
    meta.modified_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    *expires_out = srv_s3_ttl_expires(&ttl, &meta, now.tv_sec);
    srv_s3_labels_of(&meta, &c->labels);
    meta.upload = (struct srv_str){(const char *)c->id.bytes, sizeof c->id.bytes};
    size_t sum_len = srv_s3_checksum_encode(&c->checksum, sum);
    if (sum_len > 0)
        meta.checksum = (struct srv_str){(const char *)sum, sum_len};
    size_t sums_len = write_part_sums(c, part_sums);
    if (sums_len > 0)
        meta.part_sums = (struct srv_str){(const char *)part_sums, sums_len};
    if (srv_s3_meta_encode(&meta, record, SRV_S3_META_RECORD_MAX, len_out))
        return true;
    meta.part_sums = (struct srv_str){NULL, 0};
    return srv_s3_meta_encode(&meta, record, SRV_S3_META_RECORD_MAX, len_out) ||
           fail(c, SRV_S3_METADATA_TOO_LARGE, NULL);
}

static gyre_err complete_once(struct completion *c, const struct gyre_part_choice *choices,
                              const struct gyre_put_options *options)
{
    const struct srv_s3_call *call = &c->body.task.call;
    struct srv_s3_change change;

    enum srv_s3_code code =
        srv_s3_change_begin(&change, call->s3->names, call->s3->buckets, c->bucket);
    if (!fail(c, code, NULL))
        return GYRE_OK;
    gyre_err err = gyre_upload_complete(call->s3->store, &c->key, &c->id, choices, c->parts.n,
                                        options, &c->serial);
    srv_s3_change_end(&change, call->route.bucket, call->route.key,
                      err == GYRE_OK ? &c->key : NULL);
    return err;
}

/* The conditions are decided for what is there, and hold at the moment of the change or are decided
 * anew. */
static void complete_if(struct completion *c, const struct gyre_part_choice *choices,
                        struct gyre_put_options *options)
{
    struct srv_s3_state state = {.condition = GYRE_ALWAYS};
    enum srv_s3_code code = SRV_S3_NONE;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (srv_s3_precondition_is_set(&c->precondition))
            (void)srv_s3_precondition_decide(&c->precondition, c->body.task.call.s3->store, &c->key,
                                             time(NULL), 0, &code, &state);
        c->body.condition = state.field;
        if (!fail(c, code, NULL))
            return;
        options->condition = state.condition;
        options->if_serial = state.serial;
        gyre_err err = complete_once(c, choices, options);
        if (c->body.code != SRV_S3_NONE)
            return;
        bool is_race =
            err == GYRE_EXISTS || (err == GYRE_CHANGED && state.condition != GYRE_ALWAYS);
        if (!is_race) {
            fail(c,
                 err == GYRE_NOT_FOUND                      ? SRV_S3_NO_SUCH_UPLOAD
                 : err == GYRE_RANGE || err == GYRE_CHANGED ? SRV_S3_INVALID_PART
                                                            : srv_s3_code_of(err),
                 NULL);
            return;
        }
    }
    fail(c, SRV_S3_CONDITIONAL_CONFLICT, NULL);
}

static void make_object(struct completion *c)
{
    uint8_t record[SRV_S3_META_RECORD_MAX];
    struct gyre_put_options options;
    struct gyre_part_choice *choices;
    uint32_t expires;
    size_t len;

    c->rule = srv_s3_bucket_rule(c->body.task.call.s3->buckets, c->bucket);
    if (!sum_up(c) || !make_record(c, record, &len, &expires))
        return;
    choices = calloc(c->parts.n, sizeof *choices);
    if (choices == NULL) {
        fail(c, SRV_S3_SLOW_DOWN, NULL);
        return;
    }
    for (size_t i = 0; i < c->parts.n; i++)
        choices[i] = (struct gyre_part_choice){.number = c->parts.at[i].number,
                                               .serial = c->parts.at[i].serial};
    gyre_put_options_init(&options);
    options.meta = record;
    options.meta_len = len;
    options.expires = expires;
    options.labels = c->labels.at;
    options.n_labels = c->labels.n;
    srv_s3_keep_options(&c->rule, &options);
    memcpy(&options.etag_hash, c->etag, sizeof options.etag_hash);
    complete_if(c, choices, &options);
    free(choices);
}

static void work(struct srv_s3_body_task *body)
{
    struct completion *c = (struct completion *)body;

    if (open_upload(c) && choose(c))
        make_object(c);
    if (body->code == SRV_S3_NO_SUCH_UPLOAD && is_done_already(c)) {
        body->code = SRV_S3_NONE;
        srv_s3_task_await_lists(&body->task);
    } else if (body->code == SRV_S3_NONE) {
        const struct srv_s3_stored stored = {c->bucket, c->key, c->serial};
        srv_s3_task_await_stored(&body->task, &stored, &body->code);
    }
}

/* ---- The request and its answer ---- */

static void on_worked(struct srv_s3_body_task *body)
{
    const struct completion *c = (const struct completion *)body;
    const struct srv_s3_call *call = &body->task.call;
    srv_s3_task_empty(&body->task);
    char etag[SRV_S3_ETAG_LEN_MAX + 2], sum[SRV_S3_CHECKSUM_TEXT_MAX];
    struct srv_s3_head head;
    struct srv_xml xml;

    srv_xml_init(&xml);
    srv_xml_open(&xml, "CompleteMultipartUploadResult" SRV_S3_XMLNS);
    srv_xml_open(&xml, "Location");
    srv_xml_text(&xml, srv_s3_str(call->req->is_tls ? "https://" : "http://"));
    srv_xml_text(&xml, call->req->authority);
    srv_xml_text(&xml, call->req->path);
    srv_xml_close(&xml, "Location");
    srv_xml_element(&xml, "Bucket", call->route.bucket);
    srv_xml_element(&xml, "Key", call->route.key);
    srv_xml_element(&xml, "ETag", srv_s3_quote_etag(srv_s3_str(c->etag), etag));
    if (c->checksum.algorithm != SRV_CHECKSUM_NONE) {
        srv_xml_element(&xml, srv_checksum_element(c->checksum.algorithm),
                        srv_s3_checksum_text(&c->checksum, sum));
        srv_xml_element_z(&xml, "ChecksumType", srv_s3_checksum_type(&c->checksum));
    }
    srv_xml_close(&xml, "CompleteMultipartUploadResult");
    srv_s3_head_init(&head, call);
    srv_s3_answer_xml(call, &head, &xml);
}

/* The checksum fields of this request are of the object, not of its body. */
static enum srv_s3_code read_claims(struct completion *c)
{
    const struct srv_request *req = c->body.task.call.req;
    const struct srv_str *size = srv_request_field(req, "x-amz-mp-object-size", NULL);
    const struct srv_str *type = srv_request_field(req, "x-amz-checksum-type", NULL);

    c->has_size = size != NULL;
    if (size != NULL && !srv_s3_parse_u64(*size, &c->size))
        return SRV_S3_INVALID_ARGUMENT;
    c->has_type = type != NULL;
    c->is_composite = type != NULL && srv_str_equal_nocase(*type, srv_s3_str("COMPOSITE"));
    for (size_t i = 0; i < req->n_fields; i++) {
        enum srv_checksum checksum = srv_checksum_of_field(req->fields[i].name);
        if (checksum == SRV_CHECKSUM_NONE)
            continue;
        c->claimed.checksum = checksum;
        c->claimed.has_value =
            srv_base64_decode(req->fields[i].value, c->claimed.value, srv_checksum_size(checksum));
        bool has_number = memchr(req->fields[i].value.base, '-', req->fields[i].value.len) != NULL;
        if (!c->claimed.has_value && !has_number)
            return SRV_S3_BAD_DIGEST;
    }
    return SRV_S3_NONE;
}

void srv_s3_upload_complete(const struct srv_s3_call *call)
{
    struct completion *c = srv_s3_body_task_create(call, sizeof *c, fini);

    if (c == NULL)
        return;
    c->key = srv_s3_object_key(call);
    c->bucket = srv_s3_bucket_acquire(call->s3->buckets, call->route.bucket);
    enum srv_s3_code code = c->bucket == NULL ? SRV_S3_NO_SUCH_BUCKET : SRV_S3_NONE;
    if (code == SRV_S3_NONE)
        code = srv_s3_upload_id_read(call->req, &c->id);
    if (code == SRV_S3_NONE)
        code = read_claims(c);
    if (code == SRV_S3_NONE)
        code = srv_s3_precondition_init(&c->precondition, call->req);
    if (code != SRV_S3_NONE)
        srv_s3_fail(&c->body.task.call, code, NULL);
    else
        srv_s3_body_task_receive_of(&c->body, BODY_MAX, SRV_S3_BODY_SUMS_ARE_NOT_ITS_OWN, work,
                                    on_worked);
}
