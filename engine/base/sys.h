/* What the machine knows: clocks, random bytes, the boot.
 *
 * Threads: any. Blocks: eng_random_bytes, early at boot only. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/gyre_err.h"

/* Nanoseconds since an arbitrary point; never goes back; the same clock in all processes of a boot.
 */
uint64_t eng_clock_mono_ns(void);
/* Nanoseconds and seconds since 1970; may jump. */
uint64_t eng_clock_real_ns(void);
uint32_t eng_clock_real_s(void);

/* Fills `buffer` from the kernel's generator, fit for secrets. UNSUPPORTED where a sandbox forbids
 * the call. */
GYRE_MUST_USE gyre_err eng_random_bytes(void *buffer, size_t len);

/* The identity of this boot of the kernel, the same in all containers. UNSUPPORTED without /proc or
 * if it is no UUID. */
GYRE_MUST_USE gyre_err eng_boot_id(uint8_t id_out[16]);

/* Reads 16 bytes from a UUID in text form, "01234567-89ab-..." of either case. INVALID for any
 * other form. */
GYRE_MUST_USE gyre_err eng_uuid_parse(const char *text, uint8_t id_out[16]);
