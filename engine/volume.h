/* The files of a store: making them so that a crash at any point can be told from a store, and
 * opening them without trusting a byte.
 *
 * A store is made under the name volume.gyre.new, whose first page says from the start which data
 * files are its own; the last step renames it. So volume.gyre is always whole, and data files
 * without it are either of an unfinished store, which nothing was ever stored in, or somebody's
 * data, which are left alone.
 *
 *     nothing -> volume.gyre.new -> + data files -> volume.gyre     [eng_volume_make]
 *
 * Threads: one per opening. Blocks: for the disk. Allocates: paths. Keeps: E43, E44.
 */
#pragma once

#include "engine/home.h"

/* Makes an empty store in home's directories; `replace` removes the one that is there first. The
 * caller holds the store's lock. On a refusal nothing was changed. INVALID (sizes), DAMAGED (data
 * files without a volume file), DISK_FULL, ACCESS, IO, NO_FILES, NO_MEMORY; all are explained. */
GYRE_MUST_USE gyre_err eng_volume_make(struct eng_home *home, bool replace);

/* Removes a store that this opening made and that nothing was stored in. */
void eng_volume_unmake(struct eng_home *home);

/* Opens and maps all files of the store into store->super, ->volume*, ->stripes[]. DAMAGED,
 * INCOMPATIBLE, FOREIGN, INVALID, ACCESS, IO, NO_FILES, NO_MEMORY; all are explained, and nothing
 * was changed unless a lost data file was to be replaced. */
GYRE_MUST_USE gyre_err eng_volume_open(struct eng_store *store, const struct eng_home *home);
/* Writes a superblock copy that was found damaged anew. IO; not explained. */
GYRE_MUST_USE gyre_err eng_superblock_heal(struct eng_store *store);
/* Keeps the directories in memory, if the system lets it. */
void eng_volume_keep(struct eng_store *store);
/* Undoes it, also half of it. */
void eng_volume_close(struct eng_store *store);

/* Makes one data file of the size and identity that the superblock asks for; explained. */
GYRE_MUST_USE gyre_err eng_data_file_make(const struct eng_home *home, uint32_t dir,
                                          const struct eng_superblock *super, uint32_t stripe);
