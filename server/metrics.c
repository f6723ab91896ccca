#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/http/site.h"
#include "server/s3/s3.h"
#include "server/admin.h"
#include "server/snapshot.h"

/* Prometheus' text: every family once, with its help and type before its samples. */

static const struct srv_role *const roles[SRV_N_ROLES] = {
    [SRV_ROLE_S3] = &srv_s3_role,
    [SRV_ROLE_SITE] = &srv_site_role,
    [SRV_ROLE_ADMIN] = &srv_admin_role,
};

/* Help ends with its line; a backslash begins an escape there, and in labels the quote ends. */
static void put_escaped(FILE *out, const char *text, bool in_label)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '\\' || (in_label && *text == '"'))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_lower(FILE *out, const char *name)
{
    for (; *name != '\0'; name++)
        fputc(*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name, out);
}

static void put_family(FILE *out, const char *name, const char *suffix, const char *help,
                       const char *type)
{
    fprintf(out, "# HELP gyre_%s%s ", name, suffix);
    put_escaped(out, help, false);
    fprintf(out, "\n# TYPE gyre_%s%s %s\n", name, suffix, type);
}

static void put_numbers(FILE *out, const char *prefix, const struct srv_number *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[128];
        const char *suffix = rows[i].is_counter ? "_total" : "";
        snprintf(name, sizeof name, "%s%s", prefix, rows[i].name);
        put_family(out, name, suffix, rows[i].help, rows[i].is_counter ? "counter" : "gauge");
        fprintf(out, "gyre_%s%s %" PRIu64 "\n", name, suffix, rows[i].value);
    }
}

/* A family for each number, with a sample for each pool. */
static void put_pools(FILE *out, const struct gyre_pool_info *pools, size_t n_pools)
{
    struct srv_number rows[SRV_NUMBERS_MAX];
    size_t n = n_pools == 0 ? 0 : srv_snapshot_pool_numbers(&pools[0], rows, SRV_NUMBERS_MAX);
    for (size_t i = 0; i < n; i++) {
        char name[128];
        const char *suffix = rows[i].is_counter ? "_total" : "";
        snprintf(name, sizeof name, "pool_%s", rows[i].name);
        put_family(out, name, suffix, rows[i].help, rows[i].is_counter ? "counter" : "gauge");
        for (size_t p = 0; p < n_pools; p++) {
            srv_snapshot_pool_numbers(&pools[p], rows, SRV_NUMBERS_MAX);
            fprintf(out, "gyre_%s%s{pool=\"", name, suffix);
            put_escaped(out, pools[p].name, true);
            fprintf(out, "\"} %" PRIu64 "\n", rows[i].value);
        }
    }
}

static void put_labels(FILE *out, const struct srv_role *role, unsigned operation,
                       enum srv_result result)
{
    fputs("{role=\"", out);
    put_escaped(out, role->name, true);
    fputs("\",operation=\"", out);
    put_lower(out, operation == 0 ? "none" : role->operations[operation - 1].name);
    fprintf(out, "\",result=\"%s\"", srv_result_name(result));
}

static void put_histogram(FILE *out, const struct srv_role *role, unsigned operation,
                          enum srv_result result, const struct srv_latency_total *total)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SRV_LATENCY_BUCKETS; i++) {
        sum += total->counts[i];
        fputs("gyre_request_duration_seconds_bucket", out);
        put_labels(out, role, operation, result);
        if (i < SRV_LATENCY_BUCKETS - 1)
            fprintf(out, ",le=\"%.10g\"} %" PRIu64 "\n",
                    (double)(UINT64_C(1) << (SRV_LATENCY_SHIFT + i)) / 1e9, sum);
        else
            fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
    }
    fputs("gyre_request_duration_seconds_sum", out);
    put_labels(out, role, operation, result);
    fprintf(out, "} %.9f\ngyre_request_duration_seconds_count", (double)total->sum_ns / 1e9);
    put_labels(out, role, operation, result);
    fprintf(out, "} %" PRIu64 "\n", sum);
}

/* Only kinds of requests that have occurred, so that there are few. */
static void put_histograms(FILE *out, const struct srv_front *front)
{
    put_family(out, "request_duration_seconds", "",
               "how long requests took, from the last byte of their head to the end of the "
               "response",
               "histogram");
    for (unsigned role = 0; role < SRV_N_ROLES; role++)
        for (unsigned operation = 0; operation <= roles[role]->n_operations; operation++)
            for (unsigned result = 0; result < SRV_N_RESULTS; result++) {
                struct srv_latency_total total;
                uint64_t n = 0;
                unsigned kind =
                    srv_latency_kind((enum srv_role_id)role, operation, (enum srv_result)result);
                srv_front_latency(front, kind, &total);
                for (unsigned i = 0; i < SRV_LATENCY_BUCKETS; i++)
                    n += total.counts[i];
                if (n > 0)
                    put_histogram(out, roles[role], operation, (enum srv_result)result, &total);
            }
}

char *srv_metrics_text(const struct srv_snapshot *snapshot, size_t *len_out)
{
    struct srv_number rows[SRV_NUMBERS_MAX];
    char *text = NULL;
    FILE *out = open_memstream(&text, len_out);
    if (out == NULL)
        return NULL;
    put_family(out, "build_info", "", "which version this is", "gauge");
    fprintf(out, "gyre_build_info{version=\"%s\"} 1\n", gyre_version());
    put_numbers(out, "", rows, srv_snapshot_numbers(snapshot, rows, SRV_NUMBERS_MAX));
    if (snapshot->store_open)
        put_numbers(out, "store_", rows,
                    srv_snapshot_store_numbers(snapshot, rows, SRV_NUMBERS_MAX));
    put_pools(out, snapshot->pools, snapshot->n_pools);
    put_histograms(out, snapshot->front);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
