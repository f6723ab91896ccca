#include "server/s3/bucket.h"

#include <stdlib.h>
#include <string.h>

#include "server/http_date.h"
#include "server/s3/buckets.h"
#include "server/uri.h"
#include "server/xml.h"

enum { PAGE_MAX = 10000, PARAMETER_MAX = 256 };

/* What the query asks for, and the document so far. */
struct listing {
    const struct srv_s3_call *call;
    const struct srv_s3_user *user; /* who asks; NULL: nobody known */
    struct srv_xml xml;
    char prefix[PARAMETER_MAX];
    size_t prefix_len;
    char after[PARAMETER_MAX]; /* the continuation token is the last name of the page before */
    size_t after_len;
    size_t left;         /* of the page */
    bool is_cut;         /* there are more than fit */
    struct srv_str last; /* in `last_name` */
    char last_name[SRV_S3_BUCKET_MAX];
};

static bool is_wanted(const struct listing *listing, struct srv_str name)
{
    size_t len = name.len < listing->after_len ? name.len : listing->after_len;
    int order = memcmp(name.base, listing->after, len);

    if (order < 0 || (order == 0 && name.len <= listing->after_len && listing->after_len > 0))
        return false;
    return name.len >= listing->prefix_len &&
           memcmp(name.base, listing->prefix, listing->prefix_len) == 0;
}

/* Buckets are shown to their owners and to those whom the configuration gives rights in them. */
static bool is_shown(const struct listing *listing, struct srv_str name, struct srv_str owner)
{
    const struct srv_s3_who *who = &listing->call->who;
    struct srv_str id = srv_s3_who_id(who);

    if (who->is_open)
        return true;
    if (owner.base != NULL && id.base != NULL && owner.len == id.len &&
        memcmp(owner.base, id.base, id.len) == 0)
        return true;
    return id.base != NULL && listing->user != NULL &&
           srv_s3_access_rights(listing->call->s3->access, listing->user, name) != 0;
}

static void add_bucket(void *data, struct srv_str name, struct srv_str owner, int64_t created_ms)
{
    struct listing *listing = data;
    char created[SRV_ISO_DATE_LEN + 1];

    if (!is_wanted(listing, name) || !is_shown(listing, name, owner))
        return;
    if (listing->left == 0) {
        listing->is_cut = true;
        return;
    }
    listing->left--;
    memcpy(listing->last_name, name.base, name.len);
    listing->last = (struct srv_str){listing->last_name, name.len};
    srv_iso_date_write(created_ms, created);
    srv_xml_open(&listing->xml, "Bucket");
    srv_xml_element(&listing->xml, "Name", name);
    srv_xml_element_z(&listing->xml, "CreationDate", created);
    srv_xml_close(&listing->xml, "Bucket");
}

static bool read_text(struct srv_str query, const char *name, char text[PARAMETER_MAX],
                      size_t *len_out)
{
    struct srv_str raw;

    *len_out = 0;
    return !srv_query_find(query, name, &raw) || raw.base == NULL ||
           srv_uri_decode(raw, true, text, PARAMETER_MAX, len_out);
}

/* max-buckets: 1 to 10000. */
static bool read_page(struct srv_str query, size_t *left_out)
{
    struct srv_str raw;
    size_t value = 0;

    *left_out = PAGE_MAX;
    if (!srv_query_find(query, "max-buckets", &raw))
        return true;
    for (size_t i = 0; i < raw.len && value <= PAGE_MAX; i++) {
        if (raw.base[i] < '0' || raw.base[i] > '9')
            return false;
        value = value * 10 + (size_t)(raw.base[i] - '0');
    }
    *left_out = value;
    return value >= 1 && value <= PAGE_MAX;
}

static void write_listing(const struct srv_s3_call *call, struct listing *listing, bool *ok_out)
{
    struct srv_xml *xml = &listing->xml;

    srv_xml_open(xml, "ListAllMyBucketsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"");
    srv_xml_open(xml, "Owner");
    srv_xml_element(xml, "ID", srv_s3_owner_or_default(srv_s3_who_id(&call->who)));
    srv_xml_element(xml, "DisplayName", srv_s3_owner_or_default(srv_s3_who_id(&call->who)));
    srv_xml_close(xml, "Owner");
    srv_xml_open(xml, "Buckets");
    pthread_rwlock_rdlock(&call->s3->access_lock);
    if (call->who.is_signed)
        listing->user = srv_s3_access_named(call->s3->access, srv_s3_who_id(&call->who));
    *ok_out = srv_s3_buckets_each(call->s3->buckets, add_bucket, listing);
    pthread_rwlock_unlock(&call->s3->access_lock);
    srv_xml_close(xml, "Buckets");
    if (listing->prefix_len > 0)
        srv_xml_element(xml, "Prefix", (struct srv_str){listing->prefix, listing->prefix_len});
    if (listing->is_cut)
        srv_xml_element(xml, "ContinuationToken", listing->last);
    srv_xml_close(xml, "ListAllMyBucketsResult");
}

void srv_s3_bucket_list(const struct srv_s3_call *call)
{
    struct srv_str query = call->req->query;
    struct listing listing = {.call = call};
    struct srv_s3_head head;
    bool ok;

    if (!read_text(query, "prefix", listing.prefix, &listing.prefix_len) ||
        !read_text(query, "continuation-token", listing.after, &listing.after_len) ||
        !read_page(query, &listing.left)) {
        srv_s3_fail(call, SRV_S3_INVALID_ARGUMENT, NULL);
        return;
    }
    srv_xml_init(&listing.xml);
    write_listing(call, &listing, &ok);
    size_t len;
    char *document = srv_xml_take(&listing.xml, &len);
    if (!ok || document == NULL) {
        free(document);
        srv_s3_fail(call, SRV_S3_SLOW_DOWN, NULL);
    } else {
        srv_s3_head_init(&head, call);
        srv_s3_head_add(&head, "Content-Type", srv_s3_str("application/xml"));
        const struct srv_response res = {
            .status = 200, .fields = head.fields, .n_fields = head.n, .content_length = len};
        srv_respond_owned(call->ex, &res, document, len);
    }
    srv_xml_fini(&listing.xml);
}
