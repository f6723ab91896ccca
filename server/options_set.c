#include "server/options_set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/http/site.h"
#include "server/nearest.h"
#include "server/quantity.h"
#include "server/s3/name.h"

#define S SRV_IN_SERVE
#define T SRV_IN_STAT
#define C SRV_IN_CHECK
#define V SRV_IN_VERIFY
#define F SRV_IN_FILE
#define R SRV_IN_RELOAD

const struct srv_option srv_option_table[SRV_OPTION_COUNT_ALL] = {
#define X(field, name, kind, argument, shown_default, places, help) \
    {name,                                                          \
     SRV_OPTION_##kind,                                             \
     argument,                                                      \
     shown_default,                                                 \
     places,                                                        \
     help,                                                          \
     offsetof(struct srv_options, field)},
#include "server/options.def"
#undef X
};

enum { COUNT_MAX = 1000000, THREADS_MAX = 1024 };

static const char *const etag_names[] = {
    [SRV_S3_ETAG_MD5] = "md5", [SRV_S3_ETAG_OPAQUE] = "opaque"};
static const char *const format_names[] = {
    [SRV_ACCESS_COMBINED] = "combined", [SRV_ACCESS_JSON] = "json"};
static const char *const level_names[] = {"error", "warn", "info", "debug"};

bool srv_option_error(char error_out[SRV_OPTIONS_ERROR_MAX], const char *where, const char *format,
                      ...)
{
    int n = snprintf(error_out, SRV_OPTIONS_ERROR_MAX, "%s: ", where);
    if (n < 0 || n >= SRV_OPTIONS_ERROR_MAX)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(error_out + n, (size_t)(SRV_OPTIONS_ERROR_MAX - n), format, args);
    va_end(args);
    for (char *at = error_out; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' ||
            *at == 0x7f) /* it stays one line, and no terminal's command */
            *at = '?';
    return false;
}

bool srv_option_is_list(const struct srv_option *option)
{
    return option->kind == SRV_OPTION_LISTEN || option->kind == SRV_OPTION_DOMAIN ||
           option->kind == SRV_OPTION_ALIAS || option->kind == SRV_OPTION_DATA;
}

const struct srv_option *srv_option_find(const char *name, unsigned places)
{
    for (size_t i = 0; i < SRV_OPTION_COUNT_ALL; i++)
        if ((srv_option_table[i].places & places) != 0 &&
            strcmp(srv_option_table[i].name, name) == 0)
            return &srv_option_table[i];
    return NULL;
}

const char *srv_option_nearest(const char *name, unsigned places)
{
    const char *names[SRV_OPTION_COUNT_ALL];
    size_t n = 0;
    for (size_t i = 0; i < SRV_OPTION_COUNT_ALL; i++)
        if ((srv_option_table[i].places & places) != 0)
            names[n++] = srv_option_table[i].name;
    return srv_nearest(name, names, n);
}

/* ---- Values of each kind ---- */

static bool set_string(char **field, const char *text, const char *where, char *error_out)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return srv_option_error(error_out, where, "out of memory");
    free(*field);
    *field = copy;
    return true;
}

static bool set_text(char **field, const char *text, const char *where, char *error_out)
{
    size_t len = strlen(text);
    if (len < 1 || len > 255)
        return srv_option_error(error_out, where, "give 1 to 255 characters");
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~') /* it becomes part of response heads */
            return srv_option_error(error_out, where, "give letters, digits and punctuation only");
    return set_string(field, text, where, error_out);
}

static bool set_file(struct srv_options *options, char **field, const char *text, const char *where,
                     char *error_out)
{
    char near[512];
    struct stat status;
    if (stat(text, &status) == 0 && S_ISDIR(status.st_mode)) {
        options->is_file_missing = true;
        return srv_option_error(error_out, where, "\"%s\" is a directory: name a file", text);
    }
    if (access(text, R_OK) != 0) {
        int why = errno;
        options->is_file_missing = true;
        bool guess = why == ENOENT && srv_nearest_file(text, near, sizeof(near));
        return srv_option_error(error_out, where, "cannot read \"%s\": %s%s%s%s", text,
                                strerror(why), guess ? "; did you mean \"" : "", guess ? near : "",
                                guess ? "\"?" : "");
    }
    return set_string(field, text, where, error_out);
}

static bool set_listen(struct srv_options *options, const char *text, const char *where,
                       char *error_out)
{
    const char *why;
    struct srv_address address;
    if (!srv_address_parse(text, &address, &why))
        return srv_option_error(error_out, where, "\"%s\" is no address to listen on: %s", text,
                                why);
    const char *bucket = address.bucket;
    if (bucket[0] != '\0' && !srv_s3_bucket_valid((struct srv_str){bucket, strlen(bucket)}))
        return srv_option_error(error_out, where, "\"%s\" is not the name of a bucket", bucket);
    if (options->n_listen == SRV_LISTEN_MAX)
        return srv_option_error(error_out, where, "at most %d addresses", SRV_LISTEN_MAX);
    options->listen[options->n_listen++] = address;
    return true;
}

static bool explain_hosts(enum srv_s3_hosts_fault fault, const char *text, const char *form,
                          const char *where, char *error_out)
{
    switch (fault) {
    case SRV_S3_HOSTS_FINE: break;
    case SRV_S3_HOSTS_NO_HOST:
        return srv_option_error(error_out, where, "\"%s\" names no host: give %s", text, form);
    case SRV_S3_HOSTS_NO_BUCKET:
        return srv_option_error(error_out, where, "\"%s\" names no bucket: give %s", text, form);
    case SRV_S3_HOSTS_MANY: return srv_option_error(error_out, where, "there are too many");
    case SRV_S3_HOSTS_NO_MEMORY: return srv_option_error(error_out, where, "out of memory");
    }
    return true;
}

static bool set_domain(struct srv_options *options, const char *text, const char *where,
                       char *error_out)
{
    return explain_hosts(srv_s3_domains_add(&options->domains, text), text,
                         "a domain such as s3.example.com", where, error_out);
}

static bool set_alias(struct srv_options *options, const char *text, const char *where,
                      char *error_out)
{
    return explain_hosts(srv_s3_aliases_add(&options->aliases, text), text,
                         "HOST=BUCKET, such as kv.cache.lan=my-bucket", where, error_out);
}

/* ADDR:PORT, unix:PATH or off. */
static bool set_admin(struct srv_options *options, char **field, const char *text,
                      const char *where, char *error_out)
{
    const char *why;
    struct srv_address address;
    if (strcmp(text, "off") == 0 || (strncmp(text, "unix:", 5) == 0 && text[5] != '\0'))
        return set_string(field, text, where, error_out);
    if (!srv_address_parse(text, &address, &why) || address.is_tls)
        return srv_option_error(error_out, where,
                                "\"%s\" is not ADDR:PORT, such as 127.0.0.1:9001, unix:PATH or off",
                                text);
    options->admin_address = address;
    return set_string(field, text, where, error_out);
}

/* A file's name, - or off, which is none. */
static bool set_output(char **field, const char *text, const char *where, char *error_out)
{
    if (text[0] == '\0')
        return srv_option_error(error_out, where, "give a file, - or off");
    if (strcmp(text, "off") != 0)
        return set_string(field, text, where, error_out);
    free(*field);
    *field = NULL;
    return true;
}

static bool set_origin(char **field, const char *text, const char *where, char *error_out)
{
    if (!srv_site_origin_valid(text))
        return srv_option_error(error_out, where,
                                "\"%s\" is no origin: give http://HOST:PORT, such as "
                                "http://127.0.0.1:8080",
                                text);
    return set_string(field, text, where, error_out);
}

static bool set_size(uint64_t *field, const char *text, const char *where, char *error_out)
{
    return srv_size_parse(text, field) ||
           srv_option_error(error_out, where,
                            "\"%s\" is no size: give bytes, or a number with K, M, G or T, such as "
                            "10G or 512MiB",
                            text);
}

/* DIR or DIR=SIZE, split at the last '='. */
static bool set_data(struct srv_options *options, const char *text, const char *where,
                     char *error_out)
{
    if (options->n_data == SRV_DATA_MAX)
        return srv_option_error(error_out, where, "at most %d directories", SRV_DATA_MAX);
    struct srv_data_option *data = &options->data[options->n_data];
    *data = (struct srv_data_option){0};
    const char *equals = strrchr(text, '=');
    if (equals == text || text[0] == '\0')
        return srv_option_error(error_out, where, "\"%s\" names no directory: give DIR or DIR=SIZE",
                                text);
    if (equals != NULL && !set_size(&data->size_bytes, equals + 1, where, error_out))
        return false;
    if (!set_string(&data->path, text, where, error_out))
        return false;
    if (equals != NULL)
        data->path[equals - text] = '\0';
    options->n_data++;
    return true;
}

static bool set_duration(uint64_t *field, const char *text, const char *where, char *error_out)
{
    return srv_duration_parse(text, field) ||
           srv_option_error(
               error_out, where,
               "\"%s\" is no time: give seconds, or a number with ms, s, m or h, such as 30s",
               text);
}

static bool set_count(uint64_t *field, int max, const char *text, const char *where,
                      char *error_out)
{
    return (srv_count_parse(text, (uint64_t)max, field) && *field != 0) ||
           srv_option_error(error_out, where, "\"%s\" is no number from 1 to %d", text, max);
}

/* One of `names`; its index goes into the field. */
static bool set_choice(uint64_t *field, const char *const *names, size_t n_names, const char *text,
                       const char *where, char *error_out)
{
    char list[128] = "";
    for (size_t i = 0; i < n_names; i++) {
        if (strcmp(names[i], text) == 0) {
            *field = i;
            return true;
        }
        size_t at = strlen(list);
        snprintf(list + at, sizeof(list) - at, "%s%s",
                 i == 0             ? ""
                 : i + 1 == n_names ? " or "
                                    : ", ",
                 names[i]);
    }
    const char *near = srv_nearest(text, names, n_names);
    return srv_option_error(error_out, where, "\"%s\" is not %s%s%s%s", text, list,
                            near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

bool srv_option_etag(const char *text, const char *where, uint64_t *etag_out,
                     char error_out[SRV_OPTIONS_ERROR_MAX])
{
    *etag_out = SRV_S3_ETAG_MD5;
    return set_choice(etag_out, etag_names, sizeof(etag_names) / sizeof(etag_names[0]), text, where,
                      error_out);
}

static bool set_flag(bool *field, const char *text, const char *where, char *error_out)
{
    *field = strcmp(text, "true") == 0;
    return *field || strcmp(text, "false") == 0 ||
           srv_option_error(error_out, where, "\"%s\" is not true or false", text);
}

bool srv_option_set(struct srv_options *options, const struct srv_option *option, const char *text,
                    const char *where, char error_out[SRV_OPTIONS_ERROR_MAX])
{
    void *field = (char *)options + option->field;
    switch (option->kind) {
    case SRV_OPTION_FLAG: return set_flag(field, text, where, error_out);
    case SRV_OPTION_TEXT: return set_text(field, text, where, error_out);
    case SRV_OPTION_FILE: return set_file(options, field, text, where, error_out);
    case SRV_OPTION_OUTPUT: return set_output(field, text, where, error_out);
    case SRV_OPTION_ORIGIN: return set_origin(field, text, where, error_out);
    case SRV_OPTION_ADMIN: return set_admin(options, field, text, where, error_out);
    case SRV_OPTION_FORMAT:
        return set_choice(field, format_names, sizeof(format_names) / sizeof(format_names[0]), text,
                          where, error_out);
    case SRV_OPTION_LISTEN: return set_listen(options, text, where, error_out);
    case SRV_OPTION_DOMAIN: return set_domain(options, text, where, error_out);
    case SRV_OPTION_ALIAS: return set_alias(options, text, where, error_out);
    case SRV_OPTION_DATA: return set_data(options, text, where, error_out);
    case SRV_OPTION_SIZE: return set_size(field, text, where, error_out);
    case SRV_OPTION_DURATION: return set_duration(field, text, where, error_out);
    case SRV_OPTION_COUNT: return set_count(field, COUNT_MAX, text, where, error_out);
    case SRV_OPTION_THREADS: return set_count(field, THREADS_MAX, text, where, error_out);
    case SRV_OPTION_ETAG: return srv_option_etag(text, where, field, error_out);
    default:
        return set_choice(field, level_names, sizeof(level_names) / sizeof(level_names[0]), text,
                          where, error_out);
    }
}

/* ---- Comparing ---- */

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_same_listen(const struct srv_options *a, const struct srv_options *b)
{
    bool same = a->n_listen == b->n_listen;
    for (size_t i = 0; same && i < a->n_listen; i++)
        same = strcmp(a->listen[i].host, b->listen[i].host) == 0 &&
               a->listen[i].port == b->listen[i].port && a->listen[i].is_tls == b->listen[i].is_tls;
    return same;
}

static bool is_same_data(const struct srv_options *a, const struct srv_options *b)
{
    bool same = a->n_data == b->n_data;
    for (size_t i = 0; same && i < a->n_data; i++)
        same = strcmp(a->data[i].path, b->data[i].path) == 0 &&
               a->data[i].size_bytes == b->data[i].size_bytes;
    return same;
}

static bool is_same_domains(const struct srv_s3_domains *a, const struct srv_s3_domains *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

static bool is_same_aliases(const struct srv_s3_aliases *a, const struct srv_s3_aliases *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = strcmp(a->at[i].host, b->at[i].host) == 0 &&
               strcmp(a->at[i].bucket, b->at[i].bucket) == 0;
    return same;
}

bool srv_option_is_same(const struct srv_option *option, const struct srv_options *a,
                        const struct srv_options *b)
{
    const void *one = (const char *)a + option->field, *other = (const char *)b + option->field;
    switch (option->kind) {
    case SRV_OPTION_FLAG: return *(const bool *)one == *(const bool *)other;
    case SRV_OPTION_TEXT:
    case SRV_OPTION_FILE:
    case SRV_OPTION_OUTPUT:
    case SRV_OPTION_ORIGIN:
    case SRV_OPTION_ADMIN: return is_same_text(*(char *const *)one, *(char *const *)other);
    case SRV_OPTION_LISTEN: return is_same_listen(a, b);
    case SRV_OPTION_DATA: return is_same_data(a, b);
    case SRV_OPTION_DOMAIN: return is_same_domains(&a->domains, &b->domains);
    case SRV_OPTION_ALIAS: return is_same_aliases(&a->aliases, &b->aliases);
    default: return *(const uint64_t *)one == *(const uint64_t *)other;
    }
}
