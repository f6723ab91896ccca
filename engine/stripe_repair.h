/* Putting a stripe right after a holder of its alloc lock died, whatever it was doing.
 *
 * Directory and segment table are the ground: each of their words is whole. From them come lists
 * and totals again, the rings and their counts; a queue of clean runs that was being changed is
 * forgotten, so its bytes wait for the next lap; the header in the volume says what was announced
 * last.
 *
 * Threads: needs the alloc lock; readers go on meanwhile. Blocks: for the disk. Allocates: nothing.
 * Keeps:   E50.
 */
#pragma once

#include "engine/store.h"

void eng_stripe_repair_locked(struct eng_stripe *stripe);
