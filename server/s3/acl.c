#include "server/s3/acl.h"

#include <string.h>

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

bool srv_s3_acl_add(struct srv_s3_acl *acl, enum srv_s3_grantee grantee, struct srv_str id,
                    unsigned permissions)
{
    for (size_t i = 0; i < acl->n; i++) {
        struct srv_s3_grant *grant = &acl->grants[i];
        if (grant->grantee == grantee && same(grant->id, id)) {
            grant->permissions |= permissions;
            return true;
        }
    }
    if (acl->n == SRV_S3_GRANTS_MAX || id.len > SRV_S3_ID_MAX)
        return false;
    acl->grants[acl->n++] = (struct srv_s3_grant){grantee, permissions, id};
    return true;
}

/* ---- Canned lists ---- */

static const struct {
    const char *name;
    enum srv_s3_grantee grantee; /* USER: the bucket's owner */
    unsigned permissions;
} canned[] = {
    {"private", SRV_S3_GRANTEE_EVERYONE, 0},
    {"public-read", SRV_S3_GRANTEE_EVERYONE, SRV_S3_ACL_READ},
    {"public-read-write", SRV_S3_GRANTEE_EVERYONE, SRV_S3_ACL_READ | SRV_S3_ACL_WRITE},
    {"authenticated-read", SRV_S3_GRANTEE_SIGNED, SRV_S3_ACL_READ},
    {"bucket-owner-read", SRV_S3_GRANTEE_USER, SRV_S3_ACL_READ},
    {"bucket-owner-full-control", SRV_S3_GRANTEE_USER, SRV_S3_ACL_FULL},
    {"aws-exec-read", SRV_S3_GRANTEE_EVERYONE, 0},
};

bool srv_s3_acl_canned(struct srv_str name, struct srv_str owner, struct srv_str bucket_owner,
                       struct srv_s3_acl *acl_out)
{
    acl_out->n = 0;
    for (size_t i = 0; i < sizeof canned / sizeof canned[0]; i++) {
        if (!equals(name, canned[i].name))
            continue;
        bool is_user = canned[i].grantee == SRV_S3_GRANTEE_USER;
        srv_s3_acl_add(acl_out, SRV_S3_GRANTEE_USER, owner, SRV_S3_ACL_FULL);
        if (canned[i].permissions != 0)
            srv_s3_acl_add(acl_out, canned[i].grantee,
                           is_user ? bucket_owner : (struct srv_str){"", 0}, canned[i].permissions);
        return true;
    }
    return false;
}

/* ---- x-amz-grant-* ---- */

static const struct {
    const char *field;
    unsigned permissions;
} grant_fields[] = {
    {"x-amz-grant-read", SRV_S3_ACL_READ},         {"x-amz-grant-write", SRV_S3_ACL_WRITE},
    {"x-amz-grant-read-acp", SRV_S3_ACL_READ_ACP}, {"x-amz-grant-write-acp", SRV_S3_ACL_WRITE_ACP},
    {"x-amz-grant-full-control", SRV_S3_ACL_FULL},
};

#define GROUP_PREFIX "http://acs.amazonaws.com/groups/"

static struct srv_str trim(struct srv_str text, const char *what)
{
    while (text.len > 0 && strchr(what, text.base[0]) != NULL)
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && strchr(what, text.base[text.len - 1]) != NULL)
        text.len--;
    return text;
}

/* One `id="..."`, `uri="..."` or `emailAddress="..."`. */
static enum srv_s3_code add_named(struct srv_s3_acl *acl, const struct srv_s3_access *access,
                                  struct srv_str item, unsigned permissions)
{
    const char *equal = item.len == 0 ? NULL : memchr(item.base, '=', item.len);
    const struct srv_s3_user *user;
    bool ok = false;

    if (equal == NULL)
        return SRV_S3_INVALID_ARGUMENT;
    size_t len = (size_t)(equal - item.base);
    struct srv_str kind = trim((struct srv_str){item.base, len}, " \t");
    struct srv_str value = trim((struct srv_str){equal + 1, item.len - len - 1}, " \t\"");
    if (equals(kind, "uri") && equals(value, GROUP_PREFIX "global/AllUsers")) {
        ok = srv_s3_acl_add(acl, SRV_S3_GRANTEE_EVERYONE, (struct srv_str){"", 0}, permissions);
    } else if (equals(kind, "uri") && equals(value, GROUP_PREFIX "global/AuthenticatedUsers")) {
        ok = srv_s3_acl_add(acl, SRV_S3_GRANTEE_SIGNED, (struct srv_str){"", 0}, permissions);
    } else if (equals(kind, "id")) {
        user = srv_s3_access_named(access, value);
        ok = user != NULL && srv_s3_acl_add(acl, SRV_S3_GRANTEE_USER, value, permissions);
    } else if (equals(kind, "emailAddress")) {
        user = srv_s3_access_mailed(access, value);
        if (user == NULL)
            return SRV_S3_UNRESOLVABLE_GRANT;
        struct srv_str name = {user->name, strlen(user->name)};
        ok = srv_s3_acl_add(acl, SRV_S3_GRANTEE_USER, name, permissions);
    }
    return ok ? SRV_S3_NONE : SRV_S3_INVALID_ARGUMENT;
}

static enum srv_s3_code add_field(struct srv_s3_acl *acl, const struct srv_s3_access *access,
                                  struct srv_str rest, unsigned permissions)
{
    enum srv_s3_code code = SRV_S3_NONE;

    while (code == SRV_S3_NONE && rest.len > 0) {
        const char *comma = memchr(rest.base, ',', rest.len);
        size_t len = comma == NULL ? rest.len : (size_t)(comma - rest.base);
        size_t step = comma == NULL ? len : len + 1;
        code = add_named(acl, access, (struct srv_str){rest.base, len}, permissions);
        rest = (struct srv_str){rest.base + step, rest.len - step};
    }
    return code;
}

enum srv_s3_code srv_s3_acl_of_head(const struct srv_request *req,
                                    const struct srv_s3_access *access, struct srv_str owner,
                                    struct srv_str bucket_owner, struct srv_s3_acl *acl_out,
                                    bool *is_set_out)
{
    const struct srv_str *name = srv_request_field(req, "x-amz-acl", NULL);
    enum srv_s3_code code = SRV_S3_NONE;
    bool has_grants = false;

    acl_out->n = 0;
    for (size_t i = 0; i < sizeof grant_fields / sizeof grant_fields[0]; i++) {
        const struct srv_str *value = srv_request_field(req, grant_fields[i].field, NULL);
        if (value == NULL)
            continue;
        has_grants = true;
        if (code == SRV_S3_NONE)
            code = add_field(acl_out, access, *value, grant_fields[i].permissions);
    }
    *is_set_out = name != NULL || has_grants;
    if (name != NULL && has_grants)
        return SRV_S3_INVALID_REQUEST;
    if (name != NULL && !srv_s3_acl_canned(*name, owner, bucket_owner, acl_out))
        return SRV_S3_INVALID_ARGUMENT;
    return code;
}

/* ---- Encoding ---- */

size_t srv_s3_acl_encode(const struct srv_s3_acl *acl, struct srv_str owner,
                         uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX])
{
    uint8_t *at = bytes_out;
    bool is_plain = acl->n == 1 && acl->grants[0].grantee == SRV_S3_GRANTEE_USER &&
                    same(acl->grants[0].id, owner) && acl->grants[0].permissions == SRV_S3_ACL_FULL;

    if (is_plain)
        return 0;
    for (size_t i = 0; i < acl->n; i++) {
        const struct srv_s3_grant *grant = &acl->grants[i];
        *at++ = (uint8_t)grant->grantee;
        *at++ = (uint8_t)grant->permissions;
        *at++ = (uint8_t)grant->id.len;
        if (grant->id.len > 0)
            memcpy(at, grant->id.base, grant->id.len);
        at += grant->id.len;
    }
    if (acl->n == 0) {
        /* Nobody may do anything: told from "the owner alone" by a grant of nothing. */
        memset(at, 0, 3);
        *at = SRV_S3_GRANTEE_SIGNED;
        at += 3;
    }
    return (size_t)(at - bytes_out);
}

bool srv_s3_acl_decode(struct srv_str bytes, struct srv_str owner, struct srv_s3_acl *acl_out)
{
    acl_out->n = 0;
    if (bytes.len == 0)
        return srv_s3_acl_add(acl_out, SRV_S3_GRANTEE_USER, owner, SRV_S3_ACL_FULL);
    const char *at = bytes.base, *end = at + bytes.len;
    while (at < end) {
        if (end - at < 3 || (uint8_t)at[2] > end - at - 3 ||
            (uint8_t)at[0] > SRV_S3_GRANTEE_SIGNED || ((uint8_t)at[1] & ~SRV_S3_ACL_FULL) != 0)
            return false;
        struct srv_str id = {at + 3, (uint8_t)at[2]};
        if (at[1] != 0 && !srv_s3_acl_add(acl_out, (enum srv_s3_grantee)at[0], id, (uint8_t)at[1]))
            return false;
        at += 3 + id.len;
    }
    return true;
}

unsigned srv_s3_acl_permissions(struct srv_str bytes, struct srv_str owner, struct srv_str id)
{
    struct srv_s3_acl acl;
    unsigned permissions = 0;

    /* The owner can always look at the list and mend it. */
    if (id.base != NULL && same(id, owner))
        permissions = SRV_S3_ACL_READ_ACP | SRV_S3_ACL_WRITE_ACP;
    if (!srv_s3_acl_decode(bytes, owner, &acl))
        return permissions;
    for (size_t i = 0; i < acl.n; i++) {
        const struct srv_s3_grant *grant = &acl.grants[i];
        if (grant->grantee == SRV_S3_GRANTEE_EVERYONE ||
            (grant->grantee == SRV_S3_GRANTEE_SIGNED && id.base != NULL) ||
            (grant->grantee == SRV_S3_GRANTEE_USER && id.base != NULL && same(grant->id, id)))
            permissions |= grant->permissions;
    }
    return permissions;
}
