/* Which bucket a request's host stands for: virtual-host style, aliases, and the bucket of a
 * listener.
 *
 * Owns:    domains and aliases own their strings until they are finished with; struct
 *          srv_s3_hosts may be a copy that lends them.
 * Threads: any, as long as nobody changes it.
 * Blocks:  never.
 *
 * The port does not count, nor case, nor a dot at the end. Looked at in this order: an alias of
 * the whole host; BUCKET.DOMAIN, of several domains the longest; and, for an IP address or
 * "localhost", the listener's own bucket. A domain itself, and every other host, stand for none:
 * then the path names the bucket.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/name.h"

enum {
    SRV_S3_HOST_MAX = 253, /* bytes, as in DNS */
    SRV_S3_DOMAINS_MAX = 64,
    SRV_S3_ALIASES_MAX = 4096,
};

struct srv_s3_alias {
    char *host; /* lower-case */
    char *bucket;
};

struct srv_s3_domains {
    char **at; /* lower-case */
    size_t n;
};

struct srv_s3_aliases {
    struct srv_s3_alias *at; /* sorted by host */
    size_t n;
};

/* All zeros: the path alone names buckets. */
struct srv_s3_hosts {
    struct srv_s3_domains domains;
    struct srv_s3_aliases aliases;
    bool has_listener_buckets; /* requests may come with one */
};

enum srv_s3_hosts_fault {
    SRV_S3_HOSTS_FINE,
    SRV_S3_HOSTS_NO_HOST,   /* not the name of a host */
    SRV_S3_HOSTS_NO_BUCKET, /* not the name of a bucket */
    SRV_S3_HOSTS_MANY,
    SRV_S3_HOSTS_NO_MEMORY,
};

/* Adds a domain such as "s3.example.com". */
enum srv_s3_hosts_fault srv_s3_domains_add(struct srv_s3_domains *domains, const char *domain);
void srv_s3_domains_fini(struct srv_s3_domains *domains);

/* Adds HOST=BUCKET, where HOST may be an address, too (IPv6 in brackets); one that is there
 * already gets the other bucket. */
enum srv_s3_hosts_fault srv_s3_aliases_add(struct srv_s3_aliases *aliases, const char *alias);
void srv_s3_aliases_fini(struct srv_s3_aliases *aliases);

/* Whether any host can stand for a bucket. */
bool srv_s3_hosts_has_any(const struct srv_s3_hosts *hosts);

/* The bucket that `authority` (Host, or :authority) stands for, with a NULL base for none;
 * `of_listener` is the one of the listener, or has a NULL base. What is returned lies in
 * `hosts`, in `of_listener` or in `scratch`, and is not checked to be the name of a bucket. */
struct srv_str srv_s3_hosts_bucket(const struct srv_s3_hosts *hosts, struct srv_str authority,
                                   struct srv_str of_listener, char scratch[SRV_S3_HOST_MAX]);
