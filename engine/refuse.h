/* Saying why a store cannot be opened: one sentence that names the file, what is wrong with it, and
 * what to do.
 *
 * Threads: one per opening. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "engine/store.h"

/* Writes the sentence to open->message unless one is there already: the first fault found is the
 * one that matters. Returns `err`. */
__attribute__((format(printf, 3, 4))) GYRE_MUST_USE gyre_err eng_refuse(const struct eng_open *open,
                                                                        gyre_err err,
                                                                        const char *format, ...);

/* The same for a system call that failed on a file: names the file, what was tried, the system's
 * reason and a remedy for it. */
GYRE_MUST_USE gyre_err eng_refuse_io(const struct eng_open *open, gyre_err err, int errno_value,
                                     const char *path, const char *tried);
