#include "engine/part_read.h"

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/pin.h"

/* Whole pages are in the file; what follows them waits in memory until the part is finished. */
void eng_part_look(const struct eng_part *part, uint64_t off, struct eng_part_bytes *bytes_out)
{
    uint64_t written =
        part->pages == NULL ? part->body_len : eng_align_down(part->body_len, ENG_PAGE);
    GYRE_CHECK(off < part->body_len);
    *bytes_out = (struct eng_part_bytes){.fd = part->extent.stripe->fd};
    if (off < written) {
        bytes_out->file_off =
            ENG_DATA_START + (part->extent.start << ENG_UNIT_SHIFT) + ENG_PAGE + off;
        bytes_out->len = written - off;
    } else {
        bytes_out->memory = part->pages + ENG_PAGE + (off - written);
        bytes_out->len = part->body_len - off;
    }
}

/* The extent is reserved, so nobody can have taken it back before the pin is seen. */
gyre_err eng_part_pin(const struct eng_part *part, uint32_t *pin_out)
{
    struct eng_store *store = part->extent.stripe->store;
    gyre_err err = eng_pin_acquire(store, pin_out);
    if (err == GYRE_OK)
        eng_pin_set(
            store, *pin_out, part->extent.stripe,
            eng_entry_make(0, part->extent.start, part->extent.units, ENG_KIND_PART, 0, false, 0));
    return err;
}
