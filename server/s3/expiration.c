#include "server/s3/expiration.h"

#include <stdio.h>

#include "server/http_date.h"
#include "server/s3/buckets.h"
#include "server/s3/lifecycle.h"

static void add(struct srv_s3_head *head, const struct srv_s3_lifecycle *lifecycle,
                const struct srv_s3_meta *meta, uint64_t length, char *text)
{
    int64_t expiry_s;
    char date[SRV_HTTP_DATE_LEN + 1];
    const struct srv_s3_lifecycle_rule *rule =
        srv_s3_lifecycle_of_object(lifecycle, meta, length, &expiry_s);

    if (rule == NULL)
        return;
    srv_http_date_write(expiry_s, date);
    int len = snprintf(text, SRV_S3_EXPIRATION_MAX, "expiry-date=\"%s\", rule-id=\"%.*s\"", date,
                       (int)rule->id.len, rule->id.base);
    /* An id is text of the client's: what could not stand in a field is not put there. */
    for (int i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] == 0x7f)
            return;
    }
    srv_s3_head_add(head, "x-amz-expiration", (struct srv_str){text, (size_t)len});
}

void srv_s3_head_add_expiration(struct srv_s3_head *head, const struct srv_s3_call *call,
                                const struct srv_s3_meta *meta, uint64_t length,
                                char text[SRV_S3_EXPIRATION_MAX])
{
    struct srv_s3_buckets *buckets = call->s3->buckets;

    if (!srv_s3_buckets_have_rules(buckets))
        return;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, call->route.bucket);
    if (bucket == NULL)
        return;
    struct srv_s3_facts *facts = srv_s3_bucket_facts(buckets, bucket);
    if (facts->lifecycle != NULL)
        add(head, facts->lifecycle, meta, length, text);
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
}
