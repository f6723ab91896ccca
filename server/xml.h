/* A small writer of XML into a growing buffer, with everything escaped that has to be.
 *
 * Owns:    struct srv_xml owns its bytes until srv_xml_fini or srv_xml_take.
 * Threads: one writer, one thread.
 * Blocks:  never.
 * Allocates: by doubling; the first failure sticks and is reported at the end.
 */
#pragma once

#include "server/exchange.h"

struct srv_xml {
    char *bytes_;
    size_t len_;
    size_t capacity_;
    bool failed_;
};

/* Begins a document with the XML declaration. */
void srv_xml_init(struct srv_xml *xml);
/* Frees what is still held; allowed after srv_xml_take. */
void srv_xml_fini(struct srv_xml *xml);

/* <name>; `name` may carry attributes and is written as it is. */
void srv_xml_open(struct srv_xml *xml, const char *name);
/* </name> */
void srv_xml_close(struct srv_xml *xml, const char *name);

/* Character data. Markup characters and controls are written as references, so that any UTF-8 key
 * comes through; bytes that are no UTF-8 become U+FFFD, for a document must never be unreadable as
 * a whole. */
void srv_xml_text(struct srv_xml *xml, struct srv_str text);

/* <name>text</name> */
void srv_xml_element(struct srv_xml *xml, const char *name, struct srv_str text);
/* The same with a terminated string. */
void srv_xml_element_z(struct srv_xml *xml, const char *name, const char *text);
/* The same with a decimal number. */
void srv_xml_element_u64(struct srv_xml *xml, const char *name, uint64_t number);

/* Appends what another writer holds that was zeroed instead of begun. */
void srv_xml_join(struct srv_xml *xml, const struct srv_xml *part);

/* The document so far, lent until the next call; {NULL, 0} when memory ran out. */
struct srv_str srv_xml_view(const struct srv_xml *xml);
/* Hands the bytes over to the caller, who frees them; NULL, and 0 in *len_out, when memory ran out.
 */
char *srv_xml_take(struct srv_xml *xml, size_t *len_out);
