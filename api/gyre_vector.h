/* Changing what is kept beside an object, and alternates: several representations under one key.
 * Included by gyre.h.
 *
 * A key holds either an object or a vector of up to GYRE_ALTERNATES_MAX alternates, each an object
 * with metadata of its own. Putting an object under the key of a vector, or deleting the key, takes
 * all alternates away; evicting one leaves the others. gyre_get of such a key gives the first
 * alternate that is there.
 *
 * Threads: any. Blocks: as gyre_put and gyre_get.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Metadata ---- */

enum {
    GYRE_CHANGE_META = 1,
    GYRE_CHANGE_ETAG = 2,
    GYRE_CHANGE_EXPIRES = 4,
    GYRE_CHANGE_PIN = 8,
    GYRE_CHANGE_LABELS = 16,
};

/* What is to change; only fields named in `what` count. Fill with gyre_change_init. */
struct gyre_change {
    size_t struct_size;
    unsigned what;  /* GYRE_CHANGE_* */
    unsigned flags; /* GYRE_PUT_SYNC, GYRE_IN_POOL; without a pool: main */
    const void *meta;
    size_t meta_len;
    uint64_t etag_hash;
    uint32_t expires;   /* Unix seconds; 0: never */
    uint32_t pin_until; /* Unix seconds; 0: not pinned any more */
    const uint64_t *labels;
    uint32_t n_labels;
    uint32_t zero_;
    uint64_t if_serial; /* CHANGED unless the object there has this serial; 0: any */
};

GYRE_API void gyre_change_init(struct gyre_change *change);

/* Changes an object's metadata, expiry, pin or labels in one step; its bytes stay where they are,
 * and it gets a new serial. Readers that have it open see it as it was. NOT_FOUND, CHANGED, QUOTA
 * (pinning), META_TOO_LARGE, STATE (a vector), INVALID, NO_SPACE, BUSY, IO, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_change(struct gyre_store *store, const struct gyre_key *key,
                                            const struct gyre_change *change, uint64_t *serial_out);

/* ---- Alternates ---- */

#define GYRE_ALTERNATES_MAX 1024
#define GYRE_VARY_MAX 4096 /* longest description of one alternate, bytes */

/* One alternate, as far as choosing goes. */
struct gyre_alternate {
    uint32_t id;            /* the caller's; names it within the key; not 0 */
    uint32_t origin;        /* id of the alternate it was made from; 0: stored as it was received */
    uint64_t source_serial; /* of the bytes it was made from; for one stored as received: its own,
                               filled in by the store */
    uint64_t vary_hash;     /* the caller's */
    const void *vary;       /* the request's values that it answers, or whatever tells it apart; at
                               most GYRE_VARY_MAX bytes; lent for the call */
    uint32_t vary_len;
    uint32_t created, expires;  /* Unix seconds; expired ones are not offered */
    uint32_t flags;             /* the caller's, 16 bits */
    uint64_t length;            /* bytes; filled in by the store */
    uint16_t encoding, quality; /* the caller's */
    uint32_t zero_;
};

/* Begins an alternate: a put whose commit adds it to the key's vector, or takes the place of the
 * one of that id. Alternates made from the one replaced go with it. A derived one must name an
 * origin that is there, with its present source_serial, else commit answers CHANGED. In `options`
 * the condition is about the vector (GYRE_IF_ABSENT: nothing is there yet; GYRE_IF_SERIAL: it is
 * unchanged). Small ones are kept inside the vector. Commit also answers NO_SPACE (the vector is
 * full) and TOO_LARGE. */
GYRE_MUST_USE GYRE_API gyre_err gyre_alternate_put(struct gyre_store *store,
                                                   const struct gyre_key *key,
                                                   const struct gyre_alternate *alternate,
                                                   const struct gyre_put_options *options,
                                                   struct gyre_put **put_out);

/* Chooses: gets the unexpired alternates that are there, as far as known, and answers an index or
 * SIZE_MAX for none. It is asked again, without it, when what it chose turns out to be gone. */
typedef size_t (*gyre_select_fn)(void *data, const struct gyre_alternate *alternates, size_t n);

/* As gyre_get, of the alternate that `select` chooses; *id_out (may be NULL) gets its id. An object
 * that is no vector is offered as one alternate of id 0. NOT_FOUND: none was chosen. */
GYRE_MUST_USE GYRE_API gyre_err gyre_select(struct gyre_store *store, const struct gyre_key *key,
                                            uint32_t now, unsigned flags, gyre_select_fn select,
                                            void *data, struct gyre_handle **handle_out,
                                            uint32_t *id_out);

/* Shows all alternates at once, expired ones too, with the vector's serial. NOT_FOUND: there is no
 * vector. */
GYRE_MUST_USE GYRE_API gyre_err gyre_alternates(
    struct gyre_store *store, const struct gyre_key *key,
    void (*visit)(void *data, const struct gyre_alternate *alternates, size_t n, uint64_t serial),
    void *data);

/* Takes an alternate away, and those made from it. `if_serial`: of the vector, 0: any. NOT_FOUND,
 * CHANGED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_alternate_remove(struct gyre_store *store,
                                                      const struct gyre_key *key, uint32_t id,
                                                      uint64_t if_serial, unsigned flags);

/* gyre_change of one alternate; its bytes and the other alternates stay as they are. */
GYRE_MUST_USE GYRE_API gyre_err gyre_alternate_change(struct gyre_store *store,
                                                      const struct gyre_key *key, uint32_t id,
                                                      const struct gyre_change *change);

#ifdef __cplusplus
}
#endif
