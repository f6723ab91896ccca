/* Errors have a text and a kind each, and a number out of nowhere is not looked up. */
#include "engine/base/gyre_err.h"

#include <limits.h>

#include "tests/harness/test.h"

TEST(success_is_zero)
{
    CHECK_EQ_INT(GYRE_OK, 0);
    CHECK_EQ_STR(gyre_err_name(GYRE_OK), "OK");
}

TEST(every_error_has_name_text_and_kind)
{
    for (gyre_err err = 0; err < GYRE_ERR_COUNT; err++) {
        CHECK(strlen(gyre_err_name(err)) > 0);
        CHECK(strlen(gyre_err_text(err)) > 0);
        CHECK(gyre_err_kind(err) <= GYRE_KIND_MEDIUM);
        for (gyre_err other = 0; other < err; other++)
            CHECK(strcmp(gyre_err_name(err), gyre_err_name(other)) != 0);
    }
    CHECK_EQ_INT(gyre_err_kind(GYRE_NOT_FOUND), GYRE_KIND_EXPECTED);
    CHECK_EQ_INT(gyre_err_kind(GYRE_BUSY), GYRE_KIND_RETRY);
    CHECK_EQ_INT(gyre_err_kind(GYRE_INVALID), GYRE_KIND_CALLER);
    CHECK_EQ_INT(gyre_err_kind(GYRE_DISK_FULL), GYRE_KIND_RESOURCE);
    CHECK_EQ_INT(gyre_err_kind(GYRE_DAMAGED), GYRE_KIND_MEDIUM);
}

TEST(unknown_numbers_are_named_so)
{
    const gyre_err strange[] = {-1, GYRE_ERR_COUNT, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        CHECK_EQ_STR(gyre_err_text(strange[i]), "unknown error");
        CHECK_EQ_STR(gyre_err_name(strange[i]), "UNKNOWN");
    }
}
