#include "server/s3/list_query.h"

#include <stdlib.h>
#include <string.h>

#include "server/s3/name.h"
#include "server/s3/numbers.h"
#include "server/uri.h"

_Static_assert(SRV_S3_KEY_MAX == 1024, "the length of tokens follows from it");

/* First byte of a token before it is encoded. */
enum { TOKEN_LISTED = 1, TOKEN_LOOKED_AT = 2 };

static const char letters[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- Tokens ---- */

size_t srv_list_token_write(struct srv_str last, bool is_exact, char token_out[SRV_LIST_TOKEN_MAX])
{
    size_t n = 0, n_bits = 8;
    uint32_t bits = is_exact ? TOKEN_LOOKED_AT : TOKEN_LISTED;

    for (size_t i = 0; i < last.len || n_bits > 0;) {
        if (n_bits >= 6 || i == last.len) {
            uint32_t six = n_bits >= 6 ? bits >> (n_bits - 6) : bits << (6 - n_bits);
            token_out[n++] = letters[six & 63];
            n_bits -= n_bits < 6 ? n_bits : 6;
        } else {
            bits = bits << 8 | (uint8_t)last.base[i++];
            n_bits += 8;
        }
    }
    return n;
}

static int letter_value(char c)
{
    const char *at = c != 0 ? strchr(letters, c) : NULL;

    return at != NULL ? (int)(at - letters) : -1;
}

/* Decodes a token into at most as many bytes as it is long; false if it is none of ours. */
static bool read_token(struct srv_str token, char *bytes, size_t *len_out, bool *is_exact_out)
{
    uint32_t bits = 0;
    size_t n_bits = 0, len = 0;

    for (size_t i = 0; i < token.len; i++) {
        int value = letter_value(token.base[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[len++] = (char)(bits >> n_bits);
        }
    }
    if (len == 0 || n_bits == 6 || (bits & ((1u << n_bits) - 1)) != 0 ||
        (bytes[0] != TOKEN_LISTED && bytes[0] != TOKEN_LOOKED_AT))
        return false;
    *is_exact_out = bytes[0] == TOKEN_LOOKED_AT;
    *len_out = len - 1;
    memmove(bytes, bytes + 1, len - 1);
    return true;
}

/* ---- Parameters ---- */

/* Memory for what is decoded, which is never longer than the query. */
struct room {
    char *at;
    size_t left;
};

/* The decoded value of an item; base NULL if there is none, and false if it cannot be decoded. */
static bool read_text(struct srv_str raw, const char *name, struct room *room,
                      struct srv_str *text_out)
{
    struct srv_str value;
    size_t len = 0;

    *text_out = (struct srv_str){NULL, 0};
    if (!srv_query_find(raw, name, &value))
        return true;
    if (value.len > 0 && !srv_uri_decode(value, true, room->at, room->left, &len))
        return false;
    *text_out = (struct srv_str){room->at, len};
    room->at += len;
    room->left -= len;
    return true;
}

static bool is(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static bool read_max_keys(struct srv_str text, size_t *max_out)
{
    uint64_t value;

    *max_out = SRV_LIST_KEYS_MAX;
    if (text.len == 0)
        return true;
    if (!srv_s3_parse_u64(text, &value) || value > INT32_MAX)
        return false;
    if (value < SRV_LIST_KEYS_MAX)
        *max_out = (size_t)value;
    return true;
}

/* Names of the parameters, by kind. */
static const struct {
    const char *marker, *version_marker, *token;
} names[] = {
    [SRV_LIST_V1] = {"marker", NULL, NULL},
    [SRV_LIST_V2] = {"start-after", NULL, "continuation-token"},
    [SRV_LIST_VERSIONS] = {"key-marker", "version-id-marker", NULL},
};

static const char *read_strings(struct srv_list_query *query, struct srv_str raw, struct room *room,
                                struct srv_str *max_keys, struct srv_str *type,
                                struct srv_str *owner)
{
    const char *version_marker = names[query->kind].version_marker;
    const char *token = names[query->kind].token;

    if (!read_text(raw, "prefix", room, &query->prefix) ||
        !read_text(raw, "delimiter", room, &query->delimiter) ||
        !read_text(raw, names[query->kind].marker, room, &query->marker) ||
        (version_marker != NULL && !read_text(raw, version_marker, room, &query->version_marker)) ||
        (token != NULL && !read_text(raw, token, room, &query->token)) ||
        !read_text(raw, "max-keys", room, max_keys) ||
        !read_text(raw, "encoding-type", room, type) || !read_text(raw, "fetch-owner", room, owner))
        return "A parameter cannot be decoded: it needs whole %XX triplets.";
    return NULL;
}

static const char *read_all(struct srv_list_query *query, struct srv_str raw, struct room *room)
{
    struct srv_str max_keys, type, owner;
    const char *message = read_strings(query, raw, room, &max_keys, &type, &owner);

    if (message != NULL)
        return message;
    if (!read_max_keys(max_keys, &query->max_keys))
        return "max-keys is not a number from 0 on.";
    if (type.len > 0 && !is(type, "url"))
        return "The only encoding-type there is is url.";
    query->encodes = type.len > 0;
    query->fetches_owner = query->kind != SRV_LIST_V2 || is(owner, "true");
    if (query->version_marker.len > 0 && query->marker.len == 0)
        return "A version-id-marker needs a key-marker.";
    query->from = query->marker;
    if (query->token.len == 0)
        return NULL;
    query->from.base = room->at;
    return read_token(query->token, room->at, &query->from.len, &query->is_exact)
               ? NULL
               : "The continuation token is not one that was given out here.";
}

enum srv_s3_code srv_list_query_init(struct srv_list_query *query, enum srv_list_kind kind,
                                     struct srv_str raw, const char **message_out)
{
    *query = (struct srv_list_query){.kind = kind};
    *message_out = NULL;
    query->bytes_ = malloc(2 * raw.len + 1); /* a token is there twice */
    if (query->bytes_ == NULL)
        return SRV_S3_SLOW_DOWN;
    struct room room = {query->bytes_, 2 * raw.len + 1};
    *message_out = read_all(query, raw, &room);
    if (*message_out == NULL)
        return SRV_S3_NONE;
    srv_list_query_fini(query);
    return SRV_S3_INVALID_ARGUMENT;
}

void srv_list_query_fini(struct srv_list_query *query)
{
    free(query->bytes_);
    query->bytes_ = NULL;
}

/* ---- Encoding ---- */

static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~' || c == '/';
}

size_t srv_list_encode(struct srv_str text, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.base[i];
        if (is_plain(c)) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    return n;
}
