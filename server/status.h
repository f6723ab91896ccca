/* Names of HTTP status codes.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

/* The reason phrase of `status` (RFC 9110, 15), or "Status" for one that has none here. Static. */
const char *srv_status_reason(int status);
