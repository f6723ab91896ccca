/* Any bytes as a target and as header values: routing, query scanning, ranges, dates, ETag lists
 * and escaping stay inside. */
#include <stdlib.h>
#include <string.h>

#include "server/etag_list.h"
#include "server/http_date.h"
#include "server/range.h"
#include "server/s3/route.h"
#include "server/target.h"
#include "server/uri.h"
#include "server/utf8.h"
#include "server/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static void check_route(struct srv_str target)
{
    struct srv_request req = {.method = SRV_GET};
    struct srv_s3_route route;
    srv_target_split(target, &req.path, &req.query);
    srv_s3_route(&req, (struct srv_str){NULL, 0}, &route);
    require(route.bucket.len <= SRV_S3_BUCKET_MAX && route.key.len <= SRV_S3_KEY_MAX);
    if (route.op == SRV_S3_OP_GET_OBJECT)
        require(srv_s3_bucket_valid(route.bucket) && srv_s3_key_check(route.key) == SRV_S3_NONE);
    struct srv_str rest = req.query, name, value;
    size_t items = 0;
    while (srv_query_next(&rest, &name, &value))
        items++;
    require(items <= req.query.len);
}

static void check_values(struct srv_str text)
{
    int64_t date_s;
    if (srv_http_date_parse(text, 1700000000, &date_s)) {
        char written[SRV_HTTP_DATE_LEN + 1];
        srv_http_date_write(date_s, written);
    }
    struct srv_range range = srv_range_decide(&text, 1000);
    require(range.kind != SRV_RANGE_PART || (range.first <= range.last && range.last < 1000));
    (void)srv_etag_list_match(text, (struct srv_str){"abc", 3}, SRV_ETAG_WEAK);
    (void)srv_authority_valid(text);
}

static void check_xml(struct srv_str text)
{
    struct srv_xml xml;
    srv_xml_init(&xml);
    srv_xml_text(&xml, text);
    struct srv_str got = srv_xml_view(&xml);
    require(srv_utf8_valid(got));
    for (size_t i = 39; i < got.len; i++) /* 39: after the declaration */
        require((unsigned char)got.base[i] >= 0x20 && got.base[i] != '<');
    srv_xml_fini(&xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct srv_str text = {(const char *)data, size};
    check_route(text);
    check_values(text);
    check_xml(text);
    return 0;
}
