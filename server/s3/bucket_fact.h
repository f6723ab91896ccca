/* Operations on one fact of a bucket: looked at at once, changed by a worker.
 *
 * Owns:    struct srv_s3_fact_task holds the new value until it is stored.
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/body_task.h"
#include "server/s3/buckets.h"

/* The facts of the call's bucket, to be released; NULL when there is none: the call was answered.
 */
struct srv_s3_facts *srv_s3_facts_of_call(const struct srv_s3_call *call);

/* Answers 204 once a fact of the call's bucket is no longer known. */
void srv_s3_fact_delete(const struct srv_s3_call *call, enum srv_s3_fact fact);

/* Reads a body of at most `limit` bytes, has `encode` make the fact's value of it and stores that,
 * then answers `status`. `encode` runs on a worker: NONE with the value, whose memory is its own
 * (base NULL: the fact is no longer known), or what is answered with task->message. */
void srv_s3_fact_put(const struct srv_s3_call *call, enum srv_s3_fact fact, size_t limit,
                     int status,
                     enum srv_s3_code (*encode)(struct srv_s3_body_task *task, uint8_t **bytes_out,
                                                size_t *len_out));
