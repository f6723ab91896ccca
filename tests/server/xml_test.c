/* The XML writer: escaping, growth, ownership. */
#include "server/xml.h"

#include <stdlib.h>

#include "server/utf8.h"
#include "tests/harness/test.h"

static void check_text(const char *text, size_t len, const char *want)
{
    struct srv_xml xml;
    srv_xml_init(&xml);
    srv_xml_element(&xml, "K", (struct srv_str){text, len});
    struct srv_str got = srv_xml_view(&xml);
    const char *begin = memchr(got.base, '\n', got.len);
    CHECK(begin != NULL);
    size_t left = got.len - (size_t)(begin + 1 - got.base);
    CHECK_MSG(left == strlen(want) && memcmp(begin + 1, want, left) == 0, "'%.*s' instead of '%s'",
              (int)left, begin + 1, want);
    srv_xml_fini(&xml);
}

TEST(text_is_escaped)
{
    check_text("", 0, "<K></K>");
    check_text("plain", 5, "<K>plain</K>");
    check_text("a&b<c>d\"e'f", 11, "<K>a&amp;b&lt;c&gt;d&quot;e'f</K>");
    check_text("&&", 2, "<K>&amp;&amp;</K>");
    check_text("a\x01\n\t\x7f", 5, "<K>a&#x1;&#xA;&#x9;&#x7F;</K>");
    check_text("a\0b", 3, "<K>a&#x0;b</K>");
    check_text("\xd0\xba\xf0\x9f\x98\x80", 6, "<K>\xd0\xba\xf0\x9f\x98\x80</K>");
    check_text("a\xff"
               "b\xc3",
               4,
               "<K>a\xef\xbf\xbd"
               "b\xef\xbf\xbd</K>");
}

TEST(documents_grow_and_are_handed_over)
{
    struct srv_xml xml;
    srv_xml_init(&xml);
    srv_xml_open(&xml, "L");
    for (unsigned i = 0; i < 10000; i++)
        srv_xml_element_u64(&xml, "N", i);
    srv_xml_close(&xml, "L");
    size_t len;
    char *bytes = srv_xml_take(&xml, &len);
    CHECK(bytes != NULL && len > 100000);
    CHECK(memcmp(bytes + len - 4, "</L>", 4) == 0);
    free(bytes);
    srv_xml_fini(&xml);
}

TEST(utf8_is_strict)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        {"", true},
        {"abc", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xef\xbf\xbf", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\x80", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xc2", false},
        {"\xc2"
         "a",
         false},
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xed\xbf\xbf", false},
        {"\xe2\x82", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        {"a\xf0\x9f\x98", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_MSG(srv_utf8_valid((struct srv_str){rows[i].text, strlen(rows[i].text)}) ==
                      rows[i].valid,
                  "row %zu", i);
}
