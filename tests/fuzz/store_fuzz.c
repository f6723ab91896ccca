/* Opening stores whose files were changed: any answer but wrong bytes, a broken index or a crash is
 * right.
 *
 * A small store in memory is made once, in three states: closed in order, left by a killed process,
 * and left by a power loss. The input chooses one and lists edits of its files (bytes, swaps,
 * lengths, file kinds; checksums made right again where asked). After each run the pages that
 * differ are put back. Objects' bytes follow from number and version, so whatever is found can be
 * judged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/hash.h"
#include "engine/check.h"
#include "engine/doc.h"
#include "engine/geometry.h"
#include "engine/seal.h"
#include "engine/sync.h"
#include "engine/writer.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS 40
#define VERSIONS 4 /* 0 is none */
#define STORE_BYTES (UINT64_C(64) << 20)
#define MUST(cond) ((cond) ? (void)0 : fail(__LINE__, #cond))

enum file { VOLUME, DATA, LOCK, N_FILES };
enum state { CLOSED, KILLED, POWER, N_STATES };

static const char *const names[N_FILES] = {"volume.gyre", "stripe-0000.gyre", "lock.gyre"};
static char dir[64];
static char message[1024];

/* A state's files, as they should be. */
struct image {
    uint8_t *bytes;
    size_t len;
    bool *is_zero; /* by page */
};
static struct image images[N_STATES][N_FILES];
static struct eng_superblock super;

static _Noreturn void fail(int line, const char *what)
{
    fprintf(stderr, "store_fuzz.c:%d: %s: %s: %s\n", line, what, strerror(errno), message);
    abort();
}

static const char *path_of(enum file file)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, names[file]);
    return path;
}

/* ---- Objects ---- */

static void key_of(uint32_t number, uint8_t key[32])
{
    for (uint32_t i = 0; i < 4; i++)
        eng_store_u64(key + 8 * i, eng_mix64((uint64_t)number << 8 | i) + 1);
}

static size_t len_of(uint32_t number, uint32_t version)
{
    static const size_t lens[] = {0, 1, 100, 500, 4000, 9000, 16300, 66000, 1200};

    return number == 16 ? 300000 : lens[number % GYRE_ARRAY_LEN(lens)] + version;
}

/* The bytes of a version, made once. */
static const uint8_t *bytes_of(uint32_t number, uint32_t version)
{
    static uint8_t *made[OBJECTS][VERSIONS];
    size_t len = len_of(number, version);

    MUST(number < OBJECTS && version < VERSIONS);
    if (made[number][version] == NULL) {
        uint8_t *bytes = malloc(len + 8);
        MUST(bytes != NULL);
        for (size_t i = 0; i < len; i += 8)
            eng_store_u64(bytes + i, eng_mix64((uint64_t)number << 32 | version << 20 | i));
        made[number][version] = bytes;
    }
    return made[number][version];
}

static void put(struct eng_store *store, uint32_t number, uint32_t version)
{
    size_t len = len_of(number, version);
    size_t piece = eng_part_max_bytes(store);
    const uint8_t *bytes = bytes_of(number, version);
    uint8_t key[32];
    uint64_t serial;
    struct eng_part parts[4];
    struct eng_part_row rows[4];
    struct eng_commit commit = {
        .spec = {.key = key,
                 .type = ENG_DOC,
                 .total_len = len,
                 .pool = number % 5 == 1 ? ENG_POOL_META : ENG_POOL_MAIN},
        .meta = &version,
        .meta_len = sizeof version,
        .body = bytes,
        .body_len = len,
    };

    key_of(number, key);
    if (len >= ENG_BIG_BODY) {
        commit.spec.type = ENG_HEAD;
        commit.spec.pool = ENG_POOL_MAIN;
        commit.spec.object_serial = eng_object_serial(store, commit.spec.pool, key);
        for (size_t at = 0; at < len; at += piece) {
            size_t take = len - at < piece ? len - at : piece;
            struct eng_part *part = &parts[commit.n_parts];
            if (eng_part_begin(store, &commit.spec, (uint32_t)commit.n_parts, 0, 0, take, part) !=
                GYRE_OK)
                goto out;
            MUST(eng_part_write(part, bytes + at, take) == GYRE_OK &&
                 eng_part_finish(part, &commit.spec) == GYRE_OK);
            rows[commit.n_parts] = (struct eng_part_row){
                .length = take, .part_no = (uint32_t)commit.n_parts, .crc = part->crc};
            commit.n_parts++;
        }
        commit.spec.parts = (uint32_t)commit.n_parts;
        commit.parts = parts;
        commit.body = rows;
        commit.body_len = commit.n_parts * sizeof rows[0];
    }
    if (eng_commit(store, &commit, &serial) == GYRE_OK)
        commit.n_parts = 0;
out:
    for (size_t i = 0; i < commit.n_parts; i++)
        eng_part_abort(&parts[i]);
}

static bool same(uint32_t number, uint32_t version, size_t off, const uint8_t *bytes, size_t len)
{
    return version < VERSIONS && off + len <= len_of(number, version) &&
           memcmp(bytes, bytes_of(number, version) + off, len) == 0;
}

static void judge_parts(struct eng_store *store, const struct eng_ref *head, uint32_t number,
                        uint32_t version)
{
    size_t at = 0;

    for (size_t i = 0; i < head->doc->body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row;
        struct eng_ref part;
        uint8_t key[32];
        memcpy(&row, head->body + i * sizeof row, sizeof row);
        eng_part_key(head->doc->key, head->doc->object_serial, row.part_no, row.attempt, row.sub,
                     key);
        const struct eng_want want = {key, head->doc->pool, true, head->doc->object_serial};
        if (eng_find(store, &want, 0, ENG_ANY_AGE, &part) != GYRE_OK)
            return;
        if (part.doc->body_len == row.length && eng_verify(&part, 0, row.length) == GYRE_OK)
            MUST(same(number, version, at, part.body, row.length));
        at += row.length;
        eng_ref_release(&part);
    }
}

/* What is found under a key is one of its versions, whole. */
static void judge(struct eng_store *store, uint32_t number, bool forged)
{
    uint8_t key[32];
    uint32_t version;
    struct eng_ref ref;

    key_of(number, key);
    for (uint8_t pool = 0; pool < 2; pool++) {
        const struct eng_want want = {key, pool, false, 0};
        if (eng_find(store, &want, 0, ENG_ANY_AGE, &ref) != GYRE_OK)
            continue;
        if (!forged) {
            MUST(ref.doc->meta_len == sizeof version);
            memcpy(&version, ref.meta, sizeof version);
            MUST(ref.doc->total_len == len_of(number, version));
            if (ref.doc->type == ENG_HEAD)
                judge_parts(store, &ref, number, version);
            else
                MUST(ref.doc->body_len == len_of(number, version) &&
                     same(number, version, 0, ref.body, ref.doc->body_len));
        }
        eng_ref_release(&ref);
    }
}

/* ---- The three states ---- */

static gyre_err open_store(struct eng_store **store_out)
{
    struct eng_dir where = {dir, 0};
    const struct eng_open open = {
        .dirs = &where,
        .n_dirs = 1,
        .size_bytes = STORE_BYTES,
        .may_create = true,
        .message = message,
        .message_size = sizeof message,
    };

    return eng_store_open(&open, store_out);
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

static void find_zero_pages(struct image *image)
{
    image->is_zero = calloc(image->len / ENG_PAGE + 1, sizeof *image->is_zero);
    MUST(image->is_zero != NULL);
    for (size_t at = 0; at < image->len; at += ENG_PAGE)
        image->is_zero[at / ENG_PAGE] =
            all_zero(image->bytes + at, image->len - at < ENG_PAGE ? image->len - at : ENG_PAGE);
}

static void take_image(enum state state)
{
    for (enum file file = 0; file < N_FILES; file++) {
        struct image *image = &images[state][file];
        struct stat status;
        int fd = open(path_of(file), O_RDONLY);
        MUST(fd >= 0 && fstat(fd, &status) == 0);
        image->len = (size_t)status.st_size;
        image->bytes = malloc(image->len);
        MUST(image->bytes != NULL && pread(fd, image->bytes, image->len, 0) == (ssize_t)image->len);
        close(fd);
        find_zero_pages(image);
    }
}

/* Another boot in the note makes the next opening believe that the power went. */
static void forget_boot(struct image *lock)
{
    char *boot = memmem(lock->bytes, lock->len, "boot ", 5);

    if (boot != NULL)
        boot[5] = boot[5] == '0' ? '1' : '0';
}

static void make_states(void)
{
    struct eng_store *store;

    MUST(open_store(&store) == GYRE_OK);
    super = store->super;
    for (uint32_t i = 0; i < OBJECTS; i++)
        put(store, i, 1);
    MUST(eng_sync_store(store, false) == GYRE_OK);
    for (uint32_t i = 0; i < OBJECTS; i += 2)
        put(store, i, 2);
    for (uint32_t i = 0; i < OBJECTS; i += 7) {
        uint8_t key[32];
        key_of(i, key);
        (void)!eng_delete(store, ENG_POOL_MAIN, key, ENG_ALWAYS, 0, false);
    }
    take_image(KILLED);
    take_image(POWER);
    forget_boot(&images[POWER][LOCK]);
    MUST(eng_store_close(store, true) == GYRE_OK);
    take_image(CLOSED);
}

/* Makes a file what the image says, touching only pages that differ. */
static void put_back(enum state state, enum file file)
{
    const struct image *image = &images[state][file];
    struct stat status;
    const char *path = path_of(file);

    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) {
        unlink(path);
        rmdir(path);
    }
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0 && ftruncate(fd, (off_t)image->len) == 0);
    uint8_t *now = mmap(NULL, image->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(now != MAP_FAILED);
    for (size_t page = 0; page * ENG_PAGE < image->len; page++) {
        size_t at = page * ENG_PAGE;
        size_t n = image->len - at < ENG_PAGE ? image->len - at : ENG_PAGE;
        if (!image->is_zero[page] && memcmp(now + at, image->bytes + at, n) != 0)
            memcpy(now + at, image->bytes + at, n);
    }
    for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0 && (size_t)at < image->len;
         at = lseek(fd, at, SEEK_DATA)) {
        off_t end = lseek(fd, at, SEEK_HOLE);
        for (; at < end && (size_t)at < image->len; at += ENG_PAGE) {
            size_t n = image->len - (size_t)at < ENG_PAGE ? image->len - (size_t)at : ENG_PAGE;
            if (image->is_zero[at / ENG_PAGE] && !all_zero(now + at, n))
                memset(now + at, 0, n);
        }
    }
    munmap(now, image->len);
    close(fd);
}

#include "tests/fuzz/store_edits.h"

/* ---- Runs ---- */

/* Two versions of a key may both be led to by a made-up directory; all else must hold whatever the
 * bytes. */
static void hear(void *data, const char *line)
{
    bool *forged = data;

    if (strstr(line, " does not hold") != NULL && strstr(line, "E49 ") == NULL && !*forged) {
        fprintf(stderr, "%s\n", line);
        abort();
    }
}

static void clean_up(void)
{
    for (enum file file = 0; file < N_FILES; file++) {
        unlink(path_of(file));
        rmdir(path_of(file));
    }
    rmdir(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    strcpy(dir,
           access("/dev/shm", W_OK) == 0 ? "/dev/shm/gyre-fuzz-XXXXXX" : "/tmp/gyre-fuzz-XXXXXX");
    MUST(mkdtemp(dir) != NULL);
    atexit(clean_up);
    make_states();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size, false};
    struct eng_store *store;
    struct eng_check_report report;
    uint8_t how = take8(&in);
    enum state state = how % N_STATES;

    for (enum file file = 0; file < N_FILES; file++)
        put_back(state, file);
    while (in.left > 0)
        edit(&in);
    if (open_store(&store) != GYRE_OK) {
        MUST(message[0] != '\0');
        return 0;
    }
    for (uint32_t i = 0; i < OBJECTS; i++)
        judge(store, i, in.forged);
    (void)!eng_check(store, how / N_STATES % 2 == 0, hear, &in.forged, &report);
    if (how >= 192) {
        for (uint32_t i = 0; i < 10; i++)
            put(store, i, 3);
        for (uint32_t i = 0; i < 10; i++)
            judge(store, i, in.forged);
    }
    (void)!eng_store_close(store, how / 8 % 2 == 0);
    return 0;
}
