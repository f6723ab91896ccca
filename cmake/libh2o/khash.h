/* Stands in for klib's khash.h, which libh2o's packaged http2_internal.h asks for and no package
 * brings.
 *
 * Only the layout of libh2o's own structures is wanted from that header, and there a hash table is
 * no more than a pointer. Nothing that would look into a table is usable with this.
 */
#pragma once

typedef unsigned khiter_t;

#define khash_t(name) struct kh_##name
#define KHASH_MAP_INIT_INT64(name, type) khash_t(name);
#define kh_get(name, table, key) ((void)(table), (void)(key), 0u)
#define kh_end(table) ((void)(table), 0u)
#define kh_val(table, at) ((void)(table), (void)(at), NULL)
