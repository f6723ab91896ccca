#include "engine/header.h"

#include <string.h>

#include "engine/base/io.h"
#include "engine/base/check.h"
#include "engine/geometry.h"
#include "engine/seal.h"

/* Serials a stripe may give out between two headers without anybody keeping count: 2^32 documents.
 */
#define SERIAL_AHEAD (UINT64_C(1) << 32)

static gyre_err read_copy(int volume_fd, const struct eng_superblock *super, uint32_t stripe,
                          unsigned copy, struct eng_stripe_header *header_out)
{
    gyre_err err =
        eng_pread(volume_fd, header_out, sizeof *header_out, eng_header_off(stripe, copy));

    return err != GYRE_OK ? err : eng_stripe_header_check(header_out, super, stripe);
}

static gyre_err read_table(int volume_fd, const struct eng_superblock *super, uint32_t stripe,
                           const struct eng_stripe_header *header, struct eng_segment_row *rows_out)
{
    uint32_t n_segments = super->stripes[stripe].n_segments;
    gyre_err err = eng_pread(volume_fd, rows_out, n_segments * sizeof *rows_out,
                             eng_table_off(super, stripe, header->table_copy));

    return err != GYRE_OK ? err : eng_segment_table_check(rows_out, n_segments, header->table_crc);
}

gyre_err eng_header_read(int volume_fd, const struct eng_superblock *super, uint32_t stripe,
                         struct eng_stripe_header *header_out, struct eng_segment_row *rows_out)
{
    struct eng_stripe_header copies[2];
    gyre_err errs[2];

    memset(header_out, 0, sizeof *header_out);
    for (unsigned copy = 0; copy < 2; copy++)
        errs[copy] = read_copy(volume_fd, super, stripe, copy, &copies[copy]);
    unsigned newer =
        errs[1] == GYRE_OK && (errs[0] != GYRE_OK || copies[1].generation > copies[0].generation);
    for (unsigned i = 0; i < 2; i++) {
        unsigned copy = i == 0 ? newer : 1 - newer;
        if (errs[copy] == GYRE_OK)
            errs[copy] = read_table(volume_fd, super, stripe, &copies[copy], rows_out);
        if (errs[copy] == GYRE_OK) {
            *header_out = copies[copy];
            return GYRE_OK;
        }
    }
    return errs[0] == GYRE_DAMAGED ? errs[1]
                                   : errs[0]; /* an error of the device says more than damage */
}

gyre_err eng_header_write(int volume_fd, const struct eng_superblock *super, uint32_t stripe,
                          struct eng_stripe_header *header, const struct eng_segment_row *rows,
                          uint64_t *generation)
{
    uint32_t n_segments = super->stripes[stripe].n_segments;
    uint64_t next = *generation + 1;
    unsigned copy = next & 1; /* copies alternate with the generation */
    gyre_err err;

    header->magic = ENG_HEADER_MAGIC;
    header->stripe = stripe;
    memcpy(header->uuid, super->uuid, sizeof header->uuid);
    header->generation = next;
    if (header->serial_limit < header->serial_synced + SERIAL_AHEAD)
        header->serial_limit = header->serial_synced + SERIAL_AHEAD;
    header->table_copy = copy;
    header->table_crc = eng_segment_table_crc(rows, n_segments);
    eng_stripe_header_seal(header);
    TRY(eng_pwrite(volume_fd, rows, n_segments * sizeof *rows, eng_table_off(super, stripe, copy)));
    TRY(eng_pwrite(volume_fd, header, sizeof *header, eng_header_off(stripe, copy)));
    *generation = next;
out:
    return err;
}

gyre_err eng_header_init(int volume_fd, const struct eng_superblock *super, uint32_t stripe)
{
    struct eng_segment_row rows[ENG_MAX_SEGMENTS];
    uint64_t generation = 0;
    gyre_err err;

    memset(rows, 0, sizeof rows);
    for (uint32_t i = 0; i < ENG_MAX_SEGMENTS; i++)
        rows[i].successor = ENG_NO_SEGMENT;
    for (unsigned copy = 0; copy < 2; copy++) {
        struct eng_stripe_header header;
        memset(&header, 0, sizeof header);
        header.clean = 1;
        TRY(eng_header_write(volume_fd, super, stripe, &header, rows, &generation));
    }
out:
    return err;
}
