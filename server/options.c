#include "server/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/options_file.h"
#include "server/options_section.h"
#include "server/options_set.h"

static const char *const command_names[] = {"serve", "stat", "check", "verify"};
_Static_assert(sizeof command_names / sizeof command_names[0] == SRV_COMMAND_VERIFY + 1,
               "a name for each command");

enum { NAME_MAX_BYTES = 64, WHERE_MAX = NAME_MAX_BYTES + 8, OBJECT_SIZE_MIN = 512 };

/* Finds the option that `word` names. *value_out is what follows its '=', or NULL. */
static const struct srv_option *find_option(enum srv_command command, const char *word,
                                            const char **value_out, char *error_out)
{
    char name[NAME_MAX_BYTES];
    *value_out = strchr(word, '=');
    size_t len = *value_out != NULL ? (size_t)(*value_out - word) : strlen(word);
    if (*value_out != NULL)
        (*value_out)++;
    if (len >= sizeof(name))
        len = sizeof(name) - 1;
    memcpy(name, word, len);
    name[len] = '\0';
    const unsigned here = 1u << command;
    const struct srv_option *option = srv_option_find(name, here);
    if (option != NULL)
        return option;
    const char *near = srv_option_nearest(name, here);
    if (srv_option_find(name, ~0u) != NULL)
        snprintf(error_out, SRV_OPTIONS_ERROR_MAX,
                 "--%s is not an option of gyre %s; gyre %s --help lists them", name,
                 command_names[command], command_names[command]);
    else if (near != NULL)
        snprintf(error_out, SRV_OPTIONS_ERROR_MAX, "unknown option --%s: did you mean --%s?", name,
                 near);
    else
        snprintf(error_out, SRV_OPTIONS_ERROR_MAX, "unknown option --%s; gyre %s --help lists all",
                 name, command_names[command]);
    return NULL;
}

/* The command line's lists replace the file's. */
static void forget_list(struct srv_options *options, const struct srv_option *option)
{
    if (option->kind == SRV_OPTION_LISTEN)
        options->n_listen = 0;
    if (option->kind == SRV_OPTION_DOMAIN)
        srv_s3_domains_fini(&options->domains);
    if (option->kind == SRV_OPTION_ALIAS)
        srv_s3_aliases_fini(&options->aliases);
    if (option->kind != SRV_OPTION_DATA)
        return;
    while (options->n_data > 0)
        free(options->data[--options->n_data].path);
}

static bool refuse_word(const char *word, char *error_out)
{
    const char *near = srv_option_nearest(word, ~0u);
    snprintf(error_out, SRV_OPTIONS_ERROR_MAX, "unexpected \"%s\": options begin with --%s%s%s",
             word, near != NULL ? ", did you mean --" : "", near != NULL ? near : "",
             near != NULL ? "?" : "");
    return false;
}

/* Calls `visit` for each option of the command line, which it may refuse. */
static bool visit_words(struct srv_options *options, enum srv_command command, int argc,
                        char **argv,
                        bool (*visit)(struct srv_options *, const struct srv_option *,
                                      const char *value, char *error_out),
                        char *error_out)
{
    for (int i = 0; i < argc; i++) {
        const char *value;
        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0')
            return refuse_word(argv[i], error_out);
        const struct srv_option *option = find_option(command, argv[i] + 2, &value, error_out);
        if (option == NULL)
            return false;
        char where[WHERE_MAX];
        snprintf(where, sizeof(where), "--%s", option->name);
        if (option->kind == SRV_OPTION_FLAG) {
            value = value != NULL ? value : "true";
        } else if (value == NULL) {
            if (i + 1 == argc)
                return srv_option_error(error_out, where, "a value is missing: %s %s", where,
                                        option->argument);
            value = argv[++i];
        }
        if (!visit(options, option, value, error_out))
            return false;
    }
    return true;
}

static bool visit_config(struct srv_options *options, const struct srv_option *option,
                         const char *value, char *error_out)
{
    return option != &srv_option_table[SRV_OPTION_INDEX_config] ||
           srv_option_set(options, option, value, "--config", error_out);
}

/* A list is emptied when its first value of the command line comes; seen_ holds that it has been.
 */
static bool visit_set(struct srv_options *options, const struct srv_option *option,
                      const char *value, char *error_out)
{
    unsigned bit = 1u << option->kind;
    if (srv_option_is_list(option) && (options->lists_seen_ & bit) == 0)
        forget_list(options, option);
    options->lists_seen_ |= bit;
    if (option == &srv_option_table[SRV_OPTION_INDEX_config])
        return true;
    char where[WHERE_MAX];
    snprintf(where, sizeof(where), "--%s", option->name);
    return srv_option_set(options, option, value, where, error_out);
}

static void set_defaults(struct srv_options *options)
{
    *options = (struct srv_options){
        .origin_connect_timeout = 5000,
        .origin_first_byte_timeout = 60000,
        .origin_between_bytes_timeout = 30000,
        .sync_interval = 30000,
        .max_connections = 10000,
        .buffer_budget = UINT64_C(256) << 20,
        .handshake_timeout = 10000,
        .head_timeout = 10000,
        .idle_timeout = 60000,
        .body_timeout = 30000,
        .body_rate = 100,
        .send_rate = 100,
        .send_timeout = 60000,
        .drain_timeout = 30000,
        .etag = SRV_S3_ETAG_MD5,
        .lifecycle_day = UINT64_C(24) * 3600 * 1000,
        .log_level = SRV_LOG_INFO,
    };
}

/* TLS options that only make sense together. */
static bool check_tls(const struct srv_options *options, char *error_out)
{
    bool wanted = false;
    for (size_t i = 0; i < options->n_listen; i++)
        wanted = wanted || options->listen[i].is_tls;
    bool have = options->tls_cert != NULL || options->tls_self_signed;
    if (options->tls_cert != NULL && options->tls_self_signed)
        return srv_option_error(error_out, "--tls-self-signed",
                                "not together with --tls-cert: choose one");
    if (options->tls_key != NULL && options->tls_cert == NULL)
        return srv_option_error(error_out, "--tls-key",
                                "a key needs its certificate: add --tls-cert FILE");
    if (wanted && !have)
        return srv_option_error(
            error_out, "--listen",
            "TLS needs a certificate: --tls-cert FILE, or --tls-self-signed to try it out");
    if (have && !wanted)
        return srv_option_error(error_out,
                                options->tls_self_signed ? "--tls-self-signed" : "--tls-cert",
                                "nothing listens for TLS: add --listen tls:127.0.0.1:9443");
    return true;
}

/* Without users everything is open, which is for this machine alone unless somebody says otherwise.
 */
static bool complete_access(struct srv_options *options, char *error_out)
{
    struct srv_s3_access *access = &options->access;

    access->is_open = options->anonymous;
    if (options->anonymous || access->n_users > 0 || access->everyone.n > 0)
        return true;
    access->is_open = true;
    for (size_t i = 0; i < options->n_listen; i++)
        if (!srv_address_is_loopback(&options->listen[i]))
            return srv_option_error(
                error_out, "--listen",
                "%s can be reached from other machines, and there are no users: add \"users\": "
                "{\"NAME\": {\"keys\": {\"ACCESSKEY\": \"SECRET\"}}} to the file of --config, or "
                "--anonymous to let everybody do everything",
                options->listen[i].host);
    return true;
}

/* What the directories take in all; UINT64_MAX if not all of them say. */
static uint64_t sum_of_data(const struct srv_options *options)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < options->n_data; i++)
        if (options->data[i].size_bytes == 0 ||
            __builtin_add_overflow(sum, options->data[i].size_bytes, &sum))
            return UINT64_MAX;
    return sum;
}

/* With less than this no request would ever be answered. */
static bool check_least(const struct srv_options *options, char *error_out)
{
    const struct {
        const char *option;
        uint64_t value, least;
        const char *advice;
    } rows[] = {
        {"--size", options->size != 0 ? options->size : UINT64_MAX, GYRE_SIZE_MIN,
         "a store has at least 64M"},
        {"--data", sum_of_data(options), GYRE_SIZE_MIN, "a store has at least 64M in all"},
        {"--buffer-budget", options->buffer_budget, 1 << 20, "give at least 1M"},
        {"--address-buffers", options->address_buffers != 0 ? options->address_buffers : UINT64_MAX,
         1 << 20, "give at least 1M"},
        {"--lifecycle-day", options->lifecycle_day, 1000, "give at least 1s"},
        {"--origin-connect-timeout", options->origin_connect_timeout, 1,
         "give more than 0, such as 5s"},
        {"--origin-first-byte-timeout", options->origin_first_byte_timeout, 1,
         "give more than 0, such as 60s"},
        {"--origin-between-bytes-timeout", options->origin_between_bytes_timeout, 1,
         "give more than 0, such as 30s"},
        {"--handshake-timeout", options->handshake_timeout, 1, "give more than 0, such as 10s"},
        {"--head-timeout", options->head_timeout, 1, "give more than 0, such as 10s"},
        {"--idle-timeout", options->idle_timeout, 1, "give more than 0, such as 60s"},
        {"--body-timeout", options->body_timeout, 1, "give more than 0, such as 30s"},
        {"--send-timeout", options->send_timeout, 1, "give more than 0, such as 60s"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value < rows[i].least)
            return srv_option_error(error_out, rows[i].option, "%s", rows[i].advice);
    return true;
}

/* Defaults of what the user left open, and what one option alone cannot tell. */
static bool complete(struct srv_options *options, char *error_out)
{
    if (options->n_listen == 0 &&
        !srv_option_set(options, &srv_option_table[SRV_OPTION_INDEX_listen], "127.0.0.1:9000",
                        "--listen", error_out))
        return false;
    if (options->n_data == 0 && !srv_option_set(options, &srv_option_table[SRV_OPTION_INDEX_data],
                                                "./gyre-data", "--data", error_out))
        return false;
    uint64_t segment = options->segment_size;
    if (segment != 0 && (segment < 1 << 20 || (segment & (segment - 1)) != 0))
        return srv_option_error(error_out, "--segment-size",
                                "give a power of two from 1M on, such as 8M");
    if (options->object_size != 0 &&
        (options->object_size < OBJECT_SIZE_MIN || options->object_size > GYRE_SIZE_MIN))
        return srv_option_error(error_out, "--object-size", "give 512 to 64M");
    if (options->region != NULL && strlen(options->region) >= SRV_S3_REGION_MAX)
        return srv_option_error(error_out, "--region", "at most %d characters",
                                SRV_S3_REGION_MAX - 1);
    return check_least(options, error_out) && check_tls(options, error_out);
}

bool srv_options_parse(struct srv_options *options_out, enum srv_command command, int argc,
                       char **argv, char error_out[SRV_OPTIONS_ERROR_MAX])
{
    set_defaults(options_out);
    options_out->argc = argc;
    options_out->argv = argv;
    error_out[0] = '\0';
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_out->help = true;
            return true;
        }
    if (!visit_words(options_out, command, argc, argv, visit_config, error_out))
        return false;
    if (options_out->config != NULL &&
        !srv_options_file_read(options_out, options_out->config, error_out))
        return false;
    return visit_words(options_out, command, argc, argv, visit_set, error_out) &&
           complete(options_out, error_out) &&
           (command != SRV_COMMAND_SERVE || complete_access(options_out, error_out));
}

void srv_options_fini(struct srv_options *options)
{
    while (options->n_data > 0)
        free(options->data[--options->n_data].path);
#define X(key, read, fini) fini(options);
#include "server/sections.def"
#undef X
    free(options->config);
    free(options->origin);
    free(options->admin);
    free(options->access_log);
    free(options->tls_cert);
    free(options->tls_key);
    free(options->region);
    srv_s3_domains_fini(&options->domains);
    srv_s3_aliases_fini(&options->aliases);
    *options = (struct srv_options){0};
}
