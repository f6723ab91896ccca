/* Access control lists: who besides the owner may use a bucket or an object.
 *
 * Lends:   a list's ids point into what it was made from.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Encoded: for each grant u8 grantee (enum srv_s3_grantee), u8 permissions (enum
 * srv_s3_permission), u8 length of the id, the id. No bytes at all, or no list: the owner alone.
 */
#pragma once

#include "server/s3/access.h"
#include "server/s3/error.h"

enum srv_s3_grantee {
    SRV_S3_GRANTEE_USER,     /* the one called `id` */
    SRV_S3_GRANTEE_EVERYONE, /* without a signature, too */
    SRV_S3_GRANTEE_SIGNED,   /* everyone with a valid signature */
};

enum srv_s3_permission {
    SRV_S3_ACL_READ = 1 << 0, /* of a bucket: list it */
    SRV_S3_ACL_WRITE = 1 << 1,
    SRV_S3_ACL_READ_ACP = 1 << 2,
    SRV_S3_ACL_WRITE_ACP = 1 << 3,
    SRV_S3_ACL_FULL = (1 << 4) - 1,
};

enum { SRV_S3_GRANTS_MAX = 32, SRV_S3_ACL_BYTES_MAX = SRV_S3_GRANTS_MAX * (3 + SRV_S3_ID_MAX) };

struct srv_s3_grant {
    enum srv_s3_grantee grantee;
    unsigned permissions;
    struct srv_str id;
};

struct srv_s3_acl {
    size_t n;
    struct srv_s3_grant grants[SRV_S3_GRANTS_MAX];
};

/* Adds to the grants of one grantee. False when there are too many. */
bool srv_s3_acl_add(struct srv_s3_acl *acl, enum srv_s3_grantee grantee, struct srv_str id,
                    unsigned permissions);

/* The list of that canned name, such as "public-read", for something of `owner` in a bucket of
 * `bucket_owner`. False for an unknown name. */
bool srv_s3_acl_canned(struct srv_str name, struct srv_str owner, struct srv_str bucket_owner,
                       struct srv_s3_acl *acl_out);

/* The list that a request's head asks for by x-amz-acl or x-amz-grant-*; `is_set_out` says whether
 * it asks for one. NONE, or INVALID_ARGUMENT, INVALID_REQUEST, UNRESOLVABLE_GRANT. */
enum srv_s3_code srv_s3_acl_of_head(const struct srv_request *req,
                                    const struct srv_s3_access *access, struct srv_str owner,
                                    struct srv_str bucket_owner, struct srv_s3_acl *acl_out,
                                    bool *is_set_out);

/* Writes the encoded form and returns its length: 0 when nobody but the owner is granted anything,
 * which all. */
size_t srv_s3_acl_encode(const struct srv_s3_acl *acl, struct srv_str owner,
                         uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX]);

/* Reads it; no bytes give the owner full control. False when it is broken. */
bool srv_s3_acl_decode(struct srv_str bytes, struct srv_str owner, struct srv_s3_acl *acl_out);

/* What an encoded list lets somebody do: bits of enum srv_s3_permission. `id` has a NULL base for
 * somebody without a signature. */
unsigned srv_s3_acl_permissions(struct srv_str bytes, struct srv_str owner, struct srv_str id);
