/* Vectors: the alternates under one key, in one document.
 *
 * A VECTOR's body (struct eng_vector_entry) lists up to ENG_ALTERNATES of them. Each is an object
 * of its own under a key that follows from the vector's and a salt used once, or, if it is small,
 * lies in the string table. An alternate is there while the vector names it: what a vector drops is
 * removed after it, and what nobody names cannot be found.
 *
 * Threads: any. Blocks: as writer.h. Keeps: E88.
 */
#pragma once

#include "engine/writer.h"

#define ENG_ALTERNATES 1024
#define ENG_VARY_MAX 4096
#define ENG_VECTOR_MAX (1u << 20)         /* bytes of a body */
#define ENG_VECTOR_INLINE_MAX (64u << 10) /* nothing is put inside a body longer than this */
#define ENG_INLINE_MAX (32u << 10)        /* metadata and bytes of one that lies inside */

/* eng_vector_entry.flags: the lower half is the caller's. INLINE: head_salt is offset << 32 |
 * length of a struct eng_inline in the string table. */
enum { ENG_ALTERNATE_INLINE = 1 << 16 };

/* Then meta_len bytes of metadata, then the alternate's bytes. 16 bytes. */
struct eng_inline {
    uint64_t etag_hash;
    uint32_t meta_len, zero_;
};

/* One alternate in memory. */
struct eng_alternate {
    struct eng_vector_entry entry;
    const uint8_t *vary;   /* entry.vary_len bytes */
    const uint8_t *inside; /* INLINE: the record, else NULL */
    uint32_t inside_len;
};

/* Key of the document that a salt names. */
void eng_alternate_key(const uint8_t key[32], uint64_t salt, uint8_t out[32]);
/* The n-th alternate of a body that eng_vector_check passed. */
struct eng_alternate eng_vector_at(const uint8_t *body, uint32_t i);

/* A change to make to the vector of a key. */
struct eng_edit {
    const uint8_t *key;
    uint8_t pool;
    uint16_t tenant;
    uint32_t remove; /* id to take away with those made from it; 0: none */
    bool touch;      /* `add` is there already and stays: gets its expiry, and what lies inside */
    const struct eng_alternate *add; /* to add, or to put in place of the one of its id */
    enum eng_condition condition;    /* of the vector, or whatever is under the key */
    uint64_t if_serial;
    uint64_t now_ms;
    bool sync;
};
/* OK, EXISTS, CHANGED (the condition, or `add` was made from what is not there any more), NOT_FOUND
 * (`remove` or touched id, or IF_SERIAL and nothing there), NO_SPACE (too many), TOO_LARGE, and as
 * eng_commit. Whoever else edits the vector meanwhile is waited out. */
GYRE_MUST_USE gyre_err eng_vector_edit(struct eng_store *store, const struct eng_edit *edit,
                                       uint64_t *serial_out);

/* Removes the object under a key that nothing leads to any more, parts and all. */
void eng_alternate_unlink(struct eng_store *store, uint8_t pool, const uint8_t key[32]);
/* Removes the alternates of a vector that has left, but for those that the `kept` body names too.
 */
void eng_alternates_remove(struct eng_store *store, const struct eng_ref *vector, const void *kept,
                           size_t kept_len);
