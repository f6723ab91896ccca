/* The least a user of libgyre writes; compiled as C17 and as C++17 against the installed files
 * alone. */
#include <gyre.h>

#include <stdio.h>
#include <string.h>

static gyre_err put_and_get(struct gyre_store *store)
{
    struct gyre_key key = gyre_key_of_bytes("a key", 5);
    struct gyre_put_options put;
    struct gyre_handle *handle = NULL;
    char copy[16];
    size_t copied = 0;
    gyre_err err;

    gyre_put_options_init(&put);
    err = gyre_put(store, &key, &put, "a value", 7, NULL);
    if (err == GYRE_OK) {
        err = gyre_get(store, &key, 0, 0, &handle);
    }
    if (err == GYRE_OK) {
        err = gyre_copy(handle, 0, copy, sizeof copy, 0, &copied);
    }
    if (err == GYRE_OK && (copied != 7 || memcmp(copy, "a value", 7) != 0)) {
        err = GYRE_DAMAGED;
    }
    gyre_release(handle);
    return err;
}

int main(int argc, char **argv)
{
    struct gyre_data_dir dir;
    struct gyre_options options;
    struct gyre_store *store = NULL;
    char message[256] = "";
    gyre_err err;

    if (argc != 2) {
        fprintf(stderr, "usage: consumer DIR\n");
        return 2;
    }
    memset(&dir, 0, sizeof dir);
    dir.path = argv[1];
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    err = gyre_open(&options, &store, message, sizeof message);
    if (err == GYRE_OK) {
        err = put_and_get(store);
    }
    if (err == GYRE_OK) {
        err = gyre_close(&store, 1000);
    }
    printf("libgyre %s: %s %s\n", gyre_version(), gyre_err_text(err), message);
    return err == GYRE_OK ? 0 : 1;
}
