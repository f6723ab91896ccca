/* The access control list that a request asks for.
 *
 * Threads: the exchange's loop. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/call.h"

/* Whether a request has x-amz-acl or x-amz-grant-*. */
bool srv_s3_asks_for_acl(const struct srv_request *req);

enum srv_s3_acl_place { SRV_S3_ACL_OF_BUCKET, SRV_S3_ACL_OF_OBJECT };

/* Encodes the list of x-amz-acl or x-amz-grant-* for what will belong to `owner` (base NULL: to
 * nobody). *len_out is 0 when the request asks for none, or for the owner alone. NONE, or
 * INVALID_ARGUMENT, INVALID_REQUEST, UNRESOLVABLE_GRANT. */
enum srv_s3_code srv_s3_acl_of_call(const struct srv_s3_call *call, struct srv_str owner,
                                    enum srv_s3_acl_place place,
                                    uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX], size_t *len_out);
