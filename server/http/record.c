#include "server/http/record.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 72, FIELD_BYTES = 6, NAME_MAX_BYTES = UINT16_MAX };

static const char MAGIC[4] = {'G', 'H', 'R', '1'};

static void put_le(uint8_t *at, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *at, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Where each number of the facts lies. */
static int64_t *const *numbers_of(struct srv_http_facts *facts, int64_t *numbers[6])
{
    numbers[0] = &facts->received_ms;
    numbers[1] = &facts->initial_age_ms;
    numbers[2] = &facts->lifetime_s;
    numbers[3] = &facts->while_revalidate_s;
    numbers[4] = &facts->if_error_s;
    numbers[5] = &facts->date_s;
    return numbers;
}

void *srv_http_record_write(enum srv_http_record_kind kind, const struct srv_http_facts *facts,
                            uint64_t generation, struct srv_http_fields fields, size_t *len_out)
{
    struct srv_http_facts copy = *facts;
    int64_t *numbers[6];
    size_t len = HEAD_BYTES;
    *len_out = 0;
    if (fields.n > SRV_HTTP_FIELDS_MAX)
        return NULL;
    for (size_t i = 0; i < fields.n; i++) {
        if (fields.at[i].name.len > NAME_MAX_BYTES || fields.at[i].value.len > UINT32_MAX)
            return NULL;
        len += FIELD_BYTES + fields.at[i].name.len + fields.at[i].value.len;
    }
    uint8_t *bytes = calloc(1, len);
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, MAGIC, sizeof MAGIC);
    put_le(bytes + 4, (uint64_t)facts->status, 2);
    bytes[6] = (uint8_t)kind;
    put_le(bytes + 8, facts->flags, 4);
    put_le(bytes + 12, fields.n, 4);
    numbers_of(&copy, numbers);
    for (size_t i = 0; i < 6; i++)
        put_le(bytes + 16 + 8 * i, (uint64_t)*numbers[i], 8);
    put_le(bytes + 64, generation, 8);
    uint8_t *at = bytes + HEAD_BYTES;
    for (size_t i = 0; i < fields.n; i++) {
        struct srv_str name = fields.at[i].name, value = fields.at[i].value;
        put_le(at, name.len, 2);
        put_le(at + 2, value.len, 4);
        memcpy(at + FIELD_BYTES, name.base, name.len);
        if (value.len > 0)
            memcpy(at + FIELD_BYTES + name.len, value.base, value.len);
        at += FIELD_BYTES + name.len + value.len;
    }
    *len_out = len;
    return bytes;
}

static bool read_fields(const uint8_t *at, const uint8_t *end, size_t n,
                        struct srv_http_record *record)
{
    for (size_t i = 0; i < n; i++) {
        if ((size_t)(end - at) < FIELD_BYTES)
            return false;
        size_t name_len = (size_t)get_le(at, 2), value_len = (size_t)get_le(at + 2, 4);
        at += FIELD_BYTES;
        if (name_len == 0 || name_len > (size_t)(end - at) ||
            value_len > (size_t)(end - at) - name_len)
            return false;
        const char *text = (const char *)at;
        record->fields[i] = (struct srv_field){{text, name_len}, {text + name_len, value_len}};
        at += name_len + value_len;
    }
    record->n_fields = n;
    return at == end;
}

bool srv_http_record_read(const void *bytes, size_t len, struct srv_http_record *record_out)
{
    const uint8_t *at = bytes;
    int64_t *numbers[6];
    record_out->n_fields = 0;
    record_out->kind = SRV_HTTP_RECORD_RESPONSE;
    record_out->facts = (struct srv_http_facts){0};
    record_out->generation = 0;
    if (len < HEAD_BYTES || memcmp(at, MAGIC, sizeof MAGIC) != 0 || at[7] != 0 ||
        at[6] > SRV_HTTP_RECORD_INDEX)
        return false;
    size_t n = (size_t)get_le(at + 12, 4);
    if (n > SRV_HTTP_FIELDS_MAX || !read_fields(at + HEAD_BYTES, at + len, n, record_out)) {
        record_out->n_fields = 0;
        return false;
    }
    record_out->kind = (enum srv_http_record_kind)at[6];
    record_out->facts.status = (int)get_le(at + 4, 2);
    record_out->facts.flags = (unsigned)get_le(at + 8, 4);
    numbers_of(&record_out->facts, numbers);
    for (size_t i = 0; i < 6; i++)
        *numbers[i] = (int64_t)get_le(at + 16 + 8 * i, 8);
    record_out->generation = get_le(at + 64, 8);
    return true;
}
