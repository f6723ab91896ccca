/* The configuration file: a JSON object with the options' names as keys.
 *
 * Threads: one thread. Blocks: reads the file. Allocates: what JSON takes, freed before it returns.
 */
#pragma once

#include "server/options.h"

/* Applies the file at `path`. Lists are JSON arrays or one string; sizes and times strings or whole
 * numbers; flags true or false; sections (server/sections.def) objects of their own kind. False
 * with one line in `error_out`, which names file and line. */
bool srv_options_file_read(struct srv_options *options, const char *path,
                           char error_out[SRV_OPTIONS_ERROR_MAX]);
