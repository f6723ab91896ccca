/* Objects whose bytes follow from key and version, so that a reader can tell what it got. */
#pragma once

#include "engine/base/bits.h"
#include "engine/base/hash.h"
#include "engine/pin.h"
#include "engine/writer.h"
#include "tests/engine/space.h"

struct key {
    uint8_t bytes[32];
};

static inline struct key key_of(uint64_t n)
{
    struct key key;
    const struct iovec piece = {&n, sizeof n};
    eng_sha256(&piece, 1, key.bytes);
    return key;
}

/* What the bytes of a version of key n are made of. */
static inline uint64_t word_of(uint64_t n, uint64_t version, uint64_t index)
{
    return eng_mix64(n << 40 ^ version << 20 ^ index ^ UINT64_C(0x5bd1e995));
}

static inline void fill_body(uint8_t *at, size_t len, uint64_t n, uint64_t version)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = word_of(n, version, i / 8);
        memcpy(at + i, &word, len - i < 8 ? len - i : 8);
    }
}

static inline bool body_is(const uint8_t *at, size_t off, size_t len, uint64_t n, uint64_t version)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t word = word_of(n, version, (off + i) / 8);
        if ((off + i) % 8 == 0 && len - i >= 8) {
            if (memcmp(at + i, &word, 8) != 0)
                return false;
            i += 7;
        } else if (at[i] != (uint8_t)(word >> (off + i) % 8 * 8)) {
            return false;
        }
    }
    return true;
}

/* Metadata of the objects here: which version it is. */
struct note {
    uint64_t version, length;
};

struct put {
    uint64_t n, version, length;
    enum eng_condition condition;
    uint64_t if_serial;
    uint8_t pool;
    uint32_t expires;
    bool sync;
};

static inline gyre_err put_small(struct eng_store *store, const struct put *put,
                                 uint64_t *serial_out)
{
    struct key key = key_of(put->n);
    struct note note = {put->version, put->length};
    uint8_t *body = malloc(put->length + 8);
    CHECK(body != NULL);
    fill_body(body, put->length, put->n, put->version);
    struct eng_commit commit = {
        .spec = {.key = key.bytes,
                 .type = ENG_DOC,
                 .total_len = put->length,
                 .pool = put->pool,
                 .expires = put->expires},
        .meta = &note,
        .meta_len = sizeof note,
        .body = body,
        .body_len = put->length,
        .condition = put->condition,
        .if_serial = put->if_serial,
        .now = 1000,
        .sync = put->sync,
    };
    uint64_t serial;
    gyre_err err = eng_commit(store, &commit, serial_out != NULL ? serial_out : &serial);
    free(body);
    return err;
}

/* The same through PARTs of `part_bytes`, written in pieces of `piece_bytes`. */
static inline gyre_err put_parts(struct eng_store *store, const struct put *put,
                                 uint64_t part_bytes, size_t piece_bytes, uint64_t *serial_out)
{
    struct key key = key_of(put->n);
    struct note note = {put->version, put->length};
    uint32_t n_parts = (uint32_t)eng_div_up(put->length, part_bytes);
    struct eng_part *parts = calloc(n_parts, sizeof *parts);
    struct eng_part_row *rows = calloc(n_parts, sizeof *rows);
    uint8_t *body = malloc(put->length + 8);
    CHECK(parts != NULL && rows != NULL && body != NULL);
    fill_body(body, put->length, put->n, put->version);
    struct eng_commit commit = {
        .spec = {.key = key.bytes,
                 .type = ENG_HEAD,
                 .total_len = put->length,
                 .pool = put->pool,
                 .parts = n_parts},
        .meta = &note,
        .meta_len = sizeof note,
        .body = rows,
        .body_len = n_parts * sizeof *rows,
        .parts = parts,
        .n_parts = n_parts,
        .condition = put->condition,
        .if_serial = put->if_serial,
        .now = 1000,
        .sync = put->sync,
    };
    commit.spec.object_serial = eng_object_serial(store, put->pool, key.bytes);
    gyre_err err = GYRE_OK;
    uint64_t serial = 0;
    for (uint32_t i = 0; i < n_parts && err == GYRE_OK; i++) {
        uint64_t off = i * part_bytes;
        uint64_t len = put->length - off < part_bytes ? put->length - off : part_bytes;
        err = eng_part_begin(store, &commit.spec, i + 1, 0, 0, part_bytes, &parts[i]);
        for (uint64_t at = 0; at < len && err == GYRE_OK; at += piece_bytes)
            err = eng_part_write(&parts[i], body + off + at,
                                 len - at < piece_bytes ? len - at : piece_bytes);
        if (err == GYRE_OK)
            err = eng_part_finish(&parts[i], &commit.spec);
        rows[i] = (struct eng_part_row){.length = len, .part_no = i + 1, .crc = parts[i].crc};
    }
    if (err == GYRE_OK)
        err = eng_commit(store, &commit, &serial);
    for (uint32_t i = 0; i < n_parts && err != GYRE_OK; i++)
        eng_part_abort(&parts[i]);
    free(parts), free(rows), free(body);
    if (serial_out != NULL)
        *serial_out = serial;
    return err;
}

static inline gyre_err find(struct eng_store *store, uint64_t n, uint8_t pool, unsigned flags,
                            struct eng_ref *ref_out)
{
    struct key key = key_of(n);
    struct eng_want want = {.key = key.bytes, .pool = pool};
    return eng_find(store, &want, 1000, flags, ref_out);
}

static inline struct note note_of(const struct eng_ref *ref)
{
    CHECK_EQ_INT(ref->doc->meta_len, sizeof(struct note));
    return *(const struct note *)(const void *)ref->meta;
}

/* Reads a whole object and insists that every byte is of one version. OK (with *version_out),
 * NOT_FOUND: it or a part is not there. */
static inline gyre_err read_object(struct eng_store *store, uint64_t n, uint8_t pool,
                                   uint64_t *version_out)
{
    struct eng_ref head;
    gyre_err err = find(store, n, pool, 0, &head);
    if (err != GYRE_OK)
        return err;
    struct note note = note_of(&head);
    *version_out = note.version;
    CHECK_EQ_U64(head.doc->total_len, note.length);
    if (head.doc->type == ENG_DOC) {
        CHECK(head.verified && head.doc->body_len == note.length);
        CHECK(body_is(head.body, 0, head.doc->body_len, n, note.version));
    }
    uint64_t off = 0;
    for (uint32_t i = 0; head.doc->type == ENG_HEAD && i < head.doc->parts; i++) {
        struct eng_part_row row;
        memcpy(&row, head.body + i * sizeof row, sizeof row);
        uint8_t part_key[32];
        eng_part_key(head.doc->key, head.doc->object_serial, row.part_no, row.attempt, row.sub,
                     part_key);
        struct eng_want want = {
            .key = part_key, .pool = pool, .part = true, .object_serial = head.doc->object_serial};
        struct eng_ref part;
        err = eng_find(store, &want, 1000, 0, &part);
        if (err != GYRE_OK)
            break;
        CHECK_EQ_U64(part.doc->body_len, row.length);
        CHECK_EQ_U64(part.doc->body_crc, row.crc);
        CHECK_OK(eng_verify(&part, 0, part.doc->body_len));
        CHECK(part.verified);
        CHECK(body_is(part.body, off, row.length, n, note.version));
        off += row.length;
        eng_ref_release(&part);
    }
    eng_ref_release(&head);
    return err;
}
