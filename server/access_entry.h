/* One line of the access log, as text: bytes in, bytes out.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Nothing secret is written: no field of the request but Referer and User-Agent, and of the
 * parameters in target and Referer neither signatures nor credentials. What a client sent is
 * escaped, so that it can forge no line, no member and no control sequence of a terminal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum srv_access_format { SRV_ACCESS_COMBINED, SRV_ACCESS_JSON };

/* A run of bytes, not terminated. */
struct srv_access_bytes {
    const char *base;
    size_t len;
};

/* What is known of a request that has ended. */
struct srv_access_entry {
    int64_t ended_ms;   /* since 1970 */
    const char *client; /* its address as text, or "-" */
    const char *user;   /* NULL: nobody has said */
    struct srv_access_bytes method, path, query, host, referer, agent;
    int version; /* 10, 11, 20 */
    bool is_tls;
    int status;         /* 0: none was sent */
    const char *result; /* static, as the following */
    const char *role;
    const char *operation;  /* shown in lower case */
    const char *id;         /* the request's */
    uint64_t bytes_in;      /* of the request's body */
    uint64_t bytes_out;     /* of the response's body */
    uint64_t first_byte_us; /* from the request's head to the response's; 0: there was none */
    uint64_t total_us;
};

/* Writes the line with its end into `to`; returns its length, at most `size`. What is longer than a
 * field may be is cut and marked so; a line that still does not fit is 0 bytes long. */
size_t srv_access_write(enum srv_access_format format, const struct srv_access_entry *entry,
                        char *to, size_t size);

enum { SRV_ACCESS_LINE_MAX = 128 << 10 }; /* bytes that always suffice */
