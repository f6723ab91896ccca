/* Documents into trees: what clients send, and what must not be read. */
#include "server/xml_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

static struct srv_xml_doc *read_text(const char *text)
{
    return srv_xml_doc_create(text, strlen(text), 100);
}

static void check_text(struct srv_str got, const char *want)
{
    CHECK_MSG(got.base != NULL && got.len == strlen(want) && memcmp(got.base, want, got.len) == 0,
              "\"%.*s\" instead of \"%s\"", (int)got.len, got.base, want);
}

TEST(elements_text_and_types_are_found)
{
    struct srv_xml_doc *doc =
        read_text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<s3:Delete xmlns:s3=\"http://s3.amazonaws.com/doc/2006-03-01/\" "
                  "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n"
                  "  <s3:Quiet> true </s3:Quiet>\n"
                  "  <Object><Key>a&amp;b&#x20;&lt;<![CDATA[<c>]]></Key></Object>\n"
                  "  <Object><Key/></Object>\n"
                  "  <Grantee xsi:type=\"Group\"><URI>u</URI></Grantee>\n"
                  "</s3:Delete>");
    CHECK(doc != NULL);
    const struct srv_xml_node *root = srv_xml_root(doc);
    CHECK(srv_xml_is(root, "Delete") && !srv_xml_is(root, "delete"));
    check_text(root->text, "");
    check_text(srv_xml_child_text(root, "Quiet"), " true ");
    const struct srv_xml_node *object = srv_xml_child(root, "Object");
    check_text(srv_xml_child_text(object, "Key"), "a&b <<c>");
    check_text(srv_xml_child_text(object->next, "Key"), "");
    CHECK(srv_xml_child_text(object, "ETag").base == NULL);
    CHECK(srv_xml_child(NULL, "x") == NULL && srv_xml_child(root, "x") == NULL);
    check_text(srv_xml_child(root, "Grantee")->type, "Group");
    CHECK(object->type.base == NULL);
    srv_xml_doc_destroy(doc);
    srv_xml_doc_destroy(NULL);
}

TEST(what_is_no_plain_document_is_refused)
{
    static const char *const bad[] = {
        "",
        " ",
        "text",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a>&undefined;</a>",
        "<a>\xff</a>",
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(read_text(bad[i]) == NULL, "\"%s\" was read", bad[i]);
}

TEST(depth_and_number_of_elements_are_bounded)
{
    char text[4096], *at = text;

    for (int i = 0; i < SRV_XML_DEPTH_MAX; i++)
        at += sprintf(at, "<a>");
    for (int i = 0; i < SRV_XML_DEPTH_MAX; i++)
        at += sprintf(at, "</a>");
    struct srv_xml_doc *doc = read_text(text);
    CHECK(doc != NULL);
    srv_xml_doc_destroy(doc);
    at = text;
    for (int i = 0; i <= SRV_XML_DEPTH_MAX; i++)
        at += sprintf(at, "<a>");
    for (int i = 0; i <= SRV_XML_DEPTH_MAX; i++)
        at += sprintf(at, "</a>");
    CHECK(read_text(text) == NULL);
    at = text + sprintf(text, "<r>");
    for (int i = 0; i < 99; i++)
        at += sprintf(at, "<a/>");
    strcpy(at, "</r>");
    doc = read_text(text);
    CHECK(doc != NULL);
    srv_xml_doc_destroy(doc);
    strcpy(at, "<a/></r>");
    CHECK(read_text(text) == NULL);
}

TEST(long_texts_come_whole)
{
    size_t len = 100000;
    char *text = malloc(len + 16);
    memcpy(text, "<a>", 3);
    memset(text + 3, 'x', len);
    memcpy(text + 3 + len, "</a>", 5);
    struct srv_xml_doc *doc = read_text(text);
    CHECK(doc != NULL);
    CHECK_EQ_U64(srv_xml_root(doc)->text.len, len);
    srv_xml_doc_destroy(doc);
    free(text);
}
