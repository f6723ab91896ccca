/* A front's insides, for the two files that are the front.
 *
 * Threads: as fields say.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/front.h"
#include "server/loop_run.h"

/* [c] const between create and destroy  [m] the thread of srv_front_run  [a] atomic */
struct srv_front {
    struct srv_front_config config; /* [c] what cannot change; the rest is the setting's */
    struct srv_setting *setting;    /* [m] in force; changed and read by others under `lock` */
    pthread_mutex_t lock;
    struct srv_loop_env env;          /* [c] */
    struct srv_loop **loops;          /* [c] */
    pthread_t *threads;               /* [m] NULL until started */
    unsigned n_loops;                 /* [c] */
    int stop_fd;                      /* [c] counts requests to stop */
    int signal_fd;                    /* [c] wakes for signals */
    _Atomic unsigned n_running;       /* [a] loops whose thread has not ended */
    _Atomic bool is_cut;              /* [a] a loop ended with connections open */
    _Atomic int state;                /* [a] enum srv_front_state */
    _Atomic unsigned max_connections; /* [a] the setting's, for others to see */
};
