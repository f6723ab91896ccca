#include "server/h2o_glue.h"

#include <dlfcn.h>
#include <pthread.h>

#include <h2o/http2_internal.h>

#include "server/check.h"
#include "server/h2_gate.h"
#include "server/hpack_count.h"

/* Fields of a head beyond which a client is not answered any more: libh2o makes something of each
 * before any of them can be refused. What is over the limit of a head by less is answered 431. */
enum { FIELDS_MAX = 512 };

/* Without these libh2o resets the stream. */
enum {
    REQUIRED = H2O_HPACK_PARSE_HEADERS_METHOD_EXISTS | H2O_HPACK_PARSE_HEADERS_SCHEME_EXISTS |
               H2O_HPACK_PARSE_HEADERS_PATH_EXISTS
};

/* How many lengths a request's head announces. libh2o keeps the last and does not tell that there
 * were others, so two of its functions have ours of the same names in front: the one that reads a
 * head, and the one that it has each length read by. */

typedef int parse_headers_fn(h2o_req_t *, h2o_hpack_header_table_t *, const uint8_t *, size_t,
                             int *, size_t *, h2o_cache_digests_t **, const char **);
typedef size_t strtosize_fn(const char *, size_t);

static parse_headers_fn *own_parse_headers;
static strtosize_fn *own_strtosize;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In the head that this thread has read last. */
static _Thread_local unsigned n_lengths;
/* Heads that libh2o answers by itself, since srv_h2_take_malformed. */
static _Thread_local unsigned n_malformed;

static void look_up(void)
{
    /* Else libh2o would take one for the authority, or drop it; we want to see it, and all others.
     */
    H2O_TOKEN_HOST->http2_should_reject = 0;
    *(void **)&own_parse_headers = dlsym(RTLD_NEXT, "h2o_hpack_parse_headers");
    *(void **)&own_strtosize = dlsym(RTLD_NEXT, "h2o_strtosize");
    SRV_CHECK(own_parse_headers != NULL && own_strtosize != NULL);
}

size_t h2o_strtosize(const char *text, size_t len)
{
    pthread_once(&once, look_up);
    n_lengths++;
    return own_strtosize(text, len);
}

/* Whether entry `i` of libh2o's table, 0 being the newest, is `:scheme`. */
static bool is_scheme(const void *of, size_t i)
{
    const h2o_hpack_header_table_t *table = of;
    if (i >= table->num_entries)
        return false;
    size_t at = (table->entry_start_index + i) % table->entry_capacity;
    return table->entries[at].name == &H2O_TOKEN_SCHEME->buf;
}

int h2o_hpack_parse_headers(h2o_req_t *req, h2o_hpack_header_table_t *table, const uint8_t *src,
                            size_t len, int *pseudo_fields, size_t *content_length,
                            h2o_cache_digests_t **digests, const char **why)
{
    pthread_once(&once, look_up);
    n_lengths = 0;
    bool has_odd_scheme;
    if (srv_hpack_count(src, len, is_scheme, table, &has_odd_scheme) > FIELDS_MAX)
        return H2O_HTTP2_ERROR_ENHANCE_YOUR_CALM;
    if (has_odd_scheme)
        return H2O_HTTP2_ERROR_PROTOCOL;
    int error =
        own_parse_headers(req, table, src, len, pseudo_fields, content_length, digests, why);
    /* Other errors end the connection, and all do in trailers, which have no pseudo-fields. */
    if (pseudo_fields != NULL)
        n_malformed += error == H2O_HTTP2_ERROR_INVALID_HEADER_CHAR ||
                       (error == 0 && (*pseudo_fields & REQUIRED) != REQUIRED);
    return error;
}

unsigned srv_h2_take_malformed(void)
{
    unsigned n = n_malformed;
    n_malformed = 0;
    return n;
}

unsigned srv_h2_n_lengths(void)
{
    return n_lengths;
}
