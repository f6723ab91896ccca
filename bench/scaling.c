/* How reads scale over threads and processes, and what a writer costs a reader: warm gets of 4 KiB.
 *
 *   scaling [--rounds N] [DIR]
 *
 * Rates are gets per second of processor time of each reader, added up, so that other work on the
 * machine does not count: what keeps them from adding up is what readers do to each other. The p99
 * of a reader is taken in processor time and on the wall, once with a loop that counts on the other
 * core and once with a writer at full speed there, in turn.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/gyre.h"
#include "bench/common.h"

enum { OBJECTS = 20000, LENGTH = 4096, GETS = 200000, SAMPLES = 50000, ROUNDS_MAX = 31 };

struct reader {
    struct gyre_store *store;
    int core;
    uint64_t first;
    double rate; /* gets per second of its processor time */
    pthread_t thread;
};

static const char *dir = "/tmp/gyre-scaling";
static struct gyre_key keys[OBJECTS];
static _Atomic int stop;

static void pin_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core % (size_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static struct gyre_store *open_store(enum gyre_open_mode mode)
{
    struct gyre_data_dir data = {dir, 0};
    struct gyre_options options;
    struct gyre_store *store;
    char message[512];
    gyre_options_init(&options);
    options.dirs = &data;
    options.n_dirs = 1;
    options.size_bytes = UINT64_C(512) << 20;
    options.mode = mode;
    if (gyre_open(&options, &store, message, sizeof message) != GYRE_OK)
        bench_die(dir, message);
    return store;
}

static void put_one(struct gyre_store *store, uint64_t n)
{
    static const uint8_t body[LENGTH];
    struct gyre_key key = n < OBJECTS ? keys[n] : gyre_key_of_bytes(&n, sizeof n);
    gyre_err err = gyre_put(store, &key, NULL, body, sizeof body, NULL);
    if (err != GYRE_OK && err != GYRE_BUSY)
        bench_die(dir, gyre_err_text(err));
}

static bool get_one(struct gyre_store *store, uint64_t n)
{
    struct gyre_handle *handle;
    struct gyre_piece piece;
    if (gyre_get(store, &keys[n % OBJECTS], 0, 0, &handle) != GYRE_OK)
        return false;
    bool there = gyre_handle_piece(handle, 0, &piece) == GYRE_OK &&
                 *(const volatile uint8_t *)piece.base == 0;
    gyre_release(handle);
    return there;
}

static void *read_on(void *data)
{
    struct reader *reader = data;
    pin_to(reader->core);
    for (uint64_t n = 0; n < OBJECTS; n++)
        (void)get_one(reader->store, n);
    uint64_t begun_ns = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < GETS; i++)
        if (!get_one(reader->store, reader->first + i * 7919))
            bench_die("get", "an object is not there");
    reader->rate = GETS * 1e9 / (double)(bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
    return NULL;
}

static double in_threads(struct gyre_store *store, int n)
{
    struct reader readers[8];
    double sum = 0;
    for (int i = 0; i < n; i++) {
        readers[i] = (struct reader){.store = store, .core = i, .first = (uint64_t)i * 5003};
        pthread_create(&readers[i].thread, NULL, read_on, &readers[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(readers[i].thread, NULL);
        sum += readers[i].rate;
    }
    return sum;
}

/* The caller has no store open, and so no threads to lose. */
static double in_processes(int n)
{
    double *rates = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (fork() != 0)
            continue;
        struct reader reader = {open_store(GYRE_OPEN_EXISTING), i, (uint64_t)i * 5003, 0, 0};
        (void)read_on(&reader);
        rates[i] = reader.rate;
        _exit(gyre_close(&reader.store, 10000) == GYRE_OK ? 0 : 1);
    }
    for (int i = 0; i < n; i++)
        wait(NULL);
    for (int i = 0; i < n; i++)
        sum += rates[i];
    munmap(rates, 4096);
    return sum;
}

/* ---- Beside a writer ---- */

static void *count_up(void *data)
{
    (void)data;
    pin_to(1);
    for (volatile uint64_t n = 0; atomic_load_explicit(&stop, memory_order_relaxed) == 0;)
        n++;
    return NULL;
}

static void *write_on(void *data)
{
    pin_to(1);
    for (uint64_t n = 0; atomic_load_explicit(&stop, memory_order_relaxed) == 0; n++)
        put_one(data, n % OBJECTS);
    return NULL;
}

/* p99 of a get beside another thread, in ns of `clock`. */
static double p99_beside(struct gyre_store *store, void *(*other)(void *), clockid_t clock)
{
    static double samples[SAMPLES];
    pthread_t thread;
    atomic_store(&stop, 0);
    pthread_create(&thread, NULL, other, store);
    pin_to(0);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t begun_ns = bench_now_ns(clock);
        (void)get_one(store, i * 7919);
        samples[i] = (double)(bench_now_ns(clock) - begun_ns);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    qsort(samples, SAMPLES, sizeof samples[0], bench_by_value);
    return samples[SAMPLES / 100 * 99];
}

/* ---- All ---- */

static void print_row(const char *name, double *values, int n, const char *unit)
{
    qsort(values, (size_t)n, sizeof values[0], bench_by_value);
    printf("%-44s %8.2f %s (%.2f to %.2f)\n", name, values[n / 2], unit, values[0], values[n - 1]);
}

int main(int argc, char **argv)
{
    double one[ROUNDS_MAX], threads[ROUNDS_MAX], processes[ROUNDS_MAX], cpu[ROUNDS_MAX],
        wall[ROUNDS_MAX];
    int rounds = 5;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            dir = argv[i];
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        bench_die("--rounds", "1 to 31");
    for (uint64_t n = 0; n < OBJECTS; n++)
        keys[n] = gyre_key_of_bytes(&n, sizeof n);
    struct gyre_store *store = open_store(GYRE_OPEN_RESET);
    for (uint64_t n = 0; n < OBJECTS; n++)
        put_one(store, n);
    for (int r = 0; r < rounds; r++) {
        double single = in_threads(store, 1);
        one[r] = single / 1e6;
        threads[r] = in_threads(store, 2) / single;
        double hog = p99_beside(store, count_up, CLOCK_THREAD_CPUTIME_ID);
        cpu[r] = p99_beside(store, write_on, CLOCK_THREAD_CPUTIME_ID) / hog;
        hog = p99_beside(store, count_up, CLOCK_MONOTONIC);
        wall[r] = p99_beside(store, write_on, CLOCK_MONOTONIC) / hog;
    }
    if (gyre_close(&store, 10000) != GYRE_OK)
        bench_die(dir, "cannot be closed");
    for (int r = 0; r < rounds; r++) {
        double single = in_processes(1);
        processes[r] = in_processes(2) / single;
    }
    print_row("one thread", one, rounds, "M gets/s");
    print_row("two threads / one", threads, rounds, "x");
    print_row("two processes / one", processes, rounds, "x");
    print_row("p99 beside a writer / a loop, processor time", cpu, rounds, "x");
    print_row("p99 beside a writer / a loop, wall", wall, rounds, "x");
    return 0;
}
