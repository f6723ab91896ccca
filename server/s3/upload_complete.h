/* CompleteMultipartUpload: the parts become the object.
 *
 * Once that is done, completing the same upload again answers the same as long as the object is
 * there: its record names the upload.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

void srv_s3_upload_complete(const struct srv_s3_call *call);
