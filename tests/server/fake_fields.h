/* The front's look-up of a request's fields, for programs that do without the front: one of a
 * program's files includes it.
 */
#pragma once

#include <string.h>

#include "server/exchange.h"

const struct srv_str *srv_request_field(const struct srv_request *req, const char *name,
                                        size_t *count_out)
{
    const struct srv_str *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < req->n_fields; i++) {
        const struct srv_field *field = &req->fields[i];
        if (field->name.len == strlen(name) && memcmp(field->name.base, name, field->name.len) == 0)
            first = count++ == 0 ? &field->value : first;
    }
    if (count_out != NULL)
        *count_out = count;
    return first;
}
