/* By what objects can be purged in groups: their bucket, the folders of their key, and tags.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Labels of the store (api/gyre_pool.h), all of one bucket: GYRE_LABEL_PREFIX of the bucket's name,
 * a zero byte, and the key up to and with one of its slashes, or nothing; GYRE_LABEL_TAG of the
 * name, a zero byte and the tag. Tags are kept with the object as lines.
 */
#pragma once

#include "server/s3/meta.h"

#include "api/gyre.h"

enum {
    SRV_S3_CACHE_TAGS_MAX = 16,     /* of one object */
    SRV_S3_CACHE_TAG_LEN_MAX = 256, /* bytes */
    SRV_S3_CACHE_TAGS_BYTES = 1024, /* all of them, as they are kept */
    SRV_S3_PURGE_DEPTH_MAX = GYRE_LABELS_MAX - 1 - SRV_S3_CACHE_TAGS_MAX, /* slashes */
};

struct srv_s3_labels {
    uint32_t n;
    uint64_t at[GYRE_LABELS_MAX];
};

/* All labels of an object. Folders deeper than SRV_S3_PURGE_DEPTH_MAX have none. */
void srv_s3_labels_of(const struct srv_s3_meta *meta, struct srv_s3_labels *labels_out);

/* Adds the tags of Surrogate-Key (with spaces between them) and Cache-Tag (with commas) to `text`,
 * which holds *len_inout bytes. False when there are too many, or one is too long. */
bool srv_s3_cache_tags_read(const struct srv_request *req, char text[SRV_S3_CACHE_TAGS_BYTES],
                            size_t *len_inout);
/* Adds one tag; one that is there already is not added. */
bool srv_s3_cache_tags_add(struct srv_str tag, char text[SRV_S3_CACHE_TAGS_BYTES],
                           size_t *len_inout);

/* The label of a tag. */
uint64_t srv_s3_label_of_tag(struct srv_str bucket, struct srv_str tag);
/* The label of a folder, which ends with a slash, or of the whole bucket (nothing). */
uint64_t srv_s3_label_of_prefix(struct srv_str bucket, struct srv_str prefix);

/* Whether objects below the prefix have a label for it: it is empty, or ends with a slash that is
 * not too deep. */
bool srv_s3_prefix_has_label(struct srv_str prefix);

/* Takes the next tag off the front of the lines; false at the end. */
bool srv_s3_cache_tags_next(struct srv_str *rest_inout, struct srv_str *tag_out);
