#include "server/s3/hosts.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "server/chars.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

/* ---- Hosts ---- */

/* Takes the port off; what is in brackets may hold colons. */
static struct srv_str without_port(struct srv_str authority)
{
    size_t len = authority.len;

    while (len > 0 && srv_is_digit((unsigned char)authority.base[len - 1]))
        len--;
    if (len > 0 && authority.base[len - 1] == ':')
        authority.len = len - 1;
    return authority;
}

/* Writes the host as it is compared; empty when it is too long to be one. */
static struct srv_str normalize(struct srv_str authority, char scratch[SRV_S3_HOST_MAX])
{
    struct srv_str host = without_port(authority);

    if (host.len > 0 && host.base[host.len - 1] == '.')
        host.len--;
    if (host.len > SRV_S3_HOST_MAX)
        host.len = 0;
    for (size_t i = 0; i < host.len; i++)
        scratch[i] = lower(host.base[i]);
    return (struct srv_str){scratch, host.len};
}

static bool is_address(struct srv_str host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char binary[16];
    bool is_ip6 = host.len > 2 && host.base[0] == '[' && host.base[host.len - 1] == ']';

    if (is_ip6)
        host = (struct srv_str){host.base + 1, host.len - 2};
    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.base, host.len);
    text[host.len] = '\0';
    return inet_pton(is_ip6 ? AF_INET6 : AF_INET, text, binary) == 1;
}

static bool is_here(struct srv_str host)
{
    return is_address(host) || (host.len == 9 && memcmp(host.base, "localhost", 9) == 0);
}

/* Letters, digits, '-' and '_' in labels with dots between them, or an address. */
static bool is_host(struct srv_str host)
{
    char before = '.';

    if (host.len == 0 || host.len > SRV_S3_HOST_MAX)
        return false;
    if (is_address(host))
        return true;
    for (size_t i = 0; i < host.len; before = host.base[i++]) {
        char c = lower(host.base[i]);
        bool is_label =
            (c >= 'a' && c <= 'z') || srv_is_digit((unsigned char)c) || c == '-' || c == '_';
        if (!is_label && (c != '.' || before == '.'))
            return false;
    }
    return before != '.';
}

static int compare(struct srv_str host, const char *other)
{
    size_t len = strlen(other);
    int order = memcmp(host.base, other, host.len < len ? host.len : len);

    return order != 0 ? order : (host.len > len) - (host.len < len);
}

/* ---- What is configured ---- */

static char *copy_lower(struct srv_str text)
{
    char *copy = malloc(text.len + 1);

    for (size_t i = 0; copy != NULL && i < text.len; i++)
        copy[i] = lower(text.base[i]);
    if (copy != NULL)
        copy[text.len] = '\0';
    return copy;
}

enum srv_s3_hosts_fault srv_s3_domains_add(struct srv_s3_domains *domains, const char *domain)
{
    struct srv_str name = str(domain);

    if (!is_host(name) || is_address(name))
        return SRV_S3_HOSTS_NO_HOST;
    if (domains->n == SRV_S3_DOMAINS_MAX)
        return SRV_S3_HOSTS_MANY;
    char **more = realloc(domains->at, (domains->n + 1) * sizeof *more);
    if (more == NULL)
        return SRV_S3_HOSTS_NO_MEMORY;
    domains->at = more;
    more[domains->n] = copy_lower(name);
    if (more[domains->n] == NULL)
        return SRV_S3_HOSTS_NO_MEMORY;
    domains->n++;
    return SRV_S3_HOSTS_FINE;
}

void srv_s3_domains_fini(struct srv_s3_domains *domains)
{
    while (domains->n > 0)
        free(domains->at[--domains->n]);
    free(domains->at);
    domains->at = NULL;
}

/* Where the host is, or would have to be. */
static size_t place_of(const struct srv_s3_aliases *aliases, struct srv_str host)
{
    size_t low = 0, high = aliases->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(host, aliases->at[middle].host) <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_at(const struct srv_s3_aliases *aliases, size_t place, struct srv_str host)
{
    return place < aliases->n && compare(host, aliases->at[place].host) == 0;
}

/* Takes both strings if it succeeds. */
static enum srv_s3_hosts_fault insert(struct srv_s3_aliases *aliases, char *host, char *bucket)
{
    size_t place = place_of(aliases, str(host));

    if (is_at(aliases, place, str(host))) {
        free(host);
        free(aliases->at[place].bucket);
        aliases->at[place].bucket = bucket;
        return SRV_S3_HOSTS_FINE;
    }
    if (aliases->n == SRV_S3_ALIASES_MAX)
        return SRV_S3_HOSTS_MANY;
    struct srv_s3_alias *more = realloc(aliases->at, (aliases->n + 1) * sizeof *more);
    if (more == NULL)
        return SRV_S3_HOSTS_NO_MEMORY;
    aliases->at = more;
    memmove(more + place + 1, more + place, (aliases->n - place) * sizeof *more);
    more[place] = (struct srv_s3_alias){host, bucket};
    aliases->n++;
    return SRV_S3_HOSTS_FINE;
}

enum srv_s3_hosts_fault srv_s3_aliases_add(struct srv_s3_aliases *aliases, const char *alias)
{
    const char *equals = strchr(alias, '=');
    enum srv_s3_hosts_fault fault = SRV_S3_HOSTS_NO_MEMORY;

    if (equals == NULL || !is_host((struct srv_str){alias, (size_t)(equals - alias)}))
        return SRV_S3_HOSTS_NO_HOST;
    if (!srv_s3_bucket_valid(str(equals + 1)))
        return SRV_S3_HOSTS_NO_BUCKET;
    char *host = copy_lower((struct srv_str){alias, (size_t)(equals - alias)});
    char *bucket = strdup(equals + 1);
    if (host != NULL && bucket != NULL)
        fault = insert(aliases, host, bucket);
    if (fault != SRV_S3_HOSTS_FINE) {
        free(host);
        free(bucket);
    }
    return fault;
}

void srv_s3_aliases_fini(struct srv_s3_aliases *aliases)
{
    while (aliases->n > 0) {
        struct srv_s3_alias *alias = &aliases->at[--aliases->n];
        free(alias->host);
        free(alias->bucket);
    }
    free(aliases->at);
    aliases->at = NULL;
}

bool srv_s3_hosts_has_any(const struct srv_s3_hosts *hosts)
{
    return hosts->domains.n > 0 || hosts->aliases.n > 0 || hosts->has_listener_buckets;
}

/* ---- What a request means ---- */

/* How much of `host` stands before ".DOMAIN"; 0 if it does not end so. */
static size_t len_before(struct srv_str host, const char *domain)
{
    size_t len = strlen(domain);

    if (host.len <= len + 1 || host.base[host.len - len - 1] != '.' ||
        memcmp(host.base + host.len - len, domain, len) != 0)
        return 0;
    return host.len - len - 1;
}

/* What stands before the longest domain that the host is below; 0 for none, or for a domain
 * itself. */
static size_t find_domain(const struct srv_s3_domains *domains, struct srv_str host)
{
    size_t least = 0;

    for (size_t i = 0; i < domains->n; i++) {
        if (compare(host, domains->at[i]) == 0)
            return 0;
        size_t len = len_before(host, domains->at[i]);
        if (len > 0 && (least == 0 || len < least))
            least = len;
    }
    return least;
}

struct srv_str srv_s3_hosts_bucket(const struct srv_s3_hosts *hosts, struct srv_str authority,
                                   struct srv_str of_listener, char scratch[SRV_S3_HOST_MAX])
{
    struct srv_str host = normalize(authority, scratch);

    if (host.len == 0)
        return (struct srv_str){NULL, 0};
    size_t place = place_of(&hosts->aliases, host);
    if (is_at(&hosts->aliases, place, host))
        return str(hosts->aliases.at[place].bucket);
    size_t len = find_domain(&hosts->domains, host);
    if (len > 0)
        return (struct srv_str){scratch, len};
    return of_listener.base != NULL && is_here(host) ? of_listener : (struct srv_str){NULL, 0};
}
