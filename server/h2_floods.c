#include "server/h2o_glue.h"

#include "server/conn.h"
#include "server/gates.h"
#include "server/h2_body.h"
#include "server/h2_gate.h"

/* How much an HTTP/2 client may send that makes work without asking for anything: one allowance for
 * each kind, refilled by time, or earned by what else it does. */

enum { BYTES_PER_UPDATE = 1024 /* that a client is sent, and may answer with a WINDOW_UPDATE */ };

static const struct srv_allowance_rate rates[SRV_H2_N_FLOODS] = {
#define X(name, burst, per_s, help) {burst, per_s},
#include "server/h2_floods.def"
#undef X
};

void srv_h2_floods_init(struct srv_conn *conn)
{
    for (int i = 0; i < SRV_H2_N_FLOODS; i++)
        srv_allowance_init(&conn->h2->floods[i], rates[i], h2o_now(conn->loop->ctx.loop));
}

void srv_h2_count_flood(struct srv_loop *loop, enum srv_h2_flood which)
{
    switch (which) {
#define X(name, burst, per_s, help)          \
    case SRV_H2_FLOOD_##name:                \
        SRV_COUNT(loop, h2_flood_##name, 1); \
        break;
#include "server/h2_floods.def"
#undef X
    case SRV_H2_N_FLOODS: break;
    }
}

bool srv_h2_charge(struct srv_conn *conn, enum srv_h2_flood which)
{
    uint64_t now_ms = h2o_now(conn->loop->ctx.loop);
    if (srv_allowance_spend(&conn->h2->floods[which], rates[which], now_ms))
        return true;
    srv_h2_count_flood(conn->loop, which);
    srv_conn_condemn(conn);
    return false;
}

void srv_gate_h2_malformed(struct srv_conn *conn)
{
    SRV_COUNT(conn->loop, heads_rejected, 1);
    if (conn->h2 != NULL && !conn->is_condemned)
        srv_h2_charge(conn, SRV_H2_FLOOD_malformed);
}

void srv_h2_earn_updates(struct srv_conn *conn, size_t n)
{
    srv_allowance_earn(&conn->h2->floods[SRV_H2_FLOOD_window_update],
                       rates[SRV_H2_FLOOD_window_update], n);
}

void srv_gate_h2_sending(struct srv_conn *conn, size_t n_bytes)
{
    if (conn->h2 != NULL)
        srv_h2_earn_updates(conn, n_bytes / BYTES_PER_UPDATE);
}
