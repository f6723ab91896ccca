/* Writing only if nobody else has: create once, then update what was read (compare and swap by
 * serial).
 *
 *   conditional [DIR]
 */
#include <gyre.h>

#include <stdio.h>
#include <stdlib.h>

/* Adds one to a decimal number kept under `key`. Others may do the same at the same time: whoever
 * is overtaken reads again. */
static gyre_err increment(struct gyre_store *store, const struct gyre_key *key)
{
    for (;;) {
        struct gyre_handle *handle;
        char digits[24] = "";
        size_t len;
        gyre_err err = gyre_get(store, key, 0, 0, &handle);
        if (err != GYRE_OK)
            return err;
        struct gyre_put_options put;
        gyre_put_options_init(&put);
        put.condition = GYRE_IF_SERIAL;
        put.if_serial = gyre_handle_info(handle)->serial;
        err = gyre_copy(handle, 0, digits, sizeof digits - 1, 0, &len);
        gyre_release(handle);
        if (err != GYRE_OK)
            return err;
        int n = snprintf(digits, sizeof digits, "%ld", strtol(digits, NULL, 10) + 1);
        err = gyre_put(store, key, &put, digits, (size_t)n, NULL);
        if (err != GYRE_CHANGED)
            return err;
    }
}

static gyre_err run(struct gyre_store *store)
{
    struct gyre_key key = gyre_key_of_bytes("counter", 7);
    struct gyre_put_options put;
    struct gyre_handle *handle;
    gyre_put_options_init(&put);
    put.condition = GYRE_IF_ABSENT;
    gyre_err err = gyre_put(store, &key, &put, "0", 1, NULL);
    if (err != GYRE_OK && err != GYRE_EXISTS)
        return err;
    err = gyre_put(store, &key, &put, "0", 1, NULL);
    if (err != GYRE_EXISTS) /* the second of two creators is told so */
        return GYRE_STATE;
    for (int i = 0; i < 3; i++) {
        err = increment(store, &key);
        if (err != GYRE_OK)
            return err;
    }
    err = gyre_get(store, &key, 0, 0, &handle);
    if (err != GYRE_OK)
        return err;
    uint64_t serial = gyre_handle_info(handle)->serial;
    gyre_release(handle);
    err = gyre_delete(store, &key, GYRE_IF_SERIAL, serial + 1, 0);
    if (err != GYRE_CHANGED) /* somebody else's serial removes nothing */
        return GYRE_STATE;
    return gyre_delete(store, &key, GYRE_IF_SERIAL, serial, 0);
}

int main(int argc, char **argv)
{
    struct gyre_data_dir dir = {.path = argc > 1 ? argv[1] : "conditional-store"};
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
    gyre_err err = run(store);
    printf("conditional: %s\n", gyre_err_text(err));
    gyre_err closed = gyre_close(&store, 1000);
    return err == GYRE_OK && closed == GYRE_OK ? 0 : 1;
}
