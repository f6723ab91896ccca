#include "server/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/bind.h"
#include "server/inherit.h"
#include "server/tls.h"

enum { TLS_RECEIVE_BYTES = 512 << 10, NAME_BYTES = 128, UNIX_MODE = 0660 };

/* ---- Listeners ---- */

void srv_listener_ref(struct srv_listener *listener)
{
    atomic_fetch_add_explicit(&listener->refs, 1, memory_order_relaxed);
}

void srv_listener_unref(struct srv_listener *listener)
{
    if (atomic_fetch_sub_explicit(&listener->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (unsigned i = 0; i < listener->n_fds; i++)
        if (!listener->is_taken[i])
            close(listener->fds[i]);
    if (listener->config.path != NULL && !listener->is_handed_over && listener->n_fds > 0)
        unlink(listener->config.path);
    free((char *)(uintptr_t)listener->config.address);
    free((char *)(uintptr_t)listener->config.path);
    free(listener->fds);
    free(listener->is_taken);
    free(listener);
}

static struct srv_listener *create(const struct srv_listener_config *config, char *error,
                                   size_t size)
{
    struct srv_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        goto fail;
    listener->refs = 1;
    listener->config = *config;
    listener->config.label = NULL; /* the setting's */
    listener->asked_port = config->port;
    listener->config.address = config->path == NULL ? strdup(config->address) : NULL;
    listener->config.path = config->path != NULL ? strdup(config->path) : NULL;
    listener->fds = malloc(SRV_INHERITED_MAX * sizeof *listener->fds);
    listener->is_taken = calloc(SRV_INHERITED_MAX, sizeof *listener->is_taken);
    if (listener->fds != NULL && listener->is_taken != NULL &&
        (listener->config.path != NULL || listener->config.address != NULL))
        return listener;
fail:
    if (listener != NULL)
        srv_listener_unref(listener);
    snprintf(error, size, "out of memory");
    return NULL;
}

static bool open_path(struct srv_listener *listener, struct srv_inherited *inherited, char *error,
                      size_t size)
{
    listener->fds[0] =
        srv_bind_unix(listener->config.path, SOCK_STREAM, UNIX_MODE, inherited, error, size);
    listener->n_fds = listener->fds[0] != -1;
    return listener->fds[0] != -1;
}

static bool open_port(struct srv_listener *listener, struct srv_inherited *inherited,
                      unsigned n_loops, char *error, size_t size)
{
    struct srv_listener_config *config = &listener->config;
    unsigned n = config->is_admin ? 1 : n_loops;
    int receive_bytes = config->is_tls ? TLS_RECEIVE_BYTES : 0;
    unsigned have = inherited == NULL
                        ? 0
                        : (unsigned)srv_bind_inherited(config->address, config->port, inherited,
                                                       listener->fds, SRV_INHERITED_MAX);
    bool ok = have == 0  ? srv_bind(config->address, &config->port, receive_bytes, listener->fds, n,
                                    error, size)
              : have < n ? srv_bind_more(config->address, config->port, receive_bytes,
                                         listener->fds, have, n, error, size)
                         : true;
    listener->n_fds = !ok ? have : have > n ? have : n;
    return ok;
}

static struct srv_listener *open_listener(const struct srv_listener_config *config,
                                          struct srv_inherited *inherited, unsigned n_loops,
                                          char *error, size_t size)
{
    struct srv_listener *listener = create(config, error, size);
    if (listener == NULL)
        return NULL;
    if (config->path != NULL ? open_path(listener, inherited, error, size)
                             : open_port(listener, inherited, n_loops, error, size)) {
        int *fds = realloc(listener->fds, listener->n_fds * sizeof *fds);
        listener->fds = fds != NULL ? fds : listener->fds;
        return listener;
    }
    srv_listener_unref(listener);
    return NULL;
}

/* ---- Settings ---- */

static bool is_same(const struct srv_listener *listener, const struct srv_listener_config *config)
{
    const struct srv_listener_config *have = &listener->config;
    if (have->is_tls != config->is_tls || have->handler != config->handler ||
        have->is_admin != config->is_admin || (have->path == NULL) != (config->path == NULL))
        return false;
    if (have->path != NULL)
        return strcmp(have->path, config->path) == 0;
    return (listener->asked_port == config->port || have->port == config->port) &&
           strcmp(have->address, config->address) == 0;
}

/* The listener of `previous` that `config` asks for, unless `setting` has it already: two free
 * ports are two listeners. */
static const struct srv_setting_entry *find_previous(const struct srv_setting *setting,
                                                     const struct srv_setting *previous,
                                                     const struct srv_listener_config *config)
{
    for (size_t i = 0; previous != NULL && i < previous->n; i++)
        if (is_same(previous->entries[i].listener, config) &&
            srv_setting_find(setting, previous->entries[i].listener) == NULL)
            return &previous->entries[i];
    return NULL;
}

static bool add_tls(const struct srv_front_config *config, struct srv_setting_entry *entry,
                    const struct srv_setting_entry *previous, char *error, size_t size)
{
    const struct srv_listener_config *listener = &entry->listener->config;
    char name[NAME_BYTES];
    /* A new throw-away certificate would only surprise those who have accepted the old one. */
    if (config->tls_self_signed && previous != NULL && previous->is_self_signed) {
        entry->tls = srv_tls_ref(previous->tls);
    } else {
        srv_bind_name(listener->address, listener->port, name, sizeof name);
        entry->tls = srv_tls_create(config, name, error, size);
    }
    entry->is_self_signed = config->tls_self_signed;
    return entry->tls != NULL;
}

static bool add(struct srv_setting *setting, const struct srv_front_config *config, size_t index,
                const struct srv_setting *previous, struct srv_inherited *inherited,
                unsigned n_loops, char *error, size_t size)
{
    const struct srv_listener_config *wanted = &config->listeners[index];
    const struct srv_setting_entry *found = find_previous(setting, previous, wanted);
    struct srv_setting_entry *entry = &setting->entries[setting->n];
    if (found != NULL) {
        entry->listener = found->listener;
        srv_listener_ref(entry->listener);
    } else {
        entry->listener = open_listener(wanted, inherited, n_loops, error, size);
    }
    if (entry->listener == NULL)
        return false;
    entry->limits = wanted->limits;
    entry->label_len = wanted->label != NULL ? strnlen(wanted->label, sizeof entry->label) : 0;
    memcpy(entry->label, wanted->label != NULL ? wanted->label : "", entry->label_len);
    setting->has_rates = setting->has_rates || wanted->limits.requests_per_s > 0;
    setting->n++;
    return !wanted->is_tls || add_tls(config, entry, found, error, size);
}

struct srv_setting *srv_setting_create(const struct srv_front_config *config,
                                       const struct srv_setting *previous,
                                       struct srv_inherited *inherited, unsigned n_loops,
                                       char *error, size_t size)
{
    struct srv_setting *setting = calloc(1, sizeof *setting);
    if (setting != NULL)
        setting->entries = calloc(config->n_listeners + 1, sizeof *setting->entries);
    if (setting == NULL || setting->entries == NULL) {
        snprintf(error, size, "out of memory");
        goto fail;
    }
    setting->config = *config;
    /* The caller's, and not needed any more. */
    setting->config.listeners = NULL;
    setting->config.tls_cert_path = setting->config.tls_key_path = NULL;
    setting->config.inherited = NULL;
    for (size_t i = 0; i < config->n_listeners; i++)
        if (!add(setting, config, i, previous, inherited, n_loops, error, size))
            goto fail;
    return setting;
fail:
    srv_setting_destroy(setting);
    return NULL;
}

void srv_setting_destroy(struct srv_setting *setting)
{
    if (setting == NULL)
        return;
    for (size_t i = 0; i < setting->n; i++) {
        srv_tls_destroy(setting->entries[i].tls);
        srv_listener_unref(setting->entries[i].listener);
    }
    free(setting->entries);
    free(setting);
}

const struct srv_setting_entry *srv_setting_find(const struct srv_setting *setting,
                                                 const struct srv_listener *listener)
{
    for (size_t i = 0; i < setting->n; i++)
        if (setting->entries[i].listener == listener)
            return &setting->entries[i];
    return NULL;
}

unsigned srv_setting_per_address(const struct srv_setting *setting)
{
    const struct srv_front_config *config = &setting->config;
    if (config->max_connections_per_address > 0)
        return config->max_connections_per_address;
    return config->max_connections - config->max_connections / 4;
}
