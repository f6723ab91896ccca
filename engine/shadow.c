#include "engine/shadow.h"

#include <string.h>

#include "engine/base/hash.h"
#include "engine/entry.h"

enum {
    NO_NODE = ENG_SHADOW_NODES,
    ONE = 1 << 16,
    AGE_MIN = 64,
    S_SHARE = 10,
    PROMOTE_HITS = 2,
    HITS_MAX = 3,
    MARGIN = 100, /* one part in so many */
    LEAD = 4      /* ages in a row: about the time a shadow takes to turn over */
};

/* ---- Queues and nodes ---- */

static void queue_push(struct eng_shadow_queue *queue, uint16_t node, uint32_t units)
{
    queue->at[(queue->first + queue->n) % ENG_SHADOW_NODES] = node;
    queue->n++;
    queue->units += units;
}

static uint16_t queue_pop(struct eng_shadow_queue *queue, const struct eng_shadow_cache *cache)
{
    uint16_t node = queue->at[queue->first % ENG_SHADOW_NODES];
    queue->first = (queue->first + 1) % ENG_SHADOW_NODES;
    queue->n--;
    queue->units -= cache->nodes[node].units;
    return node;
}

static uint16_t *head_of(struct eng_shadow_cache *cache, uint32_t hash)
{
    return &cache->heads[(hash >> 1) % ENG_SHADOW_HEADS];
}

static struct eng_shadow_node *find(struct eng_shadow_cache *cache, uint32_t hash)
{
    for (uint16_t at = *head_of(cache, hash); at != NO_NODE; at = cache->nodes[at].next)
        if (cache->nodes[at].hash == hash)
            return &cache->nodes[at];
    return NULL;
}

static void free_node(struct eng_shadow_cache *cache, uint16_t node)
{
    struct eng_shadow_node *it = &cache->nodes[node];
    uint16_t *link = head_of(cache, it->hash);
    while (*link != node)
        link = &cache->nodes[*link].next;
    *link = it->next;
    *it = (struct eng_shadow_node){.next = (uint16_t)cache->free};
    cache->free = node;
}

static uint16_t take_node(struct eng_shadow_cache *cache, uint32_t hash, uint32_t units)
{
    uint16_t node = (uint16_t)cache->free;
    struct eng_shadow_node *it = &cache->nodes[node];
    uint16_t *head = head_of(cache, hash);
    cache->free = it->next;
    *it = (struct eng_shadow_node){.hash = hash, .units = units, .next = *head};
    *head = node;
    return node;
}

/* ---- Eviction ---- */

static void evict_small(struct eng_shadow *shadow, struct eng_shadow_cache *cache)
{
    uint16_t node = queue_pop(&cache->small, cache);
    struct eng_shadow_node *it = &cache->nodes[node];
    if (it->hits >= PROMOTE_HITS) {
        it->hits = 0;
        queue_push(&cache->main, node, it->units);
        return;
    }
    eng_ghost_put(&shadow->ghost, shadow->ghost_table, ENG_SHADOW_GHOST, it->hash,
                  2 * (uint64_t)(cache->small.n + cache->main.n));
    free_node(cache, node);
}

static void evict_main(struct eng_shadow_cache *cache)
{
    uint16_t node = queue_pop(&cache->main, cache);
    struct eng_shadow_node *it = &cache->nodes[node];
    if (it->hits == 0) {
        free_node(cache, node);
        return;
    }
    it->hits--;
    queue_push(&cache->main, node, it->units);
}

/* Ends: each turn frees a node, moves one from S to M, or takes a hit away. */
static void make_room(struct eng_shadow *shadow, struct eng_shadow_cache *cache, uint32_t units)
{
    while (cache->small.n + cache->main.n > 0 &&
           (cache->free == NO_NODE ||
            cache->small.units + cache->main.units + units > shadow->capacity_units)) {
        bool small = cache->small.n > 0 &&
                     (cache->small.units * S_SHARE > shadow->capacity_units || cache->main.n == 0);
        if (small)
            evict_small(shadow, cache);
        else if (cache->main.n > 0)
            evict_main(cache);
        else
            evict_small(shadow, cache);
    }
}

/* ---- Requests ---- */

static void take_in(struct eng_shadow *shadow, struct eng_shadow_cache *cache, uint32_t hash,
                    uint32_t units)
{
    struct eng_shadow_node *there = find(cache, hash);
    bool known = cache == &shadow->f && there == NULL &&
                 eng_ghost_take(&shadow->ghost, shadow->ghost_table, ENG_SHADOW_GHOST, hash);
    if (there != NULL || units > shadow->capacity_units)
        return;
    bool filling = cache->small.units + cache->main.units + units <=
                   shadow->capacity_units - shadow->capacity_units / S_SHARE;
    make_room(shadow, cache, units);
    uint16_t node = take_node(cache, hash, units);
    bool to_main = cache == &shadow->r || known || filling;
    queue_push(to_main ? &cache->main : &cache->small, node, units);
}

static void request(struct eng_shadow_cache *cache, uint32_t hash)
{
    struct eng_shadow_node *it = find(cache, hash);
    cache->requests++;
    if (it == NULL)
        return;
    cache->hits++;
    cache->score += ONE;
    if (it->hits < HITS_MAX)
        it->hits++;
}

static void age(struct eng_shadow *shadow)
{
    uint64_t held = shadow->r.main.n;
    if (++shadow->in_age < (held / 4 > AGE_MIN ? held / 4 : AGE_MIN))
        return;
    shadow->in_age = 0;
    shadow->f.score -= shadow->f.score / 10;
    shadow->r.score -= shadow->r.score / 10;
    shadow->weight -= shadow->weight / 10;
    const struct eng_shadow_cache *mine = shadow->mode == ENG_MODE_R ? &shadow->r : &shadow->f;
    const struct eng_shadow_cache *other = shadow->mode == ENG_MODE_R ? &shadow->f : &shadow->r;
    bool ahead = other->score > mine->score + mine->score / MARGIN;
    shadow->lead = ahead ? shadow->lead + 1 : 0;
    if (shadow->lead < LEAD)
        return;
    shadow->lead = 0;
    shadow->mode = shadow->mode == ENG_MODE_R ? ENG_MODE_F : ENG_MODE_R;
    shadow->switches++;
}

void eng_shadow_feed(struct eng_shadow *shadow, uint64_t event)
{
    uint32_t hash = (uint32_t)(event >> 32) | 1u;
    enum eng_event kind = (enum eng_event)(event >> 7 & 3);
    uint32_t units = (uint32_t)eng_size_class_units(event & 0x7f);
    if (shadow->ready == 0)
        return;
    shadow->samples++;
    if (kind != ENG_EVENT_PUT) {
        request(&shadow->f, hash);
        request(&shadow->r, hash);
        shadow->weight += ONE;
        age(shadow);
    }
    if (kind == ENG_EVENT_MISS)
        return;
    take_in(shadow, &shadow->f, hash, units);
    take_in(shadow, &shadow->r, hash, units);
}

enum eng_mode eng_shadow_mode(const struct eng_shadow *shadow)
{
    return shadow->mode == ENG_MODE_R ? ENG_MODE_R : ENG_MODE_F;
}

/* ---- Making it ---- */

static void reset_cache(struct eng_shadow_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    for (uint32_t i = 0; i < ENG_SHADOW_HEADS; i++)
        cache->heads[i] = NO_NODE;
    for (uint32_t i = 0; i < ENG_SHADOW_NODES; i++)
        cache->nodes[i].next = (uint16_t)(i + 1); /* the last one ends at NO_NODE */
}

void eng_shadow_reset(struct eng_shadow *shadow, uint64_t objects, uint64_t stripe_units)
{
    uint64_t switches = shadow->switches;
    uint32_t mode = shadow->mode == ENG_MODE_R ? ENG_MODE_R : ENG_MODE_F;
    uint32_t shift = 0;
    while (shift < 40 && objects >> shift > ENG_SHADOW_WANTED * 3 / 2)
        shift++;
    memset(shadow, 0, sizeof *shadow);
    reset_cache(&shadow->f);
    reset_cache(&shadow->r);
    shadow->mode = mode;
    shadow->switches = switches;
    shadow->shift = shift;
    shadow->capacity_units = stripe_units >> shift;
    shadow->ready = 1;
}

bool eng_shadow_fit(struct eng_shadow *shadow, uint64_t objects, uint64_t stripe_units)
{
    uint64_t sampled = objects >> (shadow->shift & 63);
    bool few = sampled < ENG_SHADOW_WANTED / 3 && shadow->shift > 0;
    bool many = sampled > ENG_SHADOW_NODES * 9 / 10;
    if (shadow->ready == 1 && !few && !many &&
        shadow->capacity_units == stripe_units >> (shadow->shift & 63))
        return false;
    eng_shadow_reset(shadow, objects, stripe_units);
    return true;
}
