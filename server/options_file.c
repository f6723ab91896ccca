#include "server/options_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/check.h"
#include "server/nearest.h"
#include "server/options_section.h"
#include "server/options_set.h"

enum { FILE_MAX_BYTES = 1 << 20, WHERE_MAX = 400 };

static const char EXAMPLE[] = "JSON object, such as {\"listen\": \"127.0.0.1:9000\"}";

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

/* Where `key` first stands as a key from `from` on; `from` when it is written in a way (escapes)
 * that is not found. JSON values keep no place of their own. */
static const char *place_of(const char *from, const char *key)
{
    size_t key_len = strlen(key);
    for (const char *at = from; (at = strchr(at, '"')) != NULL; at++) {
        if (strncmp(at + 1, key, key_len) != 0 || at[1 + key_len] != '"')
            continue;
        const char *after = at + key_len + 2;
        if (after[strspn(after, " \t\r\n")] == ':')
            return at;
    }
    return from;
}

/* Adds ".key" to where, or just "key" after a space. */
static void add_key(struct reader *r, char before, const char *key)
{
    size_t len = strlen(r->where);

    snprintf(r->where + len, sizeof r->where - len, "%c%s", before, key);
}

/* Sets where to "file:line: key.member.member": the keys of `path` are looked for one behind the
 * other. */
static void set_where(struct reader *r, const char *key, const char *const *path, size_t depth)
{
    const char *place = place_of(r->text, key);
    unsigned line = 1;
    for (size_t i = 0; i < depth; i++)
        place = place_of(place, path[i]);
    for (const char *at = r->text; at < place; at++)
        line += *at == '\n';
    snprintf(r->where, sizeof r->where, "%s:%u:", r->path, line);
    add_key(r, ' ', key);
    for (size_t i = 0; i < depth; i++)
        add_key(r, '.', path[i]);
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

/* The option or section that `key` may have been meant for. */
static const char *nearest_key(const char *key)
{
    static const char *const sections[] = {
#define X(key, read, fini) #key,
#include "server/sections.def"
#undef X
    };
    const char *near = srv_option_nearest(key, SRV_IN_FILE);
    const char *section = srv_nearest(key, sections, sizeof sections / sizeof sections[0]);
    if (section == NULL ||
        (near != NULL && srv_edit_distance(key, near) <= srv_edit_distance(key, section)))
        return near;
    return section;
}

static bool set_member(struct reader *r, const char *key, const json_t *value)
{
    set_where(r, key, NULL, 0);
    const struct srv_option *option = srv_option_find(key, SRV_IN_FILE);
    if (option == NULL && srv_option_find(key, ~0u) != NULL)
        return srv_option_error(r->error_out, r->where,
                                "this option is for the command line only: --%s", key);
    if (option == NULL) {
        const char *near = nearest_key(key);
        return srv_option_error(r->error_out, r->where, "unknown key%s%s%s",
                                near ? ": did you mean \"" : "; gyre serve --help lists all",
                                near ? near : "", near ? "\"?" : "");
    }
    if (!json_is_array(value) || !srv_option_is_list(option))
        return set_scalar(r, option, value);
    if (json_array_size(value) == 0 && option->shown_default[0] != '\0')
        return srv_option_error(r->error_out, r->where,
                                "the list is empty: give %s, or leave the key out for %s",
                                option->argument, option->shown_default);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!set_scalar(r, option, json_array_get(value, i)))
            return false;
    return true;
}

/* ---- Sections ---- */

struct srv_section_place {
    struct reader *reader;
};

static const struct {
    const char *key;
    bool (*read)(struct srv_section *section);
} sections[] = {
#define X(key, read, fini) {#key, read},
#include "server/sections.def"
#undef X
};

enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

static bool is_section(const char *key)
{
    for (size_t i = 0; i < N_SECTIONS; i++)
        if (strcmp(sections[i].key, key) == 0)
            return true;
    return false;
}

void srv_section_enter(struct srv_section *section, const char *key)
{
    SRV_CHECK(section->depth < SRV_SECTION_DEPTH);
    section->path[section->depth++] = key;
}

void srv_section_leave(struct srv_section *section)
{
    SRV_CHECK(section->depth > 0);
    section->depth--;
}

void srv_section_where(const struct srv_section *section, char *where_out, size_t size)
{
    struct reader *reader = section->place->reader;

    set_where(reader, section->key, section->path, section->depth);
    snprintf(where_out, size, "%s", reader->where);
}

bool srv_section_error(const struct srv_section *section, const char *format, ...)
{
    char where[WHERE_MAX], text[SRV_OPTIONS_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    srv_section_where(section, where, sizeof where);
    return srv_option_error(section->error_out, where, "%s", text);
}

bool srv_section_unknown(const struct srv_section *section, const char *what,
                         const char *const *keys, size_t n_keys)
{
    const char *near = srv_nearest(section->path[section->depth - 1], keys, n_keys);
    char list[128] = "";

    for (size_t i = 0; i < n_keys; i++) {
        size_t len = strlen(list);
        const char *before = i == 0 ? "" : i + 1 < n_keys ? ", " : " and ";
        snprintf(list + len, sizeof list - len, "%s%s", before, keys[i]);
    }
    return srv_section_error(section, "unknown key: %s has %s%s%s%s", what, list,
                             near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                             near != NULL ? "\"?" : "");
}

/* Flat options first, because sections take defaults from them. */
static bool set_all(struct reader *r, const json_t *root)
{
    const char *key;
    json_t *value;
    const struct srv_section_place place = {r};
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        if (!is_section(key) && !set_member(r, key, value))
            return false;
    }
    for (size_t i = 0; i < N_SECTIONS; i++) {
        struct srv_section section = {.options = r->options,
                                      .value = json_object_get(root, sections[i].key),
                                      .key = sections[i].key,
                                      .place = &place,
                                      .error_out = r->error_out};
        if (section.value != NULL && !sections[i].read(&section))
            return false;
    }
    return true;
}

bool srv_options_file_read(struct srv_options *options, const char *path,
                           char error_out[SRV_OPTIONS_ERROR_MAX])
{
    struct reader reader = {.options = options, .path = path, .error_out = error_out};
    json_t *root = NULL;
    json_error_t error;
    bool ok = false;
    if (!read_text(&reader))
        goto out;
    if (strspn(reader.text, " \t\r\n") == reader.len) {
        srv_option_error(error_out, path, "the file is empty: it must hold one %s", EXAMPLE);
        goto out;
    }
    root = json_loadb(reader.text, reader.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        snprintf(reader.where, sizeof(reader.where), "%s: line %d, column %d", path, error.line,
                 error.column);
        srv_option_error(error_out, reader.where, "not JSON: %s", error.text);
        goto out;
    }
    if (!json_is_object(root)) {
        srv_option_error(error_out, path, "the file must hold one %s", EXAMPLE);
        goto out;
    }
    ok = set_all(&reader, root);
out:
    json_decref(root);
    free(reader.text);
    return ok;
}
