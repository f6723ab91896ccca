/* A handle: an object found, with every document it consists of pinned.
 *
 *   body in one document (DOC)      n_parts 0, the bytes are doc.body
 *   body in parts (HEAD and PARTs)  parts[] in order of their offsets, without gaps
 *   metadata only                   head_only
 *
 * Owns:    the pins, and one claim on its store.
 * Threads: one at a time.
 * Allocates: structures come from a list of the thread; only objects of several parts need more.
 */
#pragma once

#include "engine/reader.h"
#include "engine/vector.h"

#include "api/gyre.h"

#define API_ONE_POOL (1u << 24) /* flags from here up name a pool, see GYRE_IN_POOL */
#define API_GET_FLAGS \
    (unsigned)(GYRE_GET_NOWAIT | GYRE_GET_HEAD | GYRE_GET_LAZY | GYRE_GET_NO_COUNT | 0x1F << 24)
/* An internal one: look in the meta pool and nowhere else. */
#define API_GET_META_POOL (1u << 8)
#define API_GET_NO_COUNT (unsigned)GYRE_GET_NO_COUNT
#define API_PART_CHUNKS_MAX 256u /* 64 MiB, the longest part there is, in chunks */

#define API_HANDLE_LIVE UINT32_C(0x48444c31)
#define API_HANDLE_DEAD UINT32_C(0x48444c30)

struct api_part {
    struct eng_ref ref;
    uint64_t start; /* body offset of its first byte */
    uint64_t len;   /* of its bytes; the header in the mapping may go with the file's end */
    uint64_t checked[API_PART_CHUNKS_MAX /
                     64]; /* chunks this handle has verified; unused once ref.verified */
};

struct gyre_handle {
    uint32_t magic;
    uint32_t shard; /* where its claim is counted */
    uint32_t life;  /* of the store, when it was got */
    struct gyre_store *store;
    struct gyre_info info;
    struct eng_ref doc;
    bool head_only;
    uint32_t n_parts;
    struct api_part *parts; /* &first_part, or allocated when there are several */
    struct api_part first_part;
    struct gyre_handle *next_free;
};

static inline unsigned api_flags_pool(unsigned flags)
{
    return (flags >> 24) - 1;
}
static inline uint8_t api_pool_of(unsigned flags)
{
    return flags >= API_ONE_POOL ? (uint8_t)api_flags_pool(flags) : ENG_POOL_MAIN;
}

/* A structure with nothing in it, dead; NULL without memory. And back. */
struct gyre_handle *api_handle_take(void);
void api_handle_give(struct gyre_handle *handle);

/* What gyre_get does between entering and leaving: the handle has no claim and no shard yet.
 * Results as gyre_get. */
GYRE_MUST_USE gyre_err api_handle_open(struct gyre_store *store, const struct gyre_key *key,
                                       uint32_t now, unsigned flags,
                                       struct gyre_handle **handle_out);
/* What gyre_select does with a pinned vector, whose pin is taken over. */
GYRE_MUST_USE gyre_err api_vector_select(struct gyre_store *store, struct eng_ref *vector,
                                         uint32_t now, unsigned flags, gyre_select_fn select,
                                         void *data, struct gyre_handle **handle_out,
                                         uint32_t *id_out);
/* One that was made from another has no serial of its own. */
static inline uint64_t api_inside_serial(const struct eng_ref *vector,
                                         const struct eng_alternate *at)
{
    return at->entry.origin_variant == 0 ? at->entry.source_serial : vector->doc->serial;
}
/* Chooses the first. */
size_t api_select_first(void *data, const struct gyre_alternate *alternates, size_t n);
/* Gives up the memory of one whose pins are its parent process's. */
void api_handle_forget(struct gyre_handle *handle);
/* Gives up pins and memory, not the claim. */
void api_handle_close(struct gyre_handle *handle);

/* ---- parts.c ---- */

/* Whether a HEAD's body is a table of parts that add up to the object; bytes from the disk are not
 * believed. */
bool api_parts_valid(const struct eng_store *store, const struct eng_ref *head);
/* Pins all parts a valid HEAD names. NOT_FOUND: one is missing. WOULD_BLOCK, BUSY, NO_MEMORY.
 * Nothing is held unless OK. */
GYRE_MUST_USE gyre_err api_parts_pin(struct gyre_handle *handle, unsigned eng_flags);
/* Whether the directory has an entry for each part. */
bool api_parts_probable(struct eng_store *store, const struct eng_ref *head);

/* ---- populate.c ---- */

/* Whether the chunk of the part with this index is known to be what was stored. */
bool api_chunk_checked(const struct api_part *part, uint64_t chunk);
/* Reads the chunks [first, end) of a part into `buffer`, which is as long as they are, and proves
 * them there; the object's bytes up to `upto` are wanted next. DAMAGED, IO. */
GYRE_MUST_USE gyre_err api_copy_chunks(struct gyre_handle *handle, struct api_part *part,
                                       uint64_t first, uint64_t end, void *buffer, uint64_t upto);
/* Verifies every part not verified yet. DAMAGED, IO. */
GYRE_MUST_USE gyre_err api_handle_verify(struct gyre_handle *handle);
/* Has the system begin to read bytes from `offset` on, as far as there are any. */
void api_read_ahead(const struct gyre_handle *handle, uint64_t offset, uint64_t len);
/* Index of the part that holds `offset`, which lies inside the object. */
uint32_t api_part_at(const struct gyre_handle *handle, uint64_t offset);
