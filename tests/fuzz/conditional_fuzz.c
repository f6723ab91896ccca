/* Any bytes as conditional and range fields of a request: the decisions are among those there are,
 * agree with each other, and stay inside the object. */
#include <stdlib.h>
#include <string.h>

#include "server/conditional.h"
#include "server/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static void check_range(const struct srv_str *value, uint64_t length)
{
    char text[SRV_CONTENT_RANGE_MAX];
    struct srv_range range = srv_range_decide(value, length);
    if (range.kind == SRV_RANGE_PART)
        require(range.first <= range.last && range.last < length);
    if (range.kind != SRV_RANGE_WHOLE)
        require(srv_range_write(&range, length, text) < sizeof text);
}

/* Each line of the input is the value of the next field. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"if-match",          "if-none-match",
                                        "if-modified-since", "if-unmodified-since",
                                        "if-range",          "range"};
    enum { N = sizeof names / sizeof names[0] };
    struct srv_field fields[N];
    struct srv_request req = {.method = SRV_GET, .fields = fields};
    const char *condition = NULL, *at = (const char *)data, *end = at + size;
    for (size_t i = 0; i < N && at < end; i++) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((line != NULL ? line : end) - at);
        if (len > 0)
            fields[req.n_fields++] = (struct srv_field){{names[i], strlen(names[i])}, {at, len}};
        at = line != NULL ? line + 1 : end;
    }
    const struct srv_validators stored = {{"abc", 3}, 1600000000};
    for (int method = 0; method < 2; method++) {
        req.method = method == 0 ? SRV_GET : SRV_PUT;
        enum srv_verdict verdict = srv_conditional_decide(&req, &stored, 1700000000, &condition);
        require(verdict == SRV_VERDICT_PROCEED || verdict == SRV_VERDICT_NOT_MODIFIED ||
                verdict == SRV_VERDICT_FAILED || verdict == SRV_VERDICT_MISSING);
        require(method == 0 || verdict != SRV_VERDICT_NOT_MODIFIED);
    }
    req.method = SRV_GET;
    const struct srv_str *range = srv_conditional_range(&req, &stored, 1700000000);
    for (uint64_t length = 0; length < 3; length++)
        check_range(range, length == 2 ? UINT64_MAX - 1 : length);
    check_range(range, 1000);
    return 0;
}
