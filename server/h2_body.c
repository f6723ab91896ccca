#include "server/h2_body.h"

#include <string.h>

#include "server/h2o_glue.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/gates.h"

enum {
    /* From here on buffers are handed over before they are full. */
    HELD_MUCH = SRV_FRONT_H2_WINDOW / 2,
    BUF_SMALL = 64 << 10,
    BUF_LARGE = 1 << 20,
};

const uint32_t srv_h2_credit_step = SRV_FRONT_H2_WINDOW / 8;

void srv_h2_give_back(struct srv_conn *conn, size_t n)
{
    struct srv_h2 *h2 = conn->h2;
    h2->credit += (uint32_t)n;
    if (h2->credit >= srv_h2_credit_step)
        srv_conn_queue_after(conn);
}

/* Forgets what has been received and not taken. */
static void drop_bufs(struct srv_conn *conn, struct srv_h2_body *body)
{
    while (body->first != NULL) {
        struct srv_buf *buf = body->first;
        body->first = buf->next_;
        conn->h2->held -= buf->len;
        srv_h2_give_back(conn, buf->len);
        srv_buf_release(buf);
    }
    body->last = NULL;
}

void srv_h2_body_remove(struct srv_conn *conn, struct srv_h2_body *body)
{
    struct srv_h2 *h2 = conn->h2;
    struct srv_h2_body **at = &h2->bodies;
    while (*at != body)
        at = &(*at)->next;
    *at = body->next;
    if (h2->target == body)
        h2->target = NULL;
    if (h2->opening == body)
        h2->opening = NULL;
    drop_bufs(conn, body);
    free(body);
}

struct srv_h2_body *srv_h2_body_find(const struct srv_h2 *h2, uint32_t stream)
{
    struct srv_h2_body *body = h2->bodies;
    while (body != NULL && body->stream != stream)
        body = body->next;
    return body;
}

bool srv_h2_body_is_wanted(const struct srv_h2_body *body)
{
    return body != NULL && !body->is_bad && !body->is_overload &&
           (body->ex == NULL || !body->ex->in.is_failed) &&
           (body->ex == NULL || !body->ex->is_responded);
}

/* Hands the oldest buffer, or what went wrong, to the handler. */
static void deliver(struct srv_conn *conn, struct srv_h2_body *body)
{
    struct srv_exchange *ex = body->ex;
    if (body->is_overload || body->is_bad) {
        if (body->is_overload)
            SRV_COUNT(conn->loop, bodies_overload, 1);
        else
            SRV_COUNT(conn->loop, bodies_malformed, 1);
        srv_body_in_deliver(ex, body->is_overload ? SRV_BODY_OVERLOAD : SRV_BODY_MALFORMED);
        return;
    }
    struct srv_buf *buf = body->first;
    if (buf != NULL) {
        body->first = buf->next_;
        if (body->first == NULL)
            body->last = NULL;
        conn->h2->held -= buf->len;
        body->credit += (uint32_t)buf->len;
        srv_h2_give_back(conn, buf->len);
        ex->in.buf = buf;
    }
    srv_body_in_deliver(ex, body->is_ended && body->first == NULL ? SRV_BODY_END : SRV_BODY_DATA);
}

/* Whether there is something to hand over. A buffer goes when it is full or the body complete;
 * sooner if the handler passes it on, if the connection holds much, or many slow bodies could fill
 * the window with buffers that never do. */
static bool is_ready(const struct srv_conn *conn, const struct srv_h2_body *body)
{
    const struct srv_buf *buf = body->first;
    if (body->is_ended || body->is_bad || body->is_overload)
        return true;
    bool is_streamed = body->ex != NULL && body->ex->in.is_streamed;
    return buf != NULL && (buf->len == buf->capacity || is_streamed || conn->h2->held >= HELD_MUCH);
}

static void pump(struct srv_conn *conn, struct srv_h2_body *body)
{
    struct srv_exchange *ex = body->ex;
    if (ex == NULL || ex->in.is_pumping || ex->in.on_body == NULL)
        return;
    ex->in.is_pumping = true;
    while (ex->in.on_body != NULL && is_ready(conn, body))
        deliver(conn, body);
    ex->in.is_pumping = false;
    if (ex->in.on_body != NULL)
        srv_body_in_arm(ex);
}

/* A buffer with room, or NULL. */
static struct srv_buf *room_for(struct srv_conn *conn, struct srv_h2_body *body)
{
    struct srv_buf *buf = body->last;
    if (buf != NULL && buf->len < buf->capacity)
        return buf;
    uint64_t want = body->received >= BUF_SMALL ? BUF_LARGE : BUF_SMALL;
    if (body->length != SRV_LENGTH_UNKNOWN && body->length - body->received < want)
        want = body->length - body->received;
    buf = srv_buf_acquire_for(conn->loop->env->bufs, srv_conn_share(conn), (size_t)want);
    if (buf == NULL) {
        srv_conn_count_share(conn);
        return NULL;
    }
    if (body->last != NULL)
        body->last->next_ = buf;
    else
        body->first = buf;
    body->last = buf;
    return buf;
}

/* Keeps payload for the body, as much as its buffer takes; 0 when it is no longer wanted. */
static size_t keep_some(struct srv_conn *conn, struct srv_h2_body *body, const char *bytes,
                        size_t n)
{
    if (!srv_h2_body_is_wanted(body))
        return 0;
    if (body->length != SRV_LENGTH_UNKNOWN && n > body->length - body->received) {
        body->is_bad = true;
    } else {
        struct srv_buf *buf = room_for(conn, body);
        if (buf != NULL) {
            if (n > buf->capacity - buf->len)
                n = buf->capacity - buf->len;
            memcpy(buf->base + buf->len, bytes, n);
            buf->len += n;
            body->received += n;
            conn->h2->held += n;
            return n;
        }
        body->is_overload = true;
    }
    drop_bufs(conn, body);
    pump(conn, body);
    return 0;
}

void srv_h2_body_keep(struct srv_conn *conn, const char *bytes, size_t n)
{
    while (n > 0) {
        struct srv_h2_body *body = conn->h2->target;
        size_t kept = keep_some(conn, body, bytes, n);
        if (kept == 0) {
            srv_h2_give_back(conn, n);
            return;
        }
        bytes += kept;
        n -= kept;
        pump(conn, body);
    }
}

void srv_h2_body_end(struct srv_conn *conn, struct srv_h2_body *body)
{
    if (body == NULL)
        return;
    body->is_ended = true;
    if (body->length != SRV_LENGTH_UNKNOWN && body->received != body->length)
        body->is_bad = true;
    pump(conn, body);
}

struct srv_h2_body *srv_h2_body_create(struct srv_conn *conn, uint32_t stream)
{
    struct srv_h2_body *body = h2o_mem_alloc(sizeof *body);
    *body = (struct srv_h2_body){
        .stream = stream, .next = conn->h2->bodies, .length = SRV_LENGTH_UNKNOWN};
    conn->h2->bodies = body;
    return body;
}

/* Hands over the next of a body that libh2o has kept as a whole. */
static void want_entity(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    const h2o_iovec_t *entity = &ex->req->entity;
    while (in->on_body != NULL && !in->is_pumping) {
        if (in->left > 0) {
            in->buf = srv_buf_acquire_for(ex->loop->env->bufs, srv_conn_share(ex->conn), in->left);
            if (in->buf == NULL) {
                SRV_COUNT(ex->loop, bodies_overload, 1);
                srv_conn_count_share(ex->conn);
                srv_body_in_deliver(ex, SRV_BODY_OVERLOAD);
                return;
            }
            size_t n = in->left < in->buf->capacity ? (size_t)in->left : in->buf->capacity;
            memcpy(in->buf->base, entity->base + (entity->len - in->left), n);
            in->buf->len = n;
            in->left -= n;
        }
        in->is_pumping = true;
        srv_body_in_deliver(ex, in->left > 0 ? SRV_BODY_DATA : SRV_BODY_END);
        in->is_pumping = false;
    }
}

void srv_gate_h2_want(struct srv_exchange *ex)
{
    if (ex->conn->h2 == NULL) {
        want_entity(ex);
        return;
    }
    struct srv_h2_body *body = ex->in.h2;
    if (body == NULL) {
        srv_body_in_deliver(ex, SRV_BODY_END);
        return;
    }
    if (body->owes_continue && body->received == 0) {
        body->sends_continue = true;
        srv_conn_queue_after(ex->conn);
    }
    body->owes_continue = false;
    if (!ex->in.is_pumping)
        srv_body_in_arm(ex);
    pump(ex->conn, body);
}

void srv_gate_h2_stop(struct srv_exchange *ex)
{
    if (ex->in.h2 != NULL)
        drop_bufs(ex->conn, ex->in.h2);
}
