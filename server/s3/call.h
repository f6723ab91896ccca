/* One S3 request while it is being answered, and the pieces every answer is made of.
 *
 * Owns:    struct srv_s3_call is the caller's memory; it may live on the stack as long as nothing
 *          is asked of another thread.
 * Lends:   the request's strings live until the exchange ends.
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/check.h"
#include "server/s3/error.h"
#include "server/s3/hosts.h"
#include "server/s3/meta.h"
#include "server/s3/route.h"
#include "server/s3/s3.h"
#include "server/s3/who.h"

#include "api/gyre.h"

struct srv_names;
struct srv_pool;
struct srv_xml;
struct srv_s3_buckets;

enum { SRV_S3_HOST_ID_LEN = 32 };

/* What all requests of a role share. [c] const after srv_s3_create  [w] under access_lock  [a]
 * atomic */
struct srv_s3 {
    struct gyre_store *store;             /* [c] */
    struct srv_pool *pool;                /* [c] */
    struct srv_s3_buckets *buckets;       /* [c] has its own lock */
    struct srv_names *names;              /* [c] the index of names; any thread */
    struct srv_s3_sweeper *sweeper;       /* [c] */
    _Atomic bool is_open;                 /* [a] as access->is_open: most stores have no users */
    _Atomic bool has_hosts;               /* [a] whether any host stands for a bucket */
    pthread_rwlock_t access_lock;         /* held while a request is looked at */
    const struct srv_s3_access *access;   /* [w] never NULL */
    struct srv_s3_hosts hosts;            /* [w] lent */
    char region_[SRV_S3_REGION_MAX];      /* [w] */
    char host_id[SRV_S3_HOST_ID_LEN + 1]; /* x-amz-id-2: which process answered */
};

struct srv_s3_call {
    struct srv_s3 *s3;
    struct srv_exchange *ex;
    const struct srv_request *req;
    struct srv_s3_who who;
    struct srv_s3_route route; /* must not be moved */
};

/* Reads the request's head and route. */
void srv_s3_call_init(struct srv_s3_call *call, struct srv_s3 *s3, struct srv_exchange *ex);
/* For a call that outlasts the stack. */
void srv_s3_call_copy(const struct srv_s3_call *call, struct srv_s3_call *call_out);

/* The region that clients are told. */
void srv_s3_region(struct srv_s3 *s3, char region_out[SRV_S3_REGION_MAX]);

/* Unix time at the start of the loop's round. */
int64_t srv_s3_now_s(const struct srv_s3_call *call);

/* The object's key in the store. */
struct gyre_key srv_s3_object_key(const struct srv_s3_call *call);

static inline struct srv_str srv_s3_str(const char *text)
{
    return (struct srv_str){text, __builtin_strlen(text)};
}

/* The owner that is shown of what was stored without users. */
static inline struct srv_str srv_s3_owner_or_default(struct srv_str owner)
{
    return owner.base != NULL ? owner : srv_s3_str("gyre");
}

enum { SRV_S3_HEAD_FIELDS_MAX = SRV_S3_META_USER_MAX + 24 };

/* The fields of an answer in the making; names and values are borrowed. */
struct srv_s3_head {
    size_t n;
    struct srv_field fields[SRV_S3_HEAD_FIELDS_MAX];
};

/* Begins with the field that every answer has, x-amz-request-id. Errors also get x-amz-id-2. */
void srv_s3_head_init(struct srv_s3_head *head, const struct srv_s3_call *call);
/* `name` is a literal, spelt as usual; the front lowers it for HTTP/2. Inline, so that its length
 * is known to the compiler. */
static inline void srv_s3_head_add(struct srv_s3_head *head, const char *name, struct srv_str value)
{
    SRV_CHECK(head->n < SRV_S3_HEAD_FIELDS_MAX);
    head->fields[head->n++] = (struct srv_field){srv_s3_str(name), value};
}

/* Answers without a body; `content_length` is 0, that of the body a GET would get, or
 * SRV_LENGTH_UNKNOWN to send none. The call may be gone when this returns, as with all functions
 * below. */
void srv_s3_answer_empty(const struct srv_s3_call *call, int status, const struct srv_s3_head *head,
                         uint64_t content_length);

#define SRV_S3_XMLNS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* Answers with a document, which is finished with, whatever its state: without memory the answer is
 * SlowDown. */
void srv_s3_answer_xml(const struct srv_s3_call *call, struct srv_s3_head *head,
                       struct srv_xml *xml);

/* Answers with an error of the table; `message` NULL takes the table's. */
void srv_s3_fail(const struct srv_s3_call *call, enum srv_s3_code code, const char *message);

/* As srv_s3_fail with fields of the caller's and further children of the document. */
void srv_s3_fail_with(const struct srv_s3_call *call, enum srv_s3_code code, const char *message,
                      struct srv_s3_head *head, const struct srv_s3_detail *details,
                      size_t n_details);

/* A condition of the request does not hold; `field` is the one that says so, NULL if that is
 * unknown. */
void srv_s3_fail_condition(const struct srv_s3_call *call, const char *field);
