/* The program's commands. Each returns the exit status: 0, or 1 after one line on stderr.
 *
 * Threads: the main thread. Blocks: for as long as the command takes.
 */
#pragma once

#include "api/gyre.h"
#include "server/quantity.h"

struct srv_options;

/* Serves until a signal ends it. */
int srv_command_serve(const struct srv_options *options);
/* Prints what is in a store. */
int srv_command_stat(const struct srv_options *options);
/* Verifies a store; 1 also when something was found. */
int srv_command_check(const struct srv_options *options);

/* Reads a store's documents from the disk; 1 also when one is damaged. */
int srv_command_verify(const struct srv_options *options);

/* Opens a store that is there, or only its files where this user may not write them. */
struct gyre_store *srv_store_open_to_look(const struct srv_options *options);
/* Opens the store that the options name, to look at it, with progress on a terminal; NULL after a
 * line on stderr, and one says if the options name another size than it has. */
struct gyre_store *srv_store_open(const struct srv_options *options, enum gyre_open_mode mode);
/* The same; *err_out says why not, and with `may_wait` GYRE_LOCKED is no reason for a line. */
struct gyre_store *srv_store_try_open(const struct srv_options *options, enum gyre_open_mode mode,
                                      bool may_wait, gyre_err *err_out);
/* Whether the options ask for another size than the store was made with, which it keeps; then both
 * as text, and otherwise empty. */
bool srv_store_is_other_size(const struct srv_options *options, struct gyre_store *store,
                             char want_out[SRV_SIZE_TEXT_MAX], char have_out[SRV_SIZE_TEXT_MAX]);
/* Closes what a command has opened: `status`, or 1 after a line on stderr. */
int srv_store_end(const struct srv_options *options, struct gyre_store **store, int status);
