#include "engine/seal.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/geometry.h"
#include "engine/vector.h"

GYRE_STATIC_SIZE(struct eng_pool_row, 48);
GYRE_STATIC_SIZE(struct eng_stripe_row, 32);
GYRE_STATIC_SIZE(struct eng_superblock, ENG_PAGE);
GYRE_STATIC_SIZE(struct eng_stripe_header, ENG_PAGE);
GYRE_STATIC_SIZE(struct eng_segment_row, 16);
GYRE_STATIC_SIZE(struct eng_data_head, 64);
GYRE_STATIC_SIZE(struct eng_doc, 128);
GYRE_STATIC_SIZE(struct eng_part_row, 40);
GYRE_STATIC_SIZE(struct eng_vector_entry, 64);
GYRE_STATIC_SIZE(struct eng_ban_row, 32);

/* CRC of a structure as if its own checksum field were zero. */
static uint32_t crc_around(const void *structure, size_t len, size_t crc_off)
{
    static const uint8_t zero[4];
    const uint8_t *bytes = structure;
    uint32_t crc = eng_crc32c(0, bytes, crc_off);

    crc = eng_crc32c(crc, zero, sizeof zero);
    return eng_crc32c(crc, bytes + crc_off + sizeof zero, len - crc_off - sizeof zero);
}

static uint32_t superblock_crc(const struct eng_superblock *super)
{
    return crc_around(super, sizeof *super, offsetof(struct eng_superblock, crc));
}

static uint32_t header_crc(const struct eng_stripe_header *header)
{
    return crc_around(header, sizeof *header, offsetof(struct eng_stripe_header, crc));
}

static uint32_t head_crc(const struct eng_data_head *head)
{
    return crc_around(head, sizeof *head, offsetof(struct eng_data_head, crc));
}

static uint32_t ban_crc(const struct eng_ban_row *row)
{
    return crc_around(row, sizeof *row, offsetof(struct eng_ban_row, crc));
}

void eng_superblock_seal(struct eng_superblock *super)
{
    super->crc = superblock_crc(super);
}

void eng_stripe_header_seal(struct eng_stripe_header *header)
{
    header->crc = header_crc(header);
}

void eng_data_head_seal(struct eng_data_head *head)
{
    head->crc = head_crc(head);
}

void eng_ban_row_seal(struct eng_ban_row *row)
{
    row->crc = ban_crc(row);
}

gyre_err eng_superblock_check(const struct eng_superblock *super, uint64_t volume_bytes)
{
    if (super->magic != ENG_SUPER_MAGIC)
        return GYRE_NO_STORE;
    if (super->crc != superblock_crc(super))
        return GYRE_DAMAGED;
    if (super->major != ENG_FORMAT_MAJOR || super->feature_incompat != 0 ||
        super->feature_ro_compat != 0)
        return GYRE_INCOMPATIBLE;
    if (super->generation == 0 || super->volume_bytes != volume_bytes || !eng_layout_valid(super))
        return GYRE_DAMAGED;
    return GYRE_OK;
}

static bool ring_valid(const struct eng_ring_row *ring, const struct eng_superblock *super,
                       uint32_t n_segments)
{
    if (ring->used == 0)
        return true;
    if (ring->used != 1 || ring->pool >= super->n_pools || ring->kind > ENG_RING_M ||
        ring->segment >= n_segments)
        return false;
    uint64_t start = (uint64_t)ring->segment * super->segment_bytes;
    return ring->cursor >= start && ring->cursor - start <= super->segment_bytes &&
           eng_is_aligned(ring->cursor, ENG_UNIT);
}

gyre_err eng_stripe_header_check(const struct eng_stripe_header *header,
                                 const struct eng_superblock *super, uint32_t stripe)
{
    uint32_t n_segments = super->stripes[stripe].n_segments;

    if (header->magic != ENG_HEADER_MAGIC || header->crc != header_crc(header) ||
        header->stripe != stripe || memcmp(header->uuid, super->uuid, sizeof header->uuid) != 0)
        return GYRE_DAMAGED;
    if (header->generation == 0 || header->clean > 1 || header->table_copy > 1 ||
        header->n_horizon > ENG_HORIZON_ALL || header->serial_limit < header->serial_synced)
        return GYRE_DAMAGED;
    for (uint32_t i = 0; i < header->n_horizon && i < ENG_HORIZON; i++)
        if (header->horizon[i] >= n_segments)
            return GYRE_DAMAGED;
    for (size_t i = 0; i < GYRE_ARRAY_LEN(header->rings); i++)
        if (!ring_valid(&header->rings[i], super, n_segments))
            return GYRE_DAMAGED;
    return GYRE_OK;
}

uint32_t eng_segment_table_crc(const struct eng_segment_row *rows, uint32_t n_segments)
{
    return eng_crc32c(0, rows, (size_t)n_segments * sizeof *rows);
}

gyre_err eng_segment_table_check(const struct eng_segment_row *rows, uint32_t n_segments,
                                 uint32_t crc)
{
    if (eng_segment_table_crc(rows, n_segments) != crc)
        return GYRE_DAMAGED;
    for (uint32_t i = 0; i < n_segments; i++) {
        const struct eng_segment_row *row = &rows[i];
        if (row->state > ENG_SEGMENT_RING || row->pool >= ENG_MAX_POOLS || row->kind > ENG_RING_M)
            return GYRE_DAMAGED;
        if (row->successor >= n_segments && row->successor != ENG_NO_SEGMENT)
            return GYRE_DAMAGED;
    }
    return GYRE_OK;
}

struct eng_data_head eng_data_head_of(const struct eng_superblock *super, uint32_t stripe)
{
    struct eng_data_head head = {
        .magic = ENG_DATA_MAGIC,
        .stripe = stripe,
        .segment_bytes = super->segment_bytes,
        .n_segments = super->stripes[stripe].n_segments,
        .major = ENG_FORMAT_MAJOR,
        .minor = ENG_FORMAT_MINOR,
    };

    memcpy(head.uuid, super->uuid, sizeof head.uuid);
    eng_data_head_seal(&head);
    return head;
}

gyre_err eng_data_head_check(const struct eng_data_head *head, const struct eng_superblock *super,
                             uint32_t stripe)
{
    if (head->magic != ENG_DATA_MAGIC || head->crc != head_crc(head))
        return GYRE_DAMAGED;
    if (head->major != ENG_FORMAT_MAJOR)
        return GYRE_INCOMPATIBLE;
    if (memcmp(head->uuid, super->uuid, sizeof head->uuid) != 0 || head->stripe != stripe)
        return GYRE_FOREIGN;
    if (head->segment_bytes != super->segment_bytes ||
        head->n_segments != super->stripes[stripe].n_segments)
        return GYRE_DAMAGED;
    return GYRE_OK;
}

uint32_t eng_crc_seed(const uint8_t uuid[16], uint32_t stripe)
{
    return eng_crc32c(eng_crc32c(0, uuid, 16), &stripe, sizeof stripe);
}

bool eng_ban_row_valid(const struct eng_ban_row *row)
{
    static const struct eng_ban_row unused;

    if (row->kind == 0)
        return memcmp(row, &unused, sizeof unused) == 0;
    return row->pool < ENG_MAX_POOLS && row->zero_ == 0 && row->crc == ban_crc(row);
}

/* Whether an alternate kept inside lies in the strings, and its metadata in it. */
static bool inline_valid(const uint8_t *strings, uint64_t len, uint64_t where)
{
    struct eng_inline head;
    uint32_t inside_len = (uint32_t)where;
    if (!eng_span_inside(where >> 32, inside_len, len) || inside_len < sizeof head)
        return false;
    memcpy(&head, strings + (where >> 32), sizeof head);
    return head.meta_len <= inside_len - sizeof head;
}

gyre_err eng_vector_check(const void *body, size_t len, uint32_t *count_out)
{
    *count_out = 0;
    if (len < 8 || eng_load_u32((const uint8_t *)body + 4) != 0)
        return GYRE_DAMAGED;
    uint64_t count = eng_load_u32(body);
    uint64_t strings_off = 8 + count * sizeof(struct eng_vector_entry);
    if (strings_off > len)
        return GYRE_DAMAGED;
    for (uint64_t i = 0; i < count; i++) {
        struct eng_vector_entry entry;
        memcpy(&entry, (const uint8_t *)body + 8 + i * sizeof entry, sizeof entry);
        if (!eng_span_inside(entry.vary_off, entry.vary_len, len - strings_off))
            return GYRE_DAMAGED;
        if ((entry.flags & ENG_ALTERNATE_INLINE) != 0 &&
            !inline_valid((const uint8_t *)body + strings_off, len - strings_off, entry.head_salt))
            return GYRE_DAMAGED;
    }
    *count_out = (uint32_t)count;
    return GYRE_OK;
}
