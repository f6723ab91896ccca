/* Going through all buckets in the order of their names. */
#include <stdlib.h>
#include <string.h>

#include "server/s3/bucket_table.h"

struct row {
    size_t name_len;
    struct srv_s3_facts *facts;
    int64_t created_ms;
    char name[SRV_S3_BUCKET_MAX];
};

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, len);

    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

/* A copy of what is there, so that the lock is not held while the list is sorted and written. */
static struct row *copy_rows(struct srv_s3_buckets *buckets, size_t *n_out)
{
    size_t n = 0;

    pthread_rwlock_rdlock(&buckets->lock);
    struct row *rows = malloc((buckets->n + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < SRV_S3_CHAINS; i++) {
        for (struct srv_s3_bucket *at = buckets->chains[i]; at != NULL; at = at->next) {
            if (!srv_s3_bucket_is_seen(at))
                continue;
            rows[n].name_len = at->name_len;
            rows[n].created_ms = at->created_ms;
            rows[n].facts = srv_s3_facts_acquire(at->facts);
            memcpy(rows[n++].name, at->name, at->name_len);
        }
    }
    pthread_rwlock_unlock(&buckets->lock);
    *n_out = n;
    return rows;
}

bool srv_s3_buckets_each(struct srv_s3_buckets *buckets,
                         void (*visit)(void *data, struct srv_str name, struct srv_str owner,
                                       int64_t created_ms),
                         void *data)
{
    size_t n;
    struct row *rows = copy_rows(buckets, &n);

    if (rows == NULL)
        return false;
    qsort(rows, n, sizeof *rows, by_name);
    for (size_t i = 0; i < n; i++) {
        visit(data, (struct srv_str){rows[i].name, rows[i].name_len},
              rows[i].facts->of[SRV_S3_FACT_OWNER], rows[i].created_ms);
        srv_s3_facts_release(rows[i].facts);
    }
    free(rows);
    return true;
}
