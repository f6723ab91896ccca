#include "server/s3/who.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/iso_date.h"
#include "server/s3/base64.h"
#include "server/s3/buckets.h"
#include "server/s3/call.h"
#include "server/s3/signing_key.h"
#include "server/s3/sigv4.h"
#include "server/uri.h"

/* Why a request is not admitted; `sig` and the rest are for the error document. */
struct verdict {
    enum srv_s3_code code;
    const char *message;
    struct srv_sigv4 sig;
};

/* ---- Who it is ---- */

static bool is_right(const struct verdict *v, const struct srv_request *req,
                     const struct srv_hmac_key *key)
{
    uint8_t signature[SRV_SHA256_LEN];

    for (enum srv_sigv4_target target = SRV_SIGV4_ENCODED; target <= SRV_SIGV4_AS_SENT; target++) {
        if (srv_sigv4_sign(&v->sig, req, target, key, signature) &&
            srv_digest_equal(signature, v->sig.signature))
            return true;
    }
    return false;
}

static enum srv_s3_code verify(const struct srv_s3_call *call, const struct srv_s3_access *access,
                               struct verdict *v, const struct srv_s3_user **user_out)
{
    const struct srv_s3_key_pair *pair;
    int64_t now_s = srv_s3_now_s(call);

    *user_out = NULL;
    enum srv_s3_code code = srv_sigv4_read(call->req, now_s, &v->sig, &v->message);
    if (code != SRV_S3_NONE || v->sig.form == SRV_SIGV4_NONE)
        return code;
    const struct srv_s3_user *user = srv_s3_access_find(access, v->sig.access_key, &pair);
    if (user == NULL)
        return SRV_S3_INVALID_ACCESS_KEY;
    if (!is_right(v, call->req, srv_s3_signing_key(pair, &v->sig)))
        return SRV_S3_SIGNATURE_DIFFERS;
    if (srv_sigv4_unsigned_field(&v->sig, call->req).base != NULL) {
        v->message = "There were headers present in the request which were not signed";
        return SRV_S3_ACCESS_DENIED;
    }
    *user_out = user;
    return srv_sigv4_check_time(&v->sig, now_s, &v->message);
}

static void take_user(struct srv_s3_who *who, const struct srv_s3_user *user)
{
    who->is_signed = user != NULL;
    who->id_len = 0;
    if (user == NULL)
        return;
    who->id_len = (uint8_t)strlen(user->name);
    memcpy(who->id, user->name, who->id_len);
}

/* ---- What is allowed ---- */

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

/* What the bucket's owner and list add to the configuration's rights. */
static void look_at_bucket(const struct srv_s3_call *call, struct srv_str name,
                           struct srv_s3_who *who)
{
    struct srv_s3_buckets *buckets = call->s3->buckets;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, name);

    who->is_owner = who->has_bucket = false;
    who->bucket_acl = 0;
    if (bucket == NULL)
        return;
    struct srv_s3_facts *facts = srv_s3_bucket_facts(buckets, bucket);
    struct srv_str owner = facts->of[SRV_S3_FACT_OWNER], id = srv_s3_who_id(who);
    who->is_owner = owner.base != NULL && id.base != NULL && same(owner, id);
    if (who->is_owner)
        who->rights = SRV_S3_MAY_ALL;
    who->bucket_acl = srv_s3_acl_permissions(facts->of[SRV_S3_FACT_ACL], owner, id);
    who->has_bucket = true;
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
}

static bool is_allowed(const struct srv_s3_who *who, enum srv_s3_need need)
{
    unsigned rights = who->rights, acl = who->bucket_acl;

    switch (need) {
    case SRV_S3_NEED_ANYBODY:
    case SRV_S3_NEED_NONE:
    case SRV_S3_NEED_OBJECT: return true; /* the object's own list may allow it */
    case SRV_S3_NEED_CREATE: return who->is_signed || (rights & SRV_S3_MAY_ADMIN) != 0;
    case SRV_S3_NEED_WRITE:
        return (rights & SRV_S3_MAY_WRITE) != 0 || (acl & SRV_S3_ACL_WRITE) != 0;
    case SRV_S3_NEED_LIST: return (rights & SRV_S3_MAY_LIST) != 0 || (acl & SRV_S3_ACL_READ) != 0;
    case SRV_S3_NEED_ADMIN: return (rights & SRV_S3_MAY_ADMIN) != 0;
    case SRV_S3_NEED_READ_ACP:
        return (rights & SRV_S3_MAY_ADMIN) != 0 || (acl & SRV_S3_ACL_READ_ACP) != 0;
    case SRV_S3_NEED_WRITE_ACP:
        return (rights & SRV_S3_MAY_ADMIN) != 0 || (acl & SRV_S3_ACL_WRITE_ACP) != 0;
    }
    return false;
}

/* That a bucket is missing is told to everybody: it is for its handler to say. */
static enum srv_s3_code authorize(const struct srv_s3_call *call)
{
    enum srv_s3_need need = srv_s3_need_of(call->route.op);
    bool needs_bucket = need != SRV_S3_NEED_NONE && need != SRV_S3_NEED_CREATE;

    if (needs_bucket && !call->who.has_bucket)
        return SRV_S3_NONE;
    return is_allowed(&call->who, need) ? SRV_S3_NONE : SRV_S3_ACCESS_DENIED;
}

/* A request may name the owner that it expects the bucket to have. */
static enum srv_s3_code check_expected_owner(const struct srv_s3_call *call)
{
    const struct srv_str *expected =
        srv_request_field(call->req, "x-amz-expected-bucket-owner", NULL);

    if (expected == NULL || call->route.bucket.base == NULL)
        return SRV_S3_NONE;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(call->s3->buckets, call->route.bucket);
    if (bucket == NULL)
        return SRV_S3_NONE;
    struct srv_s3_facts *facts = srv_s3_bucket_facts(call->s3->buckets, bucket);
    struct srv_str owner = srv_s3_owner_or_default(facts->of[SRV_S3_FACT_OWNER]);
    bool is_right = same(owner, *expected);
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
    return is_right ? SRV_S3_NONE : SRV_S3_ACCESS_DENIED;
}

/* ---- Refusals ---- */

struct text {
    char *bytes;
    size_t len;
};

static void append(void *data, const char *bytes, size_t len)
{
    struct text *text = data;
    char *grown = realloc(text->bytes, text->len + len);

    if (grown == NULL)
        return; /* an explanation cut short is better than none */
    text->bytes = grown;
    memcpy(grown + text->len, bytes, len);
    text->len += len;
}

/* Shows what the server would have signed, so that whoever writes a client can compare. */
static void fail_signature(const struct srv_s3_call *call, const struct verdict *v)
{
    char string[SRV_SIGV4_STRING_MAX], hex[2 * SRV_SHA256_LEN + 1];
    uint8_t hash[SRV_SHA256_LEN];
    struct text canonical = {NULL, 0};
    struct srv_sha256 sha;
    struct srv_s3_head head;

    (void)srv_sigv4_canonical(&v->sig, call->req, SRV_SIGV4_ENCODED, append, &canonical);
    srv_sha256_init(&sha);
    srv_sha256_update(&sha, canonical.len > 0 ? canonical.bytes : "", canonical.len);
    srv_sha256_finish(&sha, hash);
    size_t len = srv_sigv4_string(&v->sig, hash, string);
    srv_hex_encode(v->sig.signature, SRV_SHA256_LEN, hex);
    struct srv_s3_detail details[] = {
        {"AWSAccessKeyId", v->sig.access_key},
        {"StringToSign", {string, len}},
        {"SignatureProvided", srv_s3_str(hex)},
        {"CanonicalRequest", {canonical.len > 0 ? canonical.bytes : "", canonical.len}},
    };
    srv_s3_head_init(&head, call);
    srv_s3_fail_with(call, SRV_S3_SIGNATURE_DIFFERS, NULL, &head, details, 4);
    free(canonical.bytes);
}

static void fail_skew(const struct srv_s3_call *call, const struct verdict *v)
{
    char server[SRV_ISO_SHORT_LEN + 1];
    struct srv_s3_head head;

    srv_iso_short_write(srv_s3_now_s(call), server);
    struct srv_s3_detail details[] = {{"RequestTime", srv_s3_str(v->sig.time)},
                                      {"ServerTime", srv_s3_str(server)}};
    srv_s3_head_init(&head, call);
    srv_s3_fail_with(call, SRV_S3_TIME_SKEWED, NULL, &head, details, 2);
}

static void fail(const struct srv_s3_call *call, const struct verdict *v)
{
    struct srv_s3_detail detail = {"AWSAccessKeyId", v->sig.access_key};
    struct srv_s3_head head;

    switch (v->code) {
    case SRV_S3_SIGNATURE_DIFFERS: fail_signature(call, v); return;
    case SRV_S3_TIME_SKEWED: fail_skew(call, v); return;
    case SRV_S3_INVALID_ACCESS_KEY:
        srv_s3_head_init(&head, call);
        srv_s3_fail_with(call, v->code, NULL, &head, &detail, 1);
        return;
    default: srv_s3_fail(call, v->code, v->message); return;
    }
}

/* ---- All of it ---- */

static enum srv_s3_code admit(struct srv_s3_call *call, struct verdict *v)
{
    struct srv_s3 *s3 = call->s3;
    const struct srv_s3_user *user;

    pthread_rwlock_rdlock(&s3->access_lock);
    enum srv_s3_code code = verify(call, s3->access, v, &user);
    if (code == SRV_S3_NONE) {
        take_user(&call->who, user);
        call->who.rights = srv_s3_access_rights(s3->access, user, call->route.bucket);
    }
    pthread_rwlock_unlock(&s3->access_lock);
    if (code != SRV_S3_NONE)
        return code;
    call->who.is_owner = call->who.has_bucket = false;
    call->who.bucket_acl = 0;
    if (call->route.bucket.base != NULL)
        look_at_bucket(call, call->route.bucket, &call->who);
    return authorize(call);
}

void srv_s3_who_in(const struct srv_s3_call *call, struct srv_str bucket,
                   struct srv_s3_who *who_out)
{
    struct srv_s3 *s3 = call->s3;
    const struct srv_s3_user *user = NULL;

    *who_out = call->who;
    if (who_out->is_open)
        return;
    pthread_rwlock_rdlock(&s3->access_lock);
    if (who_out->is_signed)
        user = srv_s3_access_named(s3->access, srv_s3_who_id(who_out));
    who_out->rights = srv_s3_access_rights(s3->access, user, bucket);
    pthread_rwlock_unlock(&s3->access_lock);
    look_at_bucket(call, bucket, who_out);
}

static bool refuse(const struct srv_s3_call *call, enum srv_s3_code code)
{
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, NULL);
    return code == SRV_S3_NONE;
}

bool srv_s3_admit(struct srv_s3_call *call)
{
    struct verdict v;

    call->who.is_open = atomic_load_explicit(&call->s3->is_open, memory_order_relaxed);
    call->who.is_signed = false;
    if (!call->who.is_open && srv_s3_need_of(call->route.op) != SRV_S3_NEED_ANYBODY) {
        v.message = NULL;
        v.code = admit(call, &v);
        if (v.code != SRV_S3_NONE) {
            fail(call, &v);
            return false;
        }
    }
    return refuse(call, check_expected_owner(call));
}

bool srv_s3_may_use(const struct srv_s3_who *who, struct srv_str owner, struct srv_str acl,
                    enum srv_s3_permission permission)
{
    bool is_acp = permission == SRV_S3_ACL_READ_ACP || permission == SRV_S3_ACL_WRITE_ACP;
    unsigned enough = is_acp                           ? SRV_S3_MAY_ADMIN
                      : permission == SRV_S3_ACL_WRITE ? SRV_S3_MAY_WRITE
                                                       : SRV_S3_MAY_READ;

    if (who->is_open || (who->rights & enough) != 0)
        return true;
    /* What is of nobody was stored before there were users: the list cannot be of theirs. */
    if (owner.base == NULL && acl.len == 0)
        return false;
    return (srv_s3_acl_permissions(acl, owner, srv_s3_who_id(who)) & (unsigned)permission) != 0;
}

bool srv_s3_may_know(const struct srv_s3_who *who)
{
    return who->is_open || (who->rights & SRV_S3_MAY_LIST) != 0 ||
           (who->bucket_acl & SRV_S3_ACL_READ) != 0;
}

bool srv_s3_may_override(const struct srv_s3_call *call)
{
    if (!call->who.is_open)
        return call->who.is_signed;
    return srv_request_field(call->req, "authorization", NULL) != NULL ||
           srv_query_find(call->req->query, "X-Amz-Signature", NULL);
}
