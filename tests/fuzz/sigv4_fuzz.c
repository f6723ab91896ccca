/* Any bytes as the signed parts of a request: what is read lies within the request or the
 * signature, and the canonical form of a target is a fixed point. */
#include "server/s3/sigv4.h"
#include "tests/server/fake_fields.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 18 };

static void require(bool cond)
{
    if (!cond)
        abort();
}

struct text {
    size_t len;
    char bytes[TEXT_MAX];
};

static void append(void *data, const char *bytes, size_t len)
{
    struct text *text = data;

    require(len <= sizeof text->bytes - text->len);
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

/* Cuts `rest` at its first line feed. */
static struct srv_str take_line(struct srv_str *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->base, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->base);
    size_t step = end == NULL ? len : len + 1;
    struct srv_str line = {rest->base, len};

    *rest = (struct srv_str){rest->base + step, rest->len - step};
    return line;
}

static void check_canonical(const struct srv_sigv4 *sig, struct srv_request *req)
{
    static struct text once, twice;

    once.len = twice.len = 0;
    if (!srv_sigv4_canonical(sig, req, SRV_SIGV4_ENCODED, append, &once))
        return;
    /* The method has no line feed here; path and query have none once they are encoded. */
    struct srv_str rest = {once.bytes, once.len};
    (void)take_line(&rest);
    struct srv_request again = *req;
    again.path = take_line(&rest);
    again.query = take_line(&rest);
    require(srv_sigv4_canonical(sig, &again, SRV_SIGV4_ENCODED, append, &twice));
    require(once.len == twice.len && memcmp(once.bytes, twice.bytes, once.len) == 0);
    twice.len = 0;
    require(srv_sigv4_canonical(sig, req, SRV_SIGV4_AS_SENT, append, &twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct srv_sigv4 sig;
    static const struct srv_str names[] = {{"authorization", 13},
                                           {"x-amz-date", 10},
                                           {"host", 4},
                                           {"x-amz-content-sha256", 20},
                                           {"x-amz-meta-a", 12}};
    struct srv_field fields[5];
    const char *message;
    size_t n = 0;

    if (size > 4096)
        return 0;
    struct srv_str rest = {(const char *)data, size};
    struct srv_request req = {.method_name = {"GET", 3}, .fields = fields};
    req.path = take_line(&rest);
    req.query = take_line(&rest);
    while (rest.len > 0 && n < 5) {
        fields[n] = (struct srv_field){names[n], take_line(&rest)};
        n++;
    }
    req.n_fields = n;
    if (srv_sigv4_read(&req, 1369353600, &sig, &message) != SRV_S3_NONE ||
        sig.form == SRV_SIGV4_NONE)
        return 0;
    require(sig.access_key.len > 0 && sig.scope.len > 0 && strlen(sig.time) == SRV_SIGV4_TIME_LEN);
    (void)srv_sigv4_unsigned_field(&sig, &req);
    check_canonical(&sig, &req);
    return 0;
}
