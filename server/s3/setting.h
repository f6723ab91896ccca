/* What of the configuration may change while requests are answered.
 *
 * Threads: as of server/s3/s3.h, whose srv_s3_prepare, srv_s3_commit and srv_s3_abandon are here.
 */
#pragma once

#include "server/s3/s3.h"

/* Who may do what, which hosts stand for buckets, and the region; buckets and index are told by
 * their own functions. */
void srv_s3_go_by(struct srv_s3 *s3, const struct srv_s3_config *config);

/* The buckets without an index, in the form that the index wants, to be freed; NULL without memory.
 */
char *srv_s3_unlisted(const struct srv_s3_config *config);
