#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/snapshot.h"

/* The status document: the numbers of /metrics as they are, with names and places around them. */

static json_t *numbers(const struct srv_number *rows, size_t n)
{
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, rows[i].name, json_integer((json_int_t)rows[i].value));
    return object;
}

static json_t *listeners(const struct srv_front *front)
{
    json_t *array = json_array();
    struct srv_listener_view view;
    for (size_t i = 0; srv_front_listener(front, i, &view); i++)
        json_array_append_new(array, json_pack("{s:s, s:s, s:b, s:I}", "address", view.name, "role",
                                               view.role, "tls", (int)view.is_tls, "sockets",
                                               (json_int_t)view.n_sockets));
    return array;
}

static json_t *files(struct gyre_store *store)
{
    json_t *array = json_array();
    struct gyre_file file;
    for (size_t i = 0; store != NULL && gyre_file_at(store, i, &file) == GYRE_OK; i++)
        json_array_append_new(array, json_pack("{s:s, s:I}", "path", file.path, "size_bytes",
                                               (json_int_t)file.size_bytes));
    return array;
}

static json_t *pools(const struct srv_snapshot *snapshot)
{
    json_t *object = json_object();
    struct srv_number rows[SRV_NUMBERS_MAX];
    for (size_t i = 0; i < snapshot->n_pools; i++) {
        size_t n = srv_snapshot_pool_numbers(&snapshot->pools[i], rows, SRV_NUMBERS_MAX);
        json_object_set_new(object, snapshot->pools[i].name, numbers(rows, n));
    }
    return object;
}

char *srv_status_text(const struct srv_snapshot *snapshot, size_t *len_out)
{
    struct srv_number rows[SRV_NUMBERS_MAX];
    json_t *root = json_object();
    json_object_set_new(root, "version", json_string(gyre_version()));
    json_object_set_new(root, "pid", json_integer(getpid()));
    json_object_set_new(root, "state", json_string(snapshot->state));
    json_object_set_new(root, "listeners", listeners(snapshot->front));
    json_object_set_new(root, "numbers",
                        numbers(rows, srv_snapshot_numbers(snapshot, rows, SRV_NUMBERS_MAX)));
    json_object_set_new(root, "files", files(snapshot->store_handle));
    json_object_set_new(root, "store",
                        numbers(rows, srv_snapshot_store_numbers(snapshot, rows, SRV_NUMBERS_MAX)));
    json_object_set_new(root, "pools", pools(snapshot));
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    *len_out = text == NULL ? 0 : strlen(text);
    return text;
}
