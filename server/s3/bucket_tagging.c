#include "server/s3/bucket_tagging.h"

#include <stdlib.h>
#include <string.h>

#include "server/s3/bucket_fact.h"
#include "server/s3/tagset_xml.h"

enum { BODY_MAX = 64 << 10 };

void srv_s3_bucket_tagging_get(const struct srv_s3_call *call)
{
    struct srv_s3_facts *facts = srv_s3_facts_of_call(call);
    struct srv_s3_head head;
    struct srv_xml xml;

    if (facts == NULL)
        return;
    struct srv_str tags = facts->of[SRV_S3_FACT_TAGS];
    if (tags.base == NULL) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_TAGS, NULL);
    } else {
        srv_xml_init(&xml);
        srv_s3_tags_write(&xml, tags);
        srv_s3_head_init(&head, call);
        srv_s3_answer_xml(call, &head, &xml);
    }
    srv_s3_facts_release(facts);
}

static enum srv_s3_code encode(struct srv_s3_body_task *task, uint8_t **bytes_out, size_t *len_out)
{
    struct srv_s3_tagset *set = malloc(sizeof *set);

    if (set == NULL)
        return SRV_S3_SLOW_DOWN;
    srv_s3_tagset_init(set, SRV_S3_TAGS_BUCKET_MAX);
    enum srv_s3_code code = srv_s3_tagset_read(task->bytes, task->len, set);
    if (code == SRV_S3_NONE) {
        *bytes_out = malloc(set->len + 1);
        code = *bytes_out != NULL ? SRV_S3_NONE : SRV_S3_SLOW_DOWN;
    }
    if (code == SRV_S3_NONE) {
        memcpy(*bytes_out, set->bytes, set->len);
        *len_out = set->len;
    }
    free(set);
    return code;
}

void srv_s3_bucket_tagging_put(const struct srv_s3_call *call)
{
    srv_s3_fact_put(call, SRV_S3_FACT_TAGS, BODY_MAX, 204, encode);
}

void srv_s3_bucket_tagging_delete(const struct srv_s3_call *call)
{
    srv_s3_fact_delete(call, SRV_S3_FACT_TAGS);
}
