#include "engine/geometry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/runtime.h"

#define DIRECTORY_ALIGN (UINT64_C(2) << 20)
#define STRIPE_BYTES (UINT64_C(64) << 30)    /* a stripe more for each of these */
#define MAX_STRIPE_BYTES (UINT64_C(2) << 40) /* 34 bits of offset in units of 128 bytes */
#define MAX_BUCKETS (UINT32_C(1) << 29)      /* slot numbers stay below 2^32 */
#define SEGMENTS_WANTED 128
/* The average object when nothing is said: 4 KiB, so that a small store full of small objects is
 * bounded by its data and not by its directory; in large stores up to 16 KiB, to save memory. */
#define OBJECT_FEWEST (4u << 10)
#define OBJECT_MOST (16u << 10)
#define OBJECTS_WANTED_SHIFT 22

/* ---- Where things lie ---- */

uint64_t eng_superblock_off(unsigned copy)
{
    return (uint64_t)copy * ENG_PAGE;
}

uint64_t eng_header_off(uint32_t stripe, unsigned copy)
{
    return (2 + 2 * (uint64_t)stripe + copy) * ENG_PAGE;
}

uint64_t eng_table_off(const struct eng_superblock *super, uint32_t stripe, unsigned copy)
{
    const struct eng_stripe_row *row = &super->stripes[stripe];

    return row->table_off + (uint64_t)copy * row->table_pages * ENG_PAGE;
}

uint64_t eng_area_bytes(const struct eng_superblock *super, uint32_t stripe)
{
    return (uint64_t)super->stripes[stripe].n_segments * super->segment_bytes;
}

uint64_t eng_data_file_bytes(const struct eng_superblock *super, uint32_t stripe)
{
    return ENG_DATA_START + eng_area_bytes(super, stripe);
}

static uint64_t all_segments(const struct eng_superblock *super)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < super->n_stripes; i++)
        n += super->stripes[i].n_segments;
    return n;
}

/* A stripe's part of the bytes that a pool was given. */
static uint32_t given_share(const struct eng_superblock *super, uint32_t stripe, uint32_t pool)
{
    uint64_t n_segments = super->stripes[stripe].n_segments;
    uint64_t wanted = super->pools[pool].max_bytes / super->segment_bytes;
    uint64_t all = all_segments(super);
    uint64_t share = wanted < all ? eng_div_up(wanted * n_segments, all) : n_segments;
    uint64_t least = super->pools[pool].min_segments;
    return (uint32_t)(share < least ? least : share);
}

/* The share of a pool that has a bound of its own. */
static uint32_t bounded_share(const struct eng_superblock *super, uint32_t stripe, uint32_t pool)
{
    uint32_t n_segments = super->stripes[stripe].n_segments;
    uint32_t share = n_segments / 64;
    uint32_t least = super->pools[pool].min_segments;

    if (super->pools[pool].max_bytes != 0)
        return given_share(super, stripe, pool);

    share = share < least ? least : share;
    share = share > super->pools[pool].max_segments ? super->pools[pool].max_segments : share;
    return share > n_segments / 4 ? n_segments / 4 : share;
}

uint32_t eng_pool_max_segments(const struct eng_superblock *super, uint32_t stripe, uint32_t pool)
{
    if (pool >= super->n_pools)
        return 0;
    if (pool != ENG_POOL_MAIN)
        return bounded_share(super, stripe, pool);
    uint32_t rest = super->stripes[stripe].n_segments;
    for (uint32_t other = 0; other < super->n_pools; other++) {
        uint32_t share = other == ENG_POOL_MAIN ? 0 : bounded_share(super, stripe, other);
        rest = rest > share ? rest - share : 0;
    }
    return rest;
}

/* ---- Making a layout ---- */

static uint32_t pages_of_table(uint32_t n_segments)
{
    return (uint32_t)eng_div_up((uint64_t)n_segments * sizeof(struct eng_segment_row), ENG_PAGE);
}

/* Buckets at 85 % load when every object has the average size. */
static uint64_t buckets_for(uint64_t area_bytes, uint32_t average_object_bytes)
{
    uint64_t objects = area_bytes / average_object_bytes;
    uint64_t buckets = eng_div_up(objects * 100, ENG_BUCKET_ENTRIES * 85);

    buckets = buckets < 64 ? 64 : buckets;
    return buckets > MAX_BUCKETS ? MAX_BUCKETS : buckets;
}

/* Places everything in the volume file once the numbers of segments stand. */
static void lay_out(struct eng_superblock *super)
{
    uint64_t at = eng_header_off(super->n_stripes, 0);

    for (uint32_t i = 0; i < super->n_stripes; i++) {
        struct eng_stripe_row *row = &super->stripes[i];
        row->n_buckets =
            (uint32_t)buckets_for(eng_area_bytes(super, i), super->average_object_bytes);
        row->table_pages = pages_of_table(row->n_segments);
        row->table_off = at;
        at += UINT64_C(2) * row->table_pages * ENG_PAGE;
    }
    super->ban_rows = ENG_BAN_ROWS;
    super->ban_off = at;
    at += eng_align_up((uint64_t)super->ban_rows * sizeof(struct eng_ban_row), ENG_PAGE);
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        struct eng_stripe_row *row = &super->stripes[i];
        at = eng_align_up(at, DIRECTORY_ALIGN);
        row->directory_off = at;
        at += (uint64_t)row->n_buckets * 64;
    }
    super->volume_bytes = eng_align_up(at, ENG_PAGE);
}

static bool pool_name_valid(const struct eng_superblock *super, const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;
    if (len == 0 || len >= sizeof super->pools[0].name)
        return false;
    for (uint32_t i = 0; i < super->n_pools; i++)
        if (strcmp(super->pools[i].name, name) == 0)
            return i == ENG_POOL_SMALL && super->pools[i].max_bytes == 0;
    return true;
}

/* Pools that were asked for. The place of "small" is kept for it, with no bytes until it is named.
 */
static gyre_err add_pools(const struct eng_geometry_want *want, struct eng_superblock *super,
                          char *why, size_t why_size)
{
    if (want->n_pools == 0)
        return GYRE_OK;
    memcpy(super->pools[ENG_POOL_SMALL].name, "small", 5);
    super->n_pools = ENG_POOL_SMALL + 1;
    for (uint32_t i = 0; i < want->n_pools; i++) {
        const struct eng_pool_want *at = &want->pools[i];
        bool is_small = at->name != NULL && strcmp(at->name, "small") == 0;
        if (!pool_name_valid(super, at->name) || at->max_bytes == 0 ||
            (is_small && at->never_evicts) || (!is_small && super->n_pools == ENG_MAX_POOLS)) {
            snprintf(why, why_size,
                     "pool %" PRIu32 " (\"%s\") has no bytes, a name that is taken or not of 1 to "
                     "15 bytes, or is one of more than 13",
                     i + 1, at->name != NULL ? at->name : "");
            return GYRE_INVALID;
        }
        struct eng_pool_row *row = &super->pools[is_small ? ENG_POOL_SMALL : super->n_pools++];
        memcpy(row->name, at->name, strlen(at->name));
        row->max_bytes = at->max_bytes;
        row->min_segments = 2;
        row->max_segments = ENG_MAX_SEGMENTS;
        row->flags = at->never_evicts ? ENG_POOL_NEVER_EVICT : 0;
    }
    return GYRE_OK;
}

/* Main has to keep a quarter of each stripe, and four segments at least. */
static gyre_err check_pools(const struct eng_superblock *super, char *why, size_t why_size)
{
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        uint32_t n = super->stripes[i].n_segments;
        uint32_t least = n / 4 > 4 ? n / 4 : 4;
        if (super->n_pools > 2 && eng_pool_max_segments(super, i, ENG_POOL_MAIN) < least) {
            snprintf(why, why_size, "the pools leave less than a quarter of the store to main");
            return GYRE_INVALID;
        }
    }
    return GYRE_OK;
}

static void make_pools(struct eng_superblock *super)
{
    super->n_pools = 2;
    memcpy(super->pools[ENG_POOL_MAIN].name, "main", 4);
    super->pools[ENG_POOL_MAIN].min_segments = 2;
    super->pools[ENG_POOL_MAIN].max_segments = ENG_MAX_SEGMENTS;
    memcpy(super->pools[ENG_POOL_META].name, "meta", 4);
    super->pools[ENG_POOL_META].min_segments = 2;
    super->pools[ENG_POOL_META].max_segments = ENG_MAX_SEGMENTS;
    super->pools[ENG_POOL_META].flags = ENG_POOL_NEVER_EVICT;
}

/* Gives each directory a stripe, then each further one to the directory with the most bytes a
 * stripe. */
static void spread(const struct eng_geometry_want *want, uint32_t n_stripes,
                   uint32_t counts[ENG_MAX_STRIPES])
{
    for (uint32_t d = 0; d < want->n_dirs; d++)
        counts[d] = 1;
    for (uint32_t i = want->n_dirs; i < n_stripes; i++) {
        uint32_t best = 0;
        for (uint32_t d = 1; d < want->n_dirs; d++)
            if (want->dir_bytes[d] / (counts[d] + 1) > want->dir_bytes[best] / (counts[best] + 1))
                best = d;
        counts[best]++;
    }
}

struct shares {
    uint64_t total, smallest, largest; /* bytes; of all directories, and per stripe */
    uint32_t n_stripes;
    uint32_t counts[ENG_MAX_STRIPES]; /* stripes per directory */
};

static gyre_err share_out(const struct eng_geometry_want *want, struct shares *shares, char *why,
                          size_t why_size)
{
    *shares = (struct shares){.smallest = UINT64_MAX};
    for (uint32_t d = 0; d < want->n_dirs; d++) {
        if (!eng_add_checked(shares->total, want->dir_bytes[d], &shares->total)) {
            snprintf(why, why_size, "the sizes of the directories add up to more than 2^64 bytes");
            return GYRE_INVALID;
        }
    }
    uint64_t n = want->stripes != 0 ? want->stripes : shares->total / STRIPE_BYTES;
    n = n < want->n_dirs ? want->n_dirs : n;
    if (want->stripes == 0 && n > ENG_MAX_STRIPES)
        n = ENG_MAX_STRIPES;
    if (n > ENG_MAX_STRIPES) {
        snprintf(why, why_size, "%" PRIu64 " stripes are more than %u", n, ENG_MAX_STRIPES);
        return GYRE_INVALID;
    }
    shares->n_stripes = (uint32_t)n;
    spread(want, shares->n_stripes, shares->counts);
    for (uint32_t d = 0; d < want->n_dirs; d++) {
        uint64_t each = want->dir_bytes[d] / shares->counts[d];
        shares->smallest = each < shares->smallest ? each : shares->smallest;
        shares->largest = each > shares->largest ? each : shares->largest;
    }
    if (shares->largest > MAX_STRIPE_BYTES) {
        snprintf(why, why_size,
                 "a stripe of %" PRIu64 " GiB is larger than 2 TiB, and a store has %u at most",
                 shares->largest >> 30, ENG_MAX_STRIPES);
        return GYRE_INVALID;
    }
    return GYRE_OK;
}

static gyre_err choose_segment(const struct eng_geometry_want *want, const struct shares *shares,
                               uint64_t *segment_out, char *why, size_t why_size)
{
    uint64_t segment = want->segment_bytes;

    *segment_out = 0;
    if (segment != 0 &&
        (!eng_is_pow2(segment) || segment < ENG_MIN_SEGMENT || segment > ENG_MAX_SEGMENT)) {
        snprintf(why, why_size,
                 "a segment of %" PRIu64 " bytes is not a power of two from 1 MiB to 1 GiB",
                 segment);
        return GYRE_INVALID;
    }
    if (segment == 0) {
        segment = shares->smallest < SEGMENTS_WANTED
                      ? 1
                      : UINT64_C(1) << eng_log2_floor(shares->smallest / SEGMENTS_WANTED);
        segment = segment < ENG_MIN_SEGMENT ? ENG_MIN_SEGMENT : segment;
        segment = segment > ENG_MAX_SEGMENT ? ENG_MAX_SEGMENT : segment;
        while (shares->largest / segment > ENG_MAX_SEGMENTS)
            segment *= 2; /* ends at 512 MiB, as no stripe is over 2 TiB */
    }
    if (shares->largest / segment > ENG_MAX_SEGMENTS) {
        snprintf(why, why_size, "segments of %" PRIu64 " bytes make more than %u in a stripe",
                 segment, ENG_MAX_SEGMENTS);
        return GYRE_INVALID;
    }
    *segment_out = segment;
    return GYRE_OK;
}

/* Numbers of segments when directory 0 has to give up `set_aside` bytes first. */
static gyre_err count_segments(const struct eng_geometry_want *want, const struct shares *shares,
                               uint64_t set_aside, struct eng_superblock *super, char *why,
                               size_t why_size)
{
    uint32_t stripe = 0;

    for (uint32_t d = 0; d < want->n_dirs; d++) {
        uint64_t budget = want->dir_bytes[d];
        uint64_t taken = ENG_SMALL_FILES + (d == 0 ? set_aside : 0);
        uint64_t each = budget > taken ? (budget - taken) / shares->counts[d] : 0;
        uint64_t n = each > ENG_DATA_START ? (each - ENG_DATA_START) / super->segment_bytes : 0;
        if (n < ENG_MIN_SEGMENTS) {
            snprintf(why, why_size,
                     "%" PRIu64 " bytes for %" PRIu32 " stripe(s) leave room for %" PRIu64
                     " segments of %" PRIu64 " bytes in each, and %d are the least",
                     budget, shares->counts[d], n, super->segment_bytes, ENG_MIN_SEGMENTS);
            return GYRE_INVALID;
        }
        for (uint32_t i = 0; i < shares->counts[d]; i++, stripe++) {
            super->stripes[stripe].n_segments = (uint32_t)n;
            super->stripes[stripe].data_dir = d;
        }
    }
    return GYRE_OK;
}

static uint32_t default_object_bytes(const struct eng_geometry_want *want)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < want->n_dirs; i++)
        total += want->dir_bytes[i];
    uint64_t share = total >> OBJECTS_WANTED_SHIFT;
    return share < OBJECT_FEWEST ? OBJECT_FEWEST
           : share > OBJECT_MOST ? OBJECT_MOST
                                 : (uint32_t)share;
}

gyre_err eng_geometry_make(const struct eng_geometry_want *want, struct eng_superblock *super_out,
                           char *why, size_t why_size)
{
    gyre_err err;
    struct shares shares;
    uint64_t segment;
    struct eng_superblock super = {
        .magic = ENG_SUPER_MAGIC, .major = ENG_FORMAT_MAJOR, .minor = ENG_FORMAT_MINOR};

    memset(super_out, 0, sizeof *super_out);
    GYRE_CHECK(want->n_dirs >= 1 && want->n_dirs <= ENG_MAX_STRIPES);
    super.average_object_bytes =
        want->average_object_bytes != 0 ? want->average_object_bytes : default_object_bytes(want);
    if (super.average_object_bytes < 512) {
        snprintf(why, why_size, "an average object of %" PRIu32 " bytes is below 512",
                 super.average_object_bytes);
        return GYRE_INVALID;
    }
    TRY(share_out(want, &shares, why, why_size));
    TRY(choose_segment(want, &shares, &segment, why, why_size));
    super.unit_shift = ENG_UNIT_SHIFT;
    super.n_stripes = shares.n_stripes;
    super.segment_bytes = segment;
    make_pools(&super);
    TRY(add_pools(want, &super, why, why_size));
    /* Twice: the volume file is sized for more segments than it then leaves room for, so the sum
     * stays within bounds. */
    TRY(count_segments(want, &shares, 0, &super, why, why_size));
    lay_out(&super);
    TRY(count_segments(want, &shares, super.volume_bytes + eng_runtime_bytes(&super), &super, why,
                       why_size));
    lay_out(&super);
    TRY(check_pools(&super, why, why_size));
    *super_out = super;
out:
    return err;
}

/* ---- Checking one ---- */

struct span {
    uint64_t off, len;
};

static bool spans_valid(const struct span *spans, size_t n, uint64_t bytes)
{
    for (size_t i = 0; i < n; i++) {
        if (!eng_is_aligned(spans[i].off, ENG_PAGE) ||
            !eng_span_inside(spans[i].off, spans[i].len, bytes))
            return false;
        for (size_t j = 0; j < i; j++)
            if (spans[i].off < spans[j].off + spans[j].len &&
                spans[j].off < spans[i].off + spans[i].len)
                return false;
    }
    return true;
}

static bool stripe_row_valid(const struct eng_superblock *super, uint32_t stripe)
{
    const struct eng_stripe_row *row = &super->stripes[stripe];

    return row->n_segments >= ENG_MIN_SEGMENTS && row->n_segments <= ENG_MAX_SEGMENTS &&
           row->n_buckets >= 1 && row->n_buckets <= MAX_BUCKETS &&
           row->table_pages == pages_of_table(row->n_segments) &&
           eng_area_bytes(super, stripe) <= MAX_STRIPE_BYTES &&
           eng_is_aligned(row->directory_off, DIRECTORY_ALIGN);
}

bool eng_layout_valid(const struct eng_superblock *super)
{
    struct span spans[2 + 2 * ENG_MAX_STRIPES];
    size_t n = 0;

    if (!eng_is_pow2(super->segment_bytes) || super->segment_bytes < ENG_MIN_SEGMENT ||
        super->segment_bytes > ENG_MAX_SEGMENT || super->unit_shift != ENG_UNIT_SHIFT ||
        super->n_stripes == 0 || super->n_stripes > ENG_MAX_STRIPES || super->n_pools == 0 ||
        super->n_pools > ENG_MAX_POOLS || super->ban_rows > (UINT32_C(1) << 20) ||
        !eng_is_aligned(super->volume_bytes, ENG_PAGE))
        return false;
    spans[n++] = (struct span){0, eng_header_off(super->n_stripes, 0)};
    spans[n++] =
        (struct span){super->ban_off, (uint64_t)super->ban_rows * sizeof(struct eng_ban_row)};
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        const struct eng_stripe_row *row = &super->stripes[i];
        if (!stripe_row_valid(super, i))
            return false;
        spans[n++] = (struct span){row->table_off, UINT64_C(2) * row->table_pages * ENG_PAGE};
        spans[n++] = (struct span){row->directory_off, (uint64_t)row->n_buckets * 64};
    }
    return spans_valid(spans, n, super->volume_bytes);
}
