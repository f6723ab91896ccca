#include "server/s3/s3.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/s3/base64.h"
#include "server/s3/bucket.h"
#include "server/s3/buckets.h"
#include "server/s3/object_delete.h"
#include "server/s3/object_get.h"
#include "server/s3/object_put.h"

gyre_err srv_s3_create(const struct srv_s3_config *config, struct srv_s3 **s3_out)
{
    uint8_t host_id[SRV_S3_HOST_ID_LEN / 2];
    const char *region = config->region != NULL ? config->region : "us-east-1";

    *s3_out = NULL;
    if (strlen(region) >= SRV_S3_REGION_MAX)
        return GYRE_INVALID;
    struct srv_s3 *s3 = calloc(1, sizeof *s3);
    if (s3 == NULL)
        return GYRE_NO_MEMORY;
    gyre_err err = GYRE_NO_MEMORY;
    if (RAND_bytes(host_id, sizeof host_id) != 1)
        goto out;
    srv_hex_encode(host_id, sizeof host_id, s3->host_id);
    snprintf(s3->region, sizeof s3->region, "%s", region);
    s3->store = config->store;
    s3->pool = config->pool;
    err = srv_s3_buckets_create(config, &s3->buckets);
out:
    if (err != GYRE_OK)
        free(s3);
    else
        *s3_out = s3;
    return err;
}

void srv_s3_destroy(struct srv_s3 *s3)
{
    if (s3 == NULL)
        return;
    srv_s3_buckets_destroy(s3->buckets);
    free(s3);
}

static void refuse(const struct srv_s3_call *call)
{
    const struct srv_s3_route *route = &call->route;
    char message[128];

    if (route->error != SRV_S3_NOT_IMPLEMENTED) {
        srv_s3_fail(call, route->error, NULL);
        return;
    }
    if (route->subresource != NULL)
        snprintf(message, sizeof message, "The sub-resource \"%s\" is not offered here.",
                 route->subresource);
    else if (call->req->method == SRV_GET)
        snprintf(message, sizeof message, "Listing the objects of a bucket is not offered yet.");
    else
        snprintf(message, sizeof message, "%s",
                 "POST is not offered here: send objects one by one with PUT.");
    srv_s3_fail(call, route->error, message);
}

void srv_s3_start(void *data, struct srv_exchange *ex)
{
    struct srv_s3 *s3 = data;
    struct srv_s3_call call;

    /* What cannot be answered at once reads its route again into memory that lasts. */
    srv_s3_call_init(&call, s3, ex);
    switch (call.route.op) {
    case SRV_S3_OP_REFUSED: refuse(&call); break;
    case SRV_S3_OP_LIST_BUCKETS: srv_s3_bucket_list(&call); break;
    case SRV_S3_OP_CREATE_BUCKET: srv_s3_bucket_create(s3, ex); break;
    case SRV_S3_OP_HEAD_BUCKET: srv_s3_bucket_head(&call); break;
    case SRV_S3_OP_DELETE_BUCKET: srv_s3_bucket_delete(s3, ex); break;
    case SRV_S3_OP_PUT_OBJECT: srv_s3_object_put(s3, ex); break;
    case SRV_S3_OP_GET_OBJECT:
    case SRV_S3_OP_HEAD_OBJECT: srv_s3_object_get(&call); break;
    case SRV_S3_OP_DELETE_OBJECT: srv_s3_object_delete(s3, ex); break;
    }
}
