#include "server/s3/list_pages.h"

#include <string.h>

struct walk {
    const struct srv_list_query *query;
    const struct srv_list_rows *rows;
    const struct srv_list_sink *sink;
    struct srv_list_page *page;
};

static bool begins_with(struct srv_str text, struct srv_str prefix)
{
    return text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.base, prefix.base, prefix.len) == 0);
}

static int compare(struct srv_str a, struct srv_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.base, b.base, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The common prefix that a key is listed as; empty if it is listed itself. */
static struct srv_str group_of(const struct srv_list_query *query, struct srv_str key)
{
    struct srv_str prefix = query->prefix, delimiter = query->delimiter;

    if (delimiter.len == 0 || !begins_with(key, prefix))
        return (struct srv_str){NULL, 0};
    const char *at =
        memmem(key.base + prefix.len, key.len - prefix.len, delimiter.base, delimiter.len);
    if (at == NULL)
        return (struct srv_str){NULL, 0};
    return (struct srv_str){key.base, (size_t)(at - key.base) + delimiter.len};
}

/* No key is longer than that, so what is cut off could only have kept out what is not there. */
static bool seek(const struct walk *walk, struct srv_str key, bool is_after)
{
    if (key.len > SRV_S3_KEY_MAX)
        key.len = SRV_S3_KEY_MAX;
    return walk->rows->seek(walk->rows->data, key, is_after);
}

/* Goes to the first key that does not begin with `group`. */
static bool skip(const struct walk *walk, struct srv_str group)
{
    char next[SRV_S3_KEY_MAX];
    size_t len = group.len <= sizeof next ? group.len : sizeof next;

    memcpy(next, group.base, len);
    while (len > 0 && (uint8_t)next[len - 1] == 0xff)
        len--;
    if (len == 0) { /* nothing comes after such a group */
        memset(next, 0xff, sizeof next);
        return seek(walk, (struct srv_str){next, sizeof next}, true);
    }
    next[len - 1]++;
    return seek(walk, (struct srv_str){next, len}, false);
}

/* A marker stands for what was listed up to it. So a group that it is in, or the name of, was. */
static bool begin(const struct walk *walk)
{
    const struct srv_list_query *query = walk->query;
    struct srv_str from = query->from, prefix = query->prefix;

    if (from.len == 0 || compare(from, prefix) < 0)
        return seek(walk, prefix, false);
    struct srv_str group = group_of(query, from);
    if (group.len > 0 && !query->is_exact)
        return skip(walk, group);
    return seek(walk, from, true);
}

static void remember(struct srv_list_page *page, struct srv_str last)
{
    page->last_len = last.len <= sizeof page->last ? last.len : sizeof page->last;
    memcpy(page->last, last.base, page->last_len);
}

/* Takes one row; false when the page is full. */
static bool take(const struct walk *walk, struct srv_str key, const struct srv_name_row *row)
{
    struct srv_list_page *page = walk->page;
    struct srv_str group = group_of(walk->query, key);

    if (page->n_keys + page->n_prefixes == walk->query->max_keys) {
        page->is_truncated = true;
        return false;
    }
    if (group.len == 0) {
        page->n_keys++;
        remember(page, key);
        walk->sink->key(walk->sink->data, key, row);
        return true;
    }
    page->n_prefixes++;
    remember(page, group);
    walk->sink->prefix(walk->sink->data, group);
    page->is_failed = !skip(walk, group);
    return !page->is_failed;
}

void srv_list_page(const struct srv_list_query *query, const struct srv_list_rows *rows,
                   const struct srv_list_sink *sink, struct srv_list_page *page_out)
{
    struct walk walk = {query, rows, sink, page_out};
    const struct srv_name_row *row;
    struct srv_str key;

    page_out->n_keys = page_out->n_prefixes = page_out->last_len = 0;
    page_out->is_truncated = page_out->is_exact = page_out->is_failed = false;
    if (query->max_keys == 0)
        return;
    page_out->is_failed = !begin(&walk);
    while (!page_out->is_failed) {
        switch (rows->next(rows->data, &row, &key)) {
        case SRV_LIST_ROW: break;
        case SRV_LIST_END: return;
        case SRV_LIST_FAILED: page_out->is_failed = true; return;
        case SRV_LIST_SPENT:
            page_out->is_truncated = page_out->is_exact = true;
            remember(page_out, key);
            return;
        }
        if (!begins_with(key, query->prefix) || !take(&walk, key, row))
            return;
    }
}
