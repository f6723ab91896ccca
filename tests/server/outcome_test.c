/* From status and operation to the word that metrics and log have for it. */
#include "server/outcome.h"

#include "tests/harness/test.h"

TEST(results_follow_from_the_status)
{
    static const struct srv_operation get = {"GET", true}, put = {"PUT", false};
    static const struct {
        const struct srv_operation *operation;
        int status;
        bool is_aborted;
        enum srv_result said, want;
    } rows[] = {
        {&get, 200, false, SRV_RESULT_UNKNOWN, SRV_RESULT_HIT},
        {&get, 206, false, SRV_RESULT_UNKNOWN, SRV_RESULT_HIT},
        {&get, 304, false, SRV_RESULT_UNKNOWN, SRV_RESULT_HIT},
        {&get, 404, false, SRV_RESULT_UNKNOWN, SRV_RESULT_MISS},
        {&get, 403, false, SRV_RESULT_UNKNOWN, SRV_RESULT_REFUSED},
        {&get, 200, true, SRV_RESULT_UNKNOWN, SRV_RESULT_ABORTED},
        {&get, 200, true, SRV_RESULT_MISS, SRV_RESULT_ABORTED},
        {&get, 0, false, SRV_RESULT_UNKNOWN, SRV_RESULT_ABORTED},
        {&get, 200, false, SRV_RESULT_MISS, SRV_RESULT_MISS},
        {&put, 200, false, SRV_RESULT_UNKNOWN, SRV_RESULT_OK},
        {&put, 404, false, SRV_RESULT_UNKNOWN, SRV_RESULT_REFUSED},
        {&put, 503, false, SRV_RESULT_UNKNOWN, SRV_RESULT_OVERLOADED},
        {&put, 500, false, SRV_RESULT_UNKNOWN, SRV_RESULT_FAILED},
        {&put, 507, false, SRV_RESULT_UNKNOWN, SRV_RESULT_FAILED},
        {NULL, 200, false, SRV_RESULT_UNKNOWN, SRV_RESULT_OK},
        {NULL, 404, false, SRV_RESULT_UNKNOWN, SRV_RESULT_REFUSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ_STR(srv_result_name(srv_result_of(rows[i].operation, rows[i].status,
                                                   rows[i].is_aborted, rows[i].said)),
                     srv_result_name(rows[i].want));
    CHECK_EQ_STR(srv_result_name(SRV_RESULT_UNKNOWN), "unknown");
}
