/* Reading an XML document into a tree, by expat.
 *
 * Owns:    struct srv_xml_doc owns all nodes and their strings.
 * Threads: one document, one thread at a time.
 * Blocks:  never, but long documents take time: more than 64 KiB belongs on a worker.
 * Allocates: nodes and text, within the bounds given.
 *
 * Prefixes and declarations of namespaces are dropped. Documents with a document type declaration
 * are refused: no entity is ever expanded but the five of XML itself.
 */
#pragma once

#include "server/exchange.h"

enum { SRV_XML_DEPTH_MAX = 16 };

struct srv_xml_node {
    struct srv_str name; /* without its prefix */
    struct srv_str text; /* the character data right inside, less outer white space if there are
                            children; base never NULL */
    struct srv_str type; /* of an attribute called type, whatever its prefix; base NULL: none */
    struct srv_xml_node *child;
    struct srv_xml_node *next; /* sibling */
};

struct srv_xml_doc;

/* Reads a document of at most `max_nodes` elements. NULL when it is not well-formed, too deep or
 * too large, or without memory. */
struct srv_xml_doc *srv_xml_doc_create(const char *bytes, size_t len, size_t max_nodes);
/* NULL is allowed. */
void srv_xml_doc_destroy(struct srv_xml_doc *doc);

/* The outermost element. */
const struct srv_xml_node *srv_xml_root(const struct srv_xml_doc *doc);

bool srv_xml_is(const struct srv_xml_node *node, const char *name);
/* The first child of that name; NULL when there is none, or `node` is NULL. */
const struct srv_xml_node *srv_xml_child(const struct srv_xml_node *node, const char *name);
/* Its text; base NULL when there is no such child. */
struct srv_str srv_xml_child_text(const struct srv_xml_node *node, const char *name);
