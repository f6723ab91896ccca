/* Recorded traces. Keys are folded to 32 bits by hashing; requests.c then numbers them. Two keys of
 * a trace of ten million become one with a chance of one in a hundred: no result feels it. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench/sim/random.h"
#include "bench/sim/requests.h"

struct reading {
    FILE *file;
    uint32_t fixed;
    bool force;
    size_t most;
    uint32_t n_groups;
    size_t group_room;
    struct sim_requests *out;
};

static bool full(const struct reading *r)
{
    return r->most != 0 && r->out->n >= r->most;
}

static void add(struct reading *r, uint64_t key, uint64_t size)
{
    struct sim_random random = {key};
    uint64_t kept = r->force || size == 0 ? r->fixed : size;
    sim_requests_add(r->out, (uint32_t)sim_next(&random),
                     kept < UINT32_MAX ? (uint32_t)kept : UINT32_MAX);
}

/* libCacheSim's general format: little-endian, packed. */
static bool read_oracle(struct reading *r)
{
    uint8_t record[24];
    while (!full(r) && fread(record, sizeof record, 1, r->file) == 1) {
        uint64_t key;
        uint32_t size;
        memcpy(&key, record + 4, sizeof key);
        memcpy(&size, record + 12, sizeof size);
        add(r, key, size);
    }
    return r->out->n > 0;
}

static bool read_words(struct reading *r, size_t width)
{
    uint8_t word[8] = {0};
    while (!full(r) && fread(word, width, 1, r->file) == 1) {
        uint64_t key;
        memcpy(&key, word, sizeof key);
        add(r, key, 0);
    }
    return r->out->n > 0;
}

static bool read_u32(struct reading *r)
{
    return read_words(r, 4);
}

static bool read_u64(struct reading *r)
{
    return read_words(r, 8);
}

/* A line of the ARC set: first block, blocks, two numbers more. */
static bool read_arc(struct reading *r)
{
    char line[256];
    while (!full(r) && fgets(line, sizeof line, r->file) != NULL) {
        uint64_t first, n;
        if (sscanf(line, "%" SCNu64 " %" SCNu64, &first, &n) != 2)
            return false;
        for (uint64_t i = 0; i < n && !full(r); i++)
            add(r, first + i, 0);
    }
    return r->out->n > 0;
}

/* One number a line; others (LIRS marks phases with a star) are passed over. */
static bool read_lines(struct reading *r)
{
    char line[256];
    while (!full(r) && fgets(line, sizeof line, r->file) != NULL) {
        char *end;
        uint64_t key = strtoull(line, &end, 10);
        if (end != line)
            add(r, key, 0);
    }
    return r->out->n > 0;
}

static bool read_sized(struct reading *r)
{
    char line[256];
    while (!full(r) && fgets(line, sizeof line, r->file) != NULL) {
        uint64_t key, size;
        if (sscanf(line, "%*s %" SCNu64 " %" SCNu64, &key, &size) != 2)
            return false;
        add(r, key, size);
    }
    return r->out->n > 0;
}

static bool read_address(struct reading *r)
{
    char line[256];
    while (!full(r) && fgets(line, sizeof line, r->file) != NULL) {
        uint64_t address;
        if (sscanf(line, "%*s %" SCNx64, &address) != 1)
            return false;
        add(r, address, 0);
    }
    return r->out->n > 0;
}

static void add_to_group(struct reading *r, uint64_t key)
{
    if (r->out->n == r->group_room) {
        r->group_room = r->group_room > 0 ? 2 * r->group_room : 1 << 16;
        r->out->group = realloc(r->out->group, r->group_room * sizeof(uint32_t));
        if (r->out->group == NULL) {
            fprintf(stderr, "policy_sim: out of memory: take a shorter trace\n");
            exit(1);
        }
    }
    r->out->group[r->out->n] = r->n_groups;
    add(r, key, 0);
}

/* Each line is a request for a chain of blocks: {"timestamp": ..., "hash_ids": [1, 2, 3]}. */
static bool read_mooncake(struct reading *r)
{
    char *line = NULL;
    size_t room = 0;
    while (!full(r) && getline(&line, &room, r->file) > 0) {
        char *at = strstr(line, "\"hash_ids\"");
        at = at != NULL ? strchr(at, '[') : NULL;
        if (at == NULL)
            break;
        r->n_groups++;
        for (at++; *at != ']' && *at != '\0';) {
            char *end;
            uint64_t key = strtoull(at, &end, 10);
            if (end == at)
                break;
            add_to_group(r, key);
            at = end + strspn(end, ", ");
        }
    }
    free(line);
    return r->out->n > 0;
}

static const struct {
    const char *name;
    bool (*read)(struct reading *r);
} formats[] = {
    {"oracleGeneral", read_oracle},
    {"arc", read_arc},
    {"lines", read_lines},
    {"sized", read_sized},
    {"address", read_address},
    {"mooncake", read_mooncake},
    {"u32", read_u32},
    {"u64", read_u64},
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static unsigned count_words(const char *line)
{
    unsigned n = 0;
    for (bool inside = false; *line != '\0'; line++) {
        bool space = isspace((unsigned char)*line) != 0;
        n += !space && !inside;
        inside = !space;
    }
    return n;
}

/* By the first line of a text, or by the name; binary files are oracleGeneral. */
static const char *guess(FILE *file, const char *path)
{
    char start[512];
    size_t n = fread(start, 1, sizeof start - 1, file);
    start[n] = '\0';
    rewind(file);
    if (strstr(path, ".arc") != NULL || strstr(path, ".lis") != NULL)
        return "arc";
    for (size_t i = 0; i < n; i++)
        if ((start[i] < ' ' && strchr("\n\r\t", start[i]) == NULL) || (start[i] & 0x80) != 0)
            return "oracleGeneral";
    start[strcspn(start, "\n")] = '\0';
    if (start[0] == '{')
        return "mooncake";
    if (strstr(start, "0x") != NULL)
        return "address";
    return count_words(start) == 1 ? "lines" : count_words(start) == 3 ? "sized" : "arc";
}

bool sim_trace_read(const char *path, const char *format, uint32_t fixed, bool force, size_t most,
                    struct sim_requests *requests_out, char *message, size_t message_size)
{
    struct reading r = {.fixed = fixed, .force = force, .most = most, .out = requests_out};
    bool ok = false;
    size_t i = 0;
    *requests_out = (struct sim_requests){0};
    r.file = fopen(path, "rb");
    if (r.file == NULL) {
        snprintf(message, message_size, "%s: %s", path, strerror(errno));
        return false;
    }
    if (format == NULL)
        format = guess(r.file, path);
    while (i < N_FORMATS && strcmp(formats[i].name, format) != 0)
        i++;
    if (i == N_FORMATS)
        snprintf(message, message_size, "no such format: %s", format);
    else if (!(ok = formats[i].read(&r)))
        snprintf(message, message_size, "%s: not a trace in format %s", path, format);
    fclose(r.file);
    if (ok)
        sim_requests_close(requests_out);
    else
        sim_requests_fini(requests_out);
    return ok;
}
