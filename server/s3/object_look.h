/* Operations on what is kept beside an object: looked up by a worker, answered on the loop.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/source_object.h"
#include "server/s3/task.h"

struct srv_s3_look {
    struct srv_s3_task task; /* first */
    struct srv_s3_source_object source;
    enum srv_s3_permission permission_;
    uint32_t now_s_;
    enum srv_s3_code code_;
    void (*answer_)(struct srv_s3_look *look);
};

/* Finds the call's object and has `answer` answer with it, if `permission` is given on it; else
 * answers why not. */
void srv_s3_look(const struct srv_s3_call *call, enum srv_s3_permission permission,
                 void (*answer)(struct srv_s3_look *look));

/* GetObjectTagging and GetObjectAcl. */
void srv_s3_object_tagging_get(const struct srv_s3_call *call);
void srv_s3_object_acl_get(const struct srv_s3_call *call);
