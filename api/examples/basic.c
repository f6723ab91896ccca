/* The whole life of an object: open a store, put, get, copy out, delete.
 *
 *   basic [DIR]        DIR is made if need be; ./basic-store without one
 */
#include <gyre.h>

#include <stdio.h>
#include <string.h>

/* Says what went wrong and passes the error on. */
static gyre_err said(const char *what, gyre_err err)
{
    if (err != GYRE_OK)
        fprintf(stderr, "%s: %s\n", what, gyre_err_text(err));
    return err;
}

static gyre_err open_store(const char *path, struct gyre_store **store_out)
{
    struct gyre_data_dir dir = {.path = path};
    struct gyre_options options;
    char message[512];

    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    gyre_err err = gyre_open(&options, store_out, message, sizeof message);
    if (err != GYRE_OK)
        fprintf(stderr, "%s\n", message);
    return err;
}

static gyre_err put_get_delete(struct gyre_store *store)
{
    static const char body[] = "Hello, log.";
    struct gyre_key key = gyre_key_of_bytes("greeting", 8);
    struct gyre_put_options put;
    struct gyre_handle *handle;
    char copy[sizeof body];
    size_t copied;

    gyre_put_options_init(&put);
    put.meta = "text/plain";
    put.meta_len = 10;
    gyre_err err = said("put", gyre_put(store, &key, &put, body, sizeof body, NULL));
    if (err != GYRE_OK)
        return err;

    /* The handle lends the bytes; until it is released they stay, even if the object is deleted. */
    err = said("get", gyre_get(store, &key, 0, 0, &handle));
    if (err != GYRE_OK)
        return err;
    err = said("delete", gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    if (err == GYRE_OK)
        err = said("copy", gyre_copy(handle, 0, copy, sizeof copy, 0, &copied));
    if (err == GYRE_OK && (copied != sizeof body || memcmp(copy, body, copied) != 0))
        err = said("compare", GYRE_DAMAGED);
    if (err == GYRE_OK)
        printf("%zu bytes, serial %llu: %s\n", copied,
               (unsigned long long)gyre_handle_info(handle)->serial, copy);
    gyre_release(handle);
    if (err != GYRE_OK)
        return err;

    err = gyre_get(store, &key, 0, 0, &handle);
    return err == GYRE_NOT_FOUND ? GYRE_OK
                                 : said("get after delete", err == GYRE_OK ? GYRE_EXISTS : err);
}

int main(int argc, char **argv)
{
    struct gyre_store *store;
    if (open_store(argc > 1 ? argv[1] : "basic-store", &store) != GYRE_OK)
        return 1;
    gyre_err err = put_get_delete(store);
    gyre_err closed = said("close", gyre_close(&store, 1000));
    return err == GYRE_OK && closed == GYRE_OK ? 0 : 1;
}
