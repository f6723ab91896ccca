/* The options of the program: from the command line and a JSON file into one checked structure.
 *
 * Owns:    struct srv_options owns its strings until srv_options_fini.
 * Threads: one thread, before any other is started. Blocks: reads the configuration file.
 * Allocates: a little.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/access_entry.h"
#include "server/address.h"
#include "server/log.h"
#include "server/s3/hosts.h"
#include "server/s3/s3.h"

enum {
    SRV_LISTEN_MAX = 16,
    SRV_DATA_MAX = 16,
    SRV_OPTIONS_ERROR_MAX = 1024, /* longest message with its terminator */
};

/* The commands that take options. */
enum srv_command {
    SRV_COMMAND_SERVE,
    SRV_COMMAND_STAT,
    SRV_COMMAND_CHECK,
    SRV_COMMAND_VERIFY,
};

struct srv_data_option {
    char *path;
    uint64_t size_bytes; /* 0: none given */
};

/* Fields are named in options.def. Numbers that were not given are 0, strings NULL, unless
 * options.c has another default. */
struct srv_options {
    char *config;
    struct srv_address listen[SRV_LISTEN_MAX];
    size_t n_listen;
    char *origin;                    /* NULL: the listeners serve S3 */
    uint64_t origin_connect_timeout; /* ms, as the following */
    uint64_t origin_first_byte_timeout;
    uint64_t origin_between_bytes_timeout;
    char *admin;                      /* NULL: the default */
    struct srv_address admin_address; /* of an admin that is ADDR:PORT */
    struct srv_data_option data[SRV_DATA_MAX];
    size_t n_data;
    uint64_t size; /* bytes */
    bool reset;
    uint64_t segment_size;  /* bytes; 0: chosen from the size */
    uint64_t object_size;   /* bytes */
    uint64_t sync_interval; /* ms */
    char *tls_cert;
    char *tls_key;
    bool tls_self_signed;
    uint64_t threads; /* 0: one for each core */
    uint64_t workers; /* 0: chosen from the cores */
    uint64_t max_connections;
    uint64_t address_connections; /* 0: chosen from max_connections */
    uint64_t buffer_budget;       /* bytes */
    uint64_t address_buffers;     /* bytes; 0: chosen from buffer_budget */
    uint64_t handshake_timeout;   /* ms, as the following */
    uint64_t head_timeout;        /* ms, as the following */
    uint64_t idle_timeout;
    uint64_t body_timeout;
    uint64_t body_rate; /* bytes a second */
    uint64_t send_rate; /* bytes a second */
    uint64_t send_timeout;
    uint64_t drain_timeout;
    uint64_t etag; /* enum srv_s3_etag */
    char *region;
    uint64_t lifecycle_day; /* ms */
    bool anonymous;
    char *access_log;           /* NULL: none */
    uint64_t access_log_format; /* enum srv_access_format */
    uint64_t log_level;         /* enum srv_log_level */
    bool takeover;
    bool bodies;
    uint64_t rate; /* bytes a second; 0: no bound */
    bool json;

    struct srv_s3_bucket_rule *buckets; /* from the file */
    size_t n_buckets;
    struct srv_s3_access access; /* from the file */
    struct srv_s3_domains domains;
    struct srv_s3_aliases aliases;
    bool help;            /* --help was asked for; nothing else was checked */
    bool is_file_missing; /* after a failure: the words were right, but a file cannot be read */
    unsigned lists_seen_;
    int argc; /* lent: what it was read from */
    char **argv;
};

/* Reads `argv[0..argc)`, the words after the command, and the file they name. True with everything
 * checked and defaults filled in. False with one line in `error_out`, which says where and what is
 * wrong and names the nearest valid choice. Call srv_options_fini in both cases. */
bool srv_options_parse(struct srv_options *options_out, enum srv_command command, int argc,
                       char **argv, char error_out[SRV_OPTIONS_ERROR_MAX]);

void srv_options_fini(struct srv_options *options);
