#include "server/outcome.h"

#include <stddef.h>

const char *srv_result_name(enum srv_result result)
{
    static const char *const names[] = {
#define X(name, text) text,
#include "server/outcome.def"
#undef X
    };
    return result < SRV_N_RESULTS ? names[result] : "unknown";
}

enum srv_result srv_result_of(const struct srv_operation *operation, int status, bool is_aborted,
                              enum srv_result said)
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
