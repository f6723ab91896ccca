/* Lock order, checked: every lock has a rank, and a thread takes locks only in the order of rising
 * rank.
 *
 * Active where GYRE_DEBUG_CHECKS was 1 when rank.c was compiled; otherwise the calls do nothing.
 * mutex.h and lock.h call these; a lock of another kind may do so itself. The table of ranks is in
 * engine/README.md.
 *
 * Threads: each has its own list of held ranks. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>

enum { ENG_RANK_NONE = 0, ENG_RANK_HELD_MAX = 16 };

/* Notes a rank as held. Aborts if one as high or higher is held already, unless the lock came from
 * a try call, which cannot wait and so cannot deadlock. ENG_RANK_NONE is not tracked. Call before
 * waiting, so that the report comes instead of the deadlock. */
void eng_rank_enter(unsigned rank, bool tried);

/* Forgets a rank, in any order. Aborts if it is not held. */
void eng_rank_leave(unsigned rank);

/* Whether this thread holds it; always true where ranks are not tracked. For "caller holds the
 * lock" assertions. */
bool eng_rank_held(unsigned rank);

/* Whether this thread holds any tracked lock; always false where ranks are not tracked. */
bool eng_rank_any(void);
