/* Objects whose key and bytes follow from a number and a version, put and got through the engine's
 * own calls. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/writer.h"
#include "tests/harness/test.h"

static inline void object_key(uint32_t number, uint8_t key[32])
{
    struct test_rng rng = {number + UINT64_C(0x6b6579)};

    test_rng_fill(&rng, key, 32);
}

static inline uint8_t *object_bytes(uint32_t number, uint32_t version, size_t len)
{
    struct test_rng rng = {((uint64_t)version << 32 | number) + 1};
    uint8_t *bytes = malloc(len + 1);

    CHECK(bytes != NULL);
    test_rng_fill(&rng, bytes, len);
    return bytes;
}

/* Writes the parts of a big object and the rows of its HEAD; returns how many. */
static inline size_t object_parts(struct eng_store *store, const struct eng_spec *spec,
                                  const uint8_t *bytes, size_t len, struct eng_part *parts,
                                  struct eng_part_row *rows, size_t max)
{
    size_t n = 0;
    size_t piece = eng_part_max_bytes(store);

    for (size_t at = 0; at < len; at += piece, n++) {
        size_t take = len - at < piece ? len - at : piece;
        CHECK(n < max);
        CHECK_OK(eng_part_begin(store, spec, (uint32_t)n, 0, 0, take, &parts[n]));
        CHECK_OK(eng_part_write(&parts[n], bytes + at, take));
        CHECK_OK(eng_part_finish(&parts[n], spec));
        rows[n] =
            (struct eng_part_row){.length = take, .part_no = (uint32_t)n, .crc = parts[n].crc};
    }
    return n;
}

/* Stores object `number` in this version. Returns its serial. */
static inline uint64_t object_put_in(struct eng_store *store, uint8_t pool, uint32_t number,
                                     uint32_t version, size_t len, bool sync)
{
    uint8_t key[32];
    uint8_t *bytes = object_bytes(number, version, len);
    uint64_t serial = 0;
    struct eng_part parts[64];
    struct eng_part_row rows[64];
    struct eng_commit commit = {
        .spec = {.key = key, .type = ENG_DOC, .total_len = len, .pool = pool, .created = version},
        .meta = &version,
        .meta_len = sizeof version,
        .body = bytes,
        .body_len = len,
        .sync = sync,
    };

    object_key(number, key);
    if (len >= ENG_BIG_BODY) {
        commit.spec.type = ENG_HEAD;
        commit.spec.object_serial = eng_object_serial(store, pool, key);
        commit.n_parts = object_parts(store, &commit.spec, bytes, len, parts, rows, 64);
        commit.spec.parts = (uint32_t)commit.n_parts;
        commit.parts = parts;
        commit.body = rows;
        commit.body_len = commit.n_parts * sizeof rows[0];
    }
    CHECK_OK(eng_commit(store, &commit, &serial));
    free(bytes);
    return serial;
}

static inline uint64_t object_put(struct eng_store *store, uint32_t number, uint32_t version,
                                  size_t len)
{
    return object_put_in(store, ENG_POOL_MAIN, number, version, len, false);
}

/* Whether the parts of a HEAD are all there and hold the bytes. Wrong bytes fail the test. */
static inline bool object_parts_right(struct eng_store *store, const struct eng_ref *head,
                                      const uint8_t *bytes, size_t len)
{
    size_t at = 0;

    for (size_t i = 0; i < head->doc->body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row;
        uint8_t key[32];
        struct eng_ref part;
        memcpy(&row, head->body + i * sizeof row, sizeof row);
        eng_part_key(head->doc->key, head->doc->object_serial, row.part_no, row.attempt, row.sub,
                     key);
        const struct eng_want want = {key, head->doc->pool, true, head->doc->object_serial};
        if (eng_find(store, &want, 0, ENG_ANY_AGE, &part) != GYRE_OK)
            return false;
        bool verified = eng_verify(&part, 0, row.length) == GYRE_OK;
        if (verified) {
            CHECK(at + row.length <= len);
            CHECK(memcmp(part.body, bytes + at, row.length) == 0);
        }
        eng_ref_release(&part);
        if (!verified)
            return false;
        at += row.length;
    }
    CHECK(at == len);
    return true;
}

/* The version of object `number` that is stored, 0 for none. Bytes other than that version's fail
 * the test. Versions count from 1; a version's length is given by `len_of`. */
static inline uint32_t object_version_in(struct eng_store *store, uint8_t pool, uint32_t number,
                                         size_t (*len_of)(uint32_t number, uint32_t version))
{
    uint8_t key[32];
    struct eng_ref ref;
    uint32_t version;

    object_key(number, key);
    const struct eng_want want = {key, pool, false, 0};
    gyre_err err = eng_find(store, &want, 0, ENG_ANY_AGE, &ref);
    if (err == GYRE_NOT_FOUND)
        return 0;
    CHECK_OK(err);
    CHECK_EQ_INT(ref.doc->meta_len, sizeof version);
    memcpy(&version, ref.meta, sizeof version);
    size_t len = len_of(number, version);
    CHECK_EQ_U64(ref.doc->total_len, len);
    uint8_t *bytes = object_bytes(number, version, len);
    if (ref.doc->type == ENG_HEAD) {
        version = object_parts_right(store, &ref, bytes, len) ? version : 0;
    } else {
        CHECK_EQ_U64(ref.doc->body_len, len);
        CHECK(memcmp(ref.body, bytes, len) == 0);
    }
    free(bytes);
    eng_ref_release(&ref);
    return version;
}

static inline uint32_t object_version(struct eng_store *store, uint32_t number,
                                      size_t (*len_of)(uint32_t number, uint32_t version))
{
    return object_version_in(store, ENG_POOL_MAIN, number, len_of);
}

static inline gyre_err object_delete(struct eng_store *store, uint32_t number, bool sync)
{
    uint8_t key[32];

    object_key(number, key);
    return eng_delete(store, ENG_POOL_MAIN, key, ENG_ALWAYS, 0, sync);
}

static inline void print_line(void *data, const char *line)
{
    (void)data;
    printf("  %s\n", line);
}

/* The store's index is sound; damaged documents are allowed when `damage` is. */
static inline struct eng_check_report check_store(struct eng_store *store, bool damage)
{
    struct eng_check_report report;
    gyre_err err = eng_check(store, true, damage ? NULL : print_line, NULL, &report);

    CHECK(err == GYRE_OK || err == GYRE_DAMAGED);
    CHECK_EQ_U64(report.violations, 0);
    if (!damage)
        CHECK_OK(err);
    return report;
}
