/* The errors of the engine and of libgyre, made from the one list in gyre_err.def; part of the
 * installed interface.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GYRE_API __attribute__((visibility("default")))
#define GYRE_MUST_USE __attribute__((warn_unused_result))
#else
#define GYRE_API
#define GYRE_MUST_USE
#endif

typedef int gyre_err;

enum {
#define X(name, kind, text) GYRE_##name,
#include "gyre_err.def"
#undef X
    GYRE_ERR_COUNT
};

enum gyre_err_kind {
    GYRE_KIND_EXPECTED, /* an ordinary answer */
    GYRE_KIND_RETRY,    /* try again later */
    GYRE_KIND_CALLER,   /* a mistake of the caller */
    GYRE_KIND_RESOURCE, /* something is used up or unavailable */
    GYRE_KIND_MEDIUM,   /* the disk does not hold what was written */
};

/* One sentence on the error, static. Unknown values give "unknown error". */
GYRE_API const char *gyre_err_text(gyre_err err);
/* Its name without prefix ("NOT_FOUND"), static. */
GYRE_API const char *gyre_err_name(gyre_err err);
GYRE_API enum gyre_err_kind gyre_err_kind(gyre_err err);

#ifdef __cplusplus
}
#endif
