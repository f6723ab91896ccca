#include "server/s3/tagset_xml.h"

#include "server/s3/call.h"

enum { NODES_MAX = 1000 };

enum srv_s3_code srv_s3_tagset_add_node(struct srv_s3_tagset *set, const struct srv_xml_node *tag)
{
    struct srv_str key = srv_xml_child_text(tag, "Key");
    struct srv_str value = srv_xml_child_text(tag, "Value");

    if (key.base == NULL || value.base == NULL)
        return SRV_S3_MALFORMED_XML;
    return srv_s3_tagset_add(set, key, value);
}

enum srv_s3_code srv_s3_tagset_read(const char *bytes, size_t len, struct srv_s3_tagset *set)
{
    struct srv_xml_doc *doc = srv_xml_doc_create(bytes, len, NODES_MAX);
    enum srv_s3_code code = SRV_S3_NONE;

    if (doc == NULL)
        return SRV_S3_MALFORMED_XML;
    const struct srv_xml_node *root = srv_xml_root(doc);
    const struct srv_xml_node *tags = srv_xml_child(root, "TagSet");
    if (!srv_xml_is(root, "Tagging") || tags == NULL)
        code = SRV_S3_MALFORMED_XML;
    const struct srv_xml_node *tag = tags != NULL ? tags->child : NULL;
    for (; code == SRV_S3_NONE && tag != NULL; tag = tag->next)
        code = srv_xml_is(tag, "Tag") ? srv_s3_tagset_add_node(set, tag) : SRV_S3_MALFORMED_XML;
    srv_xml_doc_destroy(doc);
    return code;
}

void srv_s3_tags_write(struct srv_xml *xml, struct srv_str encoded)
{
    struct srv_s3_tag tag;

    srv_xml_open(xml, "Tagging" SRV_S3_XMLNS);
    srv_xml_open(xml, "TagSet");
    while (srv_s3_tags_next(&encoded, &tag)) {
        srv_xml_open(xml, "Tag");
        srv_xml_element(xml, "Key", tag.key);
        srv_xml_element(xml, "Value", tag.value);
        srv_xml_close(xml, "Tag");
    }
    srv_xml_close(xml, "TagSet");
    srv_xml_close(xml, "Tagging");
}
