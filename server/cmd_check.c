#include "server/commands.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "server/options.h"
#include "server/quantity.h"

enum { FINDINGS_MAX = 1000 };

/* Collects what gyre_check has to say: at once for people, at the end as JSON. */
struct findings {
    json_t *lines; /* NULL: print them */
    uint64_t count;
};

static void on_finding(void *data, const char *line)
{
    struct findings *findings = data;
    findings->count++;
    if (findings->lines == NULL)
        printf("%s\n", line);
    else if (findings->count <= FINDINGS_MAX)
        json_array_append_new(findings->lines, json_string(line));
}

static void print_text(const struct gyre_check_report *report, bool bodies, bool sound)
{
    char live[SRV_SIZE_TEXT_MAX];
    srv_size_write(report->live_bytes, live);
    printf("%" PRIu64 " objects, buckets among them, in %" PRIu64 " documents, %s%s\n",
           report->objects, report->documents, report->live_bytes == 0 ? "no bytes" : live,
           bodies ? ", all checksums verified" : "");
    if (report->documents_bad != 0)
        printf("%" PRIu64 " documents are damaged and read as absent\n", report->documents_bad);
    if (report->objects_incomplete != 0)
        printf("%" PRIu64 " objects lost a part to eviction and read as absent\n",
               report->objects_incomplete);
    if (report->violations != 0)
        printf("%" PRIu64 " rules of the index are broken: start once with --reset\n",
               report->violations);
    printf("%s\n", sound ? "sound" : "NOT sound");
}

static void print_json(const struct gyre_check_report *report, const struct findings *findings,
                       bool sound)
{
    json_t *root =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "sound", (int)sound, "documents",
                  (json_int_t)report->documents, "documents_bad", (json_int_t)report->documents_bad,
                  "objects", (json_int_t)report->objects, "objects_incomplete",
                  (json_int_t)report->objects_incomplete, "live_bytes",
                  (json_int_t)report->live_bytes, "violations", (json_int_t)report->violations,
                  "findings_count", (json_int_t)findings->count, "findings", findings->lines);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

int srv_command_check(const struct srv_options *options)
{
    struct gyre_check_report report = {.struct_size = sizeof(report)};
    struct findings findings = {0};
    struct gyre_store *store = srv_store_open(options, GYRE_OPEN_EXISTING);
    int status = 1;
    if (store == NULL)
        return status;
    if (options->json)
        findings.lines = json_array();
    gyre_err err = gyre_check(store, options->bodies, on_finding, &findings, &report);
    if (err != GYRE_OK && err != GYRE_DAMAGED) {
        fprintf(stderr, "gyre: %s: %s\n", options->data[0].path, gyre_err_text(err));
        goto out;
    }
    if (options->json)
        print_json(&report, &findings, err == GYRE_OK);
    else
        print_text(&report, options->bodies, err == GYRE_OK);
    status = err == GYRE_OK ? 0 : 1;
out:
    json_decref(findings.lines);
    return srv_store_end(options, &store, status);
}
