#include "server/reload.h"

bool srv_reload(const struct srv_reload_part *parts, size_t n_parts, const struct srv_options *next,
                char *error, size_t size)
{
    size_t n = 0;
    while (n < n_parts && parts[n].prepare(parts[n].data, next, error, size))
        n++;
    bool is_ready = n == n_parts;
    while (n > 0) {
        const struct srv_reload_part *part = &parts[--n];
        if (is_ready)
            part->commit(part->data);
        else
            part->abandon(part->data);
    }
    return is_ready;
}
