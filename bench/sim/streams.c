/* Made-up streams. Each shows one thing that a policy can be good or bad at. */
#include <math.h>
#include <stdlib.h>

#include "bench/sim/random.h"
#include "bench/sim/requests.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define BLOCK (2 * MIB)

/* ---- Popularity ---- */

/* Zipf over ranks 0..n-1, and which key has a rank. */
struct zipf {
    double *cumulated;
    uint32_t *key_of;
    uint32_t n;
};

static void zipf_init(struct zipf *zipf, uint32_t n, double alpha, struct sim_random *random)
{
    double sum = 0;
    zipf->n = n;
    zipf->cumulated = sim_alloc(n, sizeof *zipf->cumulated);
    zipf->key_of = sim_alloc(n, sizeof *zipf->key_of);
    for (uint32_t i = 0; i < n; i++) {
        sum += pow(i + 1.0, -alpha);
        zipf->cumulated[i] = sum;
        zipf->key_of[i] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        zipf->cumulated[i] /= sum;
    for (uint32_t i = n; i > 1; i--) { /* popular keys have no numbers of their own */
        uint32_t j = (uint32_t)sim_below(random, i);
        uint32_t key = zipf->key_of[i - 1];
        zipf->key_of[i - 1] = zipf->key_of[j];
        zipf->key_of[j] = key;
    }
}

static void zipf_fini(struct zipf *zipf)
{
    free(zipf->cumulated);
    free(zipf->key_of);
}

static uint32_t zipf_rank(const struct zipf *zipf, struct sim_random *random)
{
    double u = sim_unit(random);
    uint32_t low = 0, high = zipf->n - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (zipf->cumulated[middle] < u)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t zipf_key(const struct zipf *zipf, struct sim_random *random)
{
    return zipf->key_of[zipf_rank(zipf, random)];
}

/* A popular and a random rank change places. */
static void zipf_drift(struct zipf *zipf, struct sim_random *random)
{
    uint32_t a = zipf_rank(zipf, random);
    uint32_t b = (uint32_t)sim_below(random, zipf->n);
    uint32_t key = zipf->key_of[a];
    zipf->key_of[a] = zipf->key_of[b];
    zipf->key_of[b] = key;
}

/* ---- Blocks of one size ---- */

static uint32_t universe(const struct sim_stream *stream)
{
    return (uint32_t)(3 * stream->capacity_bytes / BLOCK);
}

static void make_kv(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    zipf_init(&zipf, universe(stream), 0.99, &random);
    for (size_t i = 0; i < stream->n_requests; i++)
        sim_requests_add(requests, zipf_key(&zipf, &random), BLOCK);
    zipf_fini(&zipf);
}

/* A tenth of the requests are for keys never asked for before or again, 256 in a row. */
static void make_scan(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    uint32_t n = universe(stream);
    uint32_t fresh = n;
    zipf_init(&zipf, n, 0.99, &random);
    while (requests->n < stream->n_requests) {
        for (int i = 0; i < 256 * 9; i++)
            sim_requests_add(requests, zipf_key(&zipf, &random), BLOCK);
        for (int i = 0; i < 256; i++)
            sim_requests_add(requests, fresh++, BLOCK);
    }
    zipf_fini(&zipf);
}

static void make_drift(struct sim_requests *requests, const struct sim_stream *stream,
                       uint64_t seed)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    zipf_init(&zipf, universe(stream), 0.99, &random);
    for (size_t i = 0; i < stream->n_requests; i++) {
        sim_requests_add(requests, zipf_key(&zipf, &random), BLOCK);
        if (i % 20 == 0)
            zipf_drift(&zipf, &random);
    }
    zipf_fini(&zipf);
}

/* Objects are born steadily and asked for less and less: the newest are the best. */
static void add_decay(struct sim_requests *requests, size_t n, uint32_t *newest, double span,
                      struct sim_random *random)
{
    for (size_t i = 0; i < n; i++) {
        double age = exp(sim_unit(random) * log(span)) - 1;
        if (sim_below(random, 4) == 0)
            ++*newest;
        uint32_t back = (uint32_t)age;
        sim_requests_add(requests, back < *newest ? *newest - back : 0, BLOCK);
    }
}

static void make_decay(struct sim_requests *requests, const struct sim_stream *stream,
                       uint64_t seed)
{
    struct sim_random random = {seed};
    uint32_t newest = universe(stream);
    add_decay(requests, stream->n_requests, &newest, 60.0 * universe(stream), &random);
}

/* Each request comes one to four times within the next hundred. */
static void make_burst(struct sim_requests *requests, const struct sim_stream *stream,
                       uint64_t seed)
{
    enum { SOON = 128 };
    struct sim_random random = {seed};
    struct zipf zipf;
    uint32_t later[SOON];
    uint32_t n_later = 0;
    zipf_init(&zipf, universe(stream), 0.99, &random);
    while (requests->n < stream->n_requests) {
        uint32_t key = zipf_key(&zipf, &random);
        sim_requests_add(requests, key, BLOCK);
        for (uint64_t again = sim_below(&random, 4); again > 0; again--) {
            if (n_later < SOON) {
                later[n_later++] = key;
                continue;
            }
            uint64_t i = sim_below(&random, SOON);
            sim_requests_add(requests, later[i], BLOCK);
            later[i] = key;
        }
    }
    zipf_fini(&zipf);
}

/* Half by popularity, half going round a set that is a quarter larger than the store. */
static void make_loop(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    uint32_t n = universe(stream);
    uint32_t round = (uint32_t)(stream->capacity_bytes * 5 / 4 / BLOCK);
    zipf_init(&zipf, n, 0.99, &random);
    for (size_t i = 0; i < stream->n_requests; i += 2) {
        sim_requests_add(requests, zipf_key(&zipf, &random), BLOCK);
        sim_requests_add(requests, n + (uint32_t)(i / 2 % round), BLOCK);
    }
    zipf_fini(&zipf);
}

/* Scans and decay by turns: what is right changes. */
static void make_phase(struct sim_requests *requests, const struct sim_stream *stream,
                       uint64_t seed)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    uint32_t n = universe(stream);
    uint32_t scan = n;
    uint32_t newest = 1u << 30;
    size_t turn = stream->n_requests / 6;
    zipf_init(&zipf, n, 0.99, &random);
    for (int phase = 0; phase < 6; phase++) {
        if (phase % 2 != 0) {
            add_decay(requests, turn, &newest, 60.0 * n, &random);
            continue;
        }
        for (size_t i = 0; i < turn; i++)
            sim_requests_add(requests, i % 2560 < 256 ? scan++ : zipf_key(&zipf, &random), BLOCK);
    }
    zipf_fini(&zipf);
}

/* ---- Many sizes ---- */

static uint32_t web_size(uint32_t key, double median, double most)
{
    struct sim_random random = {UINT64_C(0x9E3779B97F4A7C15) * (key + 1)};
    double size = median * exp(1.5 * sim_normal(&random));
    double least = median / 24;
    return (uint32_t)(size < least ? least : size > most ? most : size);
}

/* Three requests in ten are for something never asked for again. */
static void add_web(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed,
                    double median, double most, bool drift)
{
    struct sim_random random = {seed};
    struct zipf zipf;
    uint32_t n = (uint32_t)(stream->capacity_bytes / (median * 0.33));
    uint32_t fresh = n;
    zipf_init(&zipf, n, 0.9, &random);
    for (size_t i = 0; i < stream->n_requests; i++) {
        uint32_t key = sim_below(&random, 10) < 3 ? fresh++ : zipf_key(&zipf, &random);
        sim_requests_add(requests, key, web_size(key, median, most));
        if (drift && i % 20 == 0)
            zipf_drift(&zipf, &random);
    }
    zipf_fini(&zipf);
}

static void make_web(struct sim_requests *requests, const struct sim_stream *stream, uint64_t seed)
{
    add_web(requests, stream, seed, 24 << 10, 10 << 20, false);
}

static void make_web_drift(struct sim_requests *requests, const struct sim_stream *stream,
                           uint64_t seed)
{
    add_web(requests, stream, seed, 24 << 10, 10 << 20, true);
}

static void make_small(struct sim_requests *requests, const struct sim_stream *stream,
                       uint64_t seed)
{
    add_web(requests, stream, seed, 4 << 10, 1 << 20, false);
}

const struct sim_stream sim_streams[] = {
    {"kv", "2 MiB blocks, Zipf 0.99 over three times the store", 16 * GIB, 256 * MIB, 1000000,
     make_kv},
    {"kv-scan", "the same with a tenth of one-touch scans", 16 * GIB, 256 * MIB, 1000000,
     make_scan},
    {"kv-4g", "as kv, in a store of 4 GiB", 4 * GIB, 128 * MIB, 400000, make_kv},
    {"drift", "popularity changes all the time", 16 * GIB, 256 * MIB, 1000000, make_drift},
    {"decay", "objects are born and fade", 16 * GIB, 256 * MIB, 1000000, make_decay},
    {"burst", "each request one to four times in a row", 16 * GIB, 256 * MIB, 1000000, make_burst},
    {"loop", "half of it going round what does not fit", 16 * GIB, 256 * MIB, 1000000, make_loop},
    {"phase", "scans and fading by turns", 16 * GIB, 256 * MIB, 1200000, make_phase},
    {"web", "log-normal sizes about 24 KiB, three in ten once only", 3 * GIB, 32 * MIB, 1500000,
     make_web},
    {"web-drift", "the same with drift", 3 * GIB, 32 * MIB, 1500000, make_web_drift},
    {"small", "log-normal sizes about 4 KiB", 512 * MIB, 8 * MIB, 1500000, make_small},
};
const size_t sim_n_streams = sizeof sim_streams / sizeof sim_streams[0];

void sim_stream_make(const struct sim_stream *stream, uint32_t divisor, uint64_t seed,
                     struct sim_requests *requests_out, uint64_t *capacity_out,
                     uint64_t *segment_out)
{
    struct sim_stream scaled = *stream;
    scaled.capacity_bytes /= divisor;
    scaled.n_requests /= divisor;
    *requests_out = (struct sim_requests){0};
    *capacity_out = scaled.capacity_bytes;
    uint64_t segment = stream->segment_bytes;
    while (segment > MIB && scaled.capacity_bytes / segment < 48)
        segment /= 2;
    *segment_out = segment;
    stream->make(requests_out, &scaled, seed);
    sim_requests_close(requests_out);
}
