/* Any bytes as a request head, whole and in two pieces: the answers agree and all spans lie inside.
 */
#include "server/head1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static void check_span(struct srv_head1_span span, uint32_t len)
{
    require(span.off <= len && span.len <= len - span.off);
}

static void check_head(const struct srv_head1 *head)
{
    check_span(head->method, head->head_len);
    check_span(head->target, head->head_len);
    check_span(head->path, head->head_len);
    check_span(head->query, head->head_len);
    check_span(head->authority, head->head_len);
    for (int i = 0; i < head->n_fields; i++) {
        check_span(head->fields[i].name, head->head_len);
        check_span(head->fields[i].value, head->head_len);
        require(head->fields[i].name.len > 0);
    }
    require(head->content_length_at < head->n_fields &&
            head->transfer_encoding_at < head->n_fields);
    require(head->content_length_at < 0 || head->transfer_encoding_at < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct srv_head1 whole, split;
    if (size < 2)
        return 0;
    size_t cut = (size_t)data[0] << 8 | data[1];
    const char *bytes = (const char *)data + 2;
    size -= 2;
    srv_head1_init(&whole);
    enum srv_head1_result result = srv_head1_feed(&whole, bytes, size);
    require(result != SRV_HEAD1_DONE || whole.head_len <= size);
    require((result == SRV_HEAD1_REJECTED) == (whole.status != 0));
    if (result == SRV_HEAD1_DONE)
        check_head(&whole);

    /* The limits may notice an endless line one piece earlier than its bad byte, so statuses may
     * differ, but not the verdict. */
    srv_head1_init(&split);
    enum srv_head1_result again = SRV_HEAD1_MORE;
    if (cut < size)
        again = srv_head1_feed(&split, bytes, cut);
    if (again == SRV_HEAD1_MORE)
        again = srv_head1_feed(&split, bytes, size);
    require(again == result);
    require(result != SRV_HEAD1_DONE || split.head_len == whole.head_len);
    require(result != SRV_HEAD1_DONE || split.content_length == whole.content_length);
    return 0;
}
