/* The policies the store is measured against. Written from their papers' descriptions: SIEVE (Zhang
 * et al., 2024), S3-FIFO (Yang et al., 2023), W-TinyLFU (Einziger et al., 2017), and Belady's
 * farthest next use with bypass. Sizes are respected: what does not fit evicts until it does. */
#include <stdbool.h>
#include <string.h>

#include "bench/sim/lists.h"
#include "bench/sim/policy.h"

void sim_count(const struct sim_run *run, struct sim_result *result, size_t i, bool hit)
{
    const struct sim_request *request = &run->requests->at[i];
    if (run->progress != NULL && i % 4096 == 0)
        run->progress(run->progress_data, i, run->requests->n);
    if (i < run->warm)
        return;
    result->requests++;
    result->hits += hit;
    result->bytes += request->size;
    result->hit_bytes += hit ? request->size : 0;
    const uint32_t *group = run->requests->group;
    if (group == NULL)
        return;
    bool first = i == 0 || group[i] != group[i - 1];
    result->chain_holds = hit && (first || result->chain_holds);
    result->prefix_hits += result->chain_holds;
}

/* ---- FIFO and LRU ---- */

static void run_queue(const struct sim_run *run, struct sim_result *result, bool move)
{
    struct sim_lists lists;
    sim_lists_init(&lists, run->requests->n_ids);
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        bool hit = lists.in[request->id] != 0;
        sim_count(run, result, i, hit);
        if (hit && move) {
            sim_list_remove(&lists, request->id);
            sim_list_push(&lists, 0, request->id);
        }
        if (hit || request->size > run->capacity_bytes)
            continue;
        while (lists.bytes[0] + request->size > run->capacity_bytes)
            sim_list_remove(&lists, sim_list_last(&lists, 0));
        lists.size[request->id] = request->size;
        result->inserted += request->size;
        sim_list_push(&lists, 0, request->id);
    }
    sim_lists_fini(&lists);
}

static void run_fifo(const struct sim_run *run, struct sim_result *result)
{
    run_queue(run, result, false);
}

static void run_lru(const struct sim_run *run, struct sim_result *result)
{
    run_queue(run, result, true);
}

/* ---- SIEVE ---- */

static void run_sieve(const struct sim_run *run, struct sim_result *result)
{
    struct sim_lists lists;
    uint8_t *visited = sim_alloc(run->requests->n_ids, 1);
    sim_lists_init(&lists, run->requests->n_ids);
    uint32_t end = lists.n;
    uint32_t hand = end;
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        bool hit = lists.in[request->id] != 0;
        sim_count(run, result, i, hit);
        if (hit)
            visited[request->id] = 1;
        if (hit || request->size > run->capacity_bytes)
            continue;
        while (lists.bytes[0] + request->size > run->capacity_bytes) {
            if (hand == end)
                hand = lists.prev[end];
            while (visited[hand]) {
                visited[hand] = 0;
                hand = lists.prev[hand] == end ? lists.prev[end] : lists.prev[hand];
            }
            uint32_t before = lists.prev[hand];
            sim_list_remove(&lists, hand);
            hand = before;
        }
        lists.size[request->id] = request->size;
        visited[request->id] = 0;
        result->inserted += request->size;
        sim_list_push(&lists, 0, request->id);
    }
    sim_lists_fini(&lists);
    free(visited);
}

/* ---- S3-FIFO ---- */

struct s3fifo {
    struct sim_lists lists; /* small, main */
    uint8_t *freq;
    uint64_t *ghost_at; /* number of the eviction plus one */
    uint64_t evictions, capacity;
};

enum { SMALL, MAIN };

static void s3fifo_evict_small(struct s3fifo *s)
{
    uint32_t id = sim_list_last(&s->lists, SMALL);
    sim_list_remove(&s->lists, id);
    if (s->freq[id] >= 2) {
        s->freq[id] = 0;
        sim_list_push(&s->lists, MAIN, id);
    } else {
        s->ghost_at[id] = ++s->evictions;
    }
}

static void s3fifo_evict_main(struct s3fifo *s)
{
    uint32_t id = sim_list_last(&s->lists, MAIN);
    sim_list_remove(&s->lists, id);
    if (s->freq[id] == 0)
        return;
    s->freq[id]--;
    sim_list_push(&s->lists, MAIN, id);
}

static void s3fifo_insert(struct s3fifo *s, uint32_t id, uint32_t size)
{
    bool known = s->ghost_at[id] != 0 &&
                 s->evictions - s->ghost_at[id] < s->lists.count[SMALL] + s->lists.count[MAIN];
    s->ghost_at[id] = 0;
    s->freq[id] = 0;
    s->lists.size[id] = size;
    while (s->lists.bytes[SMALL] + s->lists.bytes[MAIN] + size > s->capacity) {
        if (s->lists.bytes[SMALL] > s->capacity / 10 || sim_list_empty(&s->lists, MAIN))
            s3fifo_evict_small(s);
        else
            s3fifo_evict_main(s);
    }
    sim_list_push(&s->lists, known ? MAIN : SMALL, id);
}

static void run_s3fifo(const struct sim_run *run, struct sim_result *result)
{
    uint32_t n = run->requests->n_ids;
    struct s3fifo s = {.freq = sim_alloc(n, 1),
                       .ghost_at = sim_alloc(n, sizeof(uint64_t)),
                       .capacity = run->capacity_bytes};
    sim_lists_init(&s.lists, n);
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        bool hit = s.lists.in[request->id] != 0;
        sim_count(run, result, i, hit);
        if (hit)
            s.freq[request->id] += s.freq[request->id] < 3;
        if (hit || request->size > run->capacity_bytes)
            continue;
        result->inserted += request->size;
        s3fifo_insert(&s, request->id, request->size);
    }
    sim_lists_fini(&s.lists);
    free(s.freq), free(s.ghost_at);
}

/* ---- W-TinyLFU ---- */

enum { WINDOW, PROBATION, PROTECTED };

/* Counters of four rows, halved after ten times as many requests as they are wide. */
struct sketch {
    uint8_t *rows[4];
    uint32_t mask;
    uint64_t added;
};

static uint32_t sketch_at(const struct sketch *sketch, uint32_t id, int row)
{
    struct sim_random random = {id * UINT64_C(4) + (uint64_t)row};
    return (uint32_t)sim_next(&random) & sketch->mask;
}

static void sketch_add(struct sketch *sketch, uint32_t id)
{
    for (int row = 0; row < 4; row++) {
        uint8_t *at = &sketch->rows[row][sketch_at(sketch, id, row)];
        *at += *at < 15;
    }
    if (++sketch->added < 10 * ((uint64_t)sketch->mask + 1))
        return;
    sketch->added /= 2;
    for (int row = 0; row < 4; row++)
        for (uint32_t i = 0; i <= sketch->mask; i++)
            sketch->rows[row][i] /= 2;
}

static uint8_t sketch_count(const struct sketch *sketch, uint32_t id)
{
    uint8_t least = 15;
    for (int row = 0; row < 4; row++) {
        uint8_t count = sketch->rows[row][sketch_at(sketch, id, row)];
        least = count < least ? count : least;
    }
    return least;
}

/* Lets in what leaves the window if it is asked for more than what it would displace. */
static void tinylfu_admit(struct sim_lists *lists, const struct sketch *sketch, uint64_t main_bytes,
                          uint32_t id)
{
    uint32_t size = lists->size[id];
    sim_list_remove(lists, id);
    while (lists->bytes[PROBATION] + lists->bytes[PROTECTED] + size > main_bytes) {
        uint32_t from = sim_list_empty(lists, PROBATION) ? PROTECTED : PROBATION;
        if (sim_list_empty(lists, from))
            return;
        uint32_t victim = sim_list_last(lists, from);
        if (sketch_count(sketch, id) <= sketch_count(sketch, victim))
            return;
        sim_list_remove(lists, victim);
    }
    sim_list_push(lists, PROBATION, id);
}

static void tinylfu_hit(struct sim_lists *lists, uint64_t protected_bytes, uint32_t id)
{
    uint32_t list = lists->in[id] - 1u;
    sim_list_remove(lists, id);
    sim_list_push(lists, list == PROBATION ? PROTECTED : list, id);
    while (lists->bytes[PROTECTED] > protected_bytes) {
        uint32_t last = sim_list_last(lists, PROTECTED);
        sim_list_remove(lists, last);
        sim_list_push(lists, PROBATION, last);
    }
}

static void run_wtinylfu(const struct sim_run *run, struct sim_result *result)
{
    struct sim_lists lists;
    struct sketch sketch = {.mask = 1023};
    uint64_t mean = run->requests->footprint_bytes / (run->requests->n_ids | 1) + 1;
    while (sketch.mask < run->capacity_bytes / mean)
        sketch.mask = 2 * sketch.mask + 1;
    for (int row = 0; row < 4; row++)
        sketch.rows[row] = sim_alloc((size_t)sketch.mask + 1, 1);
    uint64_t window = run->capacity_bytes / 100;
    uint64_t main_bytes = run->capacity_bytes - window;
    sim_lists_init(&lists, run->requests->n_ids);
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        bool hit = lists.in[request->id] != 0;
        sim_count(run, result, i, hit);
        sketch_add(&sketch, request->id);
        if (hit)
            tinylfu_hit(&lists, main_bytes / 5 * 4, request->id);
        if (hit || request->size > main_bytes)
            continue;
        result->inserted += request->size;
        lists.size[request->id] = request->size;
        sim_list_push(&lists, WINDOW, request->id);
        while (lists.bytes[WINDOW] > window)
            tinylfu_admit(&lists, &sketch, main_bytes, sim_list_last(&lists, WINDOW));
    }
    sim_lists_fini(&lists);
    for (int row = 0; row < 4; row++)
        free(sketch.rows[row]);
}

/* ---- Belady ---- */

/* A heap of keys by their next use, the farthest on top. */
struct heap {
    uint32_t *at, *place; /* place + 1 of each key; 0: not in */
    uint32_t *next_use;
    uint32_t n;
};

static void heap_swap(struct heap *heap, uint32_t i, uint32_t j)
{
    uint32_t id = heap->at[i];
    heap->at[i] = heap->at[j];
    heap->at[j] = id;
    heap->place[heap->at[i]] = i + 1;
    heap->place[heap->at[j]] = j + 1;
}

static void heap_settle(struct heap *heap, uint32_t i)
{
    while (i > 0 && heap->next_use[heap->at[i]] > heap->next_use[heap->at[(i - 1) / 2]]) {
        heap_swap(heap, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= heap->n)
            return;
        if (child + 1 < heap->n &&
            heap->next_use[heap->at[child + 1]] > heap->next_use[heap->at[child]])
            child++;
        if (heap->next_use[heap->at[child]] <= heap->next_use[heap->at[i]])
            return;
        heap_swap(heap, i, child);
        i = child;
    }
}

static void heap_push(struct heap *heap, uint32_t id)
{
    heap->at[heap->n] = id;
    heap->place[id] = ++heap->n;
    heap_settle(heap, heap->n - 1);
}

static void heap_pop(struct heap *heap)
{
    uint32_t id = heap->at[0];
    heap_swap(heap, 0, heap->n - 1);
    heap->place[id] = 0;
    if (--heap->n > 0)
        heap_settle(heap, 0);
}

static uint32_t *next_uses(const struct sim_requests *requests)
{
    uint32_t *next = sim_alloc(requests->n, sizeof *next);
    uint32_t *seen = sim_alloc(requests->n_ids, sizeof *seen);
    memset(seen, 0xff, requests->n_ids * sizeof *seen);
    for (size_t i = requests->n; i-- > 0;) {
        next[i] = seen[requests->at[i].id];
        seen[requests->at[i].id] = (uint32_t)i;
    }
    free(seen);
    return next;
}

static void run_belady(const struct sim_run *run, struct sim_result *result)
{
    uint32_t n = run->requests->n_ids;
    uint32_t *next = next_uses(run->requests);
    uint32_t *size = sim_alloc(n, sizeof *size);
    struct heap heap = {sim_alloc(n, sizeof(uint32_t)), sim_alloc(n, sizeof(uint32_t)),
                        sim_alloc(n, sizeof(uint32_t)), 0};
    uint64_t used = 0;
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        uint32_t id = request->id;
        bool hit = heap.place[id] != 0;
        sim_count(run, result, i, hit);
        heap.next_use[id] = next[i];
        if (hit) {
            heap_settle(&heap, heap.place[id] - 1);
            continue;
        }
        while (heap.n > 0 && used + request->size > run->capacity_bytes &&
               heap.next_use[heap.at[0]] > next[i]) {
            used -= size[heap.at[0]];
            heap_pop(&heap);
        }
        if (used + request->size > run->capacity_bytes || next[i] == UINT32_MAX)
            continue; /* everything that is there is needed sooner */
        size[id] = request->size;
        used += request->size;
        result->inserted += request->size;
        heap_push(&heap, id);
    }
    free(next), free(size), free(heap.at), free(heap.place), free(heap.next_use);
}

const struct sim_reference sim_references[] = {
    {"fifo", run_fifo},          {"lru", run_lru},
    {"sieve", run_sieve},        {"s3-fifo", run_s3fifo},
    {"w-tinylfu", run_wtinylfu}, {"belady", run_belady},
};
const size_t sim_n_references = sizeof sim_references / sizeof sim_references[0];

const struct sim_reference *sim_reference_of(const char *name)
{
    for (size_t i = 0; i < sim_n_references; i++)
        if (strcmp(sim_references[i].name, name) == 0)
            return &sim_references[i];
    return NULL;
}
