/* Where a response goes in the store: a put of its own, or a fill that others read along with.
 *
 * Owns:    what it holds, until committed or dropped.
 * Threads: one at a time. Blocks: as the calls of a put.
 */
#pragma once

#include "api/gyre.h"

struct srv_sink { /* one of them, or neither: nothing is stored */
    struct gyre_put *put;
    struct gyre_fill *fill;
};

static inline bool srv_sink_is_open(const struct srv_sink *sink)
{
    return sink->put != NULL || sink->fill != NULL;
}

/* What cannot be written drops the sink. */
void srv_sink_write(struct srv_sink *sink, const void *bytes, size_t len);
/* Stores it, if it is open, and closes it in any case. */
void srv_sink_commit(struct srv_sink *sink);
/* Nothing is stored; whoever reads along, or waits, learns `err`, and one of those who wait fetches
 * instead. */
void srv_sink_drop(struct srv_sink *sink, gyre_err err);
