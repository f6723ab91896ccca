/* Methods, request targets and authorities: what HTTP/1 and HTTP/2 requests name in the same way.
 *
 * Lends:   results point into the strings given.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

/* The method called `name`, compared with case; SRV_METHOD_OTHER for all that have no value of
 * their own. */
enum srv_method srv_method_of(struct srv_str name);

/* Splits an origin form at the first '?'. *query_out is empty, with a NULL base, when there is
 * none. */
void srv_target_split(struct srv_str target, struct srv_str *path_out, struct srv_str *query_out);

/* Whether every byte may stand in a target: no control, no space, no DEL, no '#'. */
bool srv_target_valid(struct srv_str target);

/* Whether `authority` is host[:port] after RFC 3986: a non-empty name, IPv4 or bracketed IPv6
 * address, no user, port up to 65535. */
bool srv_authority_valid(struct srv_str authority);

/* Whether two valid authorities name the same host and port; an absent or empty port is
 * `default_port`. */
bool srv_authority_same(struct srv_str a, struct srv_str b, unsigned default_port);

/* Whether two strings are equal without regard to ASCII case. */
bool srv_str_equal_nocase(struct srv_str a, struct srv_str b);
