#include "server/http/refreshes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/check.h"

enum { N_LISTS = 256 }; /* by the key's first byte: keys are digests */

struct entry {
    struct gyre_key key;
    struct entry *next;
};

/* [w] under `lock` */
struct srv_refreshes {
    pthread_mutex_t lock;
    struct entry *lists[N_LISTS]; /* [w] */
};

struct srv_refreshes *srv_refreshes_create(void)
{
    struct srv_refreshes *refreshes = calloc(1, sizeof *refreshes);
    if (refreshes != NULL)
        pthread_mutex_init(&refreshes->lock, NULL);
    return refreshes;
}

void srv_refreshes_destroy(struct srv_refreshes *refreshes)
{
    if (refreshes == NULL)
        return;
    for (size_t i = 0; i < N_LISTS; i++)
        SRV_CHECK(refreshes->lists[i] == NULL);
    pthread_mutex_destroy(&refreshes->lock);
    free(refreshes);
}

/* Where the entry of `key` hangs, or the end of its list. */
static struct entry **find_locked(struct srv_refreshes *refreshes, const struct gyre_key *key)
{
    struct entry **at = &refreshes->lists[key->bytes[0]];
    while (*at != NULL && memcmp(&(*at)->key, key, sizeof *key) != 0)
        at = &(*at)->next;
    return at;
}

bool srv_refresh_begin(struct srv_refreshes *refreshes, const struct gyre_key *key)
{
    pthread_mutex_lock(&refreshes->lock);
    struct entry **at = find_locked(refreshes, key);
    struct entry *entry = *at == NULL ? malloc(sizeof *entry) : NULL;
    if (entry != NULL) {
        *entry = (struct entry){.key = *key};
        *at = entry;
    }
    pthread_mutex_unlock(&refreshes->lock);
    return entry != NULL;
}

void srv_refresh_end(struct srv_refreshes *refreshes, const struct gyre_key *key)
{
    pthread_mutex_lock(&refreshes->lock);
    struct entry **at = find_locked(refreshes, key);
    struct entry *entry = *at;
    SRV_CHECK(entry != NULL);
    *at = entry->next;
    pthread_mutex_unlock(&refreshes->lock);
    free(entry);
}
