#include "server/options_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/nearest.h"
#include "server/options_set.h"
#include "server/s3/name.h"

enum { FILE_MAX_BYTES = 1 << 20, WHERE_MAX = 400 };

/* One reading of one file. */
struct reader {
    struct srv_options *options;
    const char *path;
    char *text;
    size_t len;
    char *error_out;
    char where[WHERE_MAX];
};

static bool read_text(struct reader *r)
{
    FILE *file = fopen(r->path, "rb");
    if (file == NULL)
        return srv_option_error(r->error_out, r->path, "cannot be read: %s", strerror(errno));
    bool ok = false;
    r->text = malloc(FILE_MAX_BYTES + 1);
    if (r->text == NULL) {
        srv_option_error(r->error_out, r->path, "out of memory");
        goto out;
    }
    r->len = fread(r->text, 1, FILE_MAX_BYTES, file);
    if (ferror(file)) {
        srv_option_error(r->error_out, r->path, "cannot be read: %s", strerror(errno));
        goto out;
    }
    if (r->len == FILE_MAX_BYTES) {
        srv_option_error(r->error_out, r->path, "longer than a configuration can be (1 MiB)");
        goto out;
    }
    r->text[r->len] = '\0';
    ok = true;
out:
    fclose(file);
    return ok;
}

/* The line on which `key` first stands as a key; 1 when it is written in a way (escapes) that is
 * not found. JSON values keep no place of their own. */
static unsigned line_of(const struct reader *r, const char *key)
{
    unsigned line = 1;
    size_t key_len = strlen(key);
    for (const char *at = r->text; *at != '\0'; at++) {
        line += *at == '\n';
        if (*at != '"' || strncmp(at + 1, key, key_len) != 0 || at[1 + key_len] != '"')
            continue;
        const char *after = at + key_len + 2;
        if (after[strspn(after, " \t\r\n")] == ':')
            return line;
    }
    return 1;
}

/* Sets where to "path:line: key", with `inner` after it if there is one. */
static void set_where(struct reader *r, const char *key, const char *inner)
{
    unsigned line = line_of(r, inner != NULL ? inner : key);
    snprintf(r->where, sizeof(r->where), "%s:%u: %s%s%s", r->path, line, key,
             inner != NULL ? "." : "", inner != NULL ? inner : "");
}

/* A scalar as the text that the command line would have; NULL for anything else. */
static const char *scalar_text(const json_t *value, char buffer[32])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_integer(value))
        return NULL;
    snprintf(buffer, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return buffer;
}

static bool set_scalar(struct reader *r, const struct srv_option *option, const json_t *value)
{
    char buffer[32];
    const char *text = scalar_text(value, buffer);
    bool is_flag = option->kind == SRV_OPTION_FLAG;
    if (text == NULL || is_flag != json_is_boolean(value))
        return srv_option_error(r->error_out, r->where,
                                is_flag ? "give true or false" : "give a string or a whole number");
    return srv_option_set(r->options, option, text, r->where, r->error_out);
}

static bool set_member(struct reader *r, const char *key, const json_t *value)
{
    set_where(r, key, NULL);
    const struct srv_option *option = srv_option_find(key, SRV_IN_FILE);
    if (option == NULL && srv_option_find(key, ~0u) != NULL)
        return srv_option_error(r->error_out, r->where,
                                "this option is for the command line only: --%s", key);
    if (option == NULL) {
        const char *near = srv_option_nearest(key, SRV_IN_FILE);
        const char *buckets = "buckets";
        if (srv_nearest(key, &buckets, 1) != NULL &&
            (near == NULL || srv_edit_distance(key, buckets) < srv_edit_distance(key, near)))
            near = buckets;
        return srv_option_error(r->error_out, r->where, "unknown key%s%s%s",
                                near ? ": did you mean \"" : "; gyre serve --help lists all",
                                near ? near : "", near ? "\"?" : "");
    }
    bool is_list = option->kind == SRV_OPTION_LISTEN || option->kind == SRV_OPTION_DATA;
    if (!json_is_array(value) || !is_list)
        return set_scalar(r, option, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!set_scalar(r, option, json_array_get(value, i)))
            return false;
    return true;
}

/* One member of "buckets": {"etag": KIND}. */
static bool set_bucket(struct reader *r, const char *name, const json_t *value,
                       struct srv_s3_bucket_etag *bucket_out)
{
    set_where(r, "buckets", name);
    if (!srv_s3_bucket_valid((struct srv_str){name, strlen(name)}))
        return srv_option_error(r->error_out, r->where,
                                "this is no bucket's name: 3 to 63 of a-z, 0-9, '.' and '-'");
    const char *key;
    const json_t *member;
    uint64_t etag = r->options->etag;
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        if (strcmp(key, "etag") != 0)
            return srv_option_error(r->error_out, r->where,
                                    "unknown key \"%s\": did you mean \"etag\"?", key);
        if (!json_is_string(member))
            return srv_option_error(r->error_out, r->where, "etag: give \"md5\" or \"opaque\"");
        if (!srv_option_etag(json_string_value(member), r->where, &etag, r->error_out))
            return false;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return srv_option_error(r->error_out, r->where, "out of memory");
    *bucket_out = (struct srv_s3_bucket_etag){copy, (enum srv_s3_etag)etag};
    return true;
}

static bool set_buckets(struct reader *r, const json_t *value)
{
    const char *name;
    json_t *member;
    set_where(r, "buckets", NULL);
    if (!json_is_object(value))
        return srv_option_error(r->error_out, r->where,
                                "give an object such as {\"name\": {\"etag\": \"opaque\"}}");
    r->options->buckets = calloc(json_object_size(value) + 1, sizeof(r->options->buckets[0]));
    if (r->options->buckets == NULL)
        return srv_option_error(r->error_out, r->where, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        if (!json_is_object(member)) {
            set_where(r, "buckets", name);
            return srv_option_error(r->error_out, r->where,
                                    "give an object such as {\"etag\": \"opaque\"}");
        }
        if (!set_bucket(r, name, member, &r->options->buckets[r->options->n_buckets]))
            return false;
        r->options->n_buckets++;
    }
    return true;
}

bool srv_options_file_read(struct srv_options *options, const char *path,
                           char error_out[SRV_OPTIONS_ERROR_MAX])
{
    struct reader reader = {.options = options, .path = path, .error_out = error_out};
    json_t *root = NULL;
    json_error_t error;
    const char *key;
    json_t *value;
    bool ok = false;
    if (!read_text(&reader))
        goto out;
    root = json_loadb(reader.text, reader.len, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        snprintf(reader.where, sizeof(reader.where), "%s: line %d, column %d", path, error.line,
                 error.column);
        srv_option_error(error_out, reader.where, "not JSON: %s", error.text);
        goto out;
    }
    if (!json_is_object(root)) {
        srv_option_error(
            error_out, path,
            "the file must hold one JSON object, such as {\"listen\": \"127.0.0.1:9000\"}");
        goto out;
    }
    json_object_foreach(root, key, value) if (strcmp(key, "buckets") != 0 &&
                                              !set_member(&reader, key, value)) goto out;
    /* Last, because a bucket without a kind of its own takes the server's. */
    value = json_object_get(root, "buckets");
    ok = value == NULL || set_buckets(&reader, value);
out:
    json_decref(root);
    free(reader.text);
    return ok;
}
