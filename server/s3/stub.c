#include "server/s3/stub.h"

#include <string.h>

#include "server/s3/bucket_fact.h"
#include "server/s3/buckets.h"
#include "server/xml.h"

static const struct {
    enum srv_s3_sub sub;
    enum srv_s3_code code;
    const char *document;
} stubs[] = {
#define X(sub, code, document) {SRV_S3_SUB_##sub, SRV_S3_##code, document},
#include "server/s3/stub.def"
#undef X
};

static bool has_bucket(const struct srv_s3_call *call)
{
    bool exists = srv_s3_bucket_exists(call->s3->buckets, call->route.bucket);

    if (!exists)
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
    return exists;
}

static void answer(const struct srv_s3_call *call, const char *root, const char *child,
                   struct srv_str text)
{
    char open[128];
    struct srv_s3_head head;
    struct srv_xml xml;

    srv_xml_init(&xml);
    strcpy(open, root);
    strcat(open, SRV_S3_XMLNS);
    srv_xml_open(&xml, open);
    if (child != NULL)
        srv_xml_element(&xml, child, text);
    else if (text.len > 0)
        srv_xml_text(&xml, text);
    srv_xml_close(&xml, root);
    srv_s3_head_init(&head, call);
    srv_s3_answer_xml(call, &head, &xml);
}

void srv_s3_stub_get(const struct srv_s3_call *call)
{
    size_t i = 0;

    if (!has_bucket(call))
        return;
    while (stubs[i].sub != call->route.sub)
        i++;
    if (stubs[i].code != SRV_S3_NONE)
        srv_s3_fail(call, stubs[i].code, NULL);
    else
        answer(call, stubs[i].document, NULL, (struct srv_str){NULL, 0});
}

void srv_s3_stub_delete(const struct srv_s3_call *call)
{
    struct srv_s3_head head;

    if (!has_bucket(call))
        return;
    srv_s3_head_init(&head, call);
    srv_s3_answer_empty(call, 204, &head, SRV_LENGTH_UNKNOWN);
}

void srv_s3_request_payment_get(const struct srv_s3_call *call)
{
    if (has_bucket(call))
        answer(call, "RequestPaymentConfiguration", "Payer", srv_s3_str("BucketOwner"));
}

/* What the bucket was made for, else the region of all of them; S3's first region has no name here.
 */
void srv_s3_bucket_location_get(const struct srv_s3_call *call)
{
    char region[SRV_S3_REGION_MAX];
    struct srv_s3_facts *facts = srv_s3_facts_of_call(call);

    if (facts == NULL)
        return;
    srv_s3_region(call->s3, region);
    struct srv_str location = facts->of[SRV_S3_FACT_LOCATION];
    if (location.base == NULL)
        location = srv_s3_str(strcmp(region, "us-east-1") == 0 ? "" : region);
    answer(call, "LocationConstraint", NULL, location);
    srv_s3_facts_release(facts);
}

void srv_s3_preflight(const struct srv_s3_call *call)
{
    if (srv_request_field(call->req, "origin", NULL) == NULL ||
        srv_request_field(call->req, "access-control-request-method", NULL) == NULL)
        srv_s3_fail(call, SRV_S3_BAD_REQUEST,
                    "Insufficient information. Origin and Access-Control-Request-Method are "
                    "needed.");
    else
        srv_s3_fail(call, SRV_S3_ACCESS_FORBIDDEN, NULL);
}
