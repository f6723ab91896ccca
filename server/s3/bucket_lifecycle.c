#include "server/s3/bucket_lifecycle.h"

#include "server/s3/bucket_fact.h"
#include "server/s3/lifecycle.h"
#include "server/xml.h"

void srv_s3_bucket_lifecycle_get(const struct srv_s3_call *call)
{
    struct srv_s3_facts *facts = srv_s3_facts_of_call(call);
    struct srv_s3_head head;
    struct srv_xml xml;

    if (facts == NULL)
        return;
    if (facts->lifecycle == NULL) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_LIFECYCLE, NULL);
    } else {
        srv_xml_init(&xml);
        srv_s3_lifecycle_write(facts->lifecycle, &xml);
        srv_s3_head_init(&head, call);
        srv_s3_answer_xml(call, &head, &xml);
    }
    srv_s3_facts_release(facts);
}

static enum srv_s3_code encode(struct srv_s3_body_task *task, uint8_t **bytes_out, size_t *len_out)
{
    enum srv_s3_code code;
    struct srv_xml xml;
    struct srv_s3_lifecycle *lifecycle = srv_s3_lifecycle_create(task->bytes, task->len, &code);

    if (lifecycle == NULL)
        return code;
    srv_xml_init(&xml);
    srv_s3_lifecycle_write(lifecycle, &xml);
    srv_s3_lifecycle_destroy(lifecycle);
    *bytes_out = (uint8_t *)srv_xml_take(&xml, len_out);
    if (*bytes_out == NULL)
        return SRV_S3_SLOW_DOWN;
    task->message = "The configuration is longer than can be kept: 32 KiB.";
    return *len_out <= SRV_S3_LIFECYCLE_BYTES_MAX ? SRV_S3_NONE : SRV_S3_INVALID_REQUEST;
}

void srv_s3_bucket_lifecycle_put(const struct srv_s3_call *call)
{
    srv_s3_fact_put(call, SRV_S3_FACT_LIFECYCLE, 4 * SRV_S3_LIFECYCLE_BYTES_MAX, 200, encode);
}

void srv_s3_bucket_lifecycle_delete(const struct srv_s3_call *call)
{
    srv_s3_fact_delete(call, SRV_S3_FACT_LIFECYCLE);
}
