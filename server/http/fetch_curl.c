/* One transfer of libcurl's: what it is told, and what it tells. On the fetcher's thread. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/buf.h"
#include "server/http/fetch_own.h"
#include "server/http/forwarding.h"

static void await(struct srv_fetch *fetch, long ms)
{
    fetch->deadline_ms = ms > 0 ? srv_fetcher_now_ms() + ms : 0;
}

/* ---- The head ---- */

/* A whole final head: told once. Trailers come after it. */
static void answered(struct srv_fetch *fetch)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&fetch->lock);
    fetch->received_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    fetch->state = SRV_FETCH_ANSWERED;
    srv_fetch_tell_locked(fetch);
    pthread_mutex_unlock(&fetch->lock);
    await(fetch, srv_fetcher_limits(fetch->fetcher)->between_ms);
}

static struct srv_fetch_interim *copy_interim(const struct srv_http_head *head)
{
    struct srv_http_fields fields = srv_http_head_fields(head);
    size_t len = 0;
    for (size_t i = 0; i < fields.n; i++)
        len += fields.at[i].name.len + fields.at[i].value.len;
    struct srv_fetch_interim *copy =
        malloc(sizeof *copy + fields.n * sizeof *copy->fields + len + 1);
    if (copy == NULL)
        return NULL;
    char *to = (char *)(copy->fields + fields.n);
    copy->next_ = NULL;
    copy->status = head->status;
    copy->n_fields = srv_http_pass(fields, copy->fields);
    for (size_t i = 0; i < copy->n_fields; i++) {
        struct srv_field *field = &copy->fields[i];
        char *value = mempcpy(to, field->name.base, field->name.len);
        char *end = mempcpy(value, field->value.base, field->value.len);
        field->name.base = to;
        field->value.base = value;
        to = end;
    }
    return copy;
}

/* RFC 9110, 15.2: 1xx responses pass, but 100, which has answered the fetch's own Expect. */
static void pass_interim(struct srv_fetch *fetch)
{
    if (fetch->head.status <= 101 || fetch->n_interims == SRV_FETCH_INTERIMS_MAX)
        return;
    struct srv_fetch_interim *interim = copy_interim(&fetch->head);
    if (interim == NULL)
        return; /* the final response does without */
    fetch->n_interims++;
    pthread_mutex_lock(&fetch->lock);
    struct srv_fetch_interim **last = &fetch->interims;
    while (*last != NULL)
        last = &(*last)->next_;
    *last = interim;
    srv_fetch_tell_locked(fetch);
    pthread_mutex_unlock(&fetch->lock);
}

static size_t on_head(char *bytes, size_t size, size_t n, void *data)
{
    struct srv_fetch *fetch = data;
    struct srv_str line = {bytes, size * n};
    if (fetch->received_ms != 0)
        return line.len; /* a trailer */
    enum srv_http_head_state state = srv_http_head_line(&fetch->head, line);
    if (state == SRV_HTTP_HEAD_BAD)
        return 0;
    if (state == SRV_HTTP_HEAD_DONE && fetch->head.status >= 200)
        answered(fetch);
    else if (state == SRV_HTTP_HEAD_DONE)
        pass_interim(fetch);
    return line.len;
}

/* ---- The response's body ---- */

static bool into_ring_locked(struct srv_fetch *fetch, const char *bytes, size_t len)
{
    if (fetch->ring == NULL && (fetch->ring = malloc(SRV_FETCH_RING)) == NULL)
        return false;
    size_t at = (fetch->ring_start + fetch->ring_len) % SRV_FETCH_RING;
    size_t first = SRV_FETCH_RING - at < len ? SRV_FETCH_RING - at : len;
    memcpy(fetch->ring + at, bytes, first);
    memcpy(fetch->ring, bytes + first, len - first);
    fetch->ring_len += len;
    srv_fetch_tell_locked(fetch);
    return true;
}

/* Whether a body that goes on without its client has lost what it went on for. */
static bool is_nobodys(struct srv_fetch *fetch, size_t len)
{
    pthread_mutex_lock(&fetch->lock);
    bool is_alone = fetch->is_let_go;
    pthread_mutex_unlock(&fetch->lock);
    fetch->n_alone += is_alone ? len : 0;
    return is_alone && (!srv_sink_is_open(&fetch->sink) || fetch->n_alone > SRV_FETCH_FINISH_MAX);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *data)
{
    struct srv_fetch *fetch = data;
    size_t len = size * n;
    bool ok = true;
    pthread_mutex_lock(&fetch->lock);
    bool has_room = fetch->is_going && (!fetch->is_read || len <= SRV_FETCH_RING - fetch->ring_len);
    fetch->is_paused = !has_room;
    if (has_room && fetch->is_read)
        ok = into_ring_locked(fetch, bytes, len);
    pthread_mutex_unlock(&fetch->lock);
    /* Nobody waits for an origin that waits for us. */
    await(fetch, has_room ? srv_fetcher_limits(fetch->fetcher)->between_ms : 0);
    if (!has_room)
        return CURL_WRITEFUNC_PAUSE;
    /* What cannot be stored is still sent: the store's trouble is not the client's. */
    srv_sink_write(&fetch->sink, bytes, len);
    return ok && !is_nobodys(fetch, len) ? len : 0;
}

/* ---- The request's body ---- */

static size_t on_upload(char *bytes, size_t size, size_t n, void *data)
{
    struct srv_fetch *fetch = data;
    size_t len = 0, room = size * n;
    pthread_mutex_lock(&fetch->lock);
    struct srv_buf *buf = fetch->given;
    if (buf != NULL) {
        len = buf->len - fetch->given_off < room ? buf->len - fetch->given_off : room;
        memcpy(bytes, buf->base + fetch->given_off, len);
        fetch->given_off += len;
        if (fetch->given_off == buf->len) {
            srv_buf_release(buf);
            fetch->given = NULL;
            fetch->given_off = 0;
        }
    }
    bool is_end = fetch->is_given_end && fetch->given == NULL;
    if (len == 0 && !is_end) {
        fetch->wants = true;
        srv_fetch_tell_locked(fetch);
    }
    fetch->is_upload_paused = len == 0 && !is_end;
    pthread_mutex_unlock(&fetch->lock);
    /* While the client is slow the origin has nothing to be late with. */
    await(fetch, fetch->is_upload_paused ? 0 : srv_fetcher_limits(fetch->fetcher)->first_byte_ms);
    return fetch->is_upload_paused ? CURL_READFUNC_PAUSE : len;
}

/* ---- Setting up ---- */

#define SET(option, value) (ok = ok && curl_easy_setopt(curl, option, value) == CURLE_OK)

static bool set_request(struct srv_fetch *fetch, CURL *curl)
{
    bool ok = true;
    SET(CURLOPT_URL, fetch->url);
    SET(CURLOPT_REQUEST_TARGET, fetch->target);
    SET(CURLOPT_HTTPHEADER, fetch->fields);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOSIGNAL, 1L);
    if (fetch->has_body) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_READFUNCTION, on_upload);
        SET(CURLOPT_READDATA, fetch);
        /* A body cannot be sent twice, so it gets a connection that has not been idle. */
        SET(CURLOPT_FRESH_CONNECT, 1L);
        if (fetch->content_length != SRV_LENGTH_UNKNOWN)
            SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)fetch->content_length);
    } else if (strcmp(fetch->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    SET(CURLOPT_CUSTOMREQUEST, fetch->method);
    return ok;
}

static bool set_response(struct srv_fetch *fetch, CURL *curl)
{
    bool ok = true;
    SET(CURLOPT_HEADERFUNCTION, on_head);
    SET(CURLOPT_HEADERDATA, fetch);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, fetch);
    SET(CURLOPT_PRIVATE, fetch);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    /* Bodies are passed on as they are: no coding is undone but chunks. */
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, srv_fetcher_limits(fetch->fetcher)->connect_ms);
    return ok;
}

bool srv_fetch_curl_open(struct srv_fetch *fetch)
{
    const struct srv_fetch_limits *limits = srv_fetcher_limits(fetch->fetcher);
    CURL *curl = curl_easy_init();
    if (curl != NULL && (!set_request(fetch, curl) || !set_response(fetch, curl))) {
        curl_easy_cleanup(curl);
        curl = NULL;
    }
    fetch->curl = curl;
    await(fetch, limits->connect_ms + limits->first_byte_ms);
    return curl != NULL;
}

void srv_fetch_curl_close(struct srv_fetch *fetch)
{
    if (fetch->curl != NULL)
        curl_easy_cleanup(fetch->curl);
    fetch->curl = NULL;
}

/* ---- The end ---- */

static enum srv_fetch_fault fault_of(const struct srv_fetch *fetch, CURLcode result)
{
    if (fetch->is_timeout || result == CURLE_OPERATION_TIMEDOUT)
        return SRV_FETCH_TIMEOUT;
    if (fetch->head.state == SRV_HTTP_HEAD_BAD)
        return SRV_FETCH_MALFORMED;
    if (fetch->received_ms != 0)
        return SRV_FETCH_BROKEN;
    return result == CURLE_WEIRD_SERVER_REPLY || result == CURLE_UNSUPPORTED_PROTOCOL
               ? SRV_FETCH_MALFORMED
               : SRV_FETCH_UNREACHABLE;
}

void srv_fetch_curl_finish(struct srv_fetch *fetch, CURLcode result)
{
    bool ok = result == CURLE_OK && fetch->received_ms != 0;
    fetch->deadline_ms = 0;
    pthread_mutex_lock(&fetch->lock);
    bool is_going = fetch->is_going;
    fetch->is_complete = ok;
    pthread_mutex_unlock(&fetch->lock);
    if (ok && !is_going)
        return; /* the body is empty, and nobody has said yet where it goes */
    if (ok)
        srv_sink_commit(&fetch->sink);
    else if (is_going) /* before, the sink is the loop's */
        srv_sink_drop(&fetch->sink, GYRE_IO);
    pthread_mutex_lock(&fetch->lock);
    fetch->state = ok ? SRV_FETCH_ENDED : SRV_FETCH_FAILED;
    fetch->fault = ok ? SRV_FETCH_FINE : fault_of(fetch, result);
    srv_fetch_tell_locked(fetch);
    pthread_mutex_unlock(&fetch->lock);
}
