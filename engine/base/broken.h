/* Mistakes that can be built in on purpose, to show that tests find them. No library contains one:
 * tests/torture compiles single files once more with GYRE_BROKEN set.
 *
 * Threads: nothing here runs.
 */
#pragma once

#define GYRE_SOUND 0
#define GYRE_NO_READER_FENCE \
    1                      /* the entry is looked at before the pin is seen, as a processor may */
#define GYRE_LATE_UNLINK 2 /* pins are looked at before the entries are gone, and not after */
#define GYRE_WRONG_KEY 3   /* a document that has the tag is taken for the key's */

#ifndef GYRE_BROKEN
#define GYRE_BROKEN GYRE_SOUND
#endif
