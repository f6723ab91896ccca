/* Which buckets exist: a table in memory, kept in step with one document each in the store's meta
 * pool, so that no request needs a look-up in the store to know. The store counts changes of that
 * pool; after one, whatever process made it, what a request wants to know is looked up again.
 *
 *   none -> CREATING -> LIVE [create]      CREATING -> none (the document could not be stored)
 *   LIVE -> CLOSING -> none [remove]       CLOSING -> LIVE (it holds objects after all)
 *
 * A bucket is seen while LIVE or CLOSING. Objects are committed between enter and leave, which
 * LIVE alone allows, and CLOSING begins only while nobody is in between: therefore no commit can
 * slip past the search for objects that goes before a removal. In other processes one can, and so
 * the document says that a search has begun; whoever committed looks at the number of changes
 * after that, and has the document say something else if there was one, or takes the object back if
 * it is gone. Of the two one sees the other, as each writes before it looks. A document that still
 * says so after a crash is that of a bucket like any other.
 *
 * Owns:    the table, until every acquired bucket was released.
 * Threads: any.
 * Blocks:  make, change and remove (they wait for the disk; remove may read the whole directory);
 *          refresh and confirm.
 *          The others never for long: they hold a lock over memory alone.
 * Keeps:   S1.
 */
#pragma once

#include "server/s3/error.h"
#include "server/s3/facts.h"
#include "server/s3/s3.h"

struct srv_names;
struct srv_s3_bucket;
struct srv_s3_buckets;

enum { SRV_S3_BUCKETS_MAX = 10000 }; /* more are refused with TooManyBuckets */

/* Reads the bucket documents of config->store; `names` is lent. NO_MEMORY, and what gyre_each_meta
 * gives. */
GYRE_MUST_USE gyre_err srv_s3_buckets_create(const struct srv_s3_config *config,
                                             struct srv_names *names,
                                             struct srv_s3_buckets **buckets_out);
/* NULL is allowed. */
void srv_s3_buckets_destroy(struct srv_s3_buckets *buckets);

bool srv_s3_bucket_exists(struct srv_s3_buckets *buckets, struct srv_str name);

/* Finds a bucket and holds its memory until release; NULL if there is none. */
struct srv_s3_bucket *srv_s3_bucket_acquire(struct srv_s3_buckets *buckets, struct srv_str name);
/* NULL is allowed. */
void srv_s3_bucket_release(struct srv_s3_bucket *bucket);

/* What the configuration says about it now; without its name. */
struct srv_s3_bucket_rule srv_s3_bucket_rule(struct srv_s3_buckets *buckets,
                                             const struct srv_s3_bucket *bucket);

/* Goes by the rules of another configuration, which are lent. */
void srv_s3_buckets_go_by(struct srv_s3_buckets *buckets, const struct srv_s3_config *config);

/* Begins to commit an object. NONE; NO_SUCH_BUCKET: it was removed since acquire;
 * OPERATION_ABORTED: it is about to be removed. */
enum srv_s3_code srv_s3_bucket_enter(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket);
/* Ends it; `committed` is the key of the object that is there now, NULL if none was stored. */
void srv_s3_bucket_leave(struct srv_s3_bucket *bucket, const struct gyre_key *committed);

/* ---- What other processes do ---- */

/* Whether the table knows all there is to know; two loads. */
bool srv_s3_buckets_is_settled(const struct srv_s3_buckets *buckets);
/* Whether it does about that name: it may have to look in the store's directory. Otherwise
 * srv_s3_bucket_refresh is due. */
bool srv_s3_buckets_is_current(struct srv_s3_buckets *buckets, struct srv_str name);
/* Reads the document of one bucket, or of all. NO_MEMORY, and what gyre_get and gyre_each_meta
 * give. Block. */
GYRE_MUST_USE gyre_err srv_s3_bucket_refresh(struct srv_s3_buckets *buckets, struct srv_str name);
GYRE_MUST_USE gyre_err srv_s3_buckets_refresh(struct srv_s3_buckets *buckets);

/* After a commit, when lists show it: whether no other process can have begun to remove the bucket
 * without finding the object. Otherwise srv_s3_bucket_confirm is due. */
bool srv_s3_bucket_is_undisturbed(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket);
/* Keeps a bucket in which an object was committed from being removed. NONE; NO_SUCH_BUCKET: it was
 * removed already; what the store answers. Blocks. */
enum srv_s3_code srv_s3_bucket_confirm(struct srv_s3_buckets *buckets,
                                       struct srv_s3_bucket *bucket);

/* Whether any bucket had lifecycle rules since the start: most stores never have. */
bool srv_s3_buckets_have_rules(const struct srv_s3_buckets *buckets);

/* The bucket's facts, to be released. */
struct srv_s3_facts *srv_s3_bucket_facts(struct srv_s3_buckets *buckets,
                                         struct srv_s3_bucket *bucket);

/* Changes one fact so that it survives a power loss; base NULL: it is no longer known. NONE;
 * NO_SUCH_BUCKET and OPERATION_ABORTED as enter; SLOW_DOWN; what the store answers. Blocks. */
enum srv_s3_code srv_s3_bucket_change(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                      enum srv_s3_fact fact, struct srv_str value);

/* Makes a bucket that survives a power loss. NONE; BUCKET_ALREADY_OWNED: there is one;
 * OPERATION_ABORTED: it is being made or removed; TOO_MANY_BUCKETS; what the store answers. */
enum srv_s3_code srv_s3_buckets_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                     struct srv_s3_facts *facts);

/* Removes an empty bucket for good. NONE; NO_SUCH_BUCKET; BUCKET_NOT_EMPTY, also while an object is
 * being committed; OPERATION_ABORTED: it is being made or removed; what the store answers. */
enum srv_s3_code srv_s3_buckets_remove(struct srv_s3_buckets *buckets, struct srv_str name);

/* Calls `visit` for the buckets that exist, in the order of their names; the owner has a NULL base
 * if there is none. False without memory. */
bool srv_s3_buckets_each(struct srv_s3_buckets *buckets,
                         void (*visit)(void *data, struct srv_str name, struct srv_str owner,
                                       int64_t created_ms),
                         void *data);
