/* One event loop and its thread, as the rest of the server sees it: the place where completions
 * come back to.
 *
 * Owns:    the front owns every loop; a posted job is the poster's until its `done` runs.
 * Threads: srv_loop_post and _expect on any thread; the other functions on the loop's own.
 * Blocks:  never. Allocates: nothing.
 */
#pragma once

#include <stdint.h>

struct srv_job;
struct srv_loop;

/* Runs job->done(job) once on the loop's thread; on the thread that destroys the front when the
 * loop has ended before. Posts of one thread keep their order. */
void srv_loop_post(struct srv_loop *loop, struct srv_job *job);

/* Notes `n` completions that will be posted, or with a negative `n` that have been: the loop does
 * not end before all have come, so that a handler's last step finds its loop and its pool alive. */
void srv_loop_expect(struct srv_loop *loop, int n);

/* Which of the front's loops this is, from 0: an index for per-loop tables. */
unsigned srv_loop_index(const struct srv_loop *loop);

/* Wall clock at the start of this round of events, in milliseconds since 1970. */
uint64_t srv_loop_now_ms(const struct srv_loop *loop);
