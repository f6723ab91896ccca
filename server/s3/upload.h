/* Multipart uploads: begun, ended, and looked at. Their parts are stored by server/s3/object_put.h
 * and object_copy.h; completing is in upload_complete.h.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

enum { SRV_S3_UPLOAD_LIFE_S = 24 * 3600 }; /* an upload that nobody completes is given up */

void srv_s3_upload_create(const struct srv_s3_call *call);
void srv_s3_upload_abort(const struct srv_s3_call *call);
/* ListParts */
void srv_s3_upload_parts(const struct srv_s3_call *call);
/* ListMultipartUploads of a bucket */
void srv_s3_upload_list(const struct srv_s3_call *call);
