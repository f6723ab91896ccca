#include "server/xml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/utf8.h"

enum { CAPACITY_MIN = 512 };

static void append(struct srv_xml *xml, const char *bytes, size_t len)
{
    if (xml->failed_ || len == 0)
        return;
    if (len > xml->capacity_ - xml->len_) {
        size_t capacity = xml->capacity_ == 0 ? CAPACITY_MIN : xml->capacity_;
        while (capacity - xml->len_ < len) {
            if (capacity > SIZE_MAX / 2) {
                xml->failed_ = true;
                return;
            }
            capacity *= 2;
        }
        char *grown = realloc(xml->bytes_, capacity);
        if (grown == NULL) {
            xml->failed_ = true;
            return;
        }
        xml->bytes_ = grown;
        xml->capacity_ = capacity;
    }
    memcpy(xml->bytes_ + xml->len_, bytes, len);
    xml->len_ += len;
}

static void append_z(struct srv_xml *xml, const char *text)
{
    append(xml, text, strlen(text));
}

void srv_xml_init(struct srv_xml *xml)
{
    *xml = (struct srv_xml){0};
    append_z(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

void srv_xml_fini(struct srv_xml *xml)
{
    free(xml->bytes_);
    *xml = (struct srv_xml){0};
}

void srv_xml_open(struct srv_xml *xml, const char *name)
{
    append_z(xml, "<");
    append_z(xml, name);
    append_z(xml, ">");
}

void srv_xml_close(struct srv_xml *xml, const char *name)
{
    append_z(xml, "</");
    append_z(xml, name);
    append_z(xml, ">");
}

/* The reference that stands for an ASCII character, or "" if it can stand for itself. `buffer` is
 * scratch space. */
static const char *reference(unsigned char c, char buffer[8])
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default:
        if (c >= 0x20 && c != 0x7f)
            return "";
        snprintf(buffer, 8, "&#x%X;", (unsigned)c);
        return buffer;
    }
}

void srv_xml_text(struct srv_xml *xml, struct srv_str text)
{
    char buffer[8];
    size_t plain = 0; /* bytes before text.base that were passed over and can go out as they are */
    while (text.len > 0) {
        size_t n = srv_utf8_sequence(text);
        const char *instead = n == 0   ? "\xef\xbf\xbd"
                              : n == 1 ? reference((unsigned char)text.base[0], buffer)
                                       : "";
        size_t step = n == 0 ? 1 : n;
        if (instead[0] != '\0') {
            append(xml, text.base - plain, plain);
            append_z(xml, instead);
            plain = 0;
        } else {
            plain += step;
        }
        text.base += step;
        text.len -= step;
    }
    if (plain != 0)
        append(xml, text.base - plain, plain);
}

void srv_xml_element(struct srv_xml *xml, const char *name, struct srv_str text)
{
    srv_xml_open(xml, name);
    srv_xml_text(xml, text);
    srv_xml_close(xml, name);
}

void srv_xml_element_z(struct srv_xml *xml, const char *name, const char *text)
{
    srv_xml_element(xml, name, (struct srv_str){text, strlen(text)});
}

void srv_xml_element_u64(struct srv_xml *xml, const char *name, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    srv_xml_element_z(xml, name, digits);
}

void srv_xml_join(struct srv_xml *xml, const struct srv_xml *part)
{
    append(xml, part->bytes_, part->len_);
    xml->failed_ = xml->failed_ || part->failed_;
}

struct srv_str srv_xml_view(const struct srv_xml *xml)
{
    return xml->failed_ ? (struct srv_str){NULL, 0} : (struct srv_str){xml->bytes_, xml->len_};
}

char *srv_xml_take(struct srv_xml *xml, size_t *len_out)
{
    *len_out = 0;
    char *bytes = NULL;
    if (xml->failed_) {
        srv_xml_fini(xml);
    } else {
        /* It may be kept for long; what doubling has left over need not be. */
        bytes = xml->len_ > 0 ? realloc(xml->bytes_, xml->len_) : NULL;
        if (bytes == NULL)
            bytes = xml->bytes_;
        *len_out = xml->len_;
        *xml = (struct srv_xml){0};
    }
    return bytes;
}
