/* The store as a policy under test: engine and allocator as they are, on a medium without bodies.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/sim/policy.h"
#include "bench/sim/random.h"
#include "engine/admit.h"
#include "engine/base/bits.h"
#include "engine/geometry.h"
#include "engine/slab.h"
#include "engine/writer.h"

enum { PARTS_MAX = 1024, NOW = 1000 };

struct driver {
    struct eng_store *store;
    const struct sim_store *wish;
    uint8_t *body; /* for real puts */
    size_t body_room;
};

/* Keys are digests elsewhere; here any well-mixed bytes do. */
static void key_of(uint32_t id, uint8_t key[32])
{
    struct sim_random random = {id};
    for (int i = 0; i < 4; i++) {
        uint64_t word = sim_next(&random);
        memcpy(key + 8 * i, &word, sizeof word);
    }
}

/* As a reader of the whole object would: all of its parts, or it is a miss. */
static bool parts_are_there(struct driver *d, struct eng_ref *head)
{
    const struct eng_doc *doc = head->doc;
    for (uint64_t i = 0; i < doc->body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row;
        uint8_t key[32];
        struct eng_ref part;
        memcpy(&row, head->body + i * sizeof row, sizeof row);
        eng_part_key(doc->key, doc->object_serial, row.part_no, row.attempt, row.sub, key);
        struct eng_want want = {
            .key = key, .pool = doc->pool, .part = true, .object_serial = doc->object_serial};
        if (eng_find(d->store, &want, NOW, 0, &part) != GYRE_OK)
            return false;
        eng_ref_release(&part);
    }
    return true;
}

static bool get(struct driver *d, uint32_t id)
{
    uint8_t key[32];
    struct eng_ref ref;
    key_of(id, key);
    struct eng_want want = {.key = key, .pool = ENG_POOL_MAIN};
    if (eng_find(d->store, &want, NOW, 0, &ref) != GYRE_OK)
        return false;
    bool whole = ref.doc->type != ENG_HEAD || parts_are_there(d, &ref);
    if (!whole)
        eng_drop(&ref);
    eng_ref_release(&ref);
    return whole;
}

static gyre_err put_small(struct driver *d, struct eng_commit *commit, uint32_t size)
{
    uint64_t serial;
    commit->spec.type = ENG_DOC;
    commit->body = d->body;
    commit->body_len = size;
    return eng_commit(d->store, commit, &serial);
}

static gyre_err put_parts(struct driver *d, struct eng_commit *commit, uint32_t size)
{
    struct eng_part parts[PARTS_MAX] = {0};
    struct eng_part_row rows[PARTS_MAX] = {0};
    uint64_t most = eng_part_max_bytes(d->store);
    uint64_t serial;
    uint32_t n = (uint32_t)eng_div_up(size, most);
    gyre_err err = n > PARTS_MAX ? GYRE_TOO_LARGE : GYRE_OK;
    commit->spec.type = ENG_HEAD;
    commit->spec.parts = n;
    commit->spec.object_serial = eng_object_serial(d->store, ENG_POOL_MAIN, commit->spec.key);
    commit->parts = parts;
    commit->body = rows;
    commit->body_len = n * sizeof rows[0];
    for (uint32_t i = 0; i < n && err == GYRE_OK; i++) {
        uint64_t off = i * most;
        uint64_t len = size - off < most ? size - off : most;
        err = eng_part_begin(d->store, &commit->spec, i + 1, 0, 0, len, &parts[i]);
        if (err != GYRE_OK)
            break;
        commit->n_parts = i + 1;
        err = eng_part_write(&parts[i], d->body + (d->wish->real ? off : 0), len);
        if (err == GYRE_OK)
            err = eng_part_finish(&parts[i], &commit->spec);
        rows[i] = (struct eng_part_row){.length = len, .part_no = i + 1, .crc = parts[i].crc};
    }
    if (err == GYRE_OK)
        err = eng_commit(d->store, commit, &serial);
    for (uint32_t i = 0; i < commit->n_parts && err != GYRE_OK; i++)
        eng_part_abort(&parts[i]);
    return err;
}

static gyre_err put(struct driver *d, uint32_t id, uint32_t size)
{
    uint8_t key[32];
    key_of(id, key);
    struct eng_commit commit = {
        .spec = {.key = key, .total_len = size, .pool = ENG_POOL_MAIN},
        .now = NOW,
    };
    size_t need = d->wish->real || size < ENG_BIG_BODY ? size : ENG_BIG_BODY;
    if (need > d->body_room) {
        free(d->body);
        d->body = sim_alloc(need, 1);
        d->body_room = need;
    }
    return size < ENG_BIG_BODY ? put_small(d, &commit, size) : put_parts(d, &commit, size);
}

/* What all data may take; the reference policies get as much. */
static uint64_t capacity_of(const struct eng_store *store)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        bytes +=
            eng_pool_max_segments(&store->super, i, ENG_POOL_MAIN) * store->super.segment_bytes;
    return bytes;
}

static void fill_result(const struct eng_store *store, struct sim_result *result)
{
    const struct eng_counters *counters = store->process->counters;
    uint64_t switches = 0, hops = 0, promotions = 0, copies = 0, finds = 0;
    for (int i = 0; i < ENG_COUNTER_SHARDS; i++) {
        switches += atomic_load(&counters[i].mode_switches);
        hops += atomic_load(&counters[i].hops);
        promotions += atomic_load(&counters[i].promotions);
        copies += atomic_load(&counters[i].copies);
        finds += atomic_load(&counters[i].ghost_finds);
        result->rewritten += atomic_load(&counters[i].copied_bytes);
        result->inserted += atomic_load(&counters[i].put_bytes);
    }
    result->mode_switches = switches;
    result->hops = hops;
    result->promotions = promotions;
    result->copies = copies;
    result->ghost_finds = finds;
    result->mode = eng_policy_mode(&store->stripes[0].rt->policy);
}

static bool run_requests(struct driver *d, const struct sim_run *run, struct sim_result *result,
                         char *message, size_t message_size)
{
    for (size_t i = 0; i < run->requests->n; i++) {
        const struct sim_request *request = &run->requests->at[i];
        bool hit = get(d, request->id);
        sim_count(run, result, i, hit);
        if (hit)
            continue;
        gyre_err err = put(d, request->id, request->size);
        if (err == GYRE_OK || err == GYRE_TOO_LARGE)
            continue;
        snprintf(message, message_size, "request %zu, %u bytes: put failed: %s", i, request->size,
                 gyre_err_name(err));
        return false;
    }
    return true;
}

static void remove_store(const char *dir)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf -- '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "policy_sim: cannot remove %s\n", dir);
}

/* Files carry more than data: the store is asked for so much that its data has about the capacity.
 */
static uint64_t store_bytes(const struct sim_run *run, const struct sim_store *wish)
{
    uint64_t average = wish->average_object_bytes != 0 ? wish->average_object_bytes : 4096;
    uint64_t overhead =
        run->capacity_bytes / average * 44 + (UINT64_C(16) << 20) + 2 * wish->segment_bytes;
    return run->capacity_bytes + overhead;
}

bool sim_store_run(struct sim_run *run, const struct sim_store *wish, struct sim_result *result_out,
                   char *message, size_t message_size)
{
    char path[600];
    struct driver d = {.wish = wish};
    *result_out = (struct sim_result){0};
    message[0] = '\0';
    snprintf(path, sizeof path, "%s/policy-sim-XXXXXX", wish->dir);
    if (mkdtemp(path) == NULL) {
        snprintf(message, message_size, "%s: cannot make a directory here", wish->dir);
        return false;
    }
    struct eng_dir dir = {.path = path};
    struct eng_open open = {
        .dirs = &dir,
        .n_dirs = 1,
        .size_bytes = store_bytes(run, wish),
        .may_create = true,
        .segment_bytes = wish->segment_bytes,
        .stripes = wish->stripes,
        .average_object_bytes = wish->average_object_bytes,
        .retention = (enum eng_retention)wish->retention,
        .hollow = !wish->real,
        .message = message,
        .message_size = message_size,
    };
    bool ok = eng_store_open(&open, &d.store) == GYRE_OK;
    if (ok) {
        run->capacity_bytes = capacity_of(d.store);
        ok = run_requests(&d, run, result_out, message, message_size);
        fill_result(d.store, result_out);
        ok = eng_store_close(d.store, false) == GYRE_OK && ok;
    }
    free(d.body);
    remove_store(path);
    return ok;
}
