/* GetBucketAcl and PutBucketAcl, and what they share with those of objects.
 *
 * Threads: the exchange's loop, but read_body on a worker. Blocks: never.
 */
#pragma once

#include "server/s3/body_task.h"

enum { SRV_S3_ACL_BODY_MAX = 64 << 10 };

void srv_s3_bucket_acl_get(const struct srv_s3_call *call);
void srv_s3_bucket_acl_put(const struct srv_s3_call *call);

/* Answers with a list in its encoded form; `owner` has a NULL base for nobody. */
void srv_s3_answer_acl(const struct srv_s3_call *call, struct srv_str owner, struct srv_str acl);

/* The encoded form of the list in the body of a task. NONE, or as srv_s3_acl_read. */
enum srv_s3_code srv_s3_acl_read_body(struct srv_s3_body_task *task, struct srv_str owner,
                                      uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX], size_t *len_out);
