/* The door to the engine's checker. */
#include "engine/check.h"

#include "api/store.h"

gyre_err gyre_check(struct gyre_store *store, bool bodies,
                    void (*report)(void *data, const char *line), void *data,
                    struct gyre_check_report *report_out)
{
    if (report_out == NULL || report_out->struct_size != sizeof *report_out)
        return GYRE_INVALID;
    *report_out = (struct gyre_check_report){.struct_size = sizeof *report_out};
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_check_report found;
    err = eng_check(store->engine, bodies, report, data, &found);
    report_out->documents = found.documents;
    report_out->documents_bad = found.documents_bad;
    report_out->objects = found.objects;
    report_out->objects_incomplete = found.objects_incomplete;
    report_out->live_bytes = found.live_bytes;
    report_out->violations = found.violations;
    api_leave(store, shard);
    return err;
}
