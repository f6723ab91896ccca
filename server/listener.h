/* Listeners and the settings that loops follow: which sockets there are, with which certificates,
 * and within which limits.
 *
 * Owns:    a setting owns its certificates and a reference to each listener; a listener owns its
 *          sockets until loops take them, and copies of its strings.
 * Threads: settings are made and destroyed on one thread and const meanwhile; listener references
 *          on any.
 * Blocks:  making a setting reads certificates.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/front.h"

struct ssl_ctx_st;
struct srv_inherited;

/* [c] const  [a] atomic  [l] an element belongs to the loop it is for */
struct srv_listener {
    struct srv_listener_config config; /* [c] strings are copies, `port` is the one bound */
    uint16_t asked_port;               /* [c] */
    int *fds;                          /* [c] the loop i serves every i-th of n_loops */
    bool *is_taken;                    /* [l] the loop has it and closes it */
    unsigned n_fds;                    /* [c] */
    _Atomic unsigned refs;             /* [a] */
    _Atomic bool is_removed;           /* [a] its connections end with their next answer */
    _Atomic bool is_handed_over;       /* [a] its path is another process's now */
};

void srv_listener_ref(struct srv_listener *listener);
/* Closes what sockets no loop took, with the last reference. */
void srv_listener_unref(struct srv_listener *listener);

enum { SRV_LABEL_MAX = 63 }; /* bytes of a label; what is longer is cut off */

struct srv_setting_entry {
    struct srv_listener *listener;
    struct ssl_ctx_st *tls; /* NULL: clear text */
    bool is_self_signed;
    struct srv_listener_limits limits;
    size_t label_len; /* 0: none */
    char label[SRV_LABEL_MAX];
};

/* All that loops go by, as one constant. */
struct srv_setting {
    struct srv_front_config config; /* without listeners and paths */
    struct srv_setting_entry *entries;
    size_t n;
    bool has_rates; /* of requests, for any listener */
};

/* Opens the listeners of `config` for `n_loops`, or takes them over from `previous` (may be NULL)
 * where address and kind are the same, and then from `inherited` (may be NULL). Certificates are
 * read again. NULL with one line in `error_out`, and no socket left open. */
struct srv_setting *srv_setting_create(const struct srv_front_config *config,
                                       const struct srv_setting *previous,
                                       struct srv_inherited *inherited, unsigned n_loops,
                                       char *error_out, size_t error_size);

/* Lets go of certificates and listeners; NULL is allowed. */
void srv_setting_destroy(struct srv_setting *setting);

/* The setting's entry for a listener, or NULL. */
const struct srv_setting_entry *srv_setting_find(const struct srv_setting *setting,
                                                 const struct srv_listener *listener);

/* Connections that one client address may have. */
unsigned srv_setting_per_address(const struct srv_setting *setting);
