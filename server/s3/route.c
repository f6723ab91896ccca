#include "server/s3/route.h"

#include <string.h>

#include "server/uri.h"

/* Rows: what the path names; columns: SRV_GET to SRV_DELETE. METHOD_OTHER and OPTIONS are in no
 * row. */
enum place { SERVICE, BUCKET, OBJECT };

static const enum srv_s3_op ops[3][SRV_DELETE + 1] = {
    [SERVICE] = {[SRV_GET] = SRV_S3_OP_LIST_BUCKETS},
    [BUCKET] = {[SRV_PUT] = SRV_S3_OP_CREATE_BUCKET,
                [SRV_HEAD] = SRV_S3_OP_HEAD_BUCKET,
                [SRV_DELETE] = SRV_S3_OP_DELETE_BUCKET},
    [OBJECT] = {[SRV_PUT] = SRV_S3_OP_PUT_OBJECT,
                [SRV_GET] = SRV_S3_OP_GET_OBJECT,
                [SRV_HEAD] = SRV_S3_OP_HEAD_OBJECT,
                [SRV_DELETE] = SRV_S3_OP_DELETE_OBJECT},
};

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
static enum place take_path(struct srv_s3_route *route, struct srv_str path)
{
    if (path.len <= 1)
        return SERVICE;
    struct srv_str rest = {path.base + 1, path.len - 1};
    const char *slash = memchr(rest.base, '/', rest.len);
    struct srv_str bucket = {rest.base, slash == NULL ? rest.len : (size_t)(slash - rest.base)};
    take_bucket(route, bucket);
    if (slash == NULL || bucket.len + 1 == rest.len)
        return BUCKET;
    take_key(route, (struct srv_str){slash + 1, rest.len - bucket.len - 1});
    return OBJECT;
}

/* The sub-resource that a query names, or NULL. */
static const char *find_subresource(struct srv_str query)
{
    static const char *const names[] = {
#define X(name) name,
#include "server/s3/subresource.def"
#undef X
    };
    if (query.len == 0)
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (srv_query_find(query, names[i], NULL))
            return names[i];
    return NULL;
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

void srv_s3_route(const struct srv_request *req, struct srv_s3_route *route_out)
{
    struct srv_s3_route *route = route_out;
    route->op = SRV_S3_OP_REFUSED;
    route->error = SRV_S3_NONE;
    route->subresource = NULL;
    route->bucket = route->key = (struct srv_str){NULL, 0};
    enum place place = take_path(route, req->path);
    route->subresource = find_subresource(req->query);
    if (route->subresource != NULL)
        refuse(route, SRV_S3_NOT_IMPLEMENTED);
    if (place == OBJECT)
        check_version(route, req->query);
    if (route->error != SRV_S3_NONE)
        return;
    if (req->method <= SRV_DELETE)
        route->op = ops[place][req->method];
    if (route->op != SRV_S3_OP_REFUSED)
        return;
    /* Listing a bucket and posting to one or to an object are operations of S3; everything else
     * left over is none. */
    bool known = (place == BUCKET && req->method == SRV_GET) ||
                 (place != SERVICE && req->method == SRV_POST);
    route->error = known ? SRV_S3_NOT_IMPLEMENTED : SRV_S3_METHOD_NOT_ALLOWED;
}
