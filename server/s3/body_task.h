/* A request whose whole body, a short document, is received and checked before it is worked on.
 *
 *   CREATED -> RECEIVING [receive] -> WORKING [the body is whole] -> next
 *   RECEIVING -> answered [the body is too long or does not arrive]
 *
 * Owns:    the body, until the task is freed.
 * Threads: as of server/s3/task.h.
 * Blocks:  `work` may.
 */
#pragma once

#include "server/s3/aws_chunked.h"
#include "server/s3/digest.h"
#include "server/s3/task.h"

struct srv_s3_body_task {
    struct srv_s3_task task; /* first */
    char *bytes;             /* the body, once it is whole; not terminated */
    size_t len;
    enum srv_s3_code code; /* of `work`; what is wrong with the body comes here before it */
    const char *message;   /* for `code`; NULL: the table's. Static */
    size_t limit_;
    size_t capacity_;
    struct srv_aws_chunked *framing_;
    struct srv_digest_plan plan_;
    void (*work_)(struct srv_s3_body_task *task);
    void (*next_)(struct srv_s3_body_task *task);
    void (*fini_)(struct srv_s3_body_task *task);
};

/* As srv_s3_task_create, for a block that begins with a body task. */
void *srv_s3_body_task_create(const struct srv_s3_call *call, size_t size,
                              void (*fini)(struct srv_s3_body_task *task));

/* Receives a body of at most `limit` bytes, verifies its digests and signatures and runs `work`,
 * then `next` on the loop unless it was found wrong: then the request is answered. After `work`, a
 * code that is not NONE is answered instead of `next`. What is longer is answered with
 * MALFORMED_XML. */
void srv_s3_body_task_receive(struct srv_s3_body_task *task, size_t limit,
                              void (*work)(struct srv_s3_body_task *task),
                              void (*next)(struct srv_s3_body_task *task));
