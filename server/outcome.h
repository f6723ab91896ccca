/* How requests end, in few words: what the metrics and the access log tell apart.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum srv_result {
#define X(name, text) SRV_RESULT_##name,
#include "server/outcome.def"
#undef X
    SRV_N_RESULTS,
    SRV_RESULT_UNKNOWN = SRV_N_RESULTS, /* nobody has said: it follows from the status */
};

/* One kind of request that a role knows. */
struct srv_operation {
    const char *name; /* any case; shown in lower case */
    bool is_lookup;   /* can hit or miss */
};

enum { SRV_OPERATIONS_MAX = 63 };

/* What a listener's handler is, and the operations it tells apart. */
enum srv_role_id { SRV_ROLE_S3, SRV_ROLE_SITE, SRV_ROLE_ADMIN, SRV_N_ROLES };

struct srv_role {
    enum srv_role_id id;
    const char *name;
    const struct srv_operation *operations;
    unsigned n_operations; /* at most SRV_OPERATIONS_MAX */
};

const char *srv_result_name(enum srv_result result);

/* The result of an operation (NULL: unknown) that was answered with `status`, 0 without an answer;
 * `said` is what the handler said of it. */
static inline enum srv_result srv_result_of(const struct srv_operation *operation, int status,
                                            bool is_aborted, enum srv_result said)
{
    if (is_aborted || status == 0)
        return SRV_RESULT_ABORTED;
    if (said != SRV_RESULT_UNKNOWN)
        return said;
    if (status >= 500)
        return status == 503 ? SRV_RESULT_OVERLOADED : SRV_RESULT_FAILED;
    bool is_lookup = operation != NULL && operation->is_lookup;
    if (status < 400)
        return is_lookup ? SRV_RESULT_HIT : SRV_RESULT_OK;
    return is_lookup && status == 404 ? SRV_RESULT_MISS : SRV_RESULT_REFUSED;
}
