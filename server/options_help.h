/* The program's help, made from the table of options.
 *
 * Threads: one thread. Blocks: for as long as the stream does. Allocates: nothing.
 */
#pragma once

#include <stdio.h>

#include "server/options.h"

/* What the program can do. */
void srv_help_program(FILE *out);

/* What one command does and which options it takes. */
void srv_help_command(FILE *out, enum srv_command command);
