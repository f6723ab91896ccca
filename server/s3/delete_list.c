#include "server/s3/delete_list.h"

#include <string.h>

#include "server/http_date.h"
#include "server/iso_date.h"
#include "server/s3/name.h"
#include "server/s3/numbers.h"

/* Seven elements an object, and a little more. */
enum { NODES_MAX = 8 * SRV_DELETE_LIST_MAX };

static struct srv_str unquote(struct srv_str text)
{
    if (text.len >= 2 && text.base[0] == '"' && text.base[text.len - 1] == '"')
        return (struct srv_str){text.base + 1, text.len - 2};
    return text;
}

static bool is(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static enum srv_s3_code read_conditions(struct srv_delete_item *item,
                                        const struct srv_xml_node *node, int64_t now_s)
{
    struct srv_str etag = srv_xml_child_text(node, "ETag");
    struct srv_str size = srv_xml_child_text(node, "Size");
    struct srv_str modified = srv_xml_child_text(node, "LastModifiedTime");

    item->etag = etag.base != NULL ? unquote(etag) : etag;
    item->has_size = size.base != NULL;
    item->has_modified = modified.base != NULL;
    if (item->has_size && !srv_s3_parse_u64(size, &item->size))
        return SRV_S3_INVALID_ARGUMENT;
    if (item->has_modified && !srv_iso_date_parse(modified, &item->modified_s) &&
        !srv_http_date_parse(modified, now_s, &item->modified_s))
        return SRV_S3_INVALID_ARGUMENT;
    return SRV_S3_NONE;
}

static bool read_item(struct srv_delete_item *item, const struct srv_xml_node *node, int64_t now_s)
{
    *item = (struct srv_delete_item){.key = srv_xml_child_text(node, "Key"),
                                     .version = srv_xml_child_text(node, "VersionId")};
    if (item->key.base == NULL)
        return false;
    item->code = srv_s3_key_check(item->key);
    if (item->code == SRV_S3_NONE && item->version.len > 0 && !is(item->version, "null"))
        item->code = SRV_S3_NO_SUCH_VERSION;
    if (item->code == SRV_S3_NONE)
        item->code = read_conditions(item, node, now_s);
    return true;
}

/* False for a document of another kind. */
static bool read_items(struct srv_delete_list *list, const struct srv_xml_node *root, int64_t now_s)
{
    if (!srv_xml_is(root, "Delete"))
        return false;
    for (const struct srv_xml_node *node = root->child; node != NULL; node = node->next) {
        if (srv_xml_is(node, "Quiet"))
            list->is_quiet = is(node->text, "true");
        else if (!srv_xml_is(node, "Object") || list->n == SRV_DELETE_LIST_MAX ||
                 !read_item(&list->items[list->n++], node, now_s))
            return false;
    }
    return list->n > 0;
}

enum srv_s3_code srv_delete_list_init(struct srv_delete_list *list, const char *bytes, size_t len,
                                      int64_t now_s)
{
    list->is_quiet = false;
    list->n = 0;
    list->doc_ = srv_xml_doc_create(bytes, len, NODES_MAX);
    if (list->doc_ != NULL && read_items(list, srv_xml_root(list->doc_), now_s))
        return SRV_S3_NONE;
    srv_delete_list_fini(list);
    return SRV_S3_MALFORMED_XML;
}

void srv_delete_list_fini(struct srv_delete_list *list)
{
    srv_xml_doc_destroy(list->doc_);
    list->doc_ = NULL;
}
