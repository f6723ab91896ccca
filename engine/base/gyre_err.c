#include "engine/base/gyre_err.h"

struct err_row {
    const char *name;
    const char *text;
    enum gyre_err_kind kind;
};

static const struct err_row rows[GYRE_ERR_COUNT] = {
#define X(name, kind, text) [GYRE_##name] = {#name, text, GYRE_KIND_##kind},
#include "engine/base/gyre_err.def"
#undef X
};

/* A number that is no error at all can only be a broken promise of the store or its caller, so it
 * is not retried. */
static const struct err_row unknown = {"UNKNOWN", "unknown error", GYRE_KIND_RESOURCE};

static const struct err_row *row_of(gyre_err err)
{
    return err >= 0 && err < GYRE_ERR_COUNT ? &rows[err] : &unknown;
}

const char *gyre_err_text(gyre_err err)
{
    return row_of(err)->text;
}

const char *gyre_err_name(gyre_err err)
{
    return row_of(err)->name;
}

enum gyre_err_kind gyre_err_kind(gyre_err err)
{
    return row_of(err)->kind;
}
