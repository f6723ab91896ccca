/* What was fetched and could not be shared, remembered for a while, so that nobody waits for
 * another request's answer that will not be theirs (hit-for-miss).
 *
 *   note -> holds, for SRV_PASSED_MS -> not any more
 *
 * Threads: any. Blocks: never. Allocates: itself, 32 KiB.
 *
 * Why a stale answer is safe: it decides only who waits. A row that another key has taken, or whose
 * time is over meanwhile, makes some requests wait that need not, or ask that need not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gyre_key;
struct srv_passed;

enum { SRV_PASSED_MS = 60000 };

struct srv_passed *srv_passed_create(void);
void srv_passed_destroy(struct srv_passed *passed);

/* `now_ms` is any clock that all callers read. */
void srv_passed_note(struct srv_passed *passed, const struct gyre_key *key, int64_t now_ms);
bool srv_passed_holds(const struct srv_passed *passed, const struct gyre_key *key, int64_t now_ms);
/* It can be shared after all. */
void srv_passed_forget(struct srv_passed *passed, const struct gyre_key *key);
