#include "server/http/sink.h"

void srv_sink_write(struct srv_sink *sink, const void *bytes, size_t len)
{
    gyre_err err = GYRE_OK;
    if (sink->put != NULL)
        err = gyre_put_write(sink->put, bytes, len);
    else if (sink->fill != NULL)
        err = gyre_fill_write(sink->fill, bytes, len);
    if (err != GYRE_OK)
        srv_sink_drop(sink, err);
}

void srv_sink_commit(struct srv_sink *sink)
{
    gyre_err err = GYRE_OK;
    if (sink->put != NULL)
        err = gyre_put_commit(&sink->put, NULL);
    else if (sink->fill != NULL)
        err = gyre_fill_commit(&sink->fill, NULL);
    if (err != GYRE_OK)
        srv_sink_drop(sink, err);
}

void srv_sink_drop(struct srv_sink *sink, gyre_err err)
{
    gyre_put_abort(&sink->put);
    if (sink->fill != NULL)
        gyre_fill_abort(&sink->fill, err);
}
