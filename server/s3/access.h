/* Who may do what: users, their keys and their rights, as the configuration has them.
 *
 * Owns:    struct srv_s3_access owns all its strings between init and fini; secrets are wiped.
 * Threads: any, as long as nobody changes it.
 * Blocks:  never.
 *
 * Rights that the configuration gives are beside those that follow from owning a bucket or an
 * object and from access control lists: whichever allows an operation is enough.
 */
#pragma once

#include "server/exchange.h"

enum {
    SRV_S3_ID_MAX = 64, /* longest name of a user, which is also its id */
    SRV_S3_ACCESS_KEY_MAX = 128,
    SRV_S3_SECRET_MIN = 8,
    SRV_S3_SECRET_MAX = 256,
};

enum srv_s3_right {
    SRV_S3_MAY_READ = 1 << 0,  /* objects, their metadata, tags and lists of parts */
    SRV_S3_MAY_WRITE = 1 << 1, /* store, change and remove objects */
    SRV_S3_MAY_LIST = 1 << 2,  /* the names of objects and uploads */
    SRV_S3_MAY_ADMIN = 1 << 3, /* all of that, and the bucket itself */
    SRV_S3_MAY_ALL = (1 << 4) - 1,
};

/* Rights in one bucket, or in all of them: "*". */
struct srv_s3_rule {
    char *bucket;
    unsigned rights;
};

struct srv_s3_rules {
    struct srv_s3_rule *at;
    size_t n;
};

struct srv_s3_key_pair {
    char *access_key;
    char *secret;
    uint64_t serial; /* of this loading of the key: what derives from the secret is kept by it */
};

struct srv_s3_user {
    char *name;
    char *email; /* NULL: none */
    struct srv_s3_key_pair *keys;
    size_t n_keys;
    struct srv_s3_rules rules;
};

struct srv_s3_access {
    struct srv_s3_user *users;
    size_t n_users;
    struct srv_s3_rules everyone; /* without a signature, too */
    bool is_open;                 /* requests without a signature may do everything */
};

void srv_s3_access_fini(struct srv_s3_access *access);

/* The user who has that access key, with the key; NULL when there is none. */
const struct srv_s3_user *srv_s3_access_find(const struct srv_s3_access *access,
                                             struct srv_str access_key,
                                             const struct srv_s3_key_pair **key_out);

/* The user of that name, or of that e-mail address; NULL when there is none. */
const struct srv_s3_user *srv_s3_access_named(const struct srv_s3_access *access,
                                              struct srv_str name);
const struct srv_s3_user *srv_s3_access_mailed(const struct srv_s3_access *access,
                                               struct srv_str email);

/* What `user` (NULL: somebody without a signature) may do in a bucket by the configuration: bits of
 * enum srv_s3_right. */
unsigned srv_s3_access_rights(const struct srv_s3_access *access, const struct srv_s3_user *user,
                              struct srv_str bucket);
