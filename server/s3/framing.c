/* Which of the framings of aws-chunked a body has. */
#include <pthread.h>
#include <string.h>

#include "server/s3/call.h"
#include "server/s3/numbers.h"
#include "server/s3/signing_key.h"

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static const struct {
    const char *word;
    bool is_signed, has_trailer;
} forms[] = {
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", true, false},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", true, true},
    {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", false, true},
};

/* What the chunks' signatures are verified with. */
static enum srv_s3_code take_key(const struct srv_s3_call *call, struct srv_aws_framing *framing)
{
    struct srv_s3 *s3 = call->s3;
    const struct srv_s3_key_pair *pair;
    struct srv_sigv4 sig;
    const char *message;

    enum srv_s3_code code = srv_sigv4_read(call->req, srv_s3_now_s(call), &sig, &message);
    if (code != SRV_S3_NONE)
        return code;
    if (sig.form == SRV_SIGV4_NONE || sig.scope.len > sizeof framing->scope)
        return SRV_S3_ACCESS_DENIED;
    pthread_rwlock_rdlock(&s3->access_lock);
    if (srv_s3_access_find(s3->access, sig.access_key, &pair) != NULL) {
        framing->key = *srv_s3_signing_key(pair, &sig);
        framing->is_verified = true;
    }
    pthread_rwlock_unlock(&s3->access_lock);
    memcpy(framing->seed, sig.signature, sizeof framing->seed);
    memcpy(framing->time, sig.time, sizeof framing->time);
    memcpy(framing->scope, sig.scope.base, sig.scope.len);
    framing->scope_len = sig.scope.len;
    return framing->is_verified ? SRV_S3_NONE : SRV_S3_INVALID_ACCESS_KEY;
}

enum srv_s3_code srv_s3_framing_of(const struct srv_s3_call *call,
                                   struct srv_aws_framing *framing_out, bool *is_framed_out,
                                   const char **message_out)
{
    const struct srv_str *payload = srv_request_field(call->req, "x-amz-content-sha256", NULL);
    const struct srv_str *length =
        srv_request_field(call->req, "x-amz-decoded-content-length", NULL);
    size_t i = 0;

    *message_out = NULL;
    *is_framed_out = false;
    memset(framing_out, 0, sizeof *framing_out);
    if (payload == NULL || payload->len < 10 || memcmp(payload->base, "STREAMING-", 10) != 0)
        return SRV_S3_NONE;
    while (i < sizeof forms / sizeof forms[0] && !equals(*payload, forms[i].word))
        i++;
    if (i == sizeof forms / sizeof forms[0]) {
        *message_out = "This form of STREAMING-... in x-amz-content-sha256 is not offered here.";
        return SRV_S3_NOT_IMPLEMENTED;
    }
    *is_framed_out = true;
    framing_out->is_signed = forms[i].is_signed;
    framing_out->has_trailer = forms[i].has_trailer;
    framing_out->length = SRV_LENGTH_UNKNOWN;
    if (length != NULL && !srv_s3_parse_u64(*length, &framing_out->length)) {
        *message_out = "x-amz-decoded-content-length must be a number of bytes.";
        return SRV_S3_INVALID_ARGUMENT;
    }
    /* Without users there are no keys: what the chunks carry cannot be compared with anything. */
    return framing_out->is_signed && !call->who.is_open ? take_key(call, framing_out) : SRV_S3_NONE;
}
