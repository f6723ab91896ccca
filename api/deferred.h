/* Handles that are released later, by token or once their bytes have been sent; one table for the
 * process, because a token must be good after its store was closed.
 *
 * Threads: any. Allocates: a row each.
 */
#pragma once

/* The table, kept whole over a fork; the child forgets what is its parent's. */
void api_deferred_lock(void);
void api_deferred_unlock(void);
void api_deferred_forget(void);
