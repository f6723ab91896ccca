#include "server/s3/precondition.h"

#include <stdlib.h>
#include <string.h>

#include "server/conditional.h"

/* What is read as a condition: of a change these, of a copy's source the same and one more, with a
 * prefix. */
static const char *const of_change[] = {"if-match", "if-none-match", "if-unmodified-since", NULL};
static const char *const of_source[] = {
    "x-amz-copy-source-if-match", "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-unmodified-since", "x-amz-copy-source-if-modified-since", NULL};

enum { SOURCE_PREFIX_LEN = sizeof "x-amz-copy-source-" - 1 };

static bool is_condition(struct srv_str name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (name.len == strlen(*names) && memcmp(name.base, *names, name.len) == 0)
            return true;
    }
    return false;
}

static struct srv_str copy(char **at, struct srv_str text)
{
    struct srv_str copied = {*at, text.len};

    memcpy(*at, text.base, text.len);
    *at += text.len;
    return copied;
}

static enum srv_s3_code take(struct srv_s3_precondition *pre, const struct srv_request *req,
                             const char *const *names, size_t prefix_len, enum srv_method method)
{
    size_t n = 0, bytes = 0;

    *pre = (struct srv_s3_precondition){.req = {.method = method}};
    for (size_t i = 0; i < req->n_fields; i++) {
        if (!is_condition(req->fields[i].name, names))
            continue;
        n++;
        bytes += req->fields[i].name.len + req->fields[i].value.len;
    }
    if (n == 0)
        return SRV_S3_NONE;
    if (n > SRV_S3_CONDITIONS_MAX)
        return SRV_S3_INVALID_REQUEST;
    char *at = pre->bytes_ = malloc(bytes);
    if (at == NULL)
        return SRV_S3_SLOW_DOWN;
    for (size_t i = 0, k = 0; i < req->n_fields; i++) {
        if (is_condition(req->fields[i].name, names)) {
            struct srv_str name = req->fields[i].name;
            name = (struct srv_str){name.base + prefix_len, name.len - prefix_len};
            pre->fields[k].name = copy(&at, name);
            pre->fields[k++].value = copy(&at, req->fields[i].value);
        }
    }
    pre->req.fields = pre->fields;
    pre->req.n_fields = n;
    return SRV_S3_NONE;
}

enum srv_s3_code srv_s3_precondition_init(struct srv_s3_precondition *pre,
                                          const struct srv_request *req)
{
    return take(pre, req, of_change, 0, req->method);
}

enum srv_s3_code srv_s3_precondition_init_source(struct srv_s3_precondition *pre,
                                                 const struct srv_request *req)
{
    return take(pre, req, of_source, SOURCE_PREFIX_LEN, SRV_GET);
}

bool srv_s3_precondition_holds(const struct srv_s3_precondition *pre,
                               const struct srv_validators *stored, int64_t now_s,
                               const char **field_out)
{
    return srv_conditional_decide(&pre->req, stored, now_s, field_out) == SRV_VERDICT_PROCEED;
}

void srv_s3_precondition_fini(struct srv_s3_precondition *pre)
{
    free(pre->bytes_);
    pre->bytes_ = NULL;
    pre->req.n_fields = 0;
}

static enum srv_s3_code code_of(enum srv_verdict verdict)
{
    if (verdict == SRV_VERDICT_PROCEED)
        return SRV_S3_NONE;
    return verdict == SRV_VERDICT_MISSING ? SRV_S3_NO_SUCH_KEY : SRV_S3_PRECONDITION_FAILED;
}

gyre_err srv_s3_precondition_decide(const struct srv_s3_precondition *pre, struct gyre_store *store,
                                    const struct gyre_key *key, int64_t now_s, unsigned get_flags,
                                    enum srv_s3_code *code_out, struct srv_s3_state *state_out)
{
    struct srv_validators stored;
    struct srv_s3_meta meta;
    struct gyre_handle *handle;
    bool is_stored = false;
    size_t len;

    *state_out = (struct srv_s3_state){.condition = GYRE_IF_ABSENT};
    gyre_err err = gyre_get(store, key, (uint32_t)now_s, get_flags | GYRE_GET_HEAD, &handle);
    if (err != GYRE_OK && err != GYRE_NOT_FOUND && err != GYRE_EXPIRED) {
        *code_out = srv_s3_code_of(err);
        return err;
    }
    if (err == GYRE_OK) {
        const struct gyre_info *info = gyre_handle_info(handle);
        const void *bytes = gyre_handle_meta(handle, &len);
        state_out->condition = GYRE_IF_SERIAL;
        state_out->serial = info->serial;
        state_out->length = info->length;
        /* What another program stored is no S3 object, and no condition is true of it. */
        is_stored = srv_s3_meta_decode(bytes, len, &meta);
    }
    if (is_stored) {
        state_out->modified_s = meta.modified_ms / 1000;
        stored = (struct srv_validators){meta.etag, state_out->modified_s};
    }
    *code_out = code_of(
        srv_conditional_decide(&pre->req, is_stored ? &stored : NULL, now_s, &state_out->field));
    gyre_release(handle);
    return err;
}
