/* Large blocks: bulk puts until they are on the disk, and cold reads by a process that has just
 * started, of Gyre, of one file for each block, and of LMDB.
 *
 *   bench/bulk [--rounds N] [--total-mib N] [--sizes KIB,KIB,...] [--dir DIR] [--json]
 *
 * A put round makes an empty store, puts all blocks and waits for the disk (gyre_sync; syncfs;
 * mdb_env_sync), the clock running until the wait is over. Files are written under a name of their
 * own and renamed. Before a read round the page cache is emptied (drop_caches, so this wants root)
 * and a new process opens the store; the clock runs over the reads, in shuffled order. A `view`
 * lends the bytes, and one byte of each page is touched; a `copy` fills a buffer that has been
 * touched before. Gyre proves every checksum, its peers have none. LMDB runs with MDB_NOSYNC and,
 * for reading, MDB_NORDAHEAD and an exact MADV_WILLNEED of each value, its best tuning here.
 * Figures are GB/s (10^9), medians over the rounds, the peers in changing order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/gyre.h"
#include "bench/common.h"
#ifdef GYRE_HAVE_LMDB
#include <lmdb.h>
#endif

enum { MAX_SIZES = 8, MAX_ROUNDS = 101, PAGE = 4096 };
enum peer { PEER_GYRE, PEER_FILES, PEER_LMDB, N_PEERS };
enum act { ACT_PUT, ACT_VIEW, ACT_COPY, N_ACTS };

static const char *const peer_names[N_PEERS] = {"gyre", "files", "lmdb"};
static const char *const act_names[N_ACTS] = {"put", "view", "copy"};
#ifdef GYRE_HAVE_LMDB
static const int n_peers = N_PEERS;
#else
static const int n_peers = PEER_LMDB;
#endif

struct plan {
    const char *dir;
    size_t size;  /* bytes of a block */
    size_t count; /* blocks */
};

static double now_s(void)
{
    return (double)bench_now_ns(CLOCK_MONOTONIC) / 1e9;
}

/* All indices, shuffled the same way for everybody: no block's neighbour comes soon after it, so
 * that reading further than asked is no use. */
static size_t *shuffled(size_t count)
{
    size_t *order = malloc(count * sizeof *order);
    if (!order)
        bench_die("memory", "none");
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        size_t at = x % (i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

static struct gyre_key key_of(size_t index)
{
    return gyre_key_of_bytes(&index, sizeof index);
}

static void path_of(const struct plan *plan, enum peer peer, char path_out[4096])
{
    snprintf(path_out, 4096, "%s/%s", plan->dir, peer_names[peer]);
}

/* A body that a compressing disk cannot shorten, and that was touched before the clock runs. */
static uint8_t *make_body(size_t size)
{
    uint8_t *body = aligned_alloc(PAGE, size);
    if (!body)
        bench_die("memory", "none");
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(body + i, &x, 8);
    }
    return body;
}

static unsigned touch(const uint8_t *bytes, size_t len)
{
    unsigned sum = 0;
    for (size_t i = 0; i < len; sum += bytes[i], i += PAGE)
        ;
    return sum;
}

/* ---- Gyre ---- */

static struct gyre_store *gyre_begin(const struct plan *plan)
{
    char path[4096], message[512];
    path_of(plan, PEER_GYRE, path);
    uint64_t total = (uint64_t)plan->size * plan->count;
    struct gyre_data_dir data = {path, total + total / 4 + (UINT64_C(512) << 20)};
    struct gyre_options options;
    gyre_options_init(&options);
    options.dirs = &data;
    options.n_dirs = 1;
    options.sync_interval_ms = 0;
    options.segment_bytes = UINT64_C(32) << 20;
    options.average_object_bytes = plan->size < (1 << 20) ? (uint32_t)plan->size / 2 : 1 << 19;
    struct gyre_store *store = NULL;
    if (gyre_open(&options, &store, message, sizeof message) != GYRE_OK)
        bench_die("gyre_open", message);
    return store;
}

static void gyre_must(gyre_err err, const char *what)
{
    if (err != GYRE_OK)
        bench_die(what, gyre_err_text(err));
}

static double gyre_puts(const struct plan *plan, const uint8_t *body)
{
    struct gyre_store *store = gyre_begin(plan);
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.length = plan->size;
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++) {
        struct gyre_key key = key_of(i);
        gyre_must(gyre_put(store, &key, &options, body, plan->size, NULL), "gyre_put");
    }
    gyre_must(gyre_sync(store), "gyre_sync");
    double took = now_s() - began;
    gyre_must(gyre_close(&store, 10000), "gyre_close");
    return took;
}

static unsigned gyre_view(struct gyre_handle *handle, size_t size)
{
    unsigned sum = 0;
    struct gyre_piece piece;
    for (uint64_t offset = 0; offset < size; offset += piece.len) {
        gyre_must(gyre_handle_piece(handle, offset, &piece), "gyre_handle_piece");
        sum += touch(piece.base, piece.len);
    }
    return sum;
}

static double gyre_reads(const struct plan *plan, enum act act, uint8_t *buffer)
{
    size_t *order = shuffled(plan->count);
    struct gyre_store *store = gyre_begin(plan);
    unsigned sum = 0;
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++) {
        struct gyre_key key = key_of(order[i]);
        struct gyre_handle *handle;
        size_t copied = 0;
        unsigned flags = act == ACT_COPY ? GYRE_GET_LAZY : 0;
        gyre_must(gyre_get(store, &key, 0, flags, &handle), "gyre_get");
        if (act == ACT_VIEW)
            sum += gyre_view(handle, plan->size);
        for (size_t at = 0; act == ACT_COPY && at < plan->size; at += copied)
            gyre_must(gyre_copy(handle, at, buffer + at, plan->size - at, 0, &copied), "gyre_copy");
        gyre_release(handle);
    }
    double took = now_s() - began;
    buffer[0] ^= (uint8_t)sum;
    free(order);
    gyre_must(gyre_close(&store, 10000), "gyre_close");
    return took;
}

/* ---- One file for each block ---- */

static void write_file(const char *dir, size_t index, const uint8_t *body, size_t size)
{
    char made[4200], named[4200];
    snprintf(made, sizeof made, "%s/new-%zu", dir, index);
    snprintf(named, sizeof named, "%s/%zu", dir, index);
    int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die(made, strerror(errno));
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, body + at, size - at);
        if (n <= 0)
            bench_die(made, strerror(errno));
        at += (size_t)n;
    }
    if (close(fd) != 0 || rename(made, named) != 0)
        bench_die(named, strerror(errno));
}

static double files_puts(const struct plan *plan, const uint8_t *body)
{
    char path[4096];
    path_of(plan, PEER_FILES, path);
    if (mkdir(path, 0700) != 0)
        bench_die(path, strerror(errno));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++)
        write_file(path, i, body, plan->size);
    if (dir < 0 || syncfs(dir) != 0)
        bench_die(path, strerror(errno));
    double took = now_s() - began;
    return took;
}

static unsigned view_file(int fd, size_t size)
{
    const uint8_t *map = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        bench_die("mmap", strerror(errno));
    unsigned sum = touch(map, size);
    munmap((void *)(uintptr_t)map, size);
    return sum;
}

static double files_reads(const struct plan *plan, enum act act, uint8_t *buffer)
{
    size_t *order = shuffled(plan->count);
    char path[4096], name[4200];
    path_of(plan, PEER_FILES, path);
    unsigned sum = 0;
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++) {
        snprintf(name, sizeof name, "%s/%zu", path, order[i]);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            bench_die(name, strerror(errno));
        if (act == ACT_VIEW)
            sum += view_file(fd, plan->size);
        for (size_t at = 0; act == ACT_COPY && at < plan->size;) {
            ssize_t n = pread(fd, buffer + at, plan->size - at, (off_t)at);
            if (n <= 0)
                bench_die(name, strerror(errno));
            at += (size_t)n;
        }
        close(fd);
    }
    double took = now_s() - began;
    buffer[0] ^= (uint8_t)sum;
    free(order);
    return took;
}

/* ---- LMDB ---- */

#ifdef GYRE_HAVE_LMDB
static void lmdb_must(int rc, const char *what)
{
    if (rc != 0)
        bench_die(what, mdb_strerror(rc));
}

static MDB_env *lmdb_begin(const struct plan *plan, unsigned flags)
{
    char path[4096];
    path_of(plan, PEER_LMDB, path);
    mkdir(path, 0700);
    MDB_env *env;
    lmdb_must(mdb_env_create(&env), "mdb_env_create");
    lmdb_must(mdb_env_set_mapsize(env, plan->size * plan->count * 2 + (UINT64_C(1) << 30)),
              "mdb_env_set_mapsize");
    lmdb_must(mdb_env_open(env, path, flags, 0600), "mdb_env_open");
    return env;
}

static double lmdb_puts(const struct plan *plan, const uint8_t *body)
{
    MDB_env *env = lmdb_begin(plan, MDB_NOSYNC | MDB_NOMETASYNC);
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++) {
        struct gyre_key key = key_of(i);
        MDB_val k = {sizeof key, &key}, v = {plan->size, (void *)(uintptr_t)body};
        MDB_txn *txn;
        MDB_dbi dbi;
        lmdb_must(mdb_txn_begin(env, NULL, 0, &txn), "mdb_txn_begin");
        lmdb_must(mdb_dbi_open(txn, NULL, 0, &dbi), "mdb_dbi_open");
        lmdb_must(mdb_put(txn, dbi, &k, &v, 0), "mdb_put");
        lmdb_must(mdb_txn_commit(txn), "mdb_txn_commit");
    }
    lmdb_must(mdb_env_sync(env, 1), "mdb_env_sync");
    double took = now_s() - began;
    mdb_env_close(env);
    return took;
}

static double lmdb_reads(const struct plan *plan, enum act act, uint8_t *buffer)
{
    size_t *order = shuffled(plan->count);
    MDB_env *env = lmdb_begin(plan, MDB_RDONLY | MDB_NORDAHEAD);
    MDB_txn *txn;
    MDB_dbi dbi;
    lmdb_must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "mdb_txn_begin");
    lmdb_must(mdb_dbi_open(txn, NULL, 0, &dbi), "mdb_dbi_open");
    unsigned sum = 0;
    double began = now_s();
    for (size_t i = 0; i < plan->count; i++) {
        struct gyre_key key = key_of(order[i]);
        MDB_val k = {sizeof key, &key}, v;
        lmdb_must(mdb_get(txn, dbi, &k, &v), "mdb_get");
        uintptr_t start = (uintptr_t)v.mv_data & ~(uintptr_t)(PAGE - 1);
        madvise((void *)start, (uintptr_t)v.mv_data + v.mv_size - start, MADV_WILLNEED);
        if (act == ACT_VIEW)
            sum += touch(v.mv_data, v.mv_size);
        else
            memcpy(buffer, v.mv_data, v.mv_size);
    }
    double took = now_s() - began;
    buffer[0] ^= (uint8_t)sum;
    free(order);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return took;
}
#endif

/* ---- Rounds ---- */

static const struct {
    double (*puts)(const struct plan *plan, const uint8_t *body);
    double (*reads)(const struct plan *plan, enum act act, uint8_t *buffer);
} peers[] = {
    {gyre_puts, gyre_reads},
    {files_puts, files_reads},
#ifdef GYRE_HAVE_LMDB
    {lmdb_puts, lmdb_reads},
#endif
};

/* In a process of its own, which has seen nothing: GB/s. */
static double act_apart(const struct plan *plan, enum peer peer, enum act act)
{
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0)
        bench_die("pipe", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        bench_die("fork", strerror(errno));
    if (pid == 0) {
        uint8_t *buffer = make_body(plan->size);
        double took =
            act == ACT_PUT ? peers[peer].puts(plan, buffer) : peers[peer].reads(plan, act, buffer);
        _exit(write(pipe_fds[1], &took, sizeof took) == sizeof took ? 0 : 1);
    }
    close(pipe_fds[1]);
    double took = 0;
    bool got = read(pipe_fds[0], &took, sizeof took) == sizeof took;
    close(pipe_fds[0]);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0 || !got || took <= 0)
        bench_die(peer_names[peer], act_names[act]);
    return (double)plan->size * (double)plan->count / took / 1e9;
}

static void drop_caches(void)
{
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "3", 1) != 1)
        bench_die("/proc/sys/vm/drop_caches", "cold reads need root, to empty the page cache");
    close(fd);
}

static void empty(const struct plan *plan, enum peer peer)
{
    char path[4096], command[4200];
    path_of(plan, peer, path);
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0)
        bench_die(path, "cannot be removed");
    sync();
}

struct figures {
    double rate[N_ACTS][N_PEERS][MAX_ROUNDS];
};

static void run_round(const struct plan *plan, size_t round, struct figures *figures)
{
    for (int act = 0; act < N_ACTS; act++) {
        for (int turn = 0; turn < n_peers; turn++) {
            enum peer peer = (enum peer)((round + (size_t)turn) % (size_t)n_peers);
            if (act == ACT_PUT)
                empty(plan, peer);
            else
                drop_caches();
            figures->rate[act][peer][round] = act_apart(plan, peer, (enum act)act);
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "%zu KiB, round %zu: %s %s \033[K\r", plan->size >> 10, round + 1,
                        act_names[act], peer_names[peer]);
        }
    }
}

static void print_rows(const struct plan *plan, bool json, size_t rounds, struct figures *figures)
{
    for (int act = 0; act < N_ACTS; act++) {
        double median[N_PEERS] = {0};
        for (int peer = 0; peer < n_peers; peer++) {
            double *rates = figures->rate[act][peer];
            qsort(rates, rounds, sizeof *rates, bench_by_value);
            median[peer] = rates[rounds / 2];
            if (json)
                printf("{\"store\": \"%s\", \"op\": \"%s\", \"bytes\": %zu, \"blocks\": %zu, "
                       "\"rounds\": %zu, \"gb_s\": %.3f, \"min\": %.3f, \"max\": %.3f}\n",
                       peer_names[peer], act_names[act], plan->size, plan->count, rounds,
                       median[peer], rates[0], rates[rounds - 1]);
        }
        if (json)
            continue;
        printf("%8zu %-5s", plan->size >> 10, act_names[act]);
        for (int peer = 0; peer < n_peers; peer++) {
            double *rates = figures->rate[act][peer];
            printf("  %5.2f (%.2f-%.2f)", median[peer], rates[0], rates[rounds - 1]);
        }
        printf("  ");
        for (int peer = 1; peer < n_peers; peer++)
            printf("  %5.2f", median[PEER_GYRE] / median[peer]);
        putchar('\n');
    }
    fflush(stdout);
}

static size_t read_sizes(const char *text, size_t sizes_out[MAX_SIZES])
{
    char *end = (char *)(uintptr_t)text;
    for (size_t n = 0; n < MAX_SIZES; text = end + 1) {
        sizes_out[n++] = strtoul(text, &end, 10) << 10;
        if (*end == '\0' && sizes_out[n - 1] >= PAGE)
            return n;
    }
    bench_die(text, "up to 8 sizes in KiB, from 4, parted by commas");
}

int main(int argc, char **argv)
{
    size_t rounds = 5, total_mib = 1024, sizes[MAX_SIZES];
    size_t n_sizes = read_sizes("64,512,2048,8192,32768", sizes);
    const char *dir = NULL;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--total-mib") == 0 && i + 1 < argc)
            total_mib = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc)
            n_sizes = read_sizes(argv[++i], sizes);
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else
            bench_die(argv[i],
                      "usage: bulk [--rounds N] [--total-mib N] [--sizes KIB,...] [--dir DIR] "
                      "[--json]");
    }
    if (rounds < 1 || rounds > MAX_ROUNDS || total_mib < 64)
        bench_die("usage", "1 to 101 rounds, at least 64 MiB");
    char made[] = "/var/tmp/gyre-bulk-XXXXXX";
    if (!dir && !(dir = mkdtemp(made)))
        bench_die("temporary directory", "cannot be made");
    if (!json)
        printf("%8s %-5s  gyre, files%s: GB/s (min-max)  gyre over each\n", "KiB", "op",
               n_peers == N_PEERS ? ", lmdb" : "");
    static struct figures figures;
    for (size_t s = 0; s < n_sizes; s++) {
        struct plan plan = {dir, sizes[s], (total_mib << 20) / sizes[s]};
        for (size_t round = 0; round < rounds; round++)
            run_round(&plan, round, &figures);
        print_rows(&plan, json, rounds, &figures);
        for (int peer = 0; peer < n_peers; peer++)
            empty(&plan, (enum peer)peer);
    }
    return dir == made && rmdir(made) != 0;
}
