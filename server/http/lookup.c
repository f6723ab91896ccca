/* Where a site's responses lie in the store: under the key of their URL, or, where they vary, under
 * keys made of it and of what tells them apart; the URL's key then holds an index of the names. */
#include <stdlib.h>
#include <string.h>

#include "server/http/vary.h"
#include "server/http/visit.h"

struct gyre_key srv_visit_key(const struct srv_visit *visit, struct srv_str target)
{
    struct gyre_key key;
    const struct srv_str scheme = visit->req->is_tls ? SRV_STR("https") : SRV_STR("http");
    const struct iovec parts[] = {
        {(void *)(uintptr_t)scheme.base, scheme.len},
        {(void *)(uintptr_t)visit->req->authority.base, visit->req->authority.len},
        {(void *)(uintptr_t)target.base, target.len},
    };
    if (gyre_key_of_parts(GYRE_DOMAIN_URL, parts, 3, &key) != GYRE_OK)
        key = gyre_key_of_bytes(target.base, target.len); /* no head with zero bytes gets here */
    return key;
}

bool srv_visit_variant_key(const struct srv_visit *visit, uint64_t generation, struct srv_str names,
                           struct gyre_key *key_out)
{
    struct {
        struct gyre_key url;
        uint64_t generation;
        char form[SRV_HTTP_VARY_FORM_MAX];
    } whole = {.url = visit->url_key, .generation = generation};
    size_t len = srv_http_vary_form(names, visit->request, &visit->site->policy, whole.form);
    *key_out = (struct gyre_key){0};
    if (len == SIZE_MAX)
        return false;
    *key_out = gyre_key_of_bytes(&whole, sizeof whole.url + sizeof whole.generation + len);
    return true;
}

void srv_visit_forget_found(struct srv_visit *visit)
{
    gyre_release(visit->handle);
    visit->handle = NULL;
    visit->has_stored = false;
}

static bool read_record(struct gyre_handle *handle, struct srv_http_record *record)
{
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);
    return srv_http_record_read(bytes, len, record);
}

/* Keeps the index's sets of names, which its handle lends only as long as it is held. */
static bool keep_index(struct srv_visit *visit)
{
    const struct srv_http_record *record = visit->record;
    size_t len = 1, at = 0;
    for (size_t i = 0; i < record->n_fields; i++)
        len += record->fields[i].value.len + 1;
    free(visit->index_names);
    visit->index_names = calloc(1, len);
    visit->n_index_names = 0;
    if (visit->index_names == NULL)
        return false;
    for (size_t i = 0; i < record->n_fields && i < SRV_VISIT_INDEX_MAX; i++) {
        memcpy(visit->index_names + at, record->fields[i].value.base, record->fields[i].value.len);
        at += record->fields[i].value.len + 1;
        visit->n_index_names++;
    }
    visit->generation = record->generation;
    return true;
}

/* Of the variants that match, the one of the latest Date (RFC 9111, 4.1). */
static gyre_err find_variant(struct srv_visit *visit, unsigned flags)
{
    const char *names = visit->index_names;
    int64_t best_s = INT64_MIN;
    for (size_t i = 0; i < visit->n_index_names; i++, names += strlen(names) + 1) {
        struct gyre_handle *handle;
        struct gyre_key key;
        if (!srv_visit_variant_key(visit, visit->generation, (struct srv_str){names, strlen(names)},
                                   &key))
            continue;
        gyre_err err =
            gyre_get(visit->site->store, &key, (uint32_t)(visit->now_ms / 1000), flags, &handle);
        if (err == GYRE_WOULD_BLOCK)
            return err;
        if (err != GYRE_OK)
            continue;
        if (read_record(handle, visit->record) && visit->record->kind == SRV_HTTP_RECORD_RESPONSE &&
            visit->record->facts.date_s > best_s) {
            best_s = visit->record->facts.date_s;
            gyre_release(visit->handle);
            visit->handle = handle;
            visit->key = key;
        } else
            gyre_release(handle);
    }
    visit->has_stored = visit->handle != NULL && read_record(visit->handle, visit->record);
    return GYRE_OK;
}

gyre_err srv_visit_find(struct srv_visit *visit, unsigned flags)
{
    srv_visit_forget_found(visit);
    visit->generation = 0;
    gyre_err err = gyre_get(visit->site->store, &visit->url_key, (uint32_t)(visit->now_ms / 1000),
                            flags, &visit->handle);
    if (err != GYRE_OK)
        return err;
    visit->key = visit->url_key;
    if (!read_record(visit->handle, visit->record)) {
        srv_visit_forget_found(visit);
        return GYRE_OK;
    }
    visit->has_stored = visit->record->kind == SRV_HTTP_RECORD_RESPONSE;
    if (visit->has_stored)
        return GYRE_OK;
    bool ok = keep_index(visit);
    srv_visit_forget_found(visit);
    err = ok ? find_variant(visit, flags) : GYRE_NO_MEMORY;
    if (err == GYRE_WOULD_BLOCK)
        srv_visit_forget_found(visit);
    return err;
}
