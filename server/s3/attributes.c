#include "server/s3/attributes.h"

#include <string.h>

#include "server/http_date.h"
#include "server/s3/numbers.h"
#include "server/s3/object_look.h"
#include "server/s3/part_of.h"
#include "server/target.h"
#include "server/xml.h"

enum { PARTS_MAX = 1000 };

enum attribute { ETAG, CHECKSUM, OBJECT_PARTS, STORAGE_CLASS, OBJECT_SIZE, N_ATTRIBUTES };

static const char *const names[] = {
    [ETAG] = "ETag",
    [CHECKSUM] = "Checksum",
    [OBJECT_PARTS] = "ObjectParts",
    [STORAGE_CLASS] = "StorageClass",
    [OBJECT_SIZE] = "ObjectSize",
};

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && text.base[0] == ' ')
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && text.base[text.len - 1] == ' ')
        text.len--;
    return text;
}

static bool take_name(struct srv_str name, unsigned *wanted)
{
    for (unsigned i = 0; i < N_ATTRIBUTES; i++) {
        if (srv_str_equal_nocase(name, srv_s3_str(names[i]))) {
            *wanted |= 1u << i;
            return true;
        }
    }
    return false;
}

/* x-amz-object-attributes, perhaps several times, each a list: a set of bits. False for an unknown
 * name, and for none. */
static bool read_wanted(const struct srv_request *req, unsigned *wanted_out)
{
    *wanted_out = 0;
    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str name = req->fields[i].name, rest = req->fields[i].value;
        if (!srv_str_equal_nocase(name, srv_s3_str("x-amz-object-attributes")))
            continue;
        while (rest.len > 0) {
            const char *comma = memchr(rest.base, ',', rest.len);
            size_t len = comma == NULL ? rest.len : (size_t)(comma - rest.base);
            size_t step = comma == NULL ? len : len + 1;
            if (!take_name(trim((struct srv_str){rest.base, len}), wanted_out))
                return false;
            rest = (struct srv_str){rest.base + step, rest.len - step};
        }
    }
    return *wanted_out != 0;
}

static void write_checksum(struct srv_xml *xml, const struct srv_s3_checksum *checksum)
{
    char text[SRV_S3_CHECKSUM_TEXT_MAX];

    if (checksum->algorithm != SRV_CHECKSUM_NONE)
        srv_xml_element(xml, srv_checksum_element(checksum->algorithm),
                        srv_s3_checksum_text(checksum, text));
}

static void write_part(struct srv_xml *xml, const struct srv_s3_meta *meta, uint32_t index,
                       const struct gyre_part *part)
{
    struct srv_s3_checksum checksum;

    srv_s3_part_checksum(meta, index, &checksum);
    srv_xml_open(xml, "Part");
    write_checksum(xml, &checksum);
    srv_xml_element_u64(xml, "PartNumber", part->number);
    srv_xml_element_u64(xml, "Size", part->length);
    srv_xml_close(xml, "Part");
}

static bool read_number(const struct srv_request *req, const char *field, uint64_t otherwise,
                        uint64_t max, uint64_t *number_out)
{
    const struct srv_str *value = srv_request_field(req, field, NULL);

    *number_out = otherwise;
    if (value != NULL && !srv_s3_parse_u64(*value, number_out))
        return false;
    *number_out = *number_out < max ? *number_out : max;
    return true;
}

/* Parts are listed when their checksums are there to be shown; their number always. */
static void write_parts(struct srv_xml *xml, const struct srv_s3_look *look, uint64_t max,
                        uint64_t after)
{
    const struct srv_s3_meta *meta = &look->source.meta;
    uint32_t n = srv_s3_count_parts(meta);
    struct gyre_part part = {.number = 0};
    uint64_t shown = 0, last = 0;
    uint32_t i = 0;

    if (n == 0)
        return;
    srv_xml_open(xml, "ObjectParts");
    srv_xml_element_u64(xml, "PartsCount", n);
    srv_xml_element_u64(xml, "PartNumberMarker", after);
    srv_xml_element_u64(xml, "MaxParts", max);
    for (; gyre_handle_part(look->source.handle, i, &part) == GYRE_OK; i++) {
        if (part.number <= after)
            continue;
        if (shown == max)
            break;
        write_part(xml, meta, i, &part);
        shown++;
        last = part.number;
    }
    srv_xml_element_u64(xml, "NextPartNumberMarker", last);
    srv_xml_element_z(xml, "IsTruncated", shown == max && i < n ? "true" : "false");
    srv_xml_close(xml, "ObjectParts");
}

static void write_document(struct srv_xml *xml, const struct srv_s3_look *look, unsigned wanted,
                           uint64_t max, uint64_t after)
{
    const struct srv_s3_meta *meta = &look->source.meta;
    struct srv_s3_checksum checksum;

    srv_xml_open(xml, "GetObjectAttributesResponse" SRV_S3_XMLNS);
    if (wanted & 1u << ETAG)
        srv_xml_element(xml, "ETag", meta->etag);
    if (wanted & 1u << CHECKSUM && srv_s3_checksum_decode(meta->checksum, &checksum)) {
        srv_xml_open(xml, "Checksum");
        write_checksum(xml, &checksum);
        srv_xml_element_z(xml, "ChecksumType", srv_s3_checksum_type(&checksum));
        srv_xml_close(xml, "Checksum");
    }
    if (wanted & 1u << OBJECT_PARTS)
        write_parts(xml, look, max, after);
    if (wanted & 1u << STORAGE_CLASS)
        srv_xml_element(xml, "StorageClass",
                        meta->storage_class.base != NULL ? meta->storage_class
                                                         : srv_s3_str("STANDARD"));
    if (wanted & 1u << OBJECT_SIZE)
        srv_xml_element_u64(xml, "ObjectSize", gyre_handle_info(look->source.handle)->length);
    srv_xml_close(xml, "GetObjectAttributesResponse");
}

static void answer(struct srv_s3_look *look)
{
    const struct srv_s3_call *call = &look->task.call;
    char modified[SRV_HTTP_DATE_LEN + 1];
    uint64_t max, after;
    unsigned wanted;
    struct srv_s3_head head;
    struct srv_xml xml;

    if (!read_wanted(call->req, &wanted) ||
        !read_number(call->req, "x-amz-max-parts", PARTS_MAX, PARTS_MAX, &max) ||
        !read_number(call->req, "x-amz-part-number-marker", 0, UINT32_MAX, &after)) {
        srv_s3_fail(call, SRV_S3_INVALID_ARGUMENT, NULL);
        return;
    }
    srv_xml_init(&xml);
    write_document(&xml, look, wanted, max, after);
    srv_s3_head_init(&head, call);
    srv_http_date_write(look->source.meta.modified_ms / 1000, modified);
    srv_s3_head_add(&head, "Last-Modified", (struct srv_str){modified, SRV_HTTP_DATE_LEN});
    srv_s3_answer_xml(call, &head, &xml);
}

void srv_s3_attributes_get(const struct srv_s3_call *call)
{
    srv_s3_look(call, SRV_S3_ACL_READ, answer);
}
