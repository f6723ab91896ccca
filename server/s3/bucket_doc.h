/* The document by which a bucket is remembered in the store's meta pool.
 *
 * Key of GYRE_DOMAIN_S3 with the parts `name` and nothing, where an object has a key of at least
 * one byte. Metadata, little-endian: "GBK1", u32 flags (bit 0: somebody looks whether the bucket is
 * empty, to remove it), u64 creation in Unix milliseconds, then the name. Body: the encoded facts
 * (server/s3/facts.h). Documents of the pool that begin otherwise are somebody else's.
 *
 * Threads: any.
 * Blocks:  all but peek; put and delete wait for the disk.
 */
#pragma once

#include "server/s3/facts.h"
#include "server/s3/name.h"

#include "api/gyre.h"

struct srv_s3_bucket_doc {
    uint64_t serial; /* which version; 0 for one that is yet to be stored */
    int64_t created_ms;
    bool is_closing;
    struct srv_s3_facts *facts;
};

/* Stores the document so that it survives a power loss: over the version `serial`, or where there
 * is none if that is 0. `doc->serial` is not looked at. OK with the new version; EXISTS, CHANGED,
 * NOT_FOUND: another version is there, or none; and what gyre_put gives. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_put(struct gyre_store *store, struct srv_str name,
                                             const struct srv_s3_bucket_doc *doc, uint64_t serial,
                                             uint64_t *serial_out);

/* Removes that version likewise. What gyre_delete gives. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_delete(struct gyre_store *store, struct srv_str name,
                                                uint64_t serial);

/* Which version is there. What gyre_get gives with GYRE_GET_NOWAIT. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_peek(struct gyre_store *store, struct srv_str name,
                                              uint64_t *serial_out);

/* Reads the document of a bucket; facts that cannot be read are none. OK with facts to release;
 * NOT_FOUND, NO_MEMORY, and what gyre_get gives. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_get(struct gyre_store *store, struct srv_str name,
                                             struct srv_s3_bucket_doc *doc_out);

/* The same of an open document of the meta pool, with the name, which is lent like the handle.
 * NOT_FOUND: it is no bucket's. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_read(const struct gyre_handle *handle,
                                              struct srv_str *name_out,
                                              struct srv_s3_bucket_doc *doc_out);
