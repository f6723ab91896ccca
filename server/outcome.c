#include "server/outcome.h"

const char *srv_result_name(enum srv_result result)
{
    static const char *const names[] = {
#define X(name, text) text,
#include "server/outcome.def"
#undef X
    };
    return result < SRV_N_RESULTS ? names[result] : "unknown";
}
