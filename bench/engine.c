/* The engine by itself: put, warm get, miss and exists at four sizes, and the same on LMDB in the
 * same run.
 *
 *   bench/engine [--rounds N] [--objects N] [--dir DIR] [--json]
 *
 * One thread. A round measures every operation on both stores in turn; each figure is the median
 * over the rounds of that round's percentile, in nanoseconds. Keys are 32-byte digests for both. A
 * get takes the object, reads its first byte and lets go; LMDB's is a renewed read transaction,
 * mdb_get and reset. LMDB writes without sync, one transaction a put, as Gyre's puts wait for no
 * disk either. Timing a single operation costs about 20 ns, which is in every figure.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/gyre.h"
#include "bench/common.h"
#ifdef GYRE_HAVE_LMDB
#include <lmdb.h>
#endif

enum { N_SIZES = 4, MAX_ROUNDS = 101 };
enum op { OP_PUT, OP_GET, OP_MISS, OP_EXISTS, OP_PROBABLE, N_OPS };
enum side { SIDE_GYRE, SIDE_LMDB, N_SIDES };

static const size_t sizes[N_SIZES] = {512, 4 << 10, 64 << 10, 2 << 20};
static const char *const op_names[N_OPS] = {"put", "get", "miss", "exists", "probable"};
static const char *const side_names[N_SIDES] = {"gyre", "lmdb"};

struct bench {
    struct gyre_store *store;
#ifdef GYRE_HAVE_LMDB
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *reader;
#endif
    const uint8_t *body;
    size_t size;
    uint64_t *samples_ns;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A digest as a caller would have computed it. `absent` keys are never stored. */
static struct gyre_key key_of(size_t size, uint64_t index, bool absent)
{
    struct gyre_key key;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t word = mix(index * 8 + i + (absent ? UINT64_C(1) << 40 : 0) +
                            size * UINT64_C(0x9e3779b97f4a7c15));
        memcpy(key.bytes + i * 8, &word, 8);
    }
    return key;
}

static bool do_gyre(struct bench *b, enum op op, const struct gyre_key *key)
{
    struct gyre_put_options options;
    struct gyre_handle *handle;
    struct gyre_piece piece;
    volatile uint8_t sink;
    switch (op) {
    case OP_PUT:
        gyre_put_options_init(&options);
        options.length = b->size;
        return gyre_put(b->store, key, &options, b->body, b->size, NULL) == GYRE_OK;
    case OP_GET:
        if (gyre_get(b->store, key, 0, 0, &handle) != GYRE_OK)
            return false;
        if (gyre_handle_piece(handle, 0, &piece) != GYRE_OK)
            bench_die("piece", "not there");
        sink = piece.base[0];
        (void)sink;
        gyre_release(handle);
        return true;
    case OP_MISS: return gyre_get(b->store, key, 0, 0, &handle) == GYRE_NOT_FOUND;
    case OP_EXISTS: return gyre_exists(b->store, key, 0, GYRE_STRICT) == GYRE_OK;
    default: return gyre_exists(b->store, key, 0, GYRE_PROBABLE) == GYRE_OK;
    }
}

#ifdef GYRE_HAVE_LMDB
static bool do_lmdb(struct bench *b, enum op op, const struct gyre_key *key)
{
    MDB_val k = {sizeof *key, (void *)(uintptr_t)key}, v = {b->size, (void *)(uintptr_t)b->body};
    volatile uint8_t sink;
    if (op == OP_PUT) {
        MDB_txn *txn;
        return mdb_txn_begin(b->env, NULL, 0, &txn) == 0 && mdb_put(txn, b->dbi, &k, &v, 0) == 0 &&
               mdb_txn_commit(txn) == 0;
    }
    if (mdb_txn_renew(b->reader) != 0)
        return false;
    int rc = mdb_get(b->reader, b->dbi, &k, &v);
    if (rc == 0 && op == OP_GET) {
        sink = *(const uint8_t *)v.mv_data;
        (void)sink;
    }
    mdb_txn_reset(b->reader);
    return rc == (op == OP_MISS ? MDB_NOTFOUND : 0);
}
#endif

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Runs one operation on all objects in scattered order: p50 and p99 in ns. */
static void measure(struct bench *b, enum side side, enum op op, size_t n, uint64_t *p50_out,
                    uint64_t *p99_out)
{
    size_t step = n > 7 ? n / 2 + 3 : 1;
    while (n % step == 0 && step > 1)
        step--;
    for (size_t i = 0; i < n; i++) {
        struct gyre_key key = key_of(b->size, i * step % n, op == OP_MISS);
        uint64_t began = bench_now_ns(CLOCK_MONOTONIC);
#ifdef GYRE_HAVE_LMDB
        bool ok = side == SIDE_GYRE ? do_gyre(b, op, &key) : do_lmdb(b, op, &key);
#else
        bool ok = do_gyre(b, op, &key);
        (void)side;
#endif
        b->samples_ns[i] = bench_now_ns(CLOCK_MONOTONIC) - began;
        if (!ok)
            bench_die(op_names[op], "failed or gave a wrong answer");
    }
    qsort(b->samples_ns, n, sizeof *b->samples_ns, by_value);
    *p50_out = b->samples_ns[n / 2];
    *p99_out = b->samples_ns[n * 99 / 100];
}

static void open_gyre(struct bench *b, const char *dir, uint64_t bytes)
{
    char path[4096], message[512];
    snprintf(path, sizeof path, "%s/gyre", dir);
    struct gyre_data_dir data = {path, bytes};
    struct gyre_options options;
    gyre_options_init(&options);
    options.dirs = &data;
    options.n_dirs = 1;
    options.sync_interval_ms = 0;
    if (gyre_open(&options, &b->store, message, sizeof message) != GYRE_OK)
        bench_die("open", message);
}

static void open_lmdb(struct bench *b, const char *dir, uint64_t bytes)
{
#ifdef GYRE_HAVE_LMDB
    char path[4096];
    MDB_txn *txn;
    snprintf(path, sizeof path, "%s/lmdb", dir);
    mkdir(path, 0700);
    if (mdb_env_create(&b->env) != 0 || mdb_env_set_mapsize(b->env, bytes) != 0 ||
        mdb_env_open(b->env, path, MDB_NOSYNC | MDB_NOMETASYNC, 0600) != 0 ||
        mdb_txn_begin(b->env, NULL, 0, &txn) != 0 ||
        mdb_dbi_open(txn, NULL, MDB_CREATE, &b->dbi) != 0 || mdb_txn_commit(txn) != 0 ||
        mdb_txn_begin(b->env, NULL, MDB_RDONLY, &b->reader) != 0)
        bench_die("lmdb", "cannot be opened");
    mdb_txn_reset(b->reader);
#else
    (void)b, (void)dir, (void)bytes;
#endif
}

struct figure {
    uint64_t p50[MAX_ROUNDS], p99[MAX_ROUNDS];
};

static uint64_t median(const uint64_t *values, size_t n)
{
    uint64_t sorted[MAX_ROUNDS];
    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[n / 2];
}

static void print_row(bool json, size_t size, enum op op, struct figure figures[N_SIDES],
                      int n_sides, size_t rounds)
{
    uint64_t p50[N_SIDES] = {0}, p99[N_SIDES] = {0};
    for (int side = 0; side < n_sides; side++) {
        p50[side] = median(figures[side].p50, rounds);
        p99[side] = median(figures[side].p99, rounds);
    }
    if (json) {
        for (int side = 0; side < n_sides; side++)
            printf("{\"store\": \"%s\", \"op\": \"%s\", \"bytes\": %zu, \"rounds\": %zu, "
                   "\"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 "}\n",
                   side_names[side], op_names[op], size, rounds, p50[side], p99[side]);
        return;
    }
    printf("%8zu %-9s", size, op_names[op]);
    for (int side = 0; side < n_sides; side++)
        printf(" %9" PRIu64 " %9" PRIu64, p50[side], p99[side]);
    if (n_sides == 2)
        printf("  %6.2f", (double)p50[SIDE_LMDB] / (double)p50[SIDE_GYRE]);
    putchar('\n');
}

int main(int argc, char **argv)
{
    size_t rounds = 5, objects = 20000;
    const char *dir = NULL;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--objects") == 0 && i + 1 < argc)
            objects = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else
            bench_die(argv[i], "usage: engine [--rounds N] [--objects N] [--dir DIR] [--json]");
    }
    if (rounds < 1 || rounds > MAX_ROUNDS || objects < 100)
        bench_die("usage", "1 to 101 rounds, at least 100 objects");
    char made[] = "/tmp/gyre-bench-XXXXXX";
    if (!dir && !(dir = mkdtemp(made)))
        bench_die("temporary directory", "cannot be made");
    uint8_t *body = malloc(sizes[N_SIZES - 1]);
    struct bench b = {.body = body, .samples_ns = malloc(objects * sizeof(uint64_t))};
    if (!body || !b.samples_ns)
        bench_die("memory", "none");
    memset(body, 'x', sizes[N_SIZES - 1]);
    open_gyre(&b, dir, UINT64_C(4) << 30);
    open_lmdb(&b, dir, UINT64_C(4) << 30);
#ifdef GYRE_HAVE_LMDB
    const int n_sides = N_SIDES;
#else
    const int n_sides = 1;
#endif
    static struct figure figures[N_OPS][N_SIDES];
    if (!json)
        printf("%8s %-9s %9s %9s %9s %9s  %6s\n", "bytes", "op", "gyre p50", "p99", "lmdb p50",
               "p99", "ratio");
    for (int s = 0; s < N_SIZES; s++) {
        b.size = sizes[s];
        size_t n = objects * 4096 / (b.size < 4096 ? 4096 : b.size);
        n = n < 100 ? 100 : n;
        for (size_t round = 0; round < rounds; round++)
            for (int op = 0; op < N_OPS; op++)
                for (int turn = 0; turn < n_sides; turn++) {
                    int side = (int)((round + (size_t)turn) % (size_t)n_sides);
                    measure(&b, (enum side)side, (enum op)op, n, &figures[op][side].p50[round],
                            &figures[op][side].p99[round]);
                }
        for (int op = 0; op < N_OPS; op++)
            print_row(json, b.size, (enum op)op, figures[op], n_sides, rounds);
    }
    if (gyre_close(&b.store, 10000) != GYRE_OK)
        bench_die("close", "failed");
    if (dir == made) {
        char command[64];
        snprintf(command, sizeof command, "rm -r %s", made);
        return system(command) == 0 ? 0 : 1;
    }
    return 0;
}
