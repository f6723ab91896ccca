/* Programs built against this version's library go on working with it. */
#include "api/gyre.h"
#include "api/gyre_async.h"
#include "api/gyre_miss.h"
#include "api/gyre_pool.h"
#include "api/gyre_send.h"
#include "api/gyre_upload.h"
#include "api/gyre_vector.h"
#include "api/gyre_verify.h"
#include "tests/harness/test.h"

/* A change here is one of the library's major version (of its minor one while that is 0), which
 * the shared library's name carries. */
TEST(layouts_and_constants_are_those_of_this_version)
{
    CHECK_EQ_INT(GYRE_VERSION_MAJOR, 0);
    CHECK_EQ_INT(GYRE_VERSION_MINOR, 1);
#define SIZE(type, bytes) CHECK_MSG(sizeof(struct type) == (bytes), #type);
#define FIELD(type, field, at) CHECK_MSG(offsetof(struct type, field) == (at), #type "." #field);
#define VALUE(name, value) CHECK_MSG((name) == (value), #name);
#include "tests/api/abi.def"
#undef SIZE
#undef FIELD
#undef VALUE
}
