/* What is known of a bucket besides its name and age: whose it is, who else may use it, its tags
 * and its lifecycle. Kept in the body of the bucket's document.
 *
 * Owns:    a struct srv_s3_facts is one block with a count of its holders; it never changes.
 * Threads: any.
 * Blocks:  never.
 *
 * Format, integers little-endian: u8 version (1), then items of u8 tag, u32 length and that many
 * bytes, to the end; each tag at most once. A tag from 0x80 on may be skipped by readers that do
 * not know it. No bytes at all stand for a bucket without any facts.
 */
#pragma once

#include <stdatomic.h>

#include "server/exchange.h"

struct srv_s3_lifecycle;

enum srv_s3_fact {
    SRV_S3_FACT_OWNER = 1,     /* a user's name */
    SRV_S3_FACT_ACL = 2,       /* as of server/s3/acl.h */
    SRV_S3_FACT_TAGS = 3,      /* as of server/s3/tagging.h */
    SRV_S3_FACT_LIFECYCLE = 4, /* as of server/s3/lifecycle.h */
    SRV_S3_FACT_LOCATION = 5,  /* the region that was named when it was made */
    SRV_S3_FACT_TENANT = 6,    /* u16: the store's number for what its objects take */
    SRV_S3_FACT_COUNT
};

enum { SRV_S3_FACTS_BYTES_MAX = 60 << 10 };

struct srv_s3_facts {
    _Atomic uint32_t refs_;
    struct srv_s3_lifecycle *lifecycle;   /* the rules, read; NULL: none */
    uint16_t tenant;                      /* read; 0: none */
    struct srv_str of[SRV_S3_FACT_COUNT]; /* base NULL: not known. [0] is not used */
    size_t len;
    uint8_t bytes[]; /* the encoded form, which `of` points into */
};

/* Reads the encoded form. NULL when it is broken, or without memory. */
struct srv_s3_facts *srv_s3_facts_create(const void *bytes, size_t len);

/* The same facts but for one, which is `value` (base NULL: not known) now. NULL when they would be
 * too long, or without memory. */
struct srv_s3_facts *srv_s3_facts_with(const struct srv_s3_facts *facts, enum srv_s3_fact fact,
                                       struct srv_str value);

struct srv_s3_facts *srv_s3_facts_acquire(struct srv_s3_facts *facts);
/* NULL is allowed. */
void srv_s3_facts_release(struct srv_s3_facts *facts);
