/* libgyre: a persistent object cache in memory-mapped, log-structured files.
 *
 * Keys are 32-byte digests; values are byte strings of any length with a small metadata record
 * beside them. A full store forgets what is coldest. Reads take no lock and copy nothing: a handle
 * lends the bytes where they lie in the mapped file.
 *
 * Owns:    whoever opened or began something closes it: gyre_store, gyre_handle, gyre_put.
 *          Strings returned are static or lent.
 *
 * Threads: a gyre_store may be used by any number of threads; a gyre_handle or gyre_put belongs to
 *          one thread at a time.
 *
 * Processes: any number (256 at most) may open the same store, each by itself, and all read and
 *          write all of it. One that dies, at whatever point, costs the others a moment. One that
 *          is stopped (SIGSTOP) keeps what its handles show; if it was stopped amid a change, calls
 *          that need the same place answer BUSY after ten seconds.
 *
 * Fork:    a child may use the gyre_store its parent opened, and any thread of the parent may fork.
 *          The first call in the child makes it a process of its own, waiting up to ten seconds for
 *          others that open or close the store (LOCKED); CLOSED if by then all had closed it. What
 *          the parent had open is dead in the child: gyre_release and gyre_put_abort free memory
 *          and nothing else, gyre_handle_info and _meta still answer, all other calls answer STATE.
 *          gyre_close in a child that made no call takes no lock and leaves the parent's store as
 *          it is. vfork and clone are not supported, nor forking inside a callback.
 *
 * Blocks:  each function says so. "Never" includes page faults on cold data.
 *
 * Errors:  every fallible call returns a gyre_err that must be looked at; out parameters are
 *          emptied first.
 *
 * C17 and C++17. ABI: the shared library's name carries the major version (the minor one, too,
 * while that is 0). Libraries of one name only add functions, and each knows in which version it
 * came (libgyre.map): layouts and values stay. A structure that begins with another size than its
 * own is GYRE_INVALID.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "gyre_err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GYRE_VERSION_MAJOR 0
#define GYRE_VERSION_MINOR 1
#define GYRE_VERSION_PATCH 0

/* "0.1.0", static. */
GYRE_API const char *gyre_version(void);

/* ---- Keys ---- */

/* The name of an object: 32 bytes, compared whole. Spread over the store by a hash seeded per
 * store, so chosen digests do no harm. */
struct gyre_key {
    uint8_t bytes[32];
};

/* Namespaces that can never collide: the domain's name, a zero byte and the parts, each followed by
 * a zero byte, are hashed. */
enum gyre_domain {
    GYRE_DOMAIN_RAW, /* the bytes as they are, no prefix: SHA-256(bytes) */
    GYRE_DOMAIN_S3,  /* bucket, key */
    GYRE_DOMAIN_URL, /* scheme, host, target */
    GYRE_DOMAIN_KV,  /* namespace, key */
};

/* SHA-256 of `len` bytes. About 0.2 us for short input. */
GYRE_API struct gyre_key gyre_key_of_bytes(const void *bytes, size_t len);
/* Key of the parts in a domain; the last part may hold zero bytes, the others must not
 * (GYRE_INVALID). */
GYRE_MUST_USE GYRE_API gyre_err gyre_key_of_parts(enum gyre_domain domain,
                                                  const struct iovec *parts, size_t n_parts,
                                                  struct gyre_key *key_out);
/* Key of a URL on a host: GYRE_DOMAIN_URL of "http", host and url. Both are terminated strings. */
GYRE_API struct gyre_key gyre_key_of_url(const char *url, const char *host);
/* A digest the caller computed already. */
GYRE_API struct gyre_key gyre_key_of_digest(const uint8_t digest[32]);
/* 64 hex digits of either case, terminated; anything else is GYRE_INVALID. */
GYRE_MUST_USE GYRE_API gyre_err gyre_key_of_hex(const char *hex, struct gyre_key *key_out);
/* Writes 64 lower-case digits and a terminator. */
GYRE_API void gyre_key_to_hex(const struct gyre_key *key, char hex_out[65]);

/* ---- Store ---- */

struct gyre_store;
struct gyre_pool_want; /* gyre_pool.h */

#define GYRE_SIZE_MIN (UINT64_C(64) << 20) /* smallest store in bytes */
#define GYRE_META_MAX (UINT32_C(1) << 20)  /* longest metadata record in bytes */

/* One data directory and how much of it may be used. Stripes are spread over the directories by
 * size. */
struct gyre_data_dir {
    const char *path;
    uint64_t size_bytes; /* 0: an equal share of gyre_options.size_bytes */
};

enum gyre_open_mode {
    GYRE_OPEN_OR_CREATE, /* use the store if there is one, else make it */
    GYRE_OPEN_EXISTING,  /* GYRE_NO_STORE if there is none */
    GYRE_OPEN_RESET,     /* make a new, empty store in place of whatever store is there; GYRE_LOCKED
                            while any process uses it */
    GYRE_OPEN_READONLY,  /* look at the files of a store that may not be written, or is not to be:
                            gyre_verify, gyre_stat (gauges), gyre_file_at and gyre_close work,
                            whoever uses the store meanwhile; all else answers GYRE_ACCESS */
};

/* Fill with gyre_options_init, then change what you need. Geometry options matter only when a store
 * is created. */
struct gyre_options {
    size_t struct_size;               /* set by gyre_options_init */
    const struct gyre_data_dir *dirs; /* the first one also holds the volume and lock files; of an
                                         existing store all, in any order, and no others */
    size_t n_dirs;
    uint64_t size_bytes; /* total for directories without a size of their own */
    enum gyre_open_mode mode;
    uint64_t segment_bytes;        /* power of two from 1 MiB; 0: chosen from the size */
    uint32_t stripes;              /* 0: chosen from the size */
    uint32_t average_object_bytes; /* sizes the directory; 0: from the size, 4 to 16 KiB */
    uint32_t sync_interval_ms;     /* default 30000; 0: only on demand */
    uint32_t async_threads; /* for the _async calls, started by the first of them; default 2, at
                               most 64 */
    bool replace_lost; /* a missing data file is made anew and its objects become misses; default
                          false: GYRE_DAMAGED */
    /* Called during long openings (creating, recovering) from the opening thread; NULL for none. */
    void (*progress)(void *data, const char *what, uint64_t done, uint64_t total);
    void *progress_data;
    const struct gyre_pool_want *pools; /* to be made with a new store, besides main and meta */
    size_t n_pools;
};

GYRE_API void gyre_options_init(struct gyre_options *options);

/* Opens a store. On failure nothing is held, nothing stored was changed, no file or directory was
 * left, and `message_out` (if not NULL) gets a sentence that names the file, what is wrong with it
 * and what to do; at most `message_size` bytes with terminator. INVALID, NO_STORE, LOCKED, BUSY,
 * DAMAGED, INCOMPATIBLE, FOREIGN, DISK_FULL, ACCESS, UNSUPPORTED, IO, NO_MEMORY, NO_FILES. Blocks:
 * reads the directory (0.07 % of the size); after a crash also what was written since the last
 * sync. */
GYRE_MUST_USE GYRE_API gyre_err gyre_open(const struct gyre_options *options,
                                          struct gyre_store **store_out, char *message_out,
                                          size_t message_size);

/* Refuses new work (GYRE_CLOSED), waits up to `timeout_ms` for calls in progress, syncs, marks the
 * store clean and takes *store away. Handles and puts still open stay usable: handles keep their
 * bytes, a put's commit answers GYRE_CLOSED; the files stay locked until the last of them is
 * closed. TIMEOUT: the store closes as soon as the stragglers are done, but the next opening will
 * recover. IO. */
GYRE_MUST_USE GYRE_API gyre_err gyre_close(struct gyre_store **store, uint32_t timeout_ms);

/* Makes everything committed before the call survive a power loss. IO. BUSY: a process that was
 * syncing has been stopped. Blocks: for the disk. */
GYRE_MUST_USE GYRE_API gyre_err gyre_sync(struct gyre_store *store);

/* ---- Metadata ---- */

/* What is kept beside an object's bytes and returned with it. Times are Unix seconds. */
struct gyre_info {
    uint64_t length; /* bytes of the object */
    uint64_t serial; /* identity: never used twice for one key; the value for GYRE_IF_SERIAL */
    uint32_t created;
    uint32_t expires;   /* the object is never returned from this second on; 0: never */
    uint64_t etag_hash; /* the caller's own, e.g. a hash of the validator */
    uint32_t meta_len;  /* bytes */
    uint32_t parts;     /* pieces the bytes lie in; 0: stored with the metadata */
    uint16_t tenant;
    uint8_t pool;
    uint8_t retention;
    uint64_t place; /* which document it is and where it lies, for gyre_holds */
};

/* ---- Get ---- */

struct gyre_handle;

enum {
    GYRE_GET_NOWAIT = 1 << 0,   /* WOULD_BLOCK where directory, header or metadata are not in memory
                                   or not yet verified */
    GYRE_GET_HEAD = 1 << 1,     /* metadata only: the body is neither pinned nor verified */
    GYRE_GET_LAZY = 1 << 2,     /* a body of several pieces is pinned, but read and verified only by
                                   gyre_populate. NOWAIT implies it */
    GYRE_GET_NO_COUNT = 1 << 3, /* a look that is no use: neither hit nor miss is counted, and
                                   eviction does not hear of it */
};

/* Finds an object and pins it: its bytes stay valid and unchanged until gyre_release, whatever is
 * written, deleted or closed meanwhile. Never returns bytes that are not what was put: a damaged
 * object is NOT_FOUND, and counted. `now` (Unix seconds) decides about expiry. OK, NOT_FOUND,
 * EXPIRED, WOULD_BLOCK (only with NOWAIT), BUSY (no pin left), CLOSED, NO_MEMORY. Without NOWAIT it
 * blocks for cold data and, on the first read of an object after opening, for its checksum (about
 * 10 GB/s); with LAZY only as far as the metadata goes (and objects below 64 KiB). Cost when warm:
 * below one microsecond for an object stored in one piece, plus about 0.2 us a part. */
GYRE_MUST_USE GYRE_API gyre_err gyre_get(struct gyre_store *store, const struct gyre_key *key,
                                         uint32_t now, unsigned flags,
                                         struct gyre_handle **handle_out);

/* As gyre_get, off the calling thread; NOWAIT means LAZY here. `done` is called once on a thread of
 * the library, unless the call itself fails (BUSY, CLOSED, NO_MEMORY). It owns `handle` (NULL
 * unless OK). */
GYRE_MUST_USE GYRE_API gyre_err
gyre_get_async(struct gyre_store *store, const struct gyre_key *key, uint32_t now, unsigned flags,
               void (*done)(void *data, gyre_err err, struct gyre_handle *handle), void *data);

/* Ends a handle; NULL is allowed. Never blocks. */
GYRE_API void gyre_release(struct gyre_handle *handle);

/* Lent until gyre_release. */
GYRE_API const struct gyre_info *gyre_handle_info(const struct gyre_handle *handle);
GYRE_API const void *gyre_handle_meta(const struct gyre_handle *handle, size_t *len_out);

/* One contiguous piece of the body: in memory at `base`, and in file `fd` at `file_offset`. Lent
 * until gyre_release. */
struct gyre_piece {
    const uint8_t *base;
    size_t len;
    int fd;
    uint64_t file_offset;
};

/* The piece that holds body offset `offset`, beginning there and ending where contiguous, verified
 * bytes end. RANGE at or past the end. WOULD_BLOCK: not verified yet, which a handle got with LAZY
 * or NOWAIT can meet; gyre_populate first. STATE for a GYRE_GET_HEAD handle. Never blocks; touching
 * `base` may fault in cold pages, see gyre_resident. Do not hand `fd` to sendfile or zero-copy
 * sends and release before the peer acknowledged. */
GYRE_MUST_USE GYRE_API gyre_err gyre_handle_piece(const struct gyre_handle *handle, uint64_t offset,
                                                  struct gyre_piece *piece_out);

/* Whether body bytes [offset, offset+len) are in memory and verified, so that touching them cannot
 * block. Never blocks. */
GYRE_API bool gyre_resident(const struct gyre_handle *handle, uint64_t offset, uint64_t len);

/* Bytes of a lent piece may turn out not to be there when they are touched: the file was cut short,
 * or its medium fails. That is a SIGBUS, which ends the process; after this call it is a run of
 * zeros instead. `hook` (may be NULL) is called on the thread that touched them, inside the signal
 * handler. For the whole process, before threads; UNSUPPORTED where the system refuses. */
GYRE_MUST_USE GYRE_API gyre_err gyre_guard_faults(void (*hook)(void));

/* Whether bytes of [offset, offset+len), which lies inside the object, have turned out not to be
 * there: what was read of them is worthless. Never blocks. */
GYRE_API bool gyre_faulted(const struct gyre_handle *handle, uint64_t offset, uint64_t len);

/* Brings [offset, offset+len) into memory and verifies what of it is not verified yet. DAMAGED: the
 * bytes are not what was stored; the object is dropped and the caller must not send them. IO,
 * RANGE, STATE. Blocks for the disk. */
GYRE_MUST_USE GYRE_API gyre_err gyre_populate(struct gyre_handle *handle, uint64_t offset,
                                              uint64_t len);

/* As gyre_populate, off the calling thread, and what follows is read ahead as far again; the disk
 * keeps no thread waiting where the system has io_uring. The handle must stay open and unused until
 * `done`. BUSY, CLOSED, NO_MEMORY: `done` is not called. */
GYRE_MUST_USE GYRE_API gyre_err gyre_populate_async(struct gyre_handle *handle, uint64_t offset,
                                                    uint64_t len,
                                                    void (*done)(void *data, gyre_err err),
                                                    void *data);

/* Copies up to `len` bytes from `offset`, verified; *copied_out gets how many. With GYRE_GET_NOWAIT
 * in `flags` WOULD_BLOCK instead of waiting, decided without touching the mapping. RANGE, DAMAGED,
 * IO, STATE. */
GYRE_MUST_USE GYRE_API gyre_err gyre_copy(struct gyre_handle *handle, uint64_t offset, void *buffer,
                                          size_t len, unsigned flags, size_t *copied_out);

enum gyre_certainty {
    GYRE_STRICT,   /* reads the header and compares the whole key; may block on cold data */
    GYRE_PROBABLE, /* the directory alone: wrong "yes" for about 1 in 5,000 absent keys, no wrong
                      "no"; never blocks on data */
};

/* OK or NOT_FOUND (or EXPIRED when strict). CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_exists(struct gyre_store *store, const struct gyre_key *key,
                                            uint32_t now, enum gyre_certainty certainty);

/* Whether the object that had `place` when it was looked at is there still, unchanged and unmoved,
 * by the directory alone: never blocks on data. For objects of one piece (gyre_info.parts 0); those
 * of several may lack one. OK: it is, though it may have expired. NOT_FOUND: it was replaced,
 * moved, is gone, or may be banned; gyre_get tells. CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_holds(struct gyre_store *store, const struct gyre_key *key,
                                           uint64_t place);

/* ---- Put and delete ---- */

struct gyre_put;

#define GYRE_LENGTH_UNKNOWN UINT64_MAX

/* Where an object is kept. It is looked for in the main pool first: keys of the two had better come
 * from different domains. */
enum gyre_pool {
    GYRE_POOL_MAIN = 0, /* objects */
    GYRE_POOL_META = 1, /* facts that must never be evicted; bounded, NO_SPACE when full; objects
                           below 64 KiB only */
};

enum gyre_condition {
    GYRE_ALWAYS,
    GYRE_IF_ABSENT, /* EXISTS if an unexpired object is there */
    GYRE_IF_SERIAL, /* CHANGED unless the object there has this serial */
};

enum { GYRE_PUT_SYNC = 1 << 0 }; /* commit returns once the object survives a power loss */

/* How to store an object. Fill with gyre_put_options_init. */
struct gyre_put_options {
    size_t struct_size;
    uint64_t length;  /* bytes, or GYRE_LENGTH_UNKNOWN */
    const void *meta; /* copied at begin; may be replaced before commit by gyre_put_set_meta */
    size_t meta_len;
    uint32_t created; /* Unix seconds; 0: now */
    uint32_t expires; /* 0: never */
    uint64_t etag_hash;
    uint16_t tenant;
    uint8_t pool;      /* enum gyre_pool, or a number from gyre_pool_find */
    uint8_t retention; /* class: of two objects as cold, the one of the higher class leaves first */
    unsigned flags;    /* GYRE_PUT_* */
    enum gyre_condition condition;
    uint64_t if_serial;
    uint32_t pin_until; /* Unix seconds: not evicted before. Pinned objects take at most a quarter
                           of a pool, then GYRE_QUOTA. 0: not pinned */
    uint32_t n_labels;  /* at most GYRE_LABELS_MAX */
    const uint64_t *labels; /* by which it can be banned, from gyre_label; copied at begin */
};

GYRE_API void gyre_put_options_init(struct gyre_put_options *options);

/* Stores a whole object in one call. `serial_out` may be NULL. Results as gyre_put_commit and
 * gyre_put_begin. Blocks: writes into the page cache, for the disk only with GYRE_PUT_SYNC or when
 * the kernel throttles. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put(struct gyre_store *store, const struct gyre_key *key,
                                         const struct gyre_put_options *options, const void *body,
                                         size_t len, uint64_t *serial_out);

/* Begins a streamed object. Nothing of it is visible before commit; what was there before stays
 * readable. TOO_LARGE, META_TOO_LARGE, INVALID, CLOSED, NO_MEMORY. Never blocks. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_begin(struct gyre_store *store, const struct gyre_key *key,
                                               const struct gyre_put_options *options,
                                               struct gyre_put **put_out);

/* Lends a staging buffer of 1..*len_inout bytes to fill in place; gyre_put_advance then says how
 * many were filled. NO_MEMORY, STATE, and as gyre_put_write where filled bytes must be written out
 * to make room. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_reserve(struct gyre_put *put, size_t *len_inout,
                                                 void **buffer_out);
/* LENGTH, and as gyre_put_write. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_advance(struct gyre_put *put, size_t len);

/* Appends bytes. LENGTH (more than announced), NO_SPACE, TOO_LARGE, BUSY, NO_MEMORY, IO: the put
 * has failed and can only be aborted. CLOSED; STATE after a failure. Blocks as gyre_put. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_write(struct gyre_put *put, const void *bytes, size_t len);

/* Replaces metadata, etag hash and expiry before commit, for values known only at the end (an MD5).
 * META_TOO_LARGE, NO_MEMORY, STATE. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_set_meta(struct gyre_put *put, const void *meta,
                                                  size_t meta_len, uint64_t etag_hash,
                                                  uint32_t expires);

/* Publishes the object at once and whole, if the condition holds, and takes *put away whatever the
 * result. `serial_out` may be NULL. OK, EXISTS, CHANGED, NOT_FOUND (GYRE_IF_SERIAL and nothing
 * there), LENGTH (bytes missing), NO_SPACE, BUSY, NO_MEMORY, META_TOO_LARGE, IO, CLOSED; for a put
 * that has failed, its first error. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_commit(struct gyre_put **put, uint64_t *serial_out);

/* Drops a put and takes *put away; NULL inside is allowed. */
GYRE_API void gyre_put_abort(struct gyre_put **put);

/* Removes an object, if the condition (GYRE_ALWAYS or GYRE_IF_SERIAL) holds. Readers that have it
 * open finish. OK, NOT_FOUND, CHANGED, IO, NO_SPACE, CLOSED. With GYRE_PUT_SYNC it returns once the
 * deletion survives a power loss. */
GYRE_MUST_USE GYRE_API gyre_err gyre_delete(struct gyre_store *store, const struct gyre_key *key,
                                            enum gyre_condition condition, uint64_t if_serial,
                                            unsigned flags);

/* Calls `visit` for each object of a pool that is there throughout the call, in no order, until it
 * returns false. The handle is lent for the call and as if opened with GYRE_GET_HEAD, but the body
 * of meta objects is there too. Damaged objects are passed over. Blocks for cold data: one read for
 * each object. INVALID, NO_MEMORY, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_each(struct gyre_store *store, enum gyre_pool pool,
                                          bool (*visit)(void *data,
                                                        const struct gyre_handle *handle),
                                          void *data);

/* gyre_each of GYRE_POOL_META. */
GYRE_MUST_USE GYRE_API gyre_err gyre_each_meta(struct gyre_store *store,
                                               bool (*visit)(void *data,
                                                             const struct gyre_handle *handle),
                                               void *data);

/* A number that grows by two whenever an object of GYRE_POOL_META is about to be put or deleted, by
 * any process, and is odd until that is done. As long as it is the same and even, what was read
 * there since it was so is there still. It begins anew when nobody has the store open. A fence and
 * two loads; never blocks. */
GYRE_API uint64_t gyre_meta_changes(const struct gyre_store *store);

/* ---- Following changes ---- */

#define GYRE_MARK_MAX 20480 /* longest mark in bytes */

/* Writes down how far the store has come, to be kept anywhere and for any time; at most
 * GYRE_MARK_MAX bytes. RANGE: more than `size`. CLOSED. Never blocks for long. */
GYRE_MUST_USE GYRE_API gyre_err gyre_mark(struct gyre_store *store, void *mark_out, size_t size,
                                          size_t *len_out);

/* As gyre_each for the objects stored since the mark was taken, reading only the segments they can
 * be in. Some older ones may come too; one whose commit was under way as the mark was taken may be
 * left out. FOREIGN: no mark of this store, or damaged; nothing was visited. */
GYRE_MUST_USE GYRE_API gyre_err
gyre_each_since(struct gyre_store *store, enum gyre_pool pool, const void *mark, size_t len,
                bool (*visit)(void *data, const struct gyre_handle *handle), void *data);

/* ---- Looking in ---- */

/* Counters since opening and gauges of now, one line each in gyre_stats.def. */
struct gyre_stats {
    size_t struct_size; /* set by the caller to sizeof(struct gyre_stats) */
#define X(name, unit, text) uint64_t name;
#include "gyre_stats.def"
#undef X
};

GYRE_MUST_USE GYRE_API gyre_err gyre_stat(struct gyre_store *store, struct gyre_stats *stats_out);

/* One file of the store. Its bytes from `base_offset` to its end are mapped at `base`, read-only
 * for data files. Lent until gyre_close. */
struct gyre_file {
    const char *path;
    uint64_t size_bytes;
    const void *base;
    uint64_t base_offset;
    int fd;
};

/* The n-th file (volume first, then data files), for registering mappings with devices; RANGE past
 * the last. */
GYRE_MUST_USE GYRE_API gyre_err gyre_file_at(struct gyre_store *store, size_t index,
                                             struct gyre_file *file_out);

/* Bytes of objects the store can hold at most, and the longest single object. */
GYRE_API uint64_t gyre_capacity_bytes(const struct gyre_store *store);
GYRE_API uint64_t gyre_object_max_bytes(const struct gyre_store *store);

/* Bytes that the store takes at most: of disks, with the small files beside the big ones, and of
 * the memory that its processes share. Less than the sizes it was made with by a segment of each
 * stripe and a hundredth of the whole at most, and never more. */
GYRE_API uint64_t gyre_size_bytes(const struct gyre_store *store);

/* What gyre_check found. */
struct gyre_check_report {
    size_t struct_size;          /* set by the caller */
    uint64_t documents;          /* directory entries walked */
    uint64_t documents_bad;      /* entries whose document is damaged (they read as misses) */
    uint64_t objects;            /* objects whole with all their parts */
    uint64_t objects_incomplete; /* objects that lack a part (they read as misses). Eviction takes
                                    parts one at a time, so a full store may have some */
    uint64_t live_bytes;
    uint64_t violations; /* broken invariants of the index: 0 in a sound store */
};

/* Walks everything and checks every invariant; with `bodies` all checksums too. `report` gets a
 * line for each finding (may be NULL). OK: sound. DAMAGED: a damaged document or a broken
 * invariant. Blocks: reads headers, or the whole store. Other users may go on, but writes wait. */
GYRE_MUST_USE GYRE_API gyre_err gyre_check(struct gyre_store *store, bool bodies,
                                           void (*report)(void *data, const char *line), void *data,
                                           struct gyre_check_report *report_out);

#ifdef __cplusplus
}
#endif

#include "gyre_async.h"
#include "gyre_miss.h"
#include "gyre_pool.h"
#include "gyre_send.h"
#include "gyre_upload.h"
#include "gyre_vector.h"
#include "gyre_verify.h"
