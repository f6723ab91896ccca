#include "server/s3/facts.h"

#include <stdlib.h>
#include <string.h>

#include "server/s3/lifecycle.h"

enum { VERSION = 1, ITEM_HEADER_LEN = 5, TAG_OPTIONAL = 0x80 };

static uint32_t load_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool take_item(struct srv_s3_facts *facts, unsigned tag, const uint8_t *bytes, size_t len)
{
    if (tag >= TAG_OPTIONAL)
        return true;
    if (tag == 0 || tag >= SRV_S3_FACT_COUNT || facts->of[tag].base != NULL)
        return false;
    facts->of[tag] = (struct srv_str){(const char *)bytes, len};
    return true;
}

static bool decode(struct srv_s3_facts *facts)
{
    const uint8_t *at = facts->bytes, *end = at + facts->len;

    if (facts->len == 0)
        return true;
    if (*at++ != VERSION)
        return false;
    while (at < end) {
        if (end - at < ITEM_HEADER_LEN)
            return false;
        unsigned tag = at[0];
        uint32_t len = load_u32(at + 1);
        at += ITEM_HEADER_LEN;
        if (len > (size_t)(end - at) || !take_item(facts, tag, at, len))
            return false;
        at += len;
    }
    return true;
}

struct srv_s3_facts *srv_s3_facts_create(const void *bytes, size_t len)
{
    if (len > SRV_S3_FACTS_BYTES_MAX)
        return NULL;
    struct srv_s3_facts *facts = calloc(1, sizeof *facts + len);
    if (facts == NULL)
        return NULL;
    atomic_init(&facts->refs_, 1);
    facts->len = len;
    if (len > 0)
        memcpy(facts->bytes, bytes, len);
    if (!decode(facts)) {
        free(facts);
        return NULL;
    }
    struct srv_str tenant = facts->of[SRV_S3_FACT_TENANT];
    if (tenant.len == 2)
        facts->tenant = (uint16_t)((uint8_t)tenant.base[0] | (uint8_t)tenant.base[1] << 8);
    struct srv_str lifecycle = facts->of[SRV_S3_FACT_LIFECYCLE];
    enum srv_s3_code code; /* it was checked when it was stored */
    if (lifecycle.base != NULL)
        facts->lifecycle = srv_s3_lifecycle_create(lifecycle.base, lifecycle.len, &code);
    return facts;
}

static uint8_t *put_item(uint8_t *at, unsigned tag, struct srv_str value)
{
    uint32_t len = (uint32_t)value.len;
    const uint8_t header[ITEM_HEADER_LEN] = {(uint8_t)tag, (uint8_t)len, (uint8_t)(len >> 8),
                                             (uint8_t)(len >> 16), (uint8_t)(len >> 24)};

    memcpy(at, header, sizeof header);
    if (len > 0)
        memcpy(at + ITEM_HEADER_LEN, value.base, len);
    return at + ITEM_HEADER_LEN + len;
}

struct srv_s3_facts *srv_s3_facts_with(const struct srv_s3_facts *facts, enum srv_s3_fact fact,
                                       struct srv_str value)
{
    struct srv_str of[SRV_S3_FACT_COUNT];
    size_t len = 1;

    memcpy(of, facts->of, sizeof of);
    of[fact] = value;
    for (unsigned tag = 1; tag < SRV_S3_FACT_COUNT; tag++) {
        if (of[tag].len > SRV_S3_FACTS_BYTES_MAX)
            return NULL;
        len += of[tag].base != NULL ? ITEM_HEADER_LEN + of[tag].len : 0;
    }
    uint8_t *bytes = len <= SRV_S3_FACTS_BYTES_MAX ? malloc(len) : NULL;
    if (bytes == NULL)
        return NULL;
    uint8_t *at = bytes;
    *at++ = VERSION;
    for (unsigned tag = 1; tag < SRV_S3_FACT_COUNT; tag++) {
        if (of[tag].base != NULL)
            at = put_item(at, tag, of[tag]);
    }
    struct srv_s3_facts *changed = srv_s3_facts_create(bytes, len);
    free(bytes);
    return changed;
}

struct srv_s3_facts *srv_s3_facts_acquire(struct srv_s3_facts *facts)
{
    atomic_fetch_add_explicit(&facts->refs_, 1, memory_order_relaxed);
    return facts;
}

void srv_s3_facts_release(struct srv_s3_facts *facts)
{
    /* Whoever frees must see all that other holders did with it. */
    if (facts != NULL && atomic_fetch_sub_explicit(&facts->refs_, 1, memory_order_acq_rel) == 1) {
        srv_s3_lifecycle_destroy(facts->lifecycle);
        free(facts);
    }
}
