#include "server/s3/route.h"

#include <stddef.h>
#include <string.h>

#include "server/uri.h"

static const struct {
    enum srv_method method;
    enum srv_s3_place place;
    enum srv_s3_sub sub;
} ops[SRV_S3_OP_COUNT] = {
#define X(name, method, place, sub, need, handler) {SRV_##method, SRV_S3_##place, SRV_S3_SUB_##sub},
#include "server/s3/operation.def"
#undef X
};

static const char *const sub_names[] = {
    [SRV_S3_SUB_NONE] = NULL,
#define X(id, name) [SRV_S3_SUB_##id] = name,
#include "server/s3/subresource.def"
#undef X
};

enum srv_s3_need srv_s3_need_of(enum srv_s3_op op)
{
    static const enum srv_s3_need needs[] = {
#define X(name, method, place, sub, need, handler) SRV_S3_NEED_##need,
#include "server/s3/operation.def"
#undef X
        SRV_S3_NEED_NONE,
    };
    return needs[op];
}

const char *srv_s3_sub_name(enum srv_s3_sub sub)
{
    return sub_names[sub];
}

static void refuse(struct srv_s3_route *route, enum srv_s3_code error)
{
    if (route->op == SRV_S3_OP_REFUSED && route->error != SRV_S3_NONE)
        return; /* the first reason stands */
    route->op = SRV_S3_OP_REFUSED;
    route->error = error;
}

/* Whether each '%' begins a triplet. */
static bool well_formed(struct srv_str text)
{
    char byte;
    size_t len;
    for (size_t i = 0; i < text.len; i++) {
        size_t left = text.len - i;
        struct srv_str triplet = {text.base + i, left < 3 ? left : 3};
        if (text.base[i] == '%' && !srv_uri_decode(triplet, false, &byte, 1, &len))
            return false;
    }
    return true;
}

static void take_bucket(struct srv_s3_route *route, struct srv_str raw)
{
    size_t len;
    bool ok = srv_uri_decode(raw, false, route->bucket_, sizeof(route->bucket_), &len);
    route->bucket = (struct srv_str){route->bucket_, len};
    if (!ok || !srv_s3_bucket_valid(route->bucket))
        refuse(route, SRV_S3_INVALID_BUCKET_NAME);
}

static void take_key(struct srv_s3_route *route, struct srv_str raw)
{
    size_t len;
    bool ok = srv_uri_decode(raw, false, route->key_, sizeof(route->key_), &len);
    if (!ok) {
        refuse(route, well_formed(raw) ? SRV_S3_KEY_TOO_LONG : SRV_S3_INVALID_URI);
        return;
    }
    route->key = (struct srv_str){route->key_, len};
    enum srv_s3_code code = srv_s3_key_check(route->key);
    if (code != SRV_S3_NONE)
        refuse(route, code);
}

/* Splits the path and decodes both names. */
static enum srv_s3_place take_path(struct srv_s3_route *route, struct srv_str path)
{
    if (path.len <= 1)
        return SRV_S3_SERVICE;
    struct srv_str rest = {path.base + 1, path.len - 1};
    const char *slash = memchr(rest.base, '/', rest.len);
    struct srv_str bucket = {rest.base, slash == NULL ? rest.len : (size_t)(slash - rest.base)};
    take_bucket(route, bucket);
    if (slash == NULL || bucket.len + 1 == rest.len)
        return SRV_S3_BUCKET;
    take_key(route, (struct srv_str){slash + 1, rest.len - bucket.len - 1});
    return SRV_S3_OBJECT;
}

/* The host has named the bucket: all of the path after its first slash is the key. */
static enum srv_s3_place take_host(struct srv_s3_route *route, struct srv_str bucket,
                                   struct srv_str path)
{
    take_bucket(route, bucket);
    if (path.len <= 1)
        return SRV_S3_BUCKET;
    take_key(route, (struct srv_str){path.base + 1, path.len - 1});
    return SRV_S3_OBJECT;
}

/* The sub-resource that a query names, or NONE. */
static enum srv_s3_sub find_sub(struct srv_str query)
{
    if (query.len == 0)
        return SRV_S3_SUB_NONE;
    for (size_t i = 1; i < sizeof(sub_names) / sizeof(sub_names[0]); i++)
        if (srv_query_find(query, sub_names[i], NULL))
            return (enum srv_s3_sub)i;
    return SRV_S3_SUB_NONE;
}

/* Only the version that an unversioned object has can be asked for. */
static void check_version(struct srv_s3_route *route, struct srv_str query)
{
    struct srv_str version;
    if (query.len == 0 || !srv_query_find(query, "versionId", &version))
        return;
    if (version.len != 4 || memcmp(version.base, "null", 4) != 0)
        refuse(route, SRV_S3_NO_SUCH_VERSION);
}

static enum srv_s3_op find_op(enum srv_method method, const struct srv_s3_route *route)
{
    size_t i = 0;

    while (i < SRV_S3_OP_COUNT &&
           (ops[i].method != method || ops[i].place != route->place || ops[i].sub != route->sub))
        i++;
    return (enum srv_s3_op)i;
}

/* Listing a bucket and posting to one or to an object are operations of S3; without a sub-resource
 * everything else that no row has is none. */
static enum srv_s3_code code_of_unknown(enum srv_method method, const struct srv_s3_route *route)
{
    bool is_known = route->sub != SRV_S3_SUB_NONE ||
                    (route->place == SRV_S3_BUCKET && method == SRV_GET) ||
                    (route->place != SRV_S3_SERVICE && method == SRV_POST);
    return is_known ? SRV_S3_NOT_IMPLEMENTED : SRV_S3_METHOD_NOT_ALLOWED;
}

void srv_s3_route(const struct srv_request *req, struct srv_str host_bucket,
                  struct srv_s3_route *route_out)
{
    struct srv_s3_route *route = route_out;
    route->op = SRV_S3_OP_REFUSED;
    route->error = SRV_S3_NONE;
    route->bucket = route->key = (struct srv_str){NULL, 0};
    route->place = host_bucket.base == NULL ? take_path(route, req->path)
                                            : take_host(route, host_bucket, req->path);
    route->sub = find_sub(req->query);
    if (route->place == SRV_S3_OBJECT)
        check_version(route, req->query);
    if (route->error != SRV_S3_NONE)
        return;
    route->op = find_op(req->method, route);
    if (route->op == SRV_S3_OP_REFUSED)
        route->error = code_of_unknown(req->method, route);
}

void srv_s3_route_copy(const struct srv_s3_route *route, struct srv_s3_route *route_out)
{
    memcpy(route_out, route, offsetof(struct srv_s3_route, key_));
    memcpy(route_out->key_, route->key_, route->key.len);
    if (route->bucket.base != NULL)
        route_out->bucket.base = route_out->bucket_;
    if (route->key.base != NULL)
        route_out->key.base = route_out->key_;
}
