/* A VFS for SQLite that puts a checksum at the end of each page of a database file and looks at it
 * whenever the page is read, so that no flipped byte passes for a name.
 *
 * A page's last 8 bytes, which SQLite leaves alone because they are reserved, hold a 64-bit
 * checksum of its number and of the bytes before them, little-endian. Journals and WAL files have
 * checksums of their own; what SQLite writes to the latter in many pieces is gathered.
 *
 * Threads: any. Blocks: as files do. Allocates: 96 KiB for each connection that writes.
 */
#pragma once

#include <stdbool.h>

#define SRV_NAMES_VFS "gyre-names"

enum { SRV_NAMES_PAGE = 2048, SRV_NAMES_RESERVED = 8 }; /* bytes */

/* Makes the VFS known to SQLite, once a process. False without SQLite's default one. */
bool srv_names_vfs_register(void);
