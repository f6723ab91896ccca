/* Pools, tenants, bans and pins: who may keep how much, and what is forgotten when. Included by
 * gyre.h.
 *
 * A pool is a class of objects with space and keys of its own: the same key in two pools names two
 * objects. "main" (0) and "meta" (1) are always there; "small" (2), if asked for, takes what is
 * small out of main's way without being a place for keys of its own; up to 13 more are made with
 * the store (gyre_options.pools). A tenant is a number, below GYRE_TENANTS_MAX, that an object's
 * bytes count for.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define GYRE_POOLS_MAX 16
#define GYRE_TENANTS_MAX 16384
#define GYRE_LABELS_MAX 32 /* of one object */

/* In the flags of gyre_get and gyre_delete: the object of this pool, and of no other. */
#define GYRE_IN_POOL(pool) (((unsigned)(pool) + 1) << 24)

/* A pool to be made with a new store: named "small", or a new one. */
struct gyre_pool_want {
    const char *name;   /* 1 to 15 bytes */
    uint64_t max_bytes; /* what it may take at most; the rest is main's. At most three quarters of
                           the store together */
    bool never_evicts;  /* full means QUOTA or NO_SPACE, as in meta */
};

struct gyre_pool_info {
    size_t struct_size; /* set by the caller */
    char name[16];
    uint64_t bytes;          /* of its documents, whole extents */
    uint64_t kept_bytes;     /* of these, what is pinned or belongs to open uploads */
    uint64_t capacity_bytes; /* the most it can take */
    uint64_t purges;         /* how often it was purged */
    bool never_evicts;
};

/* The number of a pool. NOT_FOUND, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_pool_find(struct gyre_store *store, const char *name,
                                               uint8_t *pool_out);
/* RANGE past the last pool. INVALID, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_pool_at(struct gyre_store *store, uint8_t pool,
                                             struct gyre_pool_info *info_out);
/* Forgets all objects of a pool, however many, durably and in one step; a put in progress counts as
 * older. INVALID, IO, CLOSED. Blocks for the disk. */
GYRE_MUST_USE GYRE_API gyre_err gyre_purge_pool(struct gyre_store *store, uint8_t pool);

/* ---- Tenants ---- */

/* What the tenant's objects take now, in all pools, and its quota (0: none). INVALID, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_tenant_bytes(struct gyre_store *store, uint16_t tenant,
                                                  uint64_t *bytes_out, uint64_t *quota_bytes_out);
/* Puts that would take the tenant above the quota answer GYRE_QUOTA from now on. Lasts until the
 * last process has closed the store; set it anew after opening. 0: none. INVALID, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_tenant_set_quota(struct gyre_store *store, uint16_t tenant,
                                                      uint64_t quota_bytes);

/* ---- Bans ---- */

enum gyre_label_kind { GYRE_LABEL_PREFIX = 2, GYRE_LABEL_TAG = 3 };

/* The hash of a label: a prefix of the object's name, or a tag. Objects carry labels from
 * gyre_put_options.labels, and bans name them. */
GYRE_API uint64_t gyre_label(enum gyre_label_kind kind, const void *bytes, size_t len);

/* Objects of the pool that carry the label and were stored before this call are misses from now on;
 * `flags`: GYRE_PUT_SYNC, and then it survives a power loss. NO_SPACE: 1024 bans are in force and
 * none of them is spent. INVALID, IO, CLOSED. Rarely blocks for long: when the table is full, all
 * labelled objects are looked at. */
GYRE_MUST_USE GYRE_API gyre_err gyre_ban_label(struct gyre_store *store, uint8_t pool,
                                               uint64_t label, unsigned flags);
/* The same for one key and all its alternates, also those that are being stored just now. */
GYRE_MUST_USE GYRE_API gyre_err gyre_ban_key(struct gyre_store *store, uint8_t pool,
                                             const struct gyre_key *key, unsigned flags);
/* Bans in force. CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_bans(struct gyre_store *store, uint32_t *count_out);

#ifdef __cplusplus
}
#endif
