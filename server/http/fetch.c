#include "server/http/fetch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/buf.h"
#include "server/check.h"
#include "server/http/fetch_own.h"
#include "server/loop.h"

static void destroy(struct srv_fetch *fetch)
{
    SRV_CHECK(fetch->curl == NULL);
    srv_sink_drop(&fetch->sink, GYRE_IO);
    for (struct srv_fetch_interim *interim = fetch->interims, *next; interim != NULL;
         interim = next) {
        next = interim->next_;
        free(interim);
    }
    srv_buf_release(fetch->given);
    srv_http_head_fini(&fetch->head);
    curl_slist_free_all(fetch->fields);
    pthread_mutex_destroy(&fetch->lock);
    free(fetch->ring);
    free(fetch->method);
    free(fetch->target);
    free(fetch->url);
    free(fetch);
}

void srv_fetch_unref(struct srv_fetch *fetch)
{
    /* Acquire and release: who destroys sees what the others have done. */
    if (atomic_fetch_sub_explicit(&fetch->n_refs, 1, memory_order_acq_rel) == 1)
        destroy(fetch);
}

/* On the loop. */
static void on_event(struct srv_job *job)
{
    struct srv_fetch *fetch = (struct srv_fetch *)((char *)job - offsetof(struct srv_fetch, event));
    pthread_mutex_lock(&fetch->lock);
    fetch->is_posted = false;
    bool is_wanted = !fetch->is_let_go;
    pthread_mutex_unlock(&fetch->lock);
    if (is_wanted)
        fetch->on_change(fetch->data);
    srv_fetch_unref(fetch);
}

void srv_fetch_tell_locked(struct srv_fetch *fetch)
{
    if (fetch->is_posted || fetch->is_let_go)
        return;
    fetch->is_posted = true;
    atomic_fetch_add_explicit(&fetch->n_refs, 1, memory_order_relaxed);
    fetch->event = (struct srv_job){.done = on_event};
    srv_loop_post(fetch->loop, &fetch->event);
}

/* ---- Starting ---- */

/* "Name: value", or "Name;" for one without a value, which libcurl would leave out otherwise. */
static bool add_field(struct srv_fetch *fetch, struct srv_str name, struct srv_str value)
{
    size_t len = name.len + value.len + 3;
    char *line = malloc(len);
    if (line == NULL)
        return false;
    memcpy(line, name.base, name.len);
    memcpy(line + name.len, value.len > 0 ? ": " : ";", value.len > 0 ? 2 : 1);
    if (value.len > 0)
        memcpy(line + name.len + 2, value.base, value.len);
    line[value.len > 0 ? name.len + 2 + value.len : name.len + 1] = '\0';
    struct curl_slist *grown = curl_slist_append(fetch->fields, line);
    free(line);
    if (grown != NULL)
        fetch->fields = grown;
    return grown != NULL;
}

/* A line that keeps libcurl from adding the field. */
static bool suppress(struct srv_fetch *fetch, struct srv_http_fields fields, struct srv_str name,
                     const char *line)
{
    if (srv_http_has(fields, name))
        return true;
    struct curl_slist *grown = curl_slist_append(fetch->fields, line);
    if (grown != NULL)
        fetch->fields = grown;
    return grown != NULL;
}

static bool add_fields(struct srv_fetch *fetch, const struct srv_fetch_request *request)
{
    struct srv_http_fields fields = {request->fields, request->n_fields};
    bool ok = add_field(fetch, SRV_STR("Host"), request->authority);
    for (size_t i = 0; ok && i < fields.n; i++)
        ok = add_field(fetch, fields.at[i].name, fields.at[i].value);
    return ok && suppress(fetch, fields, SRV_STR("accept"), "Accept:") &&
           suppress(fetch, fields, SRV_STR("content-type"), "Content-Type:") &&
           suppress(fetch, fields, SRV_STR("expect"), "Expect:");
}

static char *copy_of(struct srv_str text)
{
    char *copy = malloc(text.len + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text.base, text.len);
    copy[text.len] = '\0';
    return copy;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct srv_fetch *srv_fetch_start(struct srv_fetcher *fetcher, struct srv_loop *loop,
                                  const struct srv_fetch_request *request,
                                  void (*on_change)(void *data), void *data)
{
    struct srv_fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL)
        return NULL;
    pthread_mutex_init(&fetch->lock, NULL);
    fetch->fetcher = fetcher;
    fetch->loop = loop;
    fetch->on_change = on_change;
    fetch->data = data;
    fetch->has_body = request->has_body;
    fetch->is_unattended = request->is_unattended;
    fetch->content_length = request->content_length;
    fetch->method = copy_of(request->method);
    fetch->target = copy_of(request->target);
    fetch->url = copy_of((struct srv_str){request->origin, strlen(request->origin)});
    fetch->requested_ms = wall_ms();
    atomic_init(&fetch->n_refs, 1);
    if (fetch->method == NULL || fetch->target == NULL || fetch->url == NULL ||
        !add_fields(fetch, request)) {
        destroy(fetch);
        return NULL;
    }
    atomic_store_explicit(&fetch->n_refs, 2, memory_order_relaxed);
    srv_loop_expect(loop, 1);
    srv_fetcher_ask(fetch, SRV_FETCH_DO_START);
    return fetch;
}

/* ---- Looking ---- */

enum srv_fetch_state srv_fetch_state(struct srv_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    enum srv_fetch_state state = fetch->state;
    pthread_mutex_unlock(&fetch->lock);
    return state;
}

enum srv_fetch_fault srv_fetch_fault(struct srv_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    enum srv_fetch_fault fault = fetch->fault;
    pthread_mutex_unlock(&fetch->lock);
    return fault;
}

const struct srv_http_head *srv_fetch_head(const struct srv_fetch *fetch)
{
    return &fetch->head;
}

int64_t srv_fetch_requested_ms(const struct srv_fetch *fetch)
{
    return fetch->requested_ms;
}

int64_t srv_fetch_received_ms(const struct srv_fetch *fetch)
{
    return fetch->received_ms;
}

struct srv_fetch_interim *srv_fetch_take_interim(struct srv_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    struct srv_fetch_interim *interim = fetch->interims;
    if (interim != NULL)
        fetch->interims = interim->next_;
    pthread_mutex_unlock(&fetch->lock);
    return interim;
}

/* ---- Flowing ---- */

void srv_fetch_go(struct srv_fetch *fetch, struct srv_sink *sink, bool is_read)
{
    pthread_mutex_lock(&fetch->lock);
    SRV_CHECK(!fetch->is_going);
    fetch->sink = *sink;
    *sink = (struct srv_sink){0};
    fetch->is_read = is_read;
    fetch->is_going = true;
    if (fetch->state == SRV_FETCH_ANSWERED)
        fetch->state = SRV_FETCH_FLOWING;
    pthread_mutex_unlock(&fetch->lock);
    srv_fetcher_ask(fetch, SRV_FETCH_DO_RESUME);
}

size_t srv_fetch_peek(struct srv_fetch *fetch, size_t max, const void **bytes_out)
{
    pthread_mutex_lock(&fetch->lock);
    size_t len = SRV_FETCH_RING - fetch->ring_start;
    len = len < fetch->ring_len ? len : fetch->ring_len;
    *bytes_out = len > 0 ? fetch->ring + fetch->ring_start : NULL;
    pthread_mutex_unlock(&fetch->lock);
    return len < max ? len : max;
}

void srv_fetch_consume(struct srv_fetch *fetch, size_t len)
{
    pthread_mutex_lock(&fetch->lock);
    SRV_CHECK(len <= fetch->ring_len);
    fetch->ring_start = (fetch->ring_start + len) % SRV_FETCH_RING;
    fetch->ring_len -= len;
    pthread_mutex_unlock(&fetch->lock);
    srv_fetcher_ask(fetch, SRV_FETCH_DO_RESUME);
}

bool srv_fetch_wants(struct srv_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    bool wants = fetch->wants && fetch->given == NULL && !fetch->is_given_end;
    pthread_mutex_unlock(&fetch->lock);
    return wants;
}

void srv_fetch_give(struct srv_fetch *fetch, struct srv_buf *buf, bool is_end)
{
    pthread_mutex_lock(&fetch->lock);
    SRV_CHECK(fetch->given == NULL && !fetch->is_given_end);
    fetch->given = buf;
    fetch->is_given_end = is_end;
    fetch->wants = false;
    pthread_mutex_unlock(&fetch->lock);
    srv_fetcher_ask(fetch, SRV_FETCH_DO_RESUME);
}

void srv_fetch_end(struct srv_fetch *fetch, bool finishes)
{
    if (fetch == NULL)
        return;
    pthread_mutex_lock(&fetch->lock);
    fetch->is_let_go = true;
    bool goes_on = finishes && fetch->is_going;
    fetch->alone_until_ms = srv_fetcher_now_ms() + SRV_FETCH_FINISH_MS;
    fetch->is_read = false;
    pthread_mutex_unlock(&fetch->lock);
    srv_fetcher_ask(fetch, goes_on ? SRV_FETCH_DO_RESUME : SRV_FETCH_DO_CANCEL);
    srv_fetch_unref(fetch);
}
