/* The thread that speaks to origins: what loops have asked for, libcurl's events, deadlines. */
#include <stdlib.h>
#include <time.h>

#include "server/check.h"
#include "server/http/fetch_own.h"
#include "server/loop.h"

enum { WAIT_MS = 1000 };

/* [c] const after create  [q] under `lock`  [t] the thread's */
struct srv_fetcher {
    struct srv_fetch_limits limits; /* [c] */
    CURLM *multi;                   /* [c] libcurl locks what curl_multi_wakeup uses */
    pthread_t thread;               /* [c] */
    pthread_mutex_t lock;
    struct srv_fetch *todo;   /* [q] newest first */
    bool is_stopping;         /* [q] */
    int64_t drain_until_ms;   /* [q] monotonic; 0: it does not drain */
    struct srv_fetch *active; /* [t] */
};

const struct srv_fetch_limits *srv_fetcher_limits(const struct srv_fetcher *fetcher)
{
    return &fetcher->limits;
}

int64_t srv_fetcher_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void srv_fetcher_ask(struct srv_fetch *fetch, unsigned todo)
{
    struct srv_fetcher *fetcher = fetch->fetcher;
    pthread_mutex_lock(&fetcher->lock);
    if (fetch->todo == 0) {
        fetch->next_todo = fetcher->todo;
        fetcher->todo = fetch;
        /* The list's own: a fetch may be let go of on both sides while it waits here. */
        atomic_fetch_add_explicit(&fetch->n_refs, 1, memory_order_relaxed);
    }
    fetch->todo |= todo;
    pthread_mutex_unlock(&fetcher->lock);
    curl_multi_wakeup(fetcher->multi);
}

/* ---- Transfers ---- */

static void link_active(struct srv_fetcher *fetcher, struct srv_fetch *fetch)
{
    fetch->next = fetcher->active;
    fetch->prev = &fetcher->active;
    if (fetch->next != NULL)
        fetch->next->prev = &fetch->next;
    fetcher->active = fetch;
}

/* The transfer is over in every respect: the fetcher has no more to do with it. */
static void drop(struct srv_fetcher *fetcher, struct srv_fetch *fetch)
{
    struct srv_loop *loop = fetch->loop;
    *fetch->prev = fetch->next;
    if (fetch->next != NULL)
        fetch->next->prev = fetch->prev;
    fetch->prev = NULL;
    if (fetch->curl != NULL)
        curl_multi_remove_handle(fetcher->multi, fetch->curl);
    srv_fetch_curl_close(fetch);
    srv_fetch_unref(fetch);
    srv_loop_expect(loop, -1);
}

/* libcurl is done with it. One whose empty body nobody has asked for yet stays, without a handle.
 */
static void finish(struct srv_fetcher *fetcher, struct srv_fetch *fetch, CURLcode result)
{
    srv_fetch_curl_finish(fetch, result);
    pthread_mutex_lock(&fetch->lock);
    bool is_over = fetch->state == SRV_FETCH_ENDED || fetch->state == SRV_FETCH_FAILED;
    pthread_mutex_unlock(&fetch->lock);
    if (is_over) {
        drop(fetcher, fetch);
        return;
    }
    curl_multi_remove_handle(fetcher->multi, fetch->curl);
    srv_fetch_curl_close(fetch);
}

static void start(struct srv_fetcher *fetcher, struct srv_fetch *fetch)
{
    link_active(fetcher, fetch);
    bool ok = srv_fetch_curl_open(fetch);
    if (!ok || curl_multi_add_handle(fetcher->multi, fetch->curl) != CURLM_OK)
        finish(fetcher, fetch, CURLE_OUT_OF_MEMORY);
}

/* Room was made, the next part of a body has come, or it was said where the response goes. */
static void resume(struct srv_fetcher *fetcher, struct srv_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    bool is_ready = fetch->is_complete && fetch->is_going;
    pthread_mutex_unlock(&fetch->lock);
    if (is_ready) {
        finish(fetcher, fetch, CURLE_OK);
        return;
    }
    if (fetch->curl == NULL || (!fetch->is_paused && !fetch->is_upload_paused))
        return;
    fetch->is_paused = fetch->is_upload_paused = false;
    fetch->deadline_ms = srv_fetcher_now_ms() + fetcher->limits.between_ms;
    curl_easy_pause(fetch->curl, CURLPAUSE_CONT);
}

static void cancel(struct srv_fetcher *fetcher, struct srv_fetch *fetch)
{
    finish(fetcher, fetch, CURLE_ABORTED_BY_CALLBACK);
}

/* ---- The thread ---- */

/* What was asked for, in the order in which it was. */
static struct srv_fetch *take_todo(struct srv_fetcher *fetcher)
{
    struct srv_fetch *reversed = NULL;
    while (fetcher->todo != NULL) {
        struct srv_fetch *fetch = fetcher->todo;
        fetcher->todo = fetch->next_todo;
        fetch->next_todo = reversed;
        reversed = fetch;
    }
    return reversed;
}

static bool do_todo(struct srv_fetcher *fetcher)
{
    pthread_mutex_lock(&fetcher->lock);
    struct srv_fetch *fetch = take_todo(fetcher);
    bool is_stopping = fetcher->is_stopping;
    pthread_mutex_unlock(&fetcher->lock);
    while (fetch != NULL) {
        pthread_mutex_lock(&fetcher->lock);
        unsigned todo = fetch->todo;
        struct srv_fetch *next = fetch->next_todo;
        fetch->todo = 0;
        pthread_mutex_unlock(&fetcher->lock);
        if ((todo & SRV_FETCH_DO_START) != 0)
            start(fetcher, fetch);
        if ((todo & SRV_FETCH_DO_CANCEL) != 0 && fetch->prev != NULL)
            cancel(fetcher, fetch);
        else if (fetch->prev != NULL)
            resume(fetcher, fetch);
        srv_fetch_unref(fetch);
        fetch = next;
    }
    return !is_stopping;
}

static void take_results(struct srv_fetcher *fetcher)
{
    int n_left;
    for (CURLMsg *message; (message = curl_multi_info_read(fetcher->multi, &n_left)) != NULL;) {
        char *data = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result; /* gone once the handle is removed */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &data);
        finish(fetcher, (struct srv_fetch *)(void *)data, result);
    }
}

/* Whether nobody is to have what is fetched. */
static bool is_vain(struct srv_fetch *fetch, int64_t now_ms, int64_t drain_until_ms)
{
    pthread_mutex_lock(&fetch->lock);
    int64_t alone_until_ms = fetch->is_let_go ? fetch->alone_until_ms : 0;
    pthread_mutex_unlock(&fetch->lock);
    if (drain_until_ms != 0 &&
        (now_ms >= drain_until_ms || fetch->is_unattended || alone_until_ms != 0))
        return true;
    return alone_until_ms != 0 && now_ms >= alone_until_ms;
}

/* Breaks off what is too late; returns how long to wait for the next that could be. */
static int look_at_deadlines(struct srv_fetcher *fetcher)
{
    int64_t now_ms = srv_fetcher_now_ms(), wait_ms = WAIT_MS;
    pthread_mutex_lock(&fetcher->lock);
    int64_t drain_until_ms = fetcher->drain_until_ms;
    pthread_mutex_unlock(&fetcher->lock);
    for (struct srv_fetch *fetch = fetcher->active, *next; fetch != NULL; fetch = next) {
        next = fetch->next;
        if (fetch->curl == NULL)
            continue;
        if (is_vain(fetch, now_ms, drain_until_ms)) {
            cancel(fetcher, fetch);
            continue;
        }
        if (fetch->deadline_ms == 0)
            continue;
        int64_t left_ms = fetch->deadline_ms - now_ms;
        if (left_ms <= 0) {
            fetch->is_timeout = true;
            finish(fetcher, fetch, CURLE_OPERATION_TIMEDOUT);
        } else if (left_ms < wait_ms)
            wait_ms = left_ms;
    }
    return (int)wait_ms;
}

static void *run(void *data)
{
    struct srv_fetcher *fetcher = data;
    int n_running;
    while (do_todo(fetcher)) {
        curl_multi_perform(fetcher->multi, &n_running);
        take_results(fetcher);
        curl_multi_poll(fetcher->multi, NULL, 0, look_at_deadlines(fetcher), NULL);
    }
    while (fetcher->active != NULL)
        cancel(fetcher, fetcher->active);
    return NULL;
}

struct srv_fetcher *srv_fetcher_create(const struct srv_fetch_limits *limits)
{
    struct srv_fetcher *fetcher = calloc(1, sizeof *fetcher);
    if (fetcher == NULL)
        return NULL;
    fetcher->limits = *limits;
    pthread_mutex_init(&fetcher->lock, NULL);
    fetcher->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    if (fetcher->multi != NULL &&
        curl_multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, limits->connections) == CURLM_OK &&
        pthread_create(&fetcher->thread, NULL, run, fetcher) == 0)
        return fetcher;
    if (fetcher->multi != NULL)
        curl_multi_cleanup(fetcher->multi);
    pthread_mutex_destroy(&fetcher->lock);
    free(fetcher);
    return NULL;
}

void srv_fetcher_drain(struct srv_fetcher *fetcher, uint64_t ms)
{
    pthread_mutex_lock(&fetcher->lock);
    fetcher->drain_until_ms = srv_fetcher_now_ms() + (int64_t)ms;
    pthread_mutex_unlock(&fetcher->lock);
    curl_multi_wakeup(fetcher->multi);
}

void srv_fetcher_destroy(struct srv_fetcher *fetcher)
{
    if (fetcher == NULL)
        return;
    pthread_mutex_lock(&fetcher->lock);
    fetcher->is_stopping = true;
    pthread_mutex_unlock(&fetcher->lock);
    curl_multi_wakeup(fetcher->multi);
    pthread_join(fetcher->thread, NULL);
    curl_multi_cleanup(fetcher->multi);
    pthread_mutex_destroy(&fetcher->lock);
    free(fetcher);
}
