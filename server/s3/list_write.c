#include "server/s3/list_write.h"

#include <string.h>

#include "server/http_date.h"
#include "server/s3/call.h"

/* ---- Pieces ---- */

/* Text of the client's or of keys: as it is, or percent-encoded if the request asks for that. */
static void element(const struct srv_list_writer *writer, struct srv_xml *xml, const char *name,
                    struct srv_str text)
{
    char encoded[3 * SRV_S3_KEY_MAX];

    if (!writer->query->encodes) {
        srv_xml_element(xml, name, text);
        return;
    }
    srv_xml_open(xml, name);
    while (text.len > 0) {
        struct srv_str piece = {text.base, text.len < SRV_S3_KEY_MAX ? text.len : SRV_S3_KEY_MAX};
        size_t len = srv_list_encode(piece, encoded);
        srv_xml_text(xml, (struct srv_str){encoded, len});
        text.base += piece.len;
        text.len -= piece.len;
    }
    srv_xml_close(xml, name);
}

static void write_owner(struct srv_xml *xml, const struct srv_name_row *row)
{
    struct srv_str known = {row->owner_len > 0 ? row->owner : NULL, row->owner_len};
    struct srv_str owner = srv_s3_owner_or_default(known);

    srv_xml_open(xml, "Owner");
    srv_xml_element(xml, "ID", owner);
    srv_xml_element(xml, "DisplayName", owner);
    srv_xml_close(xml, "Owner");
}

static void write_key(void *data, struct srv_str key, const struct srv_name_row *row)
{
    struct srv_list_writer *writer = data;
    struct srv_xml *xml = &writer->entries;
    bool is_version = writer->query->kind == SRV_LIST_VERSIONS;
    const char *name = is_version ? "Version" : "Contents";
    char modified[SRV_ISO_DATE_LEN + 1], etag[SRV_S3_ETAG_LEN_MAX + 2];

    etag[0] = '"';
    memcpy(etag + 1, row->etag, row->etag_len);
    etag[row->etag_len + 1] = '"';
    srv_iso_date_write(row->modified_ms, modified);
    srv_xml_open(xml, name);
    element(writer, xml, "Key", key);
    if (is_version) {
        srv_xml_element_z(xml, "VersionId", "null");
        srv_xml_element_z(xml, "IsLatest", "true");
    }
    srv_xml_element_z(xml, "LastModified", modified);
    srv_xml_element(xml, "ETag", (struct srv_str){etag, row->etag_len + 2});
    srv_xml_element_u64(xml, "Size", row->size);
    if (writer->query->fetches_owner)
        write_owner(xml, row);
    srv_xml_element_z(xml, "StorageClass", "STANDARD");
    srv_xml_close(xml, name);
}

static void write_prefix(void *data, struct srv_str prefix)
{
    struct srv_list_writer *writer = data;

    srv_xml_open(&writer->prefixes, "CommonPrefixes");
    element(writer, &writer->prefixes, "Prefix", prefix);
    srv_xml_close(&writer->prefixes, "CommonPrefixes");
}

/* ---- The heads of the documents ---- */

static void write_head_v1(const struct srv_list_writer *writer, const struct srv_list_page *page,
                          struct srv_xml *xml)
{
    element(writer, xml, "Marker", writer->query->marker);
    /* Without a delimiter S3 leaves it out. Sent anyhow it does no harm, and helps clients that
     * rely on it. */
    if (page->is_truncated)
        element(writer, xml, "NextMarker", (struct srv_str){page->last, page->last_len});
}

static void write_head_v2(const struct srv_list_writer *writer, const struct srv_list_page *page,
                          struct srv_xml *xml)
{
    const struct srv_list_query *query = writer->query;
    char token[SRV_LIST_TOKEN_MAX];

    srv_xml_element_u64(xml, "KeyCount", page->n_keys + page->n_prefixes);
    if (query->token.base != NULL)
        srv_xml_element(xml, "ContinuationToken", query->token);
    if (query->marker.base != NULL)
        element(writer, xml, "StartAfter", query->marker);
    if (!page->is_truncated)
        return;
    size_t len =
        srv_list_token_write((struct srv_str){page->last, page->last_len}, page->is_exact, token);
    srv_xml_element(xml, "NextContinuationToken", (struct srv_str){token, len});
}

static void write_head_versions(const struct srv_list_writer *writer,
                                const struct srv_list_page *page, struct srv_xml *xml)
{
    element(writer, xml, "KeyMarker", writer->query->marker);
    srv_xml_element(xml, "VersionIdMarker", writer->query->version_marker);
    if (!page->is_truncated)
        return;
    element(writer, xml, "NextKeyMarker", (struct srv_str){page->last, page->last_len});
    srv_xml_element_z(xml, "NextVersionIdMarker", "null");
}

static void write_head(const struct srv_list_writer *writer, const struct srv_list_page *page,
                       struct srv_xml *xml)
{
    const struct srv_list_query *query = writer->query;

    srv_xml_element(xml, "Name", writer->bucket);
    element(writer, xml, "Prefix", query->prefix);
    switch (query->kind) {
    case SRV_LIST_V1: write_head_v1(writer, page, xml); break;
    case SRV_LIST_V2: write_head_v2(writer, page, xml); break;
    case SRV_LIST_VERSIONS: write_head_versions(writer, page, xml); break;
    }
    srv_xml_element_u64(xml, "MaxKeys", query->max_keys);
    if (query->delimiter.len > 0)
        element(writer, xml, "Delimiter", query->delimiter);
    if (query->encodes)
        srv_xml_element_z(xml, "EncodingType", "url");
    srv_xml_element_z(xml, "IsTruncated", page->is_truncated ? "true" : "false");
}

/* ---- A document ---- */

void srv_list_writer_init(struct srv_list_writer *writer, const struct srv_list_query *query,
                          struct srv_str bucket)
{
    *writer = (struct srv_list_writer){.query = query, .bucket = bucket};
}

void srv_list_writer_fini(struct srv_list_writer *writer)
{
    srv_xml_fini(&writer->entries);
    srv_xml_fini(&writer->prefixes);
}

struct srv_list_sink srv_list_writer_sink(struct srv_list_writer *writer)
{
    return (struct srv_list_sink){writer, write_key, write_prefix};
}

void srv_list_writer_finish(struct srv_list_writer *writer, const struct srv_list_page *page,
                            struct srv_xml *xml_out)
{
    bool is_versions = writer->query->kind == SRV_LIST_VERSIONS;

    srv_xml_init(xml_out);
    srv_xml_open(xml_out,
                 is_versions ? "ListVersionsResult" SRV_S3_XMLNS : "ListBucketResult" SRV_S3_XMLNS);
    write_head(writer, page, xml_out);
    srv_xml_join(xml_out, &writer->entries);
    srv_xml_join(xml_out, &writer->prefixes);
    srv_xml_close(xml_out, is_versions ? "ListVersionsResult" : "ListBucketResult");
}
