#include "server/http/origin_head.h"

#include <stdlib.h>
#include <string.h>

#include "server/chars.h"
#include "server/http/record.h"

enum { TEXT_FIRST = 1024, FIELDS_FIRST = 16 };

/* Where a field lies in the text, which moves while it grows. */
struct srv_http_place {
    uint32_t name_off, name_len, value_off, value_len;
};

static enum srv_http_head_state bad(struct srv_http_head *head)
{
    return head->state = SRV_HTTP_HEAD_BAD;
}

static bool append(struct srv_http_head *head, struct srv_str text, uint32_t *off_out)
{
    if (head->len_ + text.len > SRV_HTTP_HEAD_MAX)
        return false;
    if (head->len_ + text.len > head->capacity_) {
        size_t capacity = 2 * (head->len_ + text.len);
        capacity = capacity < TEXT_FIRST ? TEXT_FIRST : capacity;
        char *grown = realloc(head->text_, capacity);
        if (grown == NULL)
            return false;
        head->text_ = grown;
        head->capacity_ = capacity;
    }
    *off_out = (uint32_t)head->len_;
    if (text.len > 0)
        memcpy(head->text_ + head->len_, text.base, text.len);
    head->len_ += text.len;
    return true;
}

static bool add_place(struct srv_http_head *head, const struct srv_http_place *place)
{
    if (head->n_fields == SRV_HTTP_FIELDS_MAX)
        return false;
    if (head->n_fields == head->room_) {
        size_t room = head->room_ == 0 ? FIELDS_FIRST : 2 * head->room_;
        struct srv_http_place *grown = realloc(head->places_, room * sizeof *grown);
        if (grown == NULL)
            return false;
        head->places_ = grown;
        head->room_ = room;
    }
    head->places_[head->n_fields++] = *place;
    return true;
}

/* HTTP/1.1 SP 3DIGIT [SP reason]; HTTP/2's line has "HTTP/2" there. */
static enum srv_http_head_state begin(struct srv_http_head *head, struct srv_str line)
{
    static const char NAME[] = "HTTP/";
    const char *space = line.len > 0 ? memchr(line.base, ' ', line.len) : NULL;
    if (line.len < sizeof NAME - 1 || memcmp(line.base, NAME, sizeof NAME - 1) != 0 ||
        space == NULL)
        return bad(head);
    struct srv_str rest = {space + 1, line.len - (size_t)(space + 1 - line.base)};
    if (rest.len < 3 || (rest.len > 3 && rest.base[3] != ' '))
        return bad(head);
    int status = 0;
    for (size_t i = 0; i < 3; i++) {
        if (!srv_is_digit((unsigned char)rest.base[i]))
            return bad(head);
        status = status * 10 + (rest.base[i] - '0');
    }
    if (status < 100)
        return bad(head);
    head->status = status;
    head->n_fields = head->len_ = 0;
    head->content_length = SRV_LENGTH_UNKNOWN;
    return head->state = SRV_HTTP_HEAD_OPEN;
}

static bool is_text(struct srv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!srv_is_text((unsigned char)text.base[i]))
            return false;
    return true;
}

/* A folded line goes on with the value before it. */
static bool go_on(struct srv_http_head *head, struct srv_str line)
{
    uint32_t off;
    struct srv_str more = srv_http_trim(line);
    if (head->n_fields == 0 || !is_text(more))
        return false;
    struct srv_http_place *last = &head->places_[head->n_fields - 1];
    if (!append(head, SRV_STR(" "), &off) || !append(head, more, &off))
        return false;
    last->value_len += 1 + (uint32_t)more.len;
    return true;
}

static bool add_field(struct srv_http_head *head, struct srv_str line)
{
    struct srv_http_place place = {0};
    const char *colon = memchr(line.base, ':', line.len);
    if (colon == NULL || colon == line.base)
        return false;
    struct srv_str name = {line.base, (size_t)(colon - line.base)};
    struct srv_str value = srv_http_trim((struct srv_str){colon + 1, line.len - name.len - 1});
    for (size_t i = 0; i < name.len; i++)
        if (!srv_is_token((unsigned char)name.base[i]))
            return false;
    if (!is_text(value) || !append(head, name, &place.name_off) ||
        !append(head, value, &place.value_off))
        return false;
    srv_lower(head->text_ + place.name_off, head->text_ + place.name_off, name.len);
    place.name_len = (uint32_t)name.len;
    place.value_len = (uint32_t)value.len;
    return add_place(head, &place);
}

/* RFC 9112, 6.3: one length, however often it is said. */
static bool take_length(struct srv_http_head *head)
{
    struct srv_http_members walk = {.name = SRV_STR("content-length")};
    struct srv_str member;
    while (srv_http_next_member(srv_http_head_fields(head), &walk, &member)) {
        uint64_t length = 0;
        for (size_t i = 0; i < member.len; i++) {
            if (!srv_is_digit((unsigned char)member.base[i]) || length > (UINT64_MAX >> 1) / 10 - 1)
                return false;
            length = length * 10 + (uint64_t)(member.base[i] - '0');
        }
        if (head->content_length != SRV_LENGTH_UNKNOWN && head->content_length != length)
            return false;
        head->content_length = length;
    }
    return true;
}

/* RFC 9112, 6.1 and 7: no TE is sent, so that only "chunked" may come. What nobody knows is taken
 * for what it says of the framing, which is then the connection's end (6.3), and for nothing else;
 * beside a length it could hide a second response. */
static bool take_codings(struct srv_http_head *head)
{
    const struct srv_str known = SRV_STR("gzip,x-gzip,deflate,compress,x-compress");
    struct srv_http_members walk = {.name = SRV_STR("transfer-encoding")};
    struct srv_str member;
    bool has_length = head->content_length != SRV_LENGTH_UNKNOWN;
    while (srv_http_next_member(srv_http_head_fields(head), &walk, &member)) {
        bool is_chunked = srv_http_names_hold(SRV_STR("chunked"), member);
        if (srv_http_names_hold(known, member) || (has_length && !is_chunked))
            return false;
        head->content_length = SRV_LENGTH_UNKNOWN;
    }
    return true;
}

static enum srv_http_head_state end(struct srv_http_head *head)
{
    free(head->fields);
    head->fields = calloc(head->n_fields + 1, sizeof *head->fields);
    if (head->fields == NULL)
        return bad(head);
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct srv_http_place *place = &head->places_[i];
        head->fields[i] = (struct srv_field){{head->text_ + place->name_off, place->name_len},
                                             {head->text_ + place->value_off, place->value_len}};
    }
    if (!take_length(head) || !take_codings(head))
        return bad(head);
    return head->state = SRV_HTTP_HEAD_DONE;
}

enum srv_http_head_state srv_http_head_line(struct srv_http_head *head, struct srv_str line)
{
    while (line.len > 0 && (line.base[line.len - 1] == '\n' || line.base[line.len - 1] == '\r'))
        line.len--;
    switch (head->state) {
    case SRV_HTTP_HEAD_EMPTY: return begin(head, line);
    case SRV_HTTP_HEAD_DONE: return head->status < 200 ? begin(head, line) : bad(head);
    case SRV_HTTP_HEAD_BAD: return head->state;
    case SRV_HTTP_HEAD_OPEN: break;
    }
    if (line.len == 0)
        return end(head);
    bool is_folded = line.base[0] == ' ' || line.base[0] == '\t';
    if (is_folded ? !go_on(head, line) : !add_field(head, line))
        return bad(head);
    return head->state;
}

void srv_http_head_fini(struct srv_http_head *head)
{
    free(head->text_);
    free(head->places_);
    free(head->fields);
    *head = (struct srv_http_head){0};
}
