/* What a store consists of and what happened in it: files, capacity, counters, soundness.
 *
 *   stat [DIR]
 */
#include <gyre.h>

#include <inttypes.h>
#include <stdio.h>

static void print_line(void *data, const char *line)
{
    fprintf((FILE *)data, "check: %s\n", line);
}

static gyre_err print_all(struct gyre_store *store)
{
    struct gyre_file file;
    for (size_t i = 0; gyre_file_at(store, i, &file) == GYRE_OK; i++)
        printf("%-24s %12" PRIu64 " bytes\n", file.path, file.size_bytes);
    printf("room for %" PRIu64 " bytes, longest object %" PRIu64 "\n", gyre_capacity_bytes(store),
           gyre_object_max_bytes(store));

    struct gyre_stats stats;
    stats.struct_size = sizeof stats;
    gyre_err err = gyre_stat(store, &stats);
    if (err != GYRE_OK)
        return err;
#define X(name, unit, text) printf("%-20s %12" PRIu64 "  %s\n", #name, stats.name, text);
#include <gyre_stats.def>
#undef X

    struct gyre_check_report report;
    report.struct_size = sizeof report;
    err = gyre_check(store, true, print_line, stdout, &report);
    printf("%" PRIu64 " objects whole, %" PRIu64 " broken rules\n", report.objects,
           report.violations);
    return err;
}

int main(int argc, char **argv)
{
    struct gyre_data_dir dir = {.path = argc > 1 ? argv[1] : "stat-store"};
    struct gyre_options options;
    struct gyre_store *store;
    char message[512];
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    if (gyre_open(&options, &store, message, sizeof message) != GYRE_OK) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    struct gyre_key key = gyre_key_of_url("/index.html", "example.org");
    gyre_err err = gyre_put(store, &key, NULL, "<!doctype html>", 15, NULL);
    if (err == GYRE_OK)
        err = print_all(store);
    gyre_err closed = gyre_close(&store, 1000);
    return err == GYRE_OK && closed == GYRE_OK ? 0 : 1;
}
