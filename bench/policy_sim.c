/* Hit ratios of the store's eviction against reference policies, on made-up streams and recorded
 * traces.
 *
 *   bench/policy_sim [STREAM...] [--trace FILE...] [options]
 *
 * The store under test is the engine itself, its policy and allocator, on a medium without bodies,
 * so whatever space it loses counts against it. The references are ideal and get the same bytes.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "bench/sim/policy.h"
#include "bench/sim/random.h"
#include "engine/policy.h"

enum { TRACES_MAX = 256, STREAMS_MAX = 32, PERCENTS_MAX = 16 };

struct options {
    const char *streams[STREAMS_MAX];
    const char *traces[TRACES_MAX];
    size_t n_streams, n_traces;
    double percents[PERCENTS_MAX]; /* of a trace's footprint */
    size_t n_percents;
    const char *format;
    uint32_t object_bytes;
    bool force_size;
    size_t most;
    uint32_t divisor;
    uint64_t seed;
    const char *only; /* a reference; NULL: all */
    bool no_store, json;
    struct sim_store store;
};

static const char help[] =
    "bench/policy_sim: hit ratios of the store's eviction beside FIFO, LRU, SIEVE, S3-FIFO,\n"
    "W-TinyLFU and Belady.\n"
    "\n"
    "  bench/policy_sim [STREAM...] [--trace FILE...] [options]\n"
    "\n"
    "Streams (default: all, if no trace is given): kv kv-scan kv-4g drift decay burst loop phase\n"
    "web web-drift small\n"
    "\n"
    "  --trace FILE        a recorded trace; may be repeated\n"
    "  --format NAME       oracleGeneral, arc, lines, sized, address, mooncake, u32, u64\n"
    "                      (default: by the file's looks)\n"
    "  --percent LIST      capacities in percent of a trace's footprint (default 1,3,10,30)\n"
    "  --object-bytes N    size of objects in traces that tell none (default 24000)\n"
    "  --fixed-size        the same size for all, whatever the trace says\n"
    "  --most N            use no more requests of a trace\n"
    "  --divide N          made-up streams N times smaller and shorter\n"
    "  --seed N            of the made-up streams (default 1)\n"
    "  --retention MODE    auto, fifo, frequency, recency (default auto)\n"
    "  --only POLICY       one reference\n"
    "  --references        references alone\n"
    "  --real              write bodies, as a server does\n"
    "  --dir DIR           where the store is made (default /dev/shm; with --real $TMPDIR or "
    "/tmp)\n"
    "  --json              one object a line\n";

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/policy_sim: %s%s%s\n", what, why[0] != '\0' ? ": " : "", why);
    exit(1);
}

/* ---- Options ---- */

static int retention_of(const char *name)
{
    static const char *const names[] = {"kept", "auto", "fifo", "frequency", "recency"};
    for (int i = ENG_RETENTION_AUTO; i <= ENG_RETENTION_RECENCY; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    die("--retention: auto, fifo, frequency or recency, not", name);
}

static uint64_t number(const char *option, const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    if (end == text || *end != '\0')
        die(option, "a number is wanted");
    return n;
}

static void percents(struct options *o, const char *list)
{
    o->n_percents = 0;
    while (*list != '\0' && o->n_percents < PERCENTS_MAX) {
        char *end;
        o->percents[o->n_percents++] = strtod(list, &end);
        if (end == list)
            die("--percent", "numbers with commas are wanted");
        list = *end == ',' ? end + 1 : end;
    }
}

/* Options with a value. */
static bool take_value(struct options *o, const char *option, const char *value)
{
    if (strcmp(option, "--trace") == 0 && o->n_traces < TRACES_MAX)
        o->traces[o->n_traces++] = value;
    else if (strcmp(option, "--format") == 0)
        o->format = value;
    else if (strcmp(option, "--percent") == 0)
        percents(o, value);
    else if (strcmp(option, "--object-bytes") == 0)
        o->object_bytes = (uint32_t)number(option, value);
    else if (strcmp(option, "--most") == 0)
        o->most = number(option, value);
    else if (strcmp(option, "--divide") == 0)
        o->divisor = (uint32_t)number(option, value);
    else if (strcmp(option, "--seed") == 0)
        o->seed = number(option, value);
    else if (strcmp(option, "--retention") == 0)
        o->store.retention = retention_of(value);
    else if (strcmp(option, "--only") == 0)
        o->only = value;
    else if (strcmp(option, "--dir") == 0)
        o->store.dir = value;
    else
        return false;
    return true;
}

static bool take_flag(struct options *o, const char *option)
{
    if (strcmp(option, "--fixed-size") == 0)
        o->force_size = true;
    else if (strcmp(option, "--references") == 0)
        o->no_store = true;
    else if (strcmp(option, "--real") == 0)
        o->store.real = true;
    else if (strcmp(option, "--json") == 0)
        o->json = true;
    else
        return false;
    return true;
}

static void parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.object_bytes = 24000, .divisor = 1, .seed = 1};
    o->store.stripes = 1;
    percents(o, "1,3,10,30");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        }
        if (take_flag(o, argv[i]))
            continue;
        if (argv[i][0] == '-') {
            if (i + 1 == argc || !take_value(o, argv[i], argv[i + 1]))
                die(argv[i], "no such option, or its value is missing; see --help");
            i++;
        } else if (o->n_streams < STREAMS_MAX) {
            o->streams[o->n_streams++] = argv[i];
        }
    }
    const char *tmp = getenv("TMPDIR");
    if (o->store.dir == NULL)
        o->store.dir = !o->store.real ? "/dev/shm" : tmp != NULL ? tmp : "/tmp";
    if (o->only != NULL && sim_reference_of(o->only) == NULL)
        die("--only: no such policy", o->only);
    if (o->divisor == 0 || o->object_bytes == 0)
        die("--divide and --object-bytes", "at least 1");
}

/* ---- Showing ---- */

struct title {
    const char *name; /* of the stream or trace */
    double percent;   /* 0: a stream */
};

static void show_progress(void *data, size_t done, size_t total)
{
    const char *what = data;
    fprintf(stderr, "\r%-40.40s %3zu %%", what, done * 100 / (total > 0 ? total : 1));
}

static void show(const struct options *o, const struct title *title, const char *policy,
                 uint64_t capacity, const struct sim_result *result)
{
    double hit = (double)result->hits / (double)(result->requests | (result->requests == 0));
    double byte_hit = (double)result->hit_bytes / (double)(result->bytes | (result->bytes == 0));
    double prefix =
        (double)result->prefix_hits / (double)(result->requests | (result->requests == 0));
    double wa =
        1 + (double)result->rewritten / (double)(result->inserted | (result->inserted == 0));
    if (isatty(2))
        fprintf(stderr, "\r%60s\r", "");
    if (o->json)
        printf("{\"stream\": \"%s\", \"percent\": %g, \"policy\": \"%s\", \"capacity_bytes\": "
               "%" PRIu64 ", \"requests\": %" PRIu64 ", \"hit_ratio\": %.5f, \"byte_hit_ratio\": "
               "%.5f, \"prefix_hit_ratio\": %.5f, \"write_amplification\": %.4f, "
               "\"mode_switches\": %" PRIu64 ", \"mode\": \"%c\"}\n",
               title->name, title->percent, policy, capacity, result->requests, hit, byte_hit,
               prefix, wa, result->mode_switches, result->mode == ENG_MODE_R ? 'R' : 'F');
    else if (strcmp(policy, "gyre") == 0)
        printf("%-24s %5g  %-10s %.4f  bytes %.4f  prefix %.4f  wa %.3f  %c, %" PRIu64
               " switches, %" PRIu64 " hops, %" PRIu64 " promoted, %" PRIu64 " copied, %" PRIu64
               " remembered\n",
               title->name, title->percent, policy, hit, byte_hit, prefix, wa,
               result->mode == ENG_MODE_R ? 'R' : 'F', result->mode_switches, result->hops,
               result->promotions, result->copies, result->ghost_finds);
    else
        printf("%-24s %5g  %-10s %.4f  bytes %.4f  prefix %.4f\n", title->name, title->percent,
               policy, hit, byte_hit, prefix);
    fflush(stdout);
}

/* ---- Running ---- */

static void run_all(const struct options *o, const struct title *title, struct sim_run *run,
                    uint64_t segment_bytes)
{
    struct sim_result result;
    char message[1000];
    struct sim_store store = o->store;
    run->progress = isatty(2) ? show_progress : NULL;
    run->progress_data = (void *)(uintptr_t)title->name;
    store.segment_bytes = segment_bytes;
    if (!o->no_store) {
        if (!sim_store_run(run, &store, &result, message, sizeof message))
            die(title->name, message);
        show(o, title, "gyre", run->capacity_bytes, &result);
    }
    for (size_t i = 0; i < sim_n_references; i++) {
        if (o->only != NULL && strcmp(o->only, sim_references[i].name) != 0)
            continue;
        result = (struct sim_result){0};
        sim_references[i].run(run, &result);
        show(o, title, sim_references[i].name, run->capacity_bytes, &result);
    }
}

static void run_stream(const struct options *o, const struct sim_stream *stream)
{
    struct sim_requests requests;
    struct title title = {.name = stream->name};
    uint64_t capacity, segment;
    sim_stream_make(stream, o->divisor, o->seed, &requests, &capacity, &segment);
    struct sim_run run = {
        .requests = &requests, .capacity_bytes = capacity, .warm = requests.n / 4};
    run_all(o, &title, &run, segment);
    sim_requests_fini(&requests);
}

/* As many segments as there can be up to 96, so that a ring's tenth is several. */
static uint64_t segment_for(uint64_t capacity)
{
    uint64_t segment = UINT64_C(1) << 20;
    while (capacity / segment > 96)
        segment *= 2;
    return segment;
}

static void run_trace(const struct options *o, const char *path)
{
    enum { SEGMENTS_LEAST = 8, OBJECTS_LEAST = 200 };
    struct sim_requests requests;
    char message[1000];
    const char *base = strrchr(path, '/');
    if (!sim_trace_read(path, o->format, o->object_bytes, o->force_size, o->most, &requests,
                        message, sizeof message))
        die("--trace", message);
    for (size_t i = 0; i < o->n_percents; i++) {
        struct title title = {base != NULL ? base + 1 : path, o->percents[i]};
        uint64_t capacity = (uint64_t)((double)requests.footprint_bytes * o->percents[i] / 100);
        struct sim_run run = {.requests = &requests, .capacity_bytes = capacity};
        uint64_t mean = requests.footprint_bytes / requests.n_ids;
        if (capacity / segment_for(capacity) < SEGMENTS_LEAST || capacity / mean < OBJECTS_LEAST) {
            fprintf(stderr, "%s at %g %%: too few bytes for a store, left out\n", title.name,
                    title.percent);
            continue;
        }
        run_all(o, &title, &run, segment_for(capacity));
    }
    sim_requests_fini(&requests);
}

int main(int argc, char **argv)
{
    struct options o;
    parse(&o, argc, argv);
    for (size_t i = 0; i < sim_n_streams; i++) {
        bool wanted = o.n_streams == 0 && o.n_traces == 0;
        for (size_t k = 0; k < o.n_streams; k++)
            wanted = wanted || strcmp(o.streams[k], sim_streams[i].name) == 0;
        if (wanted)
            run_stream(&o, &sim_streams[i]);
    }
    for (size_t i = 0; i < o.n_traces; i++)
        run_trace(&o, o.traces[i]);
    return 0;
}
