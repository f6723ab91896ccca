/* SHA-256 against published digests, from many threads; and what is promised of the table hashes.
 */
#include "engine/base/hash.h"

#include <pthread.h>

#include "tests/harness/test.h"

static void from_hex(const char *hex, uint8_t out[32])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        int hi = (int)(strchr(digits, hex[2 * i]) - digits);
        int lo = (int)(strchr(digits, hex[2 * i + 1]) - digits);
        out[i] = (uint8_t)(hi << 4 | lo);
    }
}

static const struct {
    const char *text;
    const char *hex;
} fips[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void check_fips(void)
{
    for (size_t i = 0; i < sizeof fips / sizeof *fips; i++) {
        uint8_t want[32];
        uint8_t got[32];
        const struct iovec piece = {(void *)(uintptr_t)fips[i].text, strlen(fips[i].text)};
        from_hex(fips[i].hex, want);
        eng_sha256(&piece, 1, got);
        CHECK_EQ_MEM(got, want, 32);
    }
}

TEST(sha256_published_digests)
{
    check_fips();
    uint8_t want[32];
    uint8_t got[32];
    from_hex(fips[0].hex, want);
    eng_sha256(NULL, 0, got);
    CHECK_EQ_MEM(got, want, 32);
}

TEST(sha256_of_pieces_is_that_of_the_whole)
{
    struct test_rng rng = {test_seed()};
    uint8_t bytes[1000];
    test_rng_fill(&rng, bytes, sizeof bytes);
    uint8_t want[32];
    eng_sha256(&(struct iovec){bytes, sizeof bytes}, 1, want);
    for (int round = 0; round < 100; round++) {
        size_t a = test_rng_below(&rng, sizeof bytes + 1);
        size_t b = a + test_rng_below(&rng, sizeof bytes - a + 1);
        const struct iovec pieces[] = {
            {bytes, a}, {NULL, 0}, {bytes + a, b - a}, {bytes + b, sizeof bytes - b}};
        uint8_t got[32];
        eng_sha256(pieces, 4, got);
        CHECK_EQ_MEM(got, want, 32);
    }
}

static void *digests(void *unused)
{
    for (int i = 0; i < 200; i++)
        check_fips();
    return unused;
}

TEST(sha256_on_many_short_threads)
{
    for (int round = 0; round < 10; round++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            CHECK(pthread_create(&threads[i], NULL, digests, NULL) == 0);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
}

static void digest_at_the_end(void *unused)
{
    (void)unused;
    check_fips();
}

static void *leave_one_digest_to_the_end(void *key)
{
    check_fips();
    CHECK(pthread_setspecific(*(pthread_key_t *)key, key) == 0);
    return NULL;
}

/* The other key is younger, so its destructor finds the thread's context gone. */
TEST(sha256_in_a_destructor_of_the_thread)
{
    pthread_key_t key;
    pthread_t thread;
    check_fips();
    CHECK(pthread_key_create(&key, digest_at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, leave_one_digest_to_the_end, &key) == 0);
    pthread_join(thread, NULL);
}

/* Stores keep their seeds; these values may never change. */
TEST(key_hash_is_fixed)
{
    uint8_t key[32];
    for (uint8_t i = 0; i < 32; i++)
        key[i] = i;
    CHECK_EQ_U64(eng_key_hash(key, 1, 2), UINT64_C(0x90E354E7D9E23380));
    CHECK_EQ_U64(eng_mix64(0), 0);
    CHECK_EQ_U64(eng_mix64(1), UINT64_C(0x5692161D100B05E5));
}

TEST(key_hash_moves_half_of_the_bits_for_each_input_bit)
{
    struct test_rng rng = {test_seed()};
    enum { ROUNDS = 400 };
    for (unsigned bit = 0; bit < 256 + 128; bit++) {
        unsigned moved = 0;
        for (int round = 0; round < ROUNDS; round++) {
            uint8_t in[48];
            uint64_t seeds[4];
            test_rng_fill(&rng, in, sizeof in);
            memcpy(seeds, in + 32, 16);
            uint64_t before = eng_key_hash(in, seeds[0], seeds[1]);
            in[bit / 8] ^= (uint8_t)(1 << bit % 8);
            memcpy(seeds, in + 32, 16);
            uint64_t after = eng_key_hash(in, seeds[0], seeds[1]);
            moved += (unsigned)__builtin_popcountll(before ^ after);
        }
        CHECK_MSG(moved > ROUNDS * 29 && moved < ROUNDS * 35, "bit %u moves %u of 64", bit,
                  moved / ROUNDS);
    }
}

/* Keys that differ in one word only, with zero seeds: the worst case for a product. */
TEST(key_hash_spreads_counters)
{
    enum { KEYS = 1 << 14, BUCKETS = 1 << 10 };
    for (unsigned word = 0; word < 4; word++) {
        static unsigned low[BUCKETS];
        static unsigned high[BUCKETS];
        memset(low, 0, sizeof low);
        memset(high, 0, sizeof high);
        for (uint64_t i = 0; i < KEYS; i++) {
            uint8_t key[32] = {0};
            memcpy(key + 8 * word, &i, 8);
            uint64_t hash = eng_key_hash(key, 0, 0);
            low[hash % BUCKETS]++;
            high[hash >> 54]++;
        }
        for (unsigned b = 0; b < BUCKETS; b++)
            CHECK_MSG(low[b] < 48 && high[b] < 48, "word %u crowds bucket %u", word, b);
    }
}
