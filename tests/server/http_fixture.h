/* Fields written as text, for tables about the reverse proxy's cache: "name: value" lines. */
#pragma once

#include <string.h>

#include "server/http/fields.h"
#include "server/chars.h"
#include "tests/harness/test.h"

enum { TEXT_MAX = 2048, TEXT_FIELDS_MAX = 32 };

struct text_fields {
    char text[TEXT_MAX];
    struct srv_field at[TEXT_FIELDS_MAX];
    size_t n;
};

static inline struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

/* Reads lines separated by '\n' into `fields`, which keeps a copy. */
static inline struct srv_http_fields read_fields(struct text_fields *fields, const char *text)
{
    CHECK(strlen(text) < sizeof fields->text);
    strcpy(fields->text, text);
    fields->n = 0;
    for (char *line = fields->text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        char *colon = memchr(line, ':', len);
        CHECK_MSG(colon != NULL && fields->n < TEXT_FIELDS_MAX, "no field: %s", line);
        size_t name_len = (size_t)(colon - line);
        srv_lower(line, line, name_len);
        struct srv_str value = {colon + 1, len - name_len - 1};
        fields->at[fields->n++] = (struct srv_field){{line, name_len}, srv_http_trim(value)};
        line += len + (line[len] == '\n');
    }
    return (struct srv_http_fields){fields->at, fields->n};
}

static inline const char *text_of(struct srv_str value)
{
    static char texts[4][512];
    static unsigned next;
    char *text = texts[next++ % 4];
    CHECK(value.len < sizeof texts[0]);
    if (value.len > 0)
        memcpy(text, value.base, value.len);
    text[value.len] = '\0';
    return text;
}
