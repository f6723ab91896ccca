/* One request to a site while it is being answered.
 *
 *   START -> find -> decide -+-> answer from the store [and refresh behind]
 *                            +-> ask the origin -> its head -+-> relay it, and store it if allowed
 *                                                            +-> freshen the stored one, answer
 *                                                            +-> stale one stands in, or an error
 *
 * A visit without an exchange refreshes what is stored; nobody waits for it.
 *
 * Owns:    a visit owns itself: it is freed once the exchange has ended and no job is out; without
 *          an exchange by srv_visit_finish.
 * Threads: the exchange's loop; `work` of srv_visit_work on a worker, which touches what the visit
 *          holds but neither exchange nor request.
 * Blocks:  `work` may; nothing else.
 */
#pragma once

#include "api/gyre.h"
#include "server/http/cache_status.h"
#include "server/http/fetch.h"
#include "server/http/invalidation.h"
#include "server/http/record.h"
#include "server/http/reuse.h"
#include "server/job.h"

struct srv_site {
    struct gyre_store *store;
    struct srv_pool *pool;
    struct srv_fetcher *fetcher;
    struct srv_refreshes *refreshes;
    struct srv_passed *passed;
    struct srv_http_policy policy;
    char *origin;
};

enum { SRV_SITE_OP_GET, SRV_SITE_OP_HEAD, SRV_SITE_OP_OTHER, SRV_SITE_N_OPS };
enum {
    SRV_VISIT_INDEX_MAX = 8, /* sets of names that an index holds at most */
    SRV_VISIT_SOUGHT_MAX = 4 /* times that it looks again; then it fetches for itself */
};

/* The origin's bytes on their way to the client. */
struct srv_visit_source {
    struct srv_source base; /* first: the front knows no more of it */
    size_t lent;            /* bytes of the piece that is being sent */
};

struct srv_visit {
    struct srv_site *site;
    struct srv_exchange *ex;               /* NULL: it refreshes */
    struct srv_visit_request *own_request; /* where `req` is then */
    struct gyre_key refreshed;             /* what is being refreshed then */
    struct srv_loop *loop;
    const struct srv_request *req;
    struct srv_conn *share;
    struct srv_http_fields request;
    struct srv_http_directives asked;
    struct srv_str target;    /* path and query as sent */
    int64_t now_ms, begun_ms; /* Unix time */

    /* What is stored. */
    struct gyre_key url_key; /* of the response, or of the index of its variants */
    struct gyre_key key;     /* of the response */
    struct gyre_handle *handle;
    struct srv_http_record *record; /* of `handle` */
    uint64_t generation;            /* of the index; 0: there is none */
    char *index_names;              /* its sets of names, one after the other, each terminated */
    size_t n_index_names;
    bool has_stored;
    bool is_lookup;

    /* What came of waiting for others that fetch the same (collapse.c). */
    struct gyre_miss miss;
    struct gyre_key sought;
    unsigned n_sought;
    bool is_collapsed; /* others have fetched for it */

    /* What the origin says. */
    struct srv_fetch *fetch;
    bool is_conditional;
    bool is_again;
    bool is_head_seen;
    bool is_answered;
    bool is_body_asked; /* a part of the request's body is awaited from the client */
    bool is_body_given; /* the whole of it is with the fetch */
    uint64_t n_given;   /* bytes of it that are */
    struct srv_http_directives told;
    struct srv_http_facts facts;
    struct srv_http_handled handled;
    struct srv_sink sink;
    struct srv_field *fields; /* of the answer; what is written for it lies in `text` */
    size_t n_fields;
    char text[512];
    size_t text_len;
    uint64_t n_relayed;
    bool is_storing;
    struct srv_visit_source source;

    /* Work under way. */
    struct srv_job job_;
    void (*work_)(struct srv_visit *visit);
    void (*next_)(struct srv_visit *visit);
    bool is_working_;
    bool is_gone_;
    gyre_err err;
    struct gyre_key doomed[SRV_HTTP_INVALID_MAX]; /* to be forgotten */
    size_t n_doomed;
    void *record_bytes; /* to be written */
    size_t record_len;
};

/* ---- visit.c ---- */

/* A visit at its beginning; NULL if it cannot be had, or its connection has enough of them. */
struct srv_visit *srv_visit_create(struct srv_site *site, struct srv_exchange *ex);
/* Frees one that has begun nothing. NULL is allowed. */
void srv_visit_discard(struct srv_visit *visit);
/* A refresh is over, and the visit gone. */
void srv_visit_finish(struct srv_visit *visit);

/* Runs `work` on a worker, then `next` on the loop unless the exchange has ended. */
void srv_visit_work(struct srv_visit *visit, void (*work)(struct srv_visit *visit),
                    void (*next)(struct srv_visit *visit));
/* Looks for what is stored, and decides. */
void srv_visit_start(struct srv_visit *visit);
/* Decides, with what was found. */
void srv_visit_decide(struct srv_visit *visit);

/* ---- refresh.c ---- */

/* Starts to validate what `visit` has found, unless that is under way. */
void srv_visit_refresh(const struct srv_visit *visit);

/* ---- collapse.c ---- */

/* Fetches what is missing, or waits for another visit, of any process, that does. */
void srv_visit_seek(struct srv_visit *visit);
/* What others wait for cannot be theirs: they are released, and nobody waits for it for a while. */
void srv_visit_pass(struct srv_visit *visit);
/* What others wait for under the URL's key will lie under `visit->key`, a variant's: takes that
 * before an index leads there, so that whoever follows it finds the variant under way; once the
 * index is written (`err`), leads them there. On a worker. NULL: nobody is to be led. */
struct gyre_fill *srv_visit_take_variant(struct srv_visit *visit);
void srv_visit_lead(struct srv_visit *visit, struct gyre_fill *variant);
/* Drops what seeking has got; one of those who wait fetches instead. */
void srv_visit_unseek(struct srv_visit *visit);

/* ---- lookup.c ---- */

/* The key of a target on the request's host. */
struct gyre_key srv_visit_key(const struct srv_visit *visit, struct srv_str target);
/* Looks for what is stored; `flags` as for gyre_get. WOULD_BLOCK: ask again on a worker. */
gyre_err srv_visit_find(struct srv_visit *visit, unsigned flags);
/* The key for a variant told apart by `names`; false if its form is too long. */
bool srv_visit_variant_key(const struct srv_visit *visit, uint64_t generation, struct srv_str names,
                           struct gyre_key *key_out);
void srv_visit_forget_found(struct srv_visit *visit);

/* ---- answer.c ---- */

/* For a refresh each of these is its end. */

/* Answers with the stored response, as its `facts` and `fields` now are. */
void srv_visit_answer_stored(struct srv_visit *visit, const struct srv_http_facts *facts,
                             struct srv_http_fields fields);
/* Answers with what another request of this process is fetching. */
void srv_visit_answer_followed(struct srv_visit *visit);
/* Passes the origin's response on. */
void srv_visit_relay(struct srv_visit *visit);
/* A short answer of our own. */
void srv_visit_fail(struct srv_visit *visit, int status, const char *text);

/* ---- ask.c ---- */

/* Asks the origin, about what is stored or as the client did. */
void srv_visit_ask(struct srv_visit *visit, bool is_conditional);
