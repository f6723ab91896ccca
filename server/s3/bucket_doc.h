/* The document by which a bucket is remembered in the store's meta pool.
 *
 * Key of GYRE_DOMAIN_S3 with the parts `name` and nothing, where an object has a key of at least
 * one byte. Metadata, little-endian: "GBK1", u32 zero, u64 creation in Unix milliseconds, then the
 * name. Body: the encoded facts (server/s3/facts.h). Documents of the pool that begin otherwise are
 * somebody else's.
 *
 * Threads: any.
 * Blocks:  put and delete wait for the disk.
 */
#pragma once

#include "server/s3/facts.h"
#include "server/s3/name.h"

#include "api/gyre.h"

/* Stores the document so that it survives a power loss. What gyre_put gives. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_put(struct gyre_store *store, struct srv_str name,
                                             int64_t created_ms, const struct srv_s3_facts *facts);

/* Removes it likewise. What gyre_delete gives. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_delete(struct gyre_store *store, struct srv_str name);

/* Reads a document of the meta pool. OK with the name, lent like the handle, and facts to release;
 * NOT_FOUND: it is no bucket's; NO_MEMORY; DAMAGED: it is one, but its facts cannot be read. */
GYRE_MUST_USE gyre_err srv_s3_bucket_doc_read(const struct gyre_handle *handle,
                                              struct srv_str *name_out, int64_t *created_ms_out,
                                              struct srv_s3_facts **facts_out);
