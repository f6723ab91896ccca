/* Whether the libh2o that runs is the one the HTTP/2 gate was built for: that its reader can be
 * stood in front of, that its output buffer lies where the header says, and that it calls our
 * encoder of heads. One request is sent through all of it.
 *
 * Threads: before any loop runs. Blocks: for some milliseconds; 5 s when the library hangs.
 */
#pragma once

#include <stdbool.h>

struct srv_conn;

/* Runs the request in a process of its own, since a wrong library may as well crash. `is_broken`
 * leaves the gate out, as if it could not be put in place: for tests. True when all went well. */
bool srv_h2_probe(bool is_broken);
