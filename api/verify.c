/* The door to the engine's scrub. */
#include "engine/scrub.h"

#include "api/store.h"

void gyre_verify_init(struct gyre_verify_options *options)
{
    *options = (struct gyre_verify_options){.struct_size = sizeof *options};
}

static void say(void *data, const char *line)
{
    const struct gyre_verify_options *options = data;
    options->report(options->data, line);
}

static void show(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct gyre_verify_options *options = data;
    options->progress(options->data, "verifying", done_bytes, total_bytes);
}

gyre_err gyre_verify(struct gyre_store *store, const struct gyre_verify_options *options,
                     struct gyre_verify_report *report_out)
{
    if (options == NULL || options->struct_size != sizeof *options || report_out == NULL ||
        report_out->struct_size != sizeof *report_out)
        return GYRE_INVALID;
    *report_out = (struct gyre_verify_report){.struct_size = sizeof *report_out};
    uint32_t shard;
    gyre_err err = api_enter_looking(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_scrub_report found;
    const struct eng_scrub how = {.say = options->report != NULL ? say : NULL,
                                  .progress = options->progress != NULL ? show : NULL,
                                  .data = (void *)(uintptr_t)options,
                                  .bytes_per_second = options->bytes_per_second};
    err = eng_scrub(store->engine, &how, &found);
    report_out->documents = found.documents;
    report_out->documents_bad = found.documents_bad;
    report_out->unreadable = found.unreadable;
    report_out->gone = found.gone;
    report_out->bytes = found.bytes;
    api_leave(store, shard);
    return err;
}
