#include "server/commands.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "server/options.h"
#include "server/progress.h"
#include "server/quantity.h"

/* Collects what gyre_verify has to say: at once for people, at the end as JSON. */
struct findings {
    json_t *lines; /* NULL: print them */
    struct srv_progress progress;
};

static void on_finding(void *data, const char *line)
{
    struct findings *findings = data;
    if (findings->lines != NULL) {
        json_array_append_new(findings->lines, json_string(line));
        return;
    }
    srv_progress_fini(&findings->progress);
    printf("%s\n", line);
}

static void on_progress(void *data, const char *what, uint64_t done, uint64_t total)
{
    srv_progress_show(&((struct findings *)data)->progress, what, done, total);
}

static void print_text(const struct gyre_verify_report *report, bool sound)
{
    char bytes[SRV_SIZE_TEXT_MAX];
    srv_size_write(report->bytes, bytes);
    printf("%" PRIu64 " documents verified, %s read\n", report->documents,
           report->bytes == 0 ? "nothing" : bytes);
    if (report->gone != 0)
        printf("%" PRIu64 " left the store meanwhile\n", report->gone);
    if (report->documents_bad != 0)
        printf("%" PRIu64 " are damaged and read as absent, %" PRIu64
               " of them for errors of the disk\n",
               report->documents_bad, report->unreadable);
    printf("%s\n", sound ? "sound" : "NOT sound");
}

static void print_json(const struct gyre_verify_report *report, json_t *lines, bool sound)
{
    json_t *root =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:O}", "sound", (int)sound, "documents",
                  (json_int_t)report->documents, "documents_bad", (json_int_t)report->documents_bad,
                  "unreadable", (json_int_t)report->unreadable, "gone", (json_int_t)report->gone,
                  "bytes_read", (json_int_t)report->bytes, "findings", lines);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

int srv_command_verify(const struct srv_options *options)
{
    struct gyre_verify_report report = {.struct_size = sizeof(report)};
    struct gyre_verify_options how;
    struct findings findings = {0};
    struct gyre_store *store = srv_store_open_to_look(options);
    int status = 1;
    if (store == NULL)
        return status;
    if (options->json)
        findings.lines = json_array();
    srv_progress_init(&findings.progress);
    gyre_verify_init(&how);
    how.bytes_per_second = options->rate;
    how.report = on_finding;
    how.progress = on_progress;
    how.data = &findings;
    gyre_err err = gyre_verify(store, &how, &report);
    srv_progress_fini(&findings.progress);
    if (err != GYRE_OK && err != GYRE_DAMAGED) {
        fprintf(stderr, "gyre: %s: %s\n", options->data[0].path, gyre_err_text(err));
        goto out;
    }
    if (options->json)
        print_json(&report, findings.lines, err == GYRE_OK);
    else
        print_text(&report, err == GYRE_OK);
    status = err == GYRE_OK ? 0 : 1;
out:
    json_decref(findings.lines);
    return srv_store_end(options, &store, status);
}
