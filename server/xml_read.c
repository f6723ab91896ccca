#include "server/xml_read.h"

#include <expat.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BLOCK = 16 << 10 };

/* Memory that is freed all at once. */
struct block {
    struct block *next;
    size_t used;
    size_t size;
    max_align_t bytes[];
};

struct srv_xml_doc {
    struct srv_xml_node *root;
    struct block *blocks;
};

/* An element that is still open. */
struct frame {
    struct srv_xml_node *node;
    struct srv_xml_node *last_child;
    size_t text_begin; /* in the reader's text; what is inside of children comes after it */
};

struct reader {
    struct srv_xml_doc *doc;
    XML_Parser parser;
    size_t left; /* elements that may still come */
    int depth;
    bool is_failed;
    struct frame frames[SRV_XML_DEPTH_MAX];
    char *text; /* character data of all open elements, innermost last */
    size_t text_len;
    size_t text_capacity;
};

static void *take(struct srv_xml_doc *doc, size_t len)
{
    size_t size = (len + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct block *block = doc->blocks;

    if (block == NULL || size > block->size - block->used) {
        size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
        block = malloc(sizeof *block + room);
        if (block == NULL)
            return NULL;
        *block = (struct block){.next = doc->blocks, .size = room};
        doc->blocks = block;
    }
    void *memory = (char *)block->bytes + block->used;
    block->used += size;
    return memory;
}

static void fail(struct reader *r)
{
    r->is_failed = true;
    XML_StopParser(r->parser, XML_FALSE);
}

static bool keep(struct reader *r, const char *bytes, size_t len, struct srv_str *kept_out)
{
    char *copy = take(r->doc, len + 1);

    *kept_out = (struct srv_str){"", 0};
    if (copy == NULL)
        return false;
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    *kept_out = (struct srv_str){copy, len};
    return true;
}

static const char *local_name(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon != NULL ? colon + 1 : name;
}

static struct srv_xml_node *make_node(struct reader *r, const char *name, const char **attributes)
{
    struct srv_xml_node *node = take(r->doc, sizeof *node);

    if (node == NULL)
        return NULL;
    *node = (struct srv_xml_node){.text = {"", 0}};
    name = local_name(name);
    if (!keep(r, name, strlen(name), &node->name))
        return NULL;
    for (; *attributes != NULL; attributes += 2) {
        if (strcmp(local_name(attributes[0]), "type") == 0 &&
            !keep(r, attributes[1], strlen(attributes[1]), &node->type))
            return NULL;
    }
    return node;
}

static void on_open(void *data, const char *name, const char **attributes)
{
    struct reader *r = data;

    if (r->depth == SRV_XML_DEPTH_MAX || r->left == 0) {
        fail(r);
        return;
    }
    r->left--;
    struct srv_xml_node *node = make_node(r, name, attributes);
    if (node == NULL) {
        fail(r);
        return;
    }
    struct frame *parent = r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
    if (parent == NULL)
        r->doc->root = node;
    else if (parent->last_child == NULL)
        parent->node->child = node;
    else
        parent->last_child->next = node;
    if (parent != NULL)
        parent->last_child = node;
    r->frames[r->depth++] = (struct frame){node, NULL, r->text_len};
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void on_close(void *data, const char *name)
{
    struct reader *r = data;
    struct frame *frame = &r->frames[--r->depth];
    size_t begin = frame->text_begin, end = r->text_len;

    (void)name;
    r->text_len = frame->text_begin;
    while (frame->last_child != NULL && begin < end && is_space(r->text[begin]))
        begin++;
    while (frame->last_child != NULL && begin < end && is_space(r->text[end - 1]))
        end--;
    if (end > begin && !keep(r, r->text + begin, end - begin, &frame->node->text))
        fail(r);
}

static void on_text(void *data, const char *bytes, int len)
{
    struct reader *r = data;
    size_t need = r->text_len + (size_t)len;

    if (need > r->text_capacity) {
        size_t capacity = need < ARENA_BLOCK ? ARENA_BLOCK : 2 * need;
        char *grown = realloc(r->text, capacity);
        if (grown == NULL) {
            fail(r);
            return;
        }
        r->text = grown;
        r->text_capacity = capacity;
    }
    memcpy(r->text + r->text_len, bytes, (size_t)len);
    r->text_len = need;
}

static void on_doctype(void *data, const char *name, const char *system, const char *public,
                       int has_internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_internal;
    fail(data);
}

struct srv_xml_doc *srv_xml_doc_create(const char *bytes, size_t len, size_t max_nodes)
{
    struct reader r = {.left = max_nodes};

    r.doc = calloc(1, sizeof *r.doc);
    r.parser = XML_ParserCreate("UTF-8");
    r.is_failed = r.doc == NULL || r.parser == NULL || len > INT_MAX;
    if (!r.is_failed) {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, on_open, on_close);
        XML_SetCharacterDataHandler(r.parser, on_text);
        XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
        if (XML_Parse(r.parser, bytes, (int)len, XML_TRUE) != XML_STATUS_OK)
            r.is_failed = true;
    }
    if (r.parser != NULL)
        XML_ParserFree(r.parser);
    free(r.text);
    if (r.is_failed) {
        srv_xml_doc_destroy(r.doc);
        r.doc = NULL;
    }
    return r.doc;
}

void srv_xml_doc_destroy(struct srv_xml_doc *doc)
{
    if (doc == NULL)
        return;
    for (struct block *block = doc->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(doc);
}

const struct srv_xml_node *srv_xml_root(const struct srv_xml_doc *doc)
{
    return doc->root;
}

bool srv_xml_is(const struct srv_xml_node *node, const char *name)
{
    return node != NULL && node->name.len == strlen(name) &&
           memcmp(node->name.base, name, node->name.len) == 0;
}

const struct srv_xml_node *srv_xml_child(const struct srv_xml_node *node, const char *name)
{
    const struct srv_xml_node *at = node != NULL ? node->child : NULL;

    while (at != NULL && !srv_xml_is(at, name))
        at = at->next;
    return at;
}

struct srv_str srv_xml_child_text(const struct srv_xml_node *node, const char *name)
{
    const struct srv_xml_node *child = srv_xml_child(node, name);

    return child != NULL ? child->text : (struct srv_str){NULL, 0};
}
