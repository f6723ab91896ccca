/* Finding a signature in a request. */
#include "server/s3/sigv4.h"

#include <string.h>

#include "server/chars.h"
#include "server/http_date.h"
#include "server/s3/base64.h"
#include "server/iso_date.h"
#include "server/uri.h"

static const char algorithm[] = "AWS4-HMAC-SHA256";

enum { ALGORITHM_LEN = sizeof algorithm - 1, REGION_MAX = 64, ACCESS_KEY_MAX = 128 };

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static bool begins(struct srv_str text, const char *word)
{
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.base, word, len) == 0;
}

static struct srv_str skip(struct srv_str text, size_t n)
{
    return (struct srv_str){text.base + n, text.len - n};
}

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && (text.base[0] == ' ' || text.base[0] == '\t'))
        text = skip(text, 1);
    while (text.len > 0 && (text.base[text.len - 1] == ' ' || text.base[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* What stands before the last `c`, and after it; false when there is none. */
static bool split_last(struct srv_str text, char c, struct srv_str *before_out,
                       struct srv_str *after_out)
{
    const char *at = text.len == 0 ? NULL : memrchr(text.base, c, text.len);

    if (at == NULL)
        return false;
    size_t len = (size_t)(at - text.base);
    *before_out = (struct srv_str){text.base, len};
    *after_out = skip(text, len + 1);
    return true;
}

static bool is_day(struct srv_str day)
{
    for (size_t i = 0; i < day.len; i++) {
        if (!srv_is_digit((unsigned char)day.base[i]))
            return false;
    }
    return day.len == SRV_SIGV4_DAY_LEN;
}

/* KEY/DAY/REGION/s3/aws4_request, read from its end: a key may hold slashes. */
static const char *read_credential(struct srv_sigv4 *sig, struct srv_str credential)
{
    struct srv_str rest = credential, last, service, day;

    if (!split_last(rest, '/', &rest, &last) || !equals(last, "aws4_request"))
        return "The credential must end with \"/aws4_request\".";
    if (!split_last(rest, '/', &rest, &service) || !equals(service, "s3"))
        return "The credential must be for the service \"s3\".";
    if (!split_last(rest, '/', &rest, &sig->region) || sig->region.len > REGION_MAX ||
        !split_last(rest, '/', &sig->access_key, &day) || !is_day(day))
        return "The credential must have the form KEY/YYYYMMDD/REGION/s3/aws4_request.";
    if (sig->access_key.len == 0 || sig->access_key.len > ACCESS_KEY_MAX)
        return "The credential lacks an access key, or has an impossible one.";
    size_t before = sig->access_key.len + 1;
    sig->scope = skip(credential, before);
    return NULL;
}

static const char *read_signature(struct srv_sigv4 *sig, struct srv_str hex)
{
    return srv_hex_decode(hex, sig->signature, sizeof sig->signature)
               ? NULL
               : "The signature must be 64 hex digits.";
}

/* ---- In the Authorization field ---- */

static const char *take_part(struct srv_sigv4 *sig, struct srv_str part, unsigned *seen)
{
    static const char *const names[] = {"Credential=", "SignedHeaders=", "Signature="};
    unsigned i = 0;

    while (i < 3 && !begins(part, names[i]))
        i++;
    if (i == 3)
        return NULL; /* of a later version: what is needed is looked for below */
    if (*seen & 1u << i)
        return "A part of the Authorization field is given twice.";
    *seen |= 1u << i;
    struct srv_str value = trim(skip(part, strlen(names[i])));
    if (i == 0)
        return read_credential(sig, value);
    if (i == 2)
        return read_signature(sig, value);
    sig->signed_names = value;
    return value.len == 0 ? "SignedHeaders names nothing." : NULL;
}

static enum srv_s3_code read_authorization(struct srv_sigv4 *sig, struct srv_str value,
                                           const char **message_out)
{
    unsigned seen = 0;

    if (!begins(value, algorithm) || value.len == ALGORITHM_LEN ||
        (value.base[ALGORITHM_LEN] != ' ' && value.base[ALGORITHM_LEN] != '\t')) {
        *message_out = "Only signatures of the form AWS4-HMAC-SHA256 are understood here.";
        return begins(value, "AWS4-ECDSA-P256-SHA256") ? SRV_S3_NOT_IMPLEMENTED
                                                       : SRV_S3_INVALID_ARGUMENT;
    }
    struct srv_str rest = skip(value, ALGORITHM_LEN + 1);
    while (rest.len > 0) {
        const char *comma = memchr(rest.base, ',', rest.len);
        size_t len = comma == NULL ? rest.len : (size_t)(comma - rest.base);
        *message_out = take_part(sig, trim((struct srv_str){rest.base, len}), &seen);
        if (*message_out != NULL)
            return SRV_S3_AUTHORIZATION_MALFORMED;
        rest = skip(rest, comma == NULL ? len : len + 1);
    }
    if (seen == 7)
        return SRV_S3_NONE;
    *message_out = "Authorization needs Credential, SignedHeaders and Signature.";
    return SRV_S3_AUTHORIZATION_MALFORMED;
}

static enum srv_s3_code read_date(struct srv_sigv4 *sig, const struct srv_request *req,
                                  int64_t now_s, const char **message_out)
{
    const struct srv_str *date = srv_request_field(req, "x-amz-date", NULL);

    if (date == NULL)
        date = srv_request_field(req, "date", NULL);
    if (date == NULL || (!srv_iso_date_parse(*date, &sig->time_s) &&
                         !srv_http_date_parse(*date, now_s, &sig->time_s))) {
        *message_out = "A signed request needs a date that can be read in x-amz-date or Date.";
        return SRV_S3_ACCESS_DENIED;
    }
    srv_iso_short_write(sig->time_s, sig->time);
    return SRV_S3_NONE;
}

static enum srv_s3_code read_header_form(struct srv_sigv4 *sig, const struct srv_request *req,
                                         struct srv_str value, int64_t now_s,
                                         const char **message_out)
{
    sig->form = SRV_SIGV4_HEADER;
    enum srv_s3_code code = read_authorization(sig, value, message_out);
    if (code == SRV_S3_NONE)
        code = read_date(sig, req, now_s, message_out);
    if (code == SRV_S3_NONE && memcmp(sig->time, sig->scope.base, SRV_SIGV4_DAY_LEN) != 0) {
        *message_out = "The credential is for another day than the request's date.";
        code = SRV_S3_AUTHORIZATION_MALFORMED;
    }
    const struct srv_str *payload = srv_request_field(req, "x-amz-content-sha256", NULL);
    if (payload != NULL)
        sig->payload = *payload;
    return code;
}

/* ---- In the query ---- */

enum parameter {
    ALGORITHM,
    CREDENTIAL,
    DATE,
    EXPIRES,
    SIGNED_NAMES,
    SIGNATURE,
    PAYLOAD,
    N_PARAMETERS
};

static const char *const parameter_names[] = {
    [ALGORITHM] = "X-Amz-Algorithm",
    [CREDENTIAL] = "X-Amz-Credential",
    [DATE] = "X-Amz-Date",
    [EXPIRES] = "X-Amz-Expires",
    [SIGNED_NAMES] = "X-Amz-SignedHeaders",
    [SIGNATURE] = "X-Amz-Signature",
    [PAYLOAD] = "X-Amz-Content-Sha256",
};

/* Decodes what the query says of the signature into the signature's own memory. */
static const char *read_parameters(struct srv_sigv4 *sig, struct srv_str query,
                                   struct srv_str values[N_PARAMETERS])
{
    struct srv_str name, value;
    size_t used = 0, len;

    while (srv_query_next(&query, &name, &value)) {
        int i = 0;
        while (i < N_PARAMETERS && !equals(name, parameter_names[i]))
            i++;
        if (i == N_PARAMETERS)
            continue;
        if (values[i].base != NULL)
            return "A parameter of the signature is given twice.";
        if (!srv_uri_decode(value, true, sig->query_ + used, sizeof sig->query_ - used, &len))
            return "A parameter of the signature cannot be decoded.";
        values[i] = (struct srv_str){sig->query_ + used, len};
        used += len;
    }
    for (int i = 0; i < PAYLOAD; i++) {
        if (values[i].base == NULL)
            return "A presigned request needs X-Amz-Algorithm, X-Amz-Credential, X-Amz-Date, "
                   "X-Amz-Expires, X-Amz-SignedHeaders and X-Amz-Signature.";
    }
    return NULL;
}

/* False, too, beyond any sensible number of seconds. */
static bool read_seconds(struct srv_str text, int64_t *seconds_out)
{
    int64_t value = 0;

    *seconds_out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!srv_is_digit((unsigned char)text.base[i]))
            return false;
        value = value * 10 + (text.base[i] - '0');
        if (value > SRV_SIGV4_EXPIRES_MAX_S)
            return false;
    }
    *seconds_out = value;
    return value > 0;
}

static const char *read_query_values(struct srv_sigv4 *sig,
                                     const struct srv_str values[N_PARAMETERS])
{
    if (!equals(values[ALGORITHM], algorithm))
        return "Only X-Amz-Algorithm=AWS4-HMAC-SHA256 is understood here.";
    const char *message = read_credential(sig, values[CREDENTIAL]);
    if (message == NULL)
        message = read_signature(sig, values[SIGNATURE]);
    if (message != NULL)
        return message;
    if (!srv_iso_date_parse(values[DATE], &sig->time_s))
        return "X-Amz-Date must have the form YYYYMMDDTHHMMSSZ.";
    srv_iso_short_write(sig->time_s, sig->time);
    if (memcmp(sig->time, sig->scope.base, SRV_SIGV4_DAY_LEN) != 0)
        return "The credential is for another day than X-Amz-Date.";
    sig->signed_names = values[SIGNED_NAMES];
    sig->payload = values[PAYLOAD];
    return NULL;
}

static enum srv_s3_code read_query_form(struct srv_sigv4 *sig, const struct srv_request *req,
                                        const char **message_out)
{
    static const struct srv_str field = {"x-amz-content-sha256", 20};
    struct srv_str values[N_PARAMETERS] = {{NULL, 0}};

    sig->form = SRV_SIGV4_QUERY;
    *message_out = read_parameters(sig, req->query, values);
    if (*message_out == NULL)
        *message_out = read_query_values(sig, values);
    if (*message_out != NULL)
        return SRV_S3_AUTHORIZATION_QUERY_ERROR;
    if (!read_seconds(values[EXPIRES], &sig->expires_s)) {
        *message_out = "X-Amz-Expires must be from 1 to 604800 seconds.";
        return SRV_S3_ACCESS_DENIED;
    }
    const struct srv_str *payload = srv_request_field(req, "x-amz-content-sha256", NULL);
    if (payload != NULL && srv_sigv4_signs(sig, field))
        sig->payload = *payload;
    return SRV_S3_NONE;
}

enum srv_s3_code srv_sigv4_read(const struct srv_request *req, int64_t now_s,
                                struct srv_sigv4 *sig_out, const char **message_out)
{
    size_t n;
    const struct srv_str *authorization = srv_request_field(req, "authorization", &n);
    bool in_query = req->query.len > 0 && (srv_query_find(req->query, "X-Amz-Signature", NULL) ||
                                           srv_query_find(req->query, "X-Amz-Algorithm", NULL));

    *message_out = NULL;
    memset(sig_out, 0, offsetof(struct srv_sigv4, query_));
    if (n > 1 || (authorization != NULL && in_query)) {
        *message_out = "A request is signed once: in the Authorization field or in the query.";
        return SRV_S3_INVALID_ARGUMENT;
    }
    if (in_query)
        return read_query_form(sig_out, req, message_out);
    if (authorization == NULL || authorization->len == 0)
        return SRV_S3_NONE;
    return read_header_form(sig_out, req, *authorization, now_s, message_out);
}

enum srv_s3_code srv_sigv4_check_time(const struct srv_sigv4 *sig, int64_t now_s,
                                      const char **message_out)
{
    *message_out = NULL;
    if (sig->form == SRV_SIGV4_QUERY && now_s > sig->time_s + sig->expires_s) {
        *message_out = "Request has expired";
        return SRV_S3_ACCESS_DENIED;
    }
    if (sig->form == SRV_SIGV4_QUERY && now_s < sig->time_s - SRV_SIGV4_SKEW_S) {
        *message_out = "Request is not valid yet";
        return SRV_S3_ACCESS_DENIED;
    }
    int64_t skew = now_s > sig->time_s ? now_s - sig->time_s : sig->time_s - now_s;
    return sig->form == SRV_SIGV4_HEADER && skew > SRV_SIGV4_SKEW_S ? SRV_S3_TIME_SKEWED
                                                                    : SRV_S3_NONE;
}
