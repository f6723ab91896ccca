#include "server/commands.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "server/options.h"
#include "server/quantity.h"

enum unit { BYTES, GAUGE, COUNTER, COUNTER_BYTES };

static const struct {
    const char *name;
    const char *text;
    enum unit unit;
    size_t field;
} rows[] = {
#define X(name, unit, text) {#name, text, unit, offsetof(struct gyre_stats, name)},
#include "api/gyre_stats.def"
#undef X
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static uint64_t value_of(const struct gyre_stats *stats, size_t row)
{
    return *(const uint64_t *)(const void *)((const char *)stats + rows[row].field);
}

/* Of 0 to 1; below 0 where nothing was counted yet. */
static double ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? -1 : (double)part / (double)whole;
}

static double hit_ratio(const struct gyre_stats *stats)
{
    return ratio(stats->hits, stats->hits + stats->misses);
}

static void print_percent(double value, const char *text)
{
    char number[32] = "-";
    if (value >= 0)
        snprintf(number, sizeof(number), "%.1f %%", value * 100);
    printf("%-22s %s\n", number, text);
}

/* Counters are of all processes since the state that they share was made: by whoever opened the
 * store first after it was closed in order, or after the machine was started. Where nobody has used
 * it since, they are of this look alone and say nothing. */
static void print_row(const struct gyre_stats *stats, size_t row, bool in_use)
{
    char size[SRV_SIZE_TEXT_MAX];
    bool counts = rows[row].unit == COUNTER || rows[row].unit == COUNTER_BYTES;
    if (counts && !in_use)
        return;
    srv_size_write(value_of(stats, row), size);
    if (rows[row].unit == BYTES || rows[row].unit == COUNTER_BYTES)
        printf("%-22s %s\n", size, rows[row].text);
    else
        printf("%-22" PRIu64 " %s\n", value_of(stats, row), rows[row].text);
}

static void print_text(struct gyre_store *store, const struct gyre_stats *stats)
{
    char size[SRV_SIZE_TEXT_MAX];
    struct gyre_file file;
    bool in_use = stats->hits + stats->misses + stats->puts > 0;
    for (size_t i = 0; gyre_file_at(store, i, &file) == GYRE_OK; i++) {
        srv_size_write(file.size_bytes, size);
        printf("%-22s %s\n", size, file.path);
    }
    print_percent(ratio(stats->live_bytes, stats->capacity_bytes), "of the room is filled");
    if (in_use)
        print_percent(hit_ratio(stats), "of the gets found their object");
    for (size_t i = 0; i < N_ROWS; i++)
        print_row(stats, i, in_use);
    if (gyre_object_max_bytes(store) == 0)
        return;
    srv_size_write(gyre_object_max_bytes(store), size);
    printf("%-22s longest single object\n", size);
}

static void set_ratio(json_t *root, const char *name, double value)
{
    json_object_set_new(root, name, value < 0 ? json_null() : json_real(value));
}

static bool print_json(struct gyre_store *store, const struct gyre_stats *stats)
{
    json_t *root = json_object();
    json_t *files = json_array();
    struct gyre_file file;
    for (size_t i = 0; gyre_file_at(store, i, &file) == GYRE_OK; i++)
        json_array_append_new(files, json_pack("{s:s, s:I}", "path", file.path, "size_bytes",
                                               (json_int_t)file.size_bytes));
    json_object_set_new(root, "version", json_string(gyre_version()));
    json_object_set_new(root, "files", files);
    for (size_t i = 0; i < N_ROWS; i++)
        json_object_set_new(root, rows[i].name, json_integer((json_int_t)value_of(stats, i)));
    set_ratio(root, "fill", ratio(stats->live_bytes, stats->capacity_bytes));
    set_ratio(root, "hit_ratio", hit_ratio(stats));
    json_object_set_new(root, "object_max_bytes",
                        json_integer((json_int_t)gyre_object_max_bytes(store)));
    bool ok = json_dumpf(root, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
    json_decref(root);
    return ok;
}

int srv_command_stat(const struct srv_options *options)
{
    struct gyre_stats stats = {.struct_size = sizeof(stats)};
    struct gyre_store *store = srv_store_open_to_look(options);
    int status = 1;
    if (store == NULL)
        return status;
    gyre_err err = gyre_stat(store, &stats);
    if (err != GYRE_OK) {
        fprintf(stderr, "gyre: %s: %s\n", options->data[0].path, gyre_err_text(err));
        goto out;
    }
    bool ok = true;
    if (options->json)
        ok = print_json(store, &stats);
    else
        print_text(store, &stats);
    status = ok ? 0 : 1;
    if (!ok && !ferror(stdout))
        fprintf(stderr, "gyre: out of memory\n");
out:
    return srv_store_end(options, &store, status);
}
