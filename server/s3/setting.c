#include "server/s3/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/s3/buckets.h"
#include "server/s3/call.h"
#include "server/s3/names.h"

struct srv_s3_next {
    struct srv_s3_config config;
    struct srv_names_unlisted *unlisted;
};

void srv_s3_go_by(struct srv_s3 *s3, const struct srv_s3_config *config)
{
    static const struct srv_s3_access open_access = {.is_open = true};
    const char *region = config->region != NULL ? config->region : "us-east-1";

    pthread_rwlock_wrlock(&s3->access_lock);
    s3->access = config->access != NULL ? config->access : &open_access;
    s3->hosts = config->hosts;
    snprintf(s3->region_, sizeof s3->region_, "%s", region);
    atomic_store_explicit(&s3->is_open, s3->access->is_open, memory_order_relaxed);
    atomic_store_explicit(&s3->has_hosts, srv_s3_hosts_has_any(&s3->hosts), memory_order_relaxed);
    pthread_rwlock_unlock(&s3->access_lock);
}

char *srv_s3_unlisted(const struct srv_s3_config *config)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < config->n_bucket_rules; i++)
        if (config->bucket_rules[i].is_unlisted)
            fprintf(out, "%s\n", config->bucket_rules[i].bucket);
    return fclose(out) == 0 ? text : NULL;
}

struct srv_s3_next *srv_s3_prepare(const struct srv_s3_config *config, char *error, size_t size)
{
    struct srv_s3_next *next = calloc(1, sizeof *next);
    char *unlisted = srv_s3_unlisted(config);

    if (next != NULL && unlisted != NULL)
        next->unlisted = srv_names_unlisted_create(unlisted);
    if (next == NULL || next->unlisted == NULL) {
        snprintf(error, size, "out of memory");
        free(next);
        next = NULL;
    } else {
        next->config = *config;
    }
    free(unlisted);
    return next;
}

void srv_s3_commit(struct srv_s3 *s3, struct srv_s3_next *next)
{
    srv_s3_go_by(s3, &next->config);
    srv_s3_buckets_go_by(s3->buckets, &next->config);
    srv_names_set_unlisted(s3->names, next->unlisted);
    free(next);
}

void srv_s3_abandon(struct srv_s3_next *next)
{
    if (next == NULL)
        return;
    free(next->unlisted);
    free(next);
}
