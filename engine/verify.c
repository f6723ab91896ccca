#include "engine/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/fault.h"
#include "engine/resident.h"

enum { COPY_BYTES = 64 << 10 };

/* Where a range of memory begins and ends in whole pages. */
struct stretch {
    uintptr_t start, end;
};

static struct stretch whole_pages(const void *at, uint64_t len)
{
    uintptr_t from = (uintptr_t)at;
    return (struct stretch){eng_align_down(from, ENG_PAGE), eng_align_up(from + len, ENG_PAGE)};
}

static bool inside(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    return eng_span_inside(off, len, ref->doc->body_len);
}

bool eng_resident(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    return inside(ref, off, len) && (len == 0 || (!eng_fault_hit(ref->body + off, len) &&
                                                  eng_memory_resident(ref->body + off, len)));
}

/* Kernels before 5.14 cannot populate: reading the bytes leaves them in the page cache too. */
static gyre_err read_through(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    uint8_t scratch[COPY_BYTES];
    while (len > 0) {
        size_t n = len < sizeof scratch ? (size_t)len : sizeof scratch;
        gyre_err err = eng_pread(ref->stripe->fd, scratch, n, ref->body_file_off + off);
        if (err != GYRE_OK)
            return GYRE_IO;
        off += n;
        len -= n;
    }
    return GYRE_OK;
}

void eng_read_ahead(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    if (inside(ref, off, len))
        (void)!posix_fadvise(ref->stripe->fd, (off_t)(ref->body_file_off + off), (off_t)len,
                             POSIX_FADV_WILLNEED);
}

gyre_err eng_populate(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    if (!inside(ref, off, len))
        return GYRE_RANGE;
    struct stretch stretch = whole_pages(ref->body + off, len);
    int rc;
    if (eng_fault_hit(ref->body + off, len))
        return GYRE_DAMAGED;
    do
        rc = madvise((void *)stretch.start, stretch.end - stretch.start, MADV_POPULATE_READ);
    while (rc != 0 && (errno == EINTR || errno == EAGAIN));
    if (rc == 0)
        return GYRE_OK;
    /* EFAULT: touching it would be a SIGBUS. */
    return errno == EINVAL ? read_through(ref, off, len) : errno == EFAULT ? GYRE_DAMAGED : GYRE_IO;
}

bool eng_chunk_holds(const struct eng_ref *ref, uint64_t chunk, const void *bytes)
{
    uint64_t left = ref->doc->body_len - chunk * ENG_CHUNK;
    uint32_t crc = eng_crc32c(0, bytes, left < ENG_CHUNK ? left : ENG_CHUNK);
    return crc == eng_load_u32(ref->meta + chunk * sizeof crc);
}

gyre_err eng_damaged(struct eng_ref *ref)
{
    ENG_COUNT(ref->stripe->store, checksum_failures, 1);
    eng_drop(ref);
    return GYRE_DAMAGED;
}

/* Progress is kept as one stretch from the front, which is how bodies are mostly read. */
static void note_verified(struct eng_ref *ref, uint64_t first, uint64_t last)
{
    uint64_t end = (last + 1) * ENG_CHUNK;
    if (first * ENG_CHUNK <= ref->verified_to && end > ref->verified_to)
        ref->verified_to = end < ref->doc->body_len ? end : ref->doc->body_len;
    if (ref->verified_to < ref->doc->body_len)
        return;
    ref->verified = true;
    eng_slot_mark_verified(&ref->stripe->slots[ref->slot], ref->slot_word);
}

gyre_err eng_verify(struct eng_ref *ref, uint64_t off, uint64_t len)
{
    if (!inside(ref, off, len))
        return GYRE_RANGE;
    if (ref->verified || len == 0)
        return GYRE_OK;
    uint64_t first = off / ENG_CHUNK;
    uint64_t last = (off + len - 1) / ENG_CHUNK;
    for (uint64_t chunk = first; chunk <= last; chunk++) {
        if ((chunk + 1) * ENG_CHUNK <= ref->verified_to)
            continue;
        if (!eng_chunk_holds(ref, chunk, ref->body + chunk * ENG_CHUNK))
            return eng_damaged(ref);
    }
    note_verified(ref, first, last);
    return GYRE_OK;
}
