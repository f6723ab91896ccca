/* Options from the command line and the file: what they set, and what is said about wrong ones. */
#include "server/options.h"

#include <stdio.h>
#include <unistd.h>

#include "server/options_set.h"
#include "tests/harness/test.h"

enum { WORDS_MAX = 12 };

/* Parses words, ended by NULL, as `command` would. */
static bool parse(struct srv_options *options, enum srv_command command, const char *const *words,
                  char *error)
{
    char *argv[WORDS_MAX];
    int argc = 0;
    for (; words[argc] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc];
    return srv_options_parse(options, command, argc, argv, error);
}

#define SERVE(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(defaults_need_no_configuration)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    CHECK(parse(&options, SRV_COMMAND_SERVE, (const char *const[]){NULL}, error));
    CHECK_EQ_U64(options.n_listen, 1);
    CHECK_EQ_STR(options.listen[0].host, "127.0.0.1");
    CHECK_EQ_INT(options.listen[0].port, 9000);
    CHECK_EQ_U64(options.n_data, 1);
    CHECK_EQ_STR(options.data[0].path, "./gyre-data");
    CHECK_EQ_U64(options.size, 0);
    CHECK_EQ_U64(options.sync_interval, 30000);
    CHECK_EQ_U64(options.etag, SRV_S3_ETAG_MD5);
    CHECK_EQ_U64(options.log_level, SRV_LOG_INFO);
    srv_options_fini(&options);
}

TEST(shown_defaults_are_the_real_ones)
{
    struct srv_options plain, shown;
    char error[SRV_OPTIONS_ERROR_MAX];
    CHECK(parse(&plain, SRV_COMMAND_SERVE, (const char *const[]){NULL}, error));
    CHECK(parse(&shown, SRV_COMMAND_SERVE, (const char *const[]){NULL}, error));
    for (size_t i = 0; i < SRV_OPTION_COUNT_ALL; i++) {
        const struct srv_option *option = &srv_option_table[i];
        bool is_number = option->kind == SRV_OPTION_SIZE || option->kind == SRV_OPTION_DURATION ||
                         option->kind == SRV_OPTION_COUNT || option->kind == SRV_OPTION_ETAG ||
                         option->kind == SRV_OPTION_LEVEL;
        uint64_t was = is_number ? *(uint64_t *)(void *)((char *)&plain + option->field) : 0;
        if (!is_number || (was == 0 && option->kind != SRV_OPTION_ETAG))
            continue;
        CHECK_MSG(srv_option_set(&shown, option, option->shown_default, option->name, error), "%s",
                  error);
        CHECK_MSG(*(uint64_t *)(void *)((char *)&shown + option->field) == was, "%s", option->name);
    }
    srv_options_fini(&plain);
    srv_options_fini(&shown);
}

TEST(words_set_their_options)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    CHECK_MSG(parse(&options, SRV_COMMAND_SERVE,
                    SERVE("--listen=[::1]:1", "--listen", "127.0.0.1:2", "--data", "a=b=1G",
                          "--data=c", "--size", "3G", "--reset"),
                    error),
              "%s", error);
    CHECK_EQ_U64(options.n_listen, 2);
    CHECK_EQ_STR(options.listen[0].host, "::1");
    CHECK_EQ_U64(options.n_data, 2);
    CHECK_EQ_STR(options.data[0].path, "a=b");
    CHECK_EQ_U64(options.data[0].size_bytes, 1u << 30);
    CHECK_EQ_STR(options.data[1].path, "c");
    CHECK_EQ_U64(options.data[1].size_bytes, 0);
    CHECK_EQ_U64(options.size, UINT64_C(3) << 30);
    CHECK(options.reset && !options.tls_self_signed);
    srv_options_fini(&options);
    CHECK(parse(&options, SRV_COMMAND_CHECK, SERVE("--data", "d", "--json", "--bodies"), error));
    CHECK(options.json && options.bodies);
    srv_options_fini(&options);
}

TEST(limits_stand_behind_the_address_they_are_for)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    CHECK_MSG(parse(&options, SRV_COMMAND_SERVE,
                    SERVE("--listen", "127.0.0.1:1,deny=10.1.0.0/16,allow=10.0.0.0/8,rate=10/50",
                          "--listen", "[::1]:2,rate=7"),
                    error),
              "%s", error);
    const struct srv_listener_limits *limits = &options.listen[0].limits;
    CHECK_EQ_STR(options.listen[0].host, "127.0.0.1");
    CHECK_EQ_U64(limits->networks.n, 2);
    CHECK(!limits->networks.entries[0].is_allowed && limits->networks.entries[1].is_allowed);
    CHECK_EQ_U64(limits->requests_per_s, 10);
    CHECK_EQ_U64(limits->requests_burst, 50);
    CHECK_EQ_STR(options.listen[1].host, "::1");
    CHECK_EQ_U64(options.listen[1].limits.networks.n, 0);
    CHECK_EQ_U64(options.listen[1].limits.requests_per_s, 7);
    CHECK_EQ_U64(options.listen[1].limits.requests_burst, 0);
    srv_options_fini(&options);
}

TEST(help_wins_over_everything)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    CHECK(parse(&options, SRV_COMMAND_SERVE, SERVE("--nonsense", "--help"), error));
    CHECK(options.help);
    srv_options_fini(&options);
}

struct wrong_words {
    const char *words[3];
    const char *want; /* must be in the message */
};

static void check_refused(const struct wrong_words *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct srv_options options;
        char error[SRV_OPTIONS_ERROR_MAX];
        CHECK_MSG(!parse(&options, SRV_COMMAND_SERVE, rows[i].words, error), "%s was taken",
                  rows[i].words[0]);
        CHECK_MSG(strstr(error, rows[i].want) != NULL && strchr(error, '\n') == NULL, "%s: '%s'",
                  rows[i].words[0], error);
        srv_options_fini(&options);
    }
}

TEST(wrong_words_name_the_nearest_right_one)
{
    static const struct wrong_words rows[] = {
        {{"--lisen", "x"}, "unknown option --lisen: did you mean --listen?"},
        {{"--tls"}, "did you mean --tls-cert?"},
        {{"--zzzzzzzzzzzz"}, "gyre serve --help"},
        {{"--json"}, "--json is not an option of gyre serve"},
        {{"listen"}, "unexpected \"listen\": options begin with --, did you mean --listen?"},
        {{"--"}, "unexpected \"--\""},
        {{"--size"}, "--size: a value is missing: --size SIZE"},
        {{"--size", "big"}, "--size: \"big\" is no size"},
        {{"--log-level", "verbose"}, "--log-level: \"verbose\" is not error, warn, info or debug"},
        {{"--config", "/"}, "--config: \"/\" is a directory: name a file"},
        {{"--tls-cert", "/"}, "--tls-cert: \"/\" is a directory: name a file"},
        {{"--size", "1\n2\033"}, "--size: \"1?2?\" is no size"},
        {{"--log-level", "infos"}, "did you mean info?"},
        {{"--etag", "md6"}, "\"md6\" is not md5 or opaque: did you mean md5?"},
        {{"--reset=maybe"}, "--reset: \"maybe\" is not true or false"},
        {{"--listen", "9000"}, "--listen: \"9000\" is no address"},
        {{"--listen", "127.0.0.1:1,deny=10.0.0.1/8"}, "has bits behind the mask"},
        {{"--listen", "127.0.0.1:1,rate=0"}, "rate is requests a second"},
        {{"--listen", "127.0.0.1:1,rate=1/2/3"}, "rate is requests a second"},
        {{"--listen", "127.0.0.1:1,burst=1"}, "behind the address may stand allow="},
        {{"--listen", "127.0.0.1:1,"}, "behind the address may stand allow="},
        {{"--listen", "127.0.0.1:1,bucket="}, "bucket names one bucket"},
        {{"--listen", "127.0.0.1:1,bucket=abc,bucket=abd"}, "bucket names one bucket"},
        {{"--listen", "127.0.0.1:1,bucket=ABC"}, "\"ABC\" is not the name of a bucket"},
        {{"--listen", "tls:127.0.0.1:1"}, "--tls-self-signed"},
        {{"--tls-self-signed"}, "add --listen tls:"},
        {{"--data", ""}, "names no directory"},
        {{"--data", "=1G"}, "names no directory"},
        {{"--data", "a=1Z"}, "--data: \"1Z\" is no size"},
        {{"--config", "/no/such.json"}, "--config: cannot read \"/no/such.json\": No such file"},
        {{"--drain-timeout", "1y"}, "--drain-timeout: \"1y\" is no time"},
        {{"--region", ""}, "--region: give 1 to 255"},
        {{"--admin", "9001"}, "--admin: \"9001\" is not ADDR:PORT"},
        {{"--admin", "tls:127.0.0.1:1"}, "--admin: \"tls:127.0.0.1:1\" is not ADDR:PORT"},
        {{"--admin", "unix:"}, "--admin: \"unix:\" is not"},
        {{"--access-log", ""}, "--access-log: give a file, - or off"},
        {{"--access-log-format", "jsn"}, "did you mean json?"},
        {{"--region", "a\r\nb"}, "--region: give letters"},
        {{"--region", "\xc3\xa9"}, "--region: give letters"},
    };
    check_refused(rows, sizeof rows / sizeof rows[0]);
}

TEST(bounds_are_named)
{
    static const struct wrong_words rows[] = {
        {{"--size", "1M"}, "at least 64M"},
        {{"--segment-size", "3M"}, "power of two"},
        {{"--segment-size", "512K"}, "power of two"},
        {{"--threads", "0"}, "--threads: \"0\" is no number from 1"},
        {{"--threads", "5000"}, "--threads: \"5000\" is no number from 1 to 1024"},
        {{"--workers", "1025"}, "--workers: \"1025\" is no number from 1 to 1024"},
        {{"--max-connections", "0"}, "is no number from 1 to 1000000"},
        {{"--object-size", "100"}, "--object-size: give 512 to 64M"},
        {{"--object-size", "65M"}, "--object-size: give 512 to 64M"},
        {{"--data", "a=1M"}, "--data: a store has at least 64M in all"},
        {{"--idle-timeout", "0"}, "--idle-timeout: give more than 0"},
        {{"--body-timeout", "0"}, "--body-timeout: give more than 0"},
        {{"--head-timeout", "0"}, "--head-timeout: give more than 0"},
        {{"--send-timeout", "0"}, "--send-timeout: give more than 0"},
        {{"--buffer-budget", "64K"}, "--buffer-budget: give at least 1M"},
        {{"--address-buffers", "1K"}, "--address-buffers: give at least 1M"},
    };
    check_refused(rows, sizeof rows / sizeof rows[0]);
}

TEST(each_command_is_called_by_its_name)
{
    static const char *const names[] = {"serve", "stat", "check", "verify"};
    for (int command = SRV_COMMAND_SERVE; command <= SRV_COMMAND_VERIFY; command++) {
        struct srv_options options;
        char error[SRV_OPTIONS_ERROR_MAX], want[64];
        snprintf(want, sizeof want, "gyre %s --help lists all", names[command]);
        CHECK(!parse(&options, (enum srv_command)command, SERVE("--zzzzzzzzz"), error));
        CHECK_MSG(strstr(error, want) != NULL, "%s", error);
        srv_options_fini(&options);
    }
}

TEST(lists_are_bounded)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    char name[] = "--data";
    char value[] = "d";
    char *argv[2 * (SRV_DATA_MAX + 1)];
    for (size_t i = 0; i < SRV_DATA_MAX + 1; i++) {
        argv[2 * i] = name;
        argv[2 * i + 1] = value;
    }
    CHECK(!srv_options_parse(&options, SRV_COMMAND_SERVE, 2 * (SRV_DATA_MAX + 1), argv, error));
    CHECK(strstr(error, "at most 16") != NULL);
    srv_options_fini(&options);
}

TEST(the_file_sets_options_and_the_command_line_wins)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    const char *path = test_path("gyre.json");
    write_file(path, "{\"listen\": [\"127.0.0.1:1\", \"127.0.0.1:2\"], \"data\": \"d=1G\", "
                     "\"size\": 134217728,\n"
                     "\"threads\": 3, \"sync-interval\": \"500ms\", \"etag\": \"opaque\",\n"
                     "\"buckets\": {\"plain\": {\"etag\": \"md5\"}, \"other\": {}}}");
    CHECK_MSG(parse(&options, SRV_COMMAND_SERVE,
                    SERVE("--threads", "5", "--config", path, "--listen", "127.0.0.1:3"), error),
              "%s", error);
    CHECK_EQ_U64(options.n_listen, 1);
    CHECK_EQ_INT(options.listen[0].port, 3);
    CHECK_EQ_STR(options.data[0].path, "d");
    CHECK_EQ_U64(options.size, 128u << 20);
    CHECK_EQ_U64(options.threads, 5);
    CHECK_EQ_U64(options.sync_interval, 500);
    CHECK_EQ_U64(options.n_buckets, 2);
    CHECK_EQ_STR(options.buckets[0].bucket, "plain");
    CHECK_EQ_INT(options.buckets[0].etag, SRV_S3_ETAG_MD5);
    CHECK_EQ_INT(options.buckets[1].etag, SRV_S3_ETAG_OPAQUE);
    srv_options_fini(&options);
}

TEST(wrong_files_are_refused_with_file_and_line)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {"", "gyre.json: the file is empty: it must hold one JSON object, such as {\"listen\""},
        {" \n\t\r\n", "the file is empty"},
        {"5", "one JSON object"},
        {"listen = x", "gyre.json: line 1, column 6: not JSON"},
        {"{\"li\\nsten\": 1}", "gyre.json:1: li?sten: unknown key"},
        {"{\"listen\": []}",
         "listen: the list is empty: give ADDR:PORT, or leave the key out for 127.0.0.1:9000"},
        {"{\n\"data\": []}", "gyre.json:2: data: the list is empty: give DIR[=SIZE]"},
        {"{\"users\": []}", "gyre.json:1: users: give an object"},
        {"{\"users\": {\"a\": 1}}", "users.a: give an object"},
        {"{\"users\": {\"a\": {}}}", "users.a: a user needs"},
        {"{\"users\": {\"a\": {\"keys\": {}}}}", "users.a.keys: give an object such as"},
        {"{\"users\":\n{\"a\":\n{\"keys\":\n{\"k\": 5}}}}",
         "gyre.json:4: users.a.keys.k: the secret must be a string"},
        {"{\"users\": {\"a\": {\"kyes\": {}}}}",
         "users.a.kyes: unknown key: a user has keys, rights and email; did you mean \"keys\"?"},
        {"{\"users\": {\"a\": {\"email\": 5}}}", "users.a.email: give a string"},
        {"{\"users\": {\"a\": {\"rights\": {\"abc\": [\"raed\"]}}}}",
         "users.a.rights.abc: rights are read, write, list and admin: did you mean \"read\"?"},
        {"{\"everyone\": {\"abc\": 1}}", "everyone.abc: give a list such as"},
        {"{\n\"size\": \"1G\",\n}", "gyre.json: line 3, column 1: not JSON"},
        {"[]", "one JSON object"},
        {"{\n\n\"lisen\": \"x\"}", "gyre.json:3: lisen: unknown key: did you mean \"listen\"?"},
        {"{\"bukets\": {}}", "did you mean \"buckets\"?"},
        {"{\"size\": 1, \"size\": 2}", "duplicate object key"},
        {"{\"reset\": true}", "for the command line only"},
        {"{\"config\": \"x\"}", "for the command line only"},
        {"{\"json\": true}", "for the command line only"},
        {"{\n\"size\": \"big\"}", "gyre.json:2: size: \"big\" is no size"},
        {"{\"size\": -1}", "\"-1\" is no size"},
        {"{\"size\": 1.5}", "size: give a string or a whole number"},
        {"{\"size\": null}", "size: give a string or a whole number"},
        {"{\"size\": true}", "size: give a string or a whole number"},
        {"{\"size\": [\"1G\"]}", "size: give a string or a whole number"},
        {"{\"tls-self-signed\": \"yes\"}", "tls-self-signed: give true or false"},
        {"{\"listen\": [[]]}", "listen: give a string"},
        {"{\"etag\": \"md6\"}", "did you mean md5?"},
        {"{\"buckets\": []}", "buckets: give an object"},
        {"{\"buckets\": {\"abc\": 1}}", "buckets.abc: give an object"},
        {"{\"buckets\": {\"ABC\": {}}}", "buckets.ABC: this is no bucket's name"},
        {"{\"buckets\": {\"abc\": {\"tag\": \"md5\"}}}",
         "buckets.abc.tag: unknown key: a bucket has etag, evict, index, quota and ttl; did you "
         "mean "
         "\"etag\"?"},
        {"{\"buckets\": {\"abc\": {\"quota\": \"much\"}}}", "buckets.abc.quota: give a size"},
        {"{\"buckets\": {\"abc\": {\"evict\": \"no\"}}}",
         "buckets.abc.evict: give \"never\" or \"yes\""},
        {"{\"buckets\": {\"abc\": {\"evict\": 1}}}", "evict: give \"never\" or \"yes\""},
        {"{\"buckets\": {\"abc\": {\"etag\": 5}}}", "buckets.abc.etag: give \"md5\" or \"opaque\""},
        {"{\"buckets\": {\n\"abc\": {\"etag\": \"opake\"}}}",
         "gyre.json:2: buckets.abc.etag: \"opake\" is not md5 or opaque"},
    };
    const char *path = test_path("gyre.json");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct srv_options options;
        char error[SRV_OPTIONS_ERROR_MAX];
        write_file(path, rows[i].text);
        CHECK_MSG(!parse(&options, SRV_COMMAND_SERVE, SERVE("--config", path), error),
                  "'%s' was taken", rows[i].text);
        CHECK_MSG(strstr(error, rows[i].want) != NULL && strchr(error, '\n') == NULL, "'%s': '%s'",
                  rows[i].text, error);
        srv_options_fini(&options);
    }
}

TEST(options_that_differ_are_found)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"listen", "127.0.0.1:1"}, {"data", "x=64M"},     {"size", "64M"},
        {"admin", "off"},          {"region", "r"},       {"access-log", "f"},
        {"threads", "3"},          {"log-level", "warn"}, {"access-log-format", "json"},
        {"anonymous", "true"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_options plain, other;
        char error[SRV_OPTIONS_ERROR_MAX];
        CHECK(parse(&plain, SRV_COMMAND_SERVE, (const char *const[]){NULL}, error));
        CHECK(parse(&other, SRV_COMMAND_SERVE, (const char *const[]){NULL}, error));
        for (size_t k = 0; k < SRV_OPTION_COUNT_ALL; k++)
            CHECK_MSG(srv_option_is_same(&srv_option_table[k], &plain, &other), "%s",
                      srv_option_table[k].name);
        const struct srv_option *option = srv_option_find(rows[i].name, ~0u);
        CHECK_MSG(srv_option_set(&other, option, rows[i].value, "x", error), "%s", error);
        CHECK_MSG(!srv_option_is_same(option, &plain, &other), "%s", rows[i].name);
        srv_options_fini(&plain);
        srv_options_fini(&other);
    }
}
