/* What a store looks like on disk: every structure with its offsets. engine/seal.h makes and checks
 * them: what is read back carries a CRC-32C, and every count and length is checked before use.
 *
 * All integers are little-endian, as are the machines supported, so the structures are the bytes.
 *
 * Volume file, in pages of 4096 bytes:
 *   page 0      superblock A          page 1      superblock B
 *   then per stripe: header A, header B, one page each
 *   then per stripe: segment table A, B, whole pages each
 *   then the ban table, then per stripe the directory: buckets of 64 bytes, from a 2 MiB boundary
 * on Data file of a stripe: struct eng_data_head, zeros up to ENG_DATA_START, then n_segments
 * segments. Document offsets count from ENG_DATA_START.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ENG_PAGE 4096u
#define ENG_UNIT 128u /* granularity of document offsets and lengths */
#define ENG_UNIT_SHIFT 7
#define ENG_DATA_START \
    (UINT64_C(2) << 20) /* of the first segment: keeps large ones 2 MiB aligned */
#define ENG_MAX_STRIPES 64
#define ENG_MAX_POOLS 16
#define ENG_MAX_SEGMENTS 4096
#define ENG_MIN_SEGMENT (UINT64_C(1) << 20)
#define ENG_MAX_SEGMENT (UINT64_C(1) << 30)
#define ENG_HORIZON 64
#define ENG_HORIZON_ALL (ENG_HORIZON + 1)
#define ENG_BIG_BODY (64u << 10) /* bodies from here up are PART documents behind a HEAD */
#define ENG_CHUNK (256u << 10)   /* a PART keeps one CRC per chunk of this many bytes */
#define ENG_BUCKET_ENTRIES 7
#define ENG_NO_SEGMENT UINT32_MAX

#define ENG_SUPER_MAGIC UINT64_C(0x31455259472d4f56)  /* "VO-GYRE1" */
#define ENG_HEADER_MAGIC UINT64_C(0x315045524753532d) /* stripe header */
#define ENG_DATA_MAGIC UINT64_C(0x314154414447592d)   /* data file identity */
#define ENG_DOC_MAGIC UINT32_C(0x43444759)            /* "YGDC" */
#define ENG_FORMAT_MAJOR 1
#define ENG_FORMAT_MINOR 0

/* eng_doc.flags: what a document is besides its type, in bits 0 to 5; bits 6 to 11 count the u64
 * words at the end of its metadata that are labels (engine/ban.h); bits 12 to 15 are sixteenths of
 * stored_s. */
enum eng_doc_flag {
    ENG_DOC_IN_SMALL = 1, /* lies in the ring of the pool "small", whatever its own pool */
    ENG_DOC_UPLOAD = 2,   /* DOC of the meta pool: an upload in progress, or one of its parts */
    ENG_DOC_NUMBERED = 4, /* HEAD: its parts were numbered by an uploader */
    ENG_DOC_ALTERNATE = 8 /* the document of one alternate of a VECTOR */
};
#define ENG_DOC_LABELS_SHIFT 6
#define ENG_DOC_TICKS_SHIFT 12
#define ENG_DOC_LABELS_MAX 32u

enum eng_pool_id { ENG_POOL_MAIN = 0, ENG_POOL_META = 1, ENG_POOL_SMALL = 2 };
/* eng_superblock.feature_compat. TENANTS: documents of other tenants than 0 were stored, so headers
 * are read at opening. */
enum eng_feature_compat { ENG_COMPAT_TENANTS = 1 };
enum eng_pool_flag { ENG_POOL_NEVER_EVICT = 1 };
enum eng_ring_kind { ENG_RING_S = 0, ENG_RING_M = 1 };

/* A pool: a class of documents with segments of its own. 48 bytes. */
struct eng_pool_row {
    char name[16]; /* zero padded; empty: the pool does not exist */
    uint64_t
        epoch; /* mixed into the key hash and kept in each document; raising it purges the pool */
    uint64_t max_bytes;
    uint32_t min_segments; /* per stripe */
    uint32_t max_segments;
    uint32_t flags;
    uint32_t zero_;
};

/* Where one stripe's parts lie. 32 bytes. */
struct eng_stripe_row {
    uint64_t directory_off; /* bytes into the volume file, 2 MiB aligned */
    uint64_t table_off;     /* segment table A; B follows at table_pages pages */
    uint32_t n_buckets;
    uint32_t n_segments;
    uint32_t table_pages;
    uint32_t data_dir; /* which of the configured directories it was made in; a hint only */
};

/* Superblock: one page, written to the copy with the older generation. Valid: magic, crc, major, no
 * unknown incompatible feature, and a geometry that fits volume_bytes. */
struct eng_superblock {
    uint64_t magic;
    uint32_t crc; /* of the page with this field zero */
    uint16_t major, minor;
    uint8_t uuid[16];
    uint64_t generation;
    uint64_t created_s;
    uint64_t volume_bytes;
    uint64_t segment_bytes; /* power of two */
    uint64_t hash_seed[2];
    uint32_t n_stripes;
    uint32_t unit_shift;
    uint32_t average_object_bytes;
    uint32_t n_pools; /* rows in use; the rest is zero */
    uint64_t ban_off;
    uint32_t ban_rows;
    uint32_t feature_compat, feature_ro_compat, feature_incompat;
    struct eng_pool_row pools[ENG_MAX_POOLS];
    struct eng_stripe_row stripes[ENG_MAX_STRIPES];
    uint8_t zero_[4096 - 120 - 16 * 48 - 64 * 32];
};

/* A ring of segments: where writing goes on. 16 bytes. */
struct eng_ring_row {
    uint8_t pool, kind;
    uint8_t used; /* 1: the ring has at least one segment */
    uint8_t zero_;
    uint32_t segment; /* the one the cursor is in */
    uint64_t cursor;  /* where the hand goes on: bytes into the stripe's segment area */
};

/* Stripe header: one page, A/B as the superblock. */
struct eng_stripe_header {
    uint64_t magic;
    uint32_t crc; /* of the page with this field zero */
    uint32_t stripe;
    uint8_t uuid[16];
    uint64_t generation;
    uint64_t serial_synced; /* every document with a serial up to here is durable, as is its
                               directory entry */
    uint64_t serial_limit;  /* no serial above was given out when this was written */
    uint32_t clean;         /* 1: closed in order, nothing to recover */
    uint32_t mode;          /* insertion mode of the policy */
    uint32_t table_crc;     /* of the segment table copy below */
    uint32_t table_copy;    /* 0: A, 1: B */
    uint64_t data_bytes, data_inode, data_ctime_ns; /* of the data file at a clean close */
    uint32_t n_horizon;                             /* ENG_HORIZON_ALL: every segment */
    uint32_t zero1_;
    uint32_t horizon[ENG_HORIZON]; /* what may be written before the next header, in no order */
    struct eng_ring_row rings[ENG_MAX_POOLS * 2];
    uint64_t blurred_serial; /* see eng_segment_row; 0: no opening has recovered anything */
    uint8_t zero_[4096 - 112 - 64 * 4 - 32 * 16];
};

enum eng_segment_state { ENG_SEGMENT_FREE = 0, ENG_SEGMENT_RING = 1 };

/* One segment. 16 bytes. */
struct eng_segment_row {
    uint8_t state, pool, kind;
    uint8_t blurred; /* not 0: an opening recovered it since it was entered, so what lies here may
                        be newer than first_serial tells, up to the header's blurred_serial */
    uint32_t successor;    /* next in its ring; ENG_NO_SEGMENT for FREE */
    uint64_t first_serial; /* what was written here since it was entered has this one or a later */
};

/* First page of a data file: whose it is. */
struct eng_data_head {
    uint64_t magic;
    uint32_t crc; /* of the 64 bytes with this field zero */
    uint32_t stripe;
    uint8_t uuid[16];
    uint64_t segment_bytes;
    uint32_t n_segments;
    uint16_t major, minor;
    uint8_t zero_[16];
};

enum eng_doc_type { ENG_DOC = 1, ENG_HEAD = 2, ENG_PART = 3, ENG_VECTOR = 4, ENG_TOMBSTONE = 5 };

/* Document header. 128 bytes; then `meta_len` bytes; then the body at eng_doc_body_off(). */
struct eng_doc {
    uint32_t magic;
    uint32_t header_crc; /* of the header with this field zero, seeded by uuid, stripe and offset:
                            bytes that moved are invalid */
    uint64_t serial;     /* strictly increasing per stripe: the document's identity */
    uint8_t key[32];
    uint64_t body_len;
    uint64_t total_len;     /* of the whole object */
    uint64_t object_serial; /* PART: of the object it belongs to; HEAD: the one its parts carry */
    uint64_t etag_hash;
    uint32_t meta_len, meta_crc;
    uint32_t body_crc;
    uint16_t type, flags;
    union {
        uint32_t part_no;  /* PART: its number */
        uint32_t stored_s; /* others: the second it was stored, by the store's own clock */
    };
    uint32_t parts;
    uint32_t created, expires, pin_until; /* Unix seconds; 0: none */
    uint32_t alt_id;
    uint32_t pool_epoch;
    uint16_t tenant;
    uint8_t pool, retention;
};

/* One row of a HEAD's body: where a part is and what it must be. 40 bytes. Its key is SHA-256(key,
 * object_serial, part_no, attempt, sub). */
struct eng_part_row {
    uint64_t length;
    uint32_t part_no, attempt, sub;
    uint32_t crc; /* CRC-32C of the part's bytes */
    uint8_t md5[16];
};

/* One alternate in a VECTOR's body, which is a u32 count, u32 zero, the entries, then a string
 * table. 64 bytes. */
struct eng_vector_entry {
    uint32_t alt_id, flags;
    uint64_t vary_hash, source_serial, length;
    uint32_t origin_variant; /* alt_id this one was derived from; 0: stored as received */
    uint32_t created, expires;
    uint32_t vary_off, vary_len; /* into the string table */
    uint16_t encoding, quality;
    uint64_t head_salt; /* derives the key of the variant's own HEAD */
};

/* One row of the ban table: documents older than time_ms that match are misses. 32 bytes. */
struct eng_ban_row {
    uint64_t hash, time_ms;
    uint32_t kind; /* 0: unused */
    uint32_t pool;
    uint32_t crc; /* of the row with this field zero */
    uint32_t zero_;
};
