/* Hosts to buckets, as a table. */
#include "server/s3/hosts.h"

#include "tests/harness/test.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

TEST(a_host_stands_for_a_bucket_or_for_none)
{
    static const struct {
        const char *host;
        const char *bucket;      /* NULL: the path names it */
        const char *of_listener; /* the same where the listener has the bucket "own" */
    } rows[] = {
        {"", NULL, NULL},
        {"s3.example.com", NULL, NULL},
        {"b1.s3.example.com", "b1", "b1"},
        {"b1.s3.example.com:9000", "b1", "b1"},
        {"B1.S3.Example.COM.", "b1", "b1"},
        {"b1.s3.example.com.:80", "b1", "b1"},
        {"a.b.s3.example.com", "a.b", "a.b"},
        {"xs3.example.com", NULL, NULL},
        {".s3.example.com", NULL, NULL},
        {"s3.example.com.evil.org", NULL, NULL},
        {"other.org", NULL, NULL},
        {"b1.eu.s3.example.com", "b1", "b1"}, /* the longer domain */
        {"eu.s3.example.com", NULL, NULL},
        {"kv.lan", "kv-bucket", "kv-bucket"},
        {"KV.lan:443", "kv-bucket", "kv-bucket"},
        {"x.kv.lan", NULL, NULL},
        {"b2.s3.example.com", "aliased", "aliased"}, /* before the domain */
        {"10.0.0.9", "at-nine", "at-nine"},          /* before the listener */
        {"10.0.0.9:9000", "at-nine", "at-nine"},
        {"[fd00::9]:9000", "at-six", "at-six"},
        {"127.0.0.1", NULL, "own"},
        {"127.0.0.1:9001", NULL, "own"},
        {"[::1]", NULL, "own"},
        {"[::1]:9001", NULL, "own"},
        {"localhost:9001", NULL, "own"},
        {"LOCALHOST", NULL, "own"},
        {"1.2.3", NULL, NULL},
        {"256.0.0.1", NULL, NULL},
        {"::1", NULL, NULL},
        {":80", NULL, NULL},
        {"[", NULL, NULL},
        {"[]", NULL, NULL},
    };
    struct srv_s3_hosts hosts = {.has_listener_buckets = true};
    char scratch[SRV_S3_HOST_MAX];

    CHECK_EQ_INT(srv_s3_domains_add(&hosts.domains, "s3.example.com"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_domains_add(&hosts.domains, "EU.s3.example.com"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_aliases_add(&hosts.aliases, "kv.LAN=kv-old"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_aliases_add(&hosts.aliases, "10.0.0.9=at-nine"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_aliases_add(&hosts.aliases, "[fd00::9]=at-six"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_aliases_add(&hosts.aliases, "b2.s3.example.com=aliased"),
                 SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_aliases_add(&hosts.aliases, "kv.lan=kv-bucket"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_U64(hosts.aliases.n, 4);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int with = 0; with < 2; with++) {
            const char *want = with ? rows[i].of_listener : rows[i].bucket;
            struct srv_str own = with ? str("own") : (struct srv_str){NULL, 0};
            struct srv_str got = srv_s3_hosts_bucket(&hosts, str(rows[i].host), own, scratch);
            CHECK_MSG(want == NULL
                          ? got.base == NULL
                          : got.len == strlen(want) && memcmp(got.base, want, got.len) == 0,
                      "'%s': %.*s", rows[i].host, (int)got.len, got.base);
        }
    srv_s3_domains_fini(&hosts.domains);
    srv_s3_aliases_fini(&hosts.aliases);
}

TEST(a_host_too_long_stands_for_none)
{
    struct srv_s3_hosts hosts = {.has_listener_buckets = true};
    char scratch[SRV_S3_HOST_MAX], host[SRV_S3_HOST_MAX + 20];

    CHECK_EQ_INT(srv_s3_domains_add(&hosts.domains, "d"), SRV_S3_HOSTS_FINE);
    memset(host, 'a', sizeof host);
    memcpy(host + SRV_S3_HOST_MAX - 2, ".d", 2);
    struct srv_str none = {NULL, 0};
    struct srv_str got =
        srv_s3_hosts_bucket(&hosts, (struct srv_str){host, SRV_S3_HOST_MAX}, none, scratch);
    CHECK_EQ_U64(got.len, SRV_S3_HOST_MAX - 2);
    memcpy(host + SRV_S3_HOST_MAX - 1, ".d", 2);
    got = srv_s3_hosts_bucket(&hosts, (struct srv_str){host, SRV_S3_HOST_MAX + 1}, none, scratch);
    CHECK(got.base == NULL);
    srv_s3_domains_fini(&hosts.domains);
}

TEST(what_is_no_host_or_no_bucket_is_refused)
{
    static const struct {
        const char *text;
        enum srv_s3_hosts_fault as_domain, as_alias;
    } rows[] = {
        {"", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a..b", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {".a", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a.", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a:80", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a/b", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"10.0.0.1", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a", SRV_S3_HOSTS_FINE, SRV_S3_HOSTS_NO_HOST},
        {"a=", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_BUCKET},
        {"=abc", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a=Abc", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_BUCKET},
        {"a:80=abc", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_NO_HOST},
        {"a-b_c.d=abc", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_FINE},
        {"[::1]=abc", SRV_S3_HOSTS_NO_HOST, SRV_S3_HOSTS_FINE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_s3_hosts hosts = {.has_listener_buckets = false};
        CHECK_MSG(srv_s3_domains_add(&hosts.domains, rows[i].text) == rows[i].as_domain, "%s",
                  rows[i].text);
        CHECK_MSG(srv_s3_aliases_add(&hosts.aliases, rows[i].text) == rows[i].as_alias, "%s",
                  rows[i].text);
        CHECK(srv_s3_hosts_has_any(&hosts) == (hosts.domains.n + hosts.aliases.n > 0));
        srv_s3_domains_fini(&hosts.domains);
        srv_s3_aliases_fini(&hosts.aliases);
    }
}

TEST(there_is_an_end_to_domains)
{
    struct srv_s3_domains domains = {NULL, 0};

    for (int i = 0; i < SRV_S3_DOMAINS_MAX; i++)
        CHECK_EQ_INT(srv_s3_domains_add(&domains, "d"), SRV_S3_HOSTS_FINE);
    CHECK_EQ_INT(srv_s3_domains_add(&domains, "d"), SRV_S3_HOSTS_MANY);
    srv_s3_domains_fini(&domains);
}
