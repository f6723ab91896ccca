/* The head of a PutObject: what it asks for that is not offered, how its body is to be checked, and
 * what is stored beside it.
 *
 * Threads: the exchange's loop, but srv_s3_put_head_fault on any. Blocks: never. Allocates:
 * nothing.
 */
#pragma once

#include "server/s3/aws_chunked.h"
#include "server/s3/call.h"
#include "server/s3/digest.h"

/* Decides whether the body may be received; `framing` is NULL for one without aws-chunked. NONE
 * with the plan and its decoded length (or SRV_LENGTH_UNKNOWN) set, or what to answer, with a
 * telling message in *message_out or NULL there. */
enum srv_s3_code srv_s3_put_head_check(const struct srv_s3_call *call, bool wants_md5,
                                       const struct srv_aws_framing *framing,
                                       struct srv_digest_plan *plan_out, uint64_t *length_out,
                                       const char **message_out);

/* Writes the metadata record, with zeros for an ETag and time 0. NONE,
 * METADATA_TOO_LARGE, or what is wrong with its tags or its access control list. */
enum srv_s3_code srv_s3_put_head_record(const struct srv_s3_call *call,
                                        uint8_t record_out[SRV_S3_META_RECORD_MAX],
                                        size_t *len_out);

/* The fields that ask for what is not offered; NULL when there are none, else why. Static. */
const char *srv_s3_put_head_refused(const struct srv_request *req);

/* What a digest's fault answers; NONE for FINE. *message_out as above. */
enum srv_s3_code srv_s3_put_head_fault(enum srv_digest_fault fault, const char **message_out);
