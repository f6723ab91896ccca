#include "server/s3/upload_page.h"

#include <stdlib.h>
#include <string.h>

#include "server/http_date.h"
#include "server/s3/upload_record.h"
#include "server/uri.h"
#include "server/xml.h"

/* ---- What is asked ---- */

enum srv_s3_code srv_s3_upload_page_init(struct srv_s3_upload_page *page, struct srv_str query,
                                         size_t max)
{
    const struct {
        const char *name;
        struct srv_str *value;
    } texts[] = {{"prefix", &page->prefix},
                 {"delimiter", &page->delimiter},
                 {"key-marker", &page->key_marker},
                 {"upload-id-marker", &page->id_marker}};
    struct srv_str raw;
    size_t used = 0, len;

    page->max = max;
    page->text_ = malloc(query.len + 1);
    if (page->text_ == NULL)
        return SRV_S3_SLOW_DOWN;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!srv_query_find(query, texts[i].name, &raw) || raw.base == NULL)
            continue;
        if (!srv_uri_decode(raw, true, page->text_ + used, query.len - used, &len))
            return SRV_S3_INVALID_ARGUMENT;
        *texts[i].value = (struct srv_str){page->text_ + used, len};
        used += len;
    }
    if (srv_query_find(query, "encoding-type", &raw)) {
        page->is_url_encoded = raw.len == 3 && memcmp(raw.base, "url", 3) == 0;
        if (!page->is_url_encoded)
            return SRV_S3_INVALID_ARGUMENT;
    }
    return SRV_S3_NONE;
}

void srv_s3_upload_page_fini(struct srv_s3_upload_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        free(page->rows[i].key);
    free(page->rows);
    free(page->text_);
    *page = (struct srv_s3_upload_page){.n = 0};
}

/* ---- Collecting ---- */

struct collector {
    struct srv_s3_upload_page *page;
    struct srv_str bucket;
    bool is_short; /* of memory */
};

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

static bool begins(struct srv_str text, struct srv_str prefix)
{
    return text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.base, prefix.base, prefix.len) == 0);
}

static bool add(struct srv_s3_upload_page *page, const struct srv_s3_meta *meta,
                const struct srv_s3_upload_record *record, const struct gyre_upload_id *id,
                uint32_t created)
{
    if (page->n == page->capacity_) {
        size_t capacity = page->capacity_ == 0 ? 64 : 2 * page->capacity_;
        struct srv_s3_upload_row *grown = realloc(page->rows, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        page->rows = grown;
        page->capacity_ = capacity;
    }
    char *key = malloc(meta->key.len + meta->owner.len + 1);
    if (key == NULL)
        return false;
    memcpy(key, meta->key.base, meta->key.len);
    if (meta->owner.len > 0)
        memcpy(key + meta->key.len, meta->owner.base, meta->owner.len);
    page->rows[page->n++] = (struct srv_s3_upload_row){.key = key,
                                                       .key_len = meta->key.len,
                                                       .owner_len = meta->owner.len,
                                                       .id = *id,
                                                       .created = created,
                                                       .algorithm = (uint8_t)record->checksum,
                                                       .is_composite = record->is_composite};
    return true;
}

static bool collect_one(void *data, const struct gyre_key *key, const struct gyre_upload_id *id,
                        const struct gyre_handle *handle)
{
    struct collector *c = data;
    struct srv_s3_upload_record record;
    struct srv_s3_meta meta;
    size_t len;

    (void)key;
    const void *bytes = gyre_handle_meta(handle, &len);
    if (!srv_s3_upload_record_decode(bytes, len, &record) ||
        !srv_s3_meta_decode(record.object.base, record.object.len, &meta) ||
        !same(meta.bucket, c->bucket) || !begins(meta.key, c->page->prefix))
        return true;
    c->is_short = !add(c->page, &meta, &record, id, gyre_handle_info(handle)->created);
    return !c->is_short;
}

static int by_key(const void *a, const void *b)
{
    const struct srv_s3_upload_row *x = a, *y = b;
    size_t len = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, len);

    if (order == 0)
        order = (x->key_len > y->key_len) - (x->key_len < y->key_len);
    if (order == 0)
        order = (x->created > y->created) - (x->created < y->created);
    return order != 0 ? order : memcmp(x->id.bytes, y->id.bytes, sizeof x->id.bytes);
}

enum srv_s3_code srv_s3_upload_page_collect(struct srv_s3_upload_page *page,
                                            struct gyre_store *store, struct srv_str bucket)
{
    struct collector collector = {page, bucket, false};

    gyre_err err = gyre_each_upload(store, collect_one, &collector);
    if (err != GYRE_OK)
        return srv_s3_code_of(err);
    if (page->n > 1)
        qsort(page->rows, page->n, sizeof page->rows[0], by_key);
    return collector.is_short ? SRV_S3_SLOW_DOWN : SRV_S3_NONE;
}

/* ---- Writing ---- */

static void write_name(const struct srv_s3_upload_page *page, struct srv_xml *xml,
                       const char *element, struct srv_str name)
{
    static const char digits[] = "0123456789ABCDEF";

    srv_xml_open(xml, element);
    for (size_t i = 0; page->is_url_encoded && i < name.len; i++) {
        unsigned char c = (unsigned char)name.base[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr("-._~/*", c) != NULL;
        char coded[3] = {'%', digits[c >> 4], digits[c & 15]};
        srv_xml_text(xml, is_plain && c != 0 ? (struct srv_str){name.base + i, 1}
                                             : (struct srv_str){coded, 3});
    }
    if (!page->is_url_encoded)
        srv_xml_text(xml, name);
    srv_xml_close(xml, element);
}

static void write_user(struct srv_xml *xml, const char *element, struct srv_str id)
{
    srv_xml_open(xml, element);
    srv_xml_element(xml, "ID", id);
    srv_xml_element(xml, "DisplayName", id);
    srv_xml_close(xml, element);
}

static struct srv_str key_of(const struct srv_s3_upload_row *row)
{
    return (struct srv_str){row->key, row->key_len};
}

static void write_row(const struct srv_s3_upload_page *page, struct srv_xml *xml,
                      const struct srv_s3_upload_row *row)
{
    struct srv_str owner = {row->owner_len > 0 ? row->key + row->key_len : NULL, row->owner_len};
    char id[SRV_S3_UPLOAD_ID_LEN + 1], date[SRV_ISO_DATE_LEN + 1];

    srv_s3_upload_id_write(&row->id, id);
    srv_iso_date_write((int64_t)row->created * 1000, date);
    srv_xml_open(xml, "Upload");
    write_name(page, xml, "Key", key_of(row));
    srv_xml_element_z(xml, "UploadId", id);
    write_user(xml, "Initiator", srv_s3_owner_or_default(owner));
    write_user(xml, "Owner", srv_s3_owner_or_default(owner));
    srv_xml_element_z(xml, "StorageClass", "STANDARD");
    srv_xml_element_z(xml, "Initiated", date);
    if (row->algorithm != SRV_CHECKSUM_NONE) {
        srv_xml_element_z(xml, "ChecksumAlgorithm",
                          srv_checksum_name((enum srv_checksum)row->algorithm));
        srv_xml_element_z(xml, "ChecksumType", row->is_composite ? "COMPOSITE" : "FULL_OBJECT");
    }
    srv_xml_close(xml, "Upload");
}

/* Whether a row comes after the markers. With a marker of an id, uploads of the marked key follow
 * the one marked; else the key is done with. */
static size_t first_row(const struct srv_s3_upload_page *page)
{
    char id[SRV_S3_UPLOAD_ID_LEN + 1];
    size_t i = 0, after = 0;

    if (page->key_marker.len == 0)
        return 0;
    for (; i < page->n; i++) {
        struct srv_str key = key_of(&page->rows[i]), marker = page->key_marker;
        size_t len = key.len < marker.len ? key.len : marker.len;
        int order = memcmp(key.base, marker.base, len);
        if (order > 0 || (order == 0 && key.len > marker.len))
            break;
        after = i + 1;
        srv_s3_upload_id_write(&page->rows[i].id, id);
        if (same(key, marker) && page->id_marker.len > 0 &&
            same(page->id_marker, (struct srv_str){id, SRV_S3_UPLOAD_ID_LEN}))
            return i + 1;
    }
    return after;
}

/* The prefix that a key is rolled up into; base NULL when it is not. */
static struct srv_str rolled_up(const struct srv_s3_upload_page *page, struct srv_str key)
{
    const char *at = NULL;

    if (page->delimiter.len > 0 && key.len > page->prefix.len)
        at = memmem(key.base + page->prefix.len, key.len - page->prefix.len, page->delimiter.base,
                    page->delimiter.len);
    if (at == NULL)
        return (struct srv_str){NULL, 0};
    return (struct srv_str){key.base, (size_t)(at - key.base) + page->delimiter.len};
}

/* Writes uploads, or common prefixes, of the page that begins at `from`. Returns where it ends. */
static size_t write_page(const struct srv_s3_upload_page *page, struct srv_xml *xml, size_t from,
                         bool prefixes)
{
    struct srv_str last = {NULL, 0};
    size_t i = from, n = 0;

    for (; i < page->n; i++) {
        struct srv_str rolled = rolled_up(page, key_of(&page->rows[i]));
        bool is_new = rolled.base == NULL || last.base == NULL || !same(rolled, last);
        if (is_new && n == page->max)
            break;
        n += is_new;
        if (rolled.base == NULL && !prefixes)
            write_row(page, xml, &page->rows[i]);
        if (rolled.base != NULL && is_new && prefixes) {
            srv_xml_open(xml, "CommonPrefixes");
            write_name(page, xml, "Prefix", rolled);
            srv_xml_close(xml, "CommonPrefixes");
        }
        last = rolled;
    }
    return i;
}

/* Where the page that begins at `from` ends: as write_page, writing nothing. */
static size_t end_of_page(const struct srv_s3_upload_page *page, size_t from)
{
    struct srv_xml nothing;

    srv_xml_init(&nothing);
    size_t end = write_page(page, &nothing, from, true);
    srv_xml_fini(&nothing);
    return end;
}

void srv_s3_upload_page_write(struct srv_s3_upload_page *page, struct srv_xml *xml,
                              struct srv_str bucket)
{
    size_t from = first_row(page), end = end_of_page(page, from);
    char id[SRV_S3_UPLOAD_ID_LEN + 1];
    bool is_cut = end < page->n && page->max > 0;

    srv_xml_open(xml, "ListMultipartUploadsResult" SRV_S3_XMLNS);
    srv_xml_element(xml, "Bucket", bucket);
    write_name(page, xml, "KeyMarker", page->key_marker);
    srv_xml_element(xml, "UploadIdMarker", page->id_marker);
    if (is_cut && end > from) {
        srv_s3_upload_id_write(&page->rows[end - 1].id, id);
        write_name(page, xml, "NextKeyMarker", key_of(&page->rows[end - 1]));
        srv_xml_element_z(xml, "NextUploadIdMarker", id);
    }
    if (page->prefix.base != NULL)
        write_name(page, xml, "Prefix", page->prefix);
    if (page->delimiter.len > 0)
        write_name(page, xml, "Delimiter", page->delimiter);
    if (page->is_url_encoded)
        srv_xml_element_z(xml, "EncodingType", "url");
    srv_xml_element_u64(xml, "MaxUploads", page->max);
    srv_xml_element_z(xml, "IsTruncated", is_cut ? "true" : "false");
    (void)write_page(page, xml, from, false);
    (void)write_page(page, xml, from, true);
    srv_xml_close(xml, "ListMultipartUploadsResult");
}
