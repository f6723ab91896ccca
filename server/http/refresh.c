/* Validation behind the client's back (RFC 5861, 3): a visit that nobody waits for, with a copy of
 * the request that led to it. Of one response there is one at a time. */
#include <stdlib.h>
#include <string.h>

#include "server/http/refreshes.h"
#include "server/http/visit.h"

/* A request that lives as long as the visit made for it. */
struct srv_visit_request {
    struct srv_request head;
    struct srv_field fields[]; /* their text follows */
};

static struct srv_str put(char **to, struct srv_str text)
{
    struct srv_str copy = {*to, text.len};
    if (text.len > 0)
        *to = mempcpy(*to, text.base, text.len);
    return copy;
}

/* As `req`, but a GET; what else is named in it is that of `target` and the fields. */
static struct srv_visit_request *copy_request(const struct srv_request *req, struct srv_str target)
{
    size_t len = req->authority.len + target.len;
    for (size_t i = 0; i < req->n_fields; i++)
        len += req->fields[i].name.len + req->fields[i].value.len;
    struct srv_visit_request *copy =
        malloc(sizeof *copy + req->n_fields * sizeof *copy->fields + len);
    if (copy == NULL)
        return NULL;
    char *to = (char *)(copy->fields + req->n_fields);
    copy->head = *req;
    copy->head.method = SRV_GET;
    copy->head.method_name = SRV_STR("GET");
    copy->head.path = put(&to, target);
    copy->head.query = (struct srv_str){0};
    copy->head.authority = put(&to, req->authority);
    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str name = put(&to, req->fields[i].name);
        copy->fields[i] = (struct srv_field){name, put(&to, req->fields[i].value)};
    }
    copy->head.fields = copy->fields;
    copy->head.has_body = false;
    copy->head.content_length = 0;
    return copy;
}

/* With what is stored now: it may have been replaced in the meantime. */
static void validate(struct srv_visit *visit)
{
    if (!visit->has_stored || srv_http_fresh_ms(&visit->record->facts, visit->now_ms) > 0) {
        srv_visit_finish(visit);
        return;
    }
    visit->handled.forward = SRV_HTTP_FORWARD_STALE;
    srv_visit_ask(visit,
                  (visit->record->facts.flags & (SRV_HTTP_HAS_ETAG | SRV_HTTP_HAS_MODIFIED)) != 0);
}

static void find_later(struct srv_visit *visit)
{
    visit->err = srv_visit_find(visit, GYRE_GET_LAZY);
}

void srv_visit_refresh(const struct srv_visit *visit)
{
    struct srv_refreshes *refreshes = visit->site->refreshes;
    if (!srv_refresh_begin(refreshes, &visit->key))
        return;
    struct srv_visit *behind = srv_visit_create(visit->site, visit->ex);
    struct srv_visit_request *own = behind == NULL ? NULL : copy_request(visit->req, visit->target);
    if (own == NULL) {
        srv_refresh_end(refreshes, &visit->key);
        srv_visit_discard(behind);
        return;
    }
    behind->ex = NULL;
    behind->own_request = own;
    behind->refreshed = visit->key;
    behind->req = &own->head;
    behind->request = (struct srv_http_fields){own->fields, own->head.n_fields};
    behind->target = own->head.path;
    behind->url_key = visit->url_key;
    behind->is_lookup = true;
    behind->is_again = true; /* the client's conditions are its own */
    srv_visit_work(behind, find_later, validate);
}
