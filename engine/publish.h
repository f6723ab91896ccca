/* What commit and delete share: parts in and out of the directory, conditions, syncing what was
 * touched.
 *
 * Threads: any. Blocks: for locks, and for cold headers of parts that leave.
 */
#pragma once

#include "engine/parent.h"
#include "engine/place_doc.h"

/* Enters finished parts into the directory; their extents stay reserved, so nothing can evict them
 * yet. All or none. NO_SPACE, QUOTA. */
GYRE_MUST_USE gyre_err eng_parts_publish(struct eng_store *store, struct eng_part *parts, size_t n);
/* Takes them out again; they are the caller's as before. */
void eng_parts_withdraw(struct eng_store *store, const struct eng_part *parts, size_t n);
/* Notes for the hand whose parts they are; `head` is published. */
void eng_parts_note(struct eng_store *store, const struct eng_part *parts, size_t n,
                    const struct eng_parent *head);
/* Hands published parts over to the directory and empties them. */
void eng_parts_end(struct eng_part *parts, size_t n);
/* Removes the parts that an object which has left still names, but for those in the `keep` rows of
 * the one in its place; `head` is pinned. */
void eng_parts_remove(struct eng_store *store, const struct eng_ref *head,
                      const struct eng_part_row *keep, size_t n_keep);
/* Removes the part that a row of an object names; `head` gives the object's key, serial and pool.
 */
void eng_row_remove(struct eng_store *store, const struct eng_doc *head,
                    const struct eng_part_row *row);
/* Whether rows name the same part as `row`. Looks from *from on, and moves it behind what it found,
 * so that going through a table in order costs a step each. */
bool eng_rows_have(const struct eng_part_row *rows, size_t n, const struct eng_part_row *row,
                   size_t *from);

/* Whether a put or delete may go on, given the object there; `old` is NULL when there is none. OK,
 * EXISTS, CHANGED, NOT_FOUND. */
GYRE_MUST_USE gyre_err eng_condition_check(enum eng_condition condition, uint64_t if_serial,
                                           const struct eng_doc *old);
