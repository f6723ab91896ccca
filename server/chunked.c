#include "server/chunked.h"

#include "server/chars.h"

enum state {
    SIZE,
    EXT_START, /* just after ';' */
    EXT_NAME,
    EXT_VALUE, /* just after '=' */
    EXT_TOKEN,
    EXT_QUOTED,
    EXT_ESCAPED,
    EXT_CLOSED, /* just after a closing quote */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER, /* at the start of a trailer line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    END,
    BAD,
};

enum { SIZE_DIGITS_MAX = 16 };

void srv_chunked_init(struct srv_chunked *c)
{
    *c = (struct srv_chunked){.state_ = SIZE};
}

static void bad(struct srv_chunked *c, const char *reason)
{
    c->state_ = BAD;
    c->reason = reason;
}

static void on_size(struct srv_chunked *c, unsigned char ch)
{
    int digit = srv_hex_value(ch);
    if (digit >= 0) {
        if (c->digits_ == SIZE_DIGITS_MAX) {
            bad(c, "chunk size has too many digits");
            return;
        }
        c->digits_++;
        c->left_ = c->left_ << 4 | (uint64_t)digit;
        return;
    }
    if (c->digits_ == 0 || (ch != ';' && ch != '\r')) {
        bad(c, "chunk size is not plain hexadecimal");
        return;
    }
    /* Sums of accepted sizes stay below INT64_MAX, so that no later addition can wrap. */
    if (c->left_ > (uint64_t)INT64_MAX - c->total)
        bad(c, "chunk sizes add up to too much");
    else
        c->state_ = ch == '\r' ? SIZE_LF : EXT_START;
}

/* What may follow a whole extension. */
static unsigned ext_end(unsigned char ch)
{
    return ch == ';' ? EXT_START : ch == '\r' ? SIZE_LF : BAD;
}

/* One byte of ";name", ";name=token" or ";name=\"quoted\"". */
static void on_ext(struct srv_chunked *c, unsigned char ch)
{
    if (++c->ext_bytes_ > SRV_CHUNKED_EXT_MAX) {
        bad(c, "chunk extensions are too long");
        return;
    }
    unsigned next = BAD;
    switch (c->state_) {
    case EXT_START: next = srv_is_token(ch) ? EXT_NAME : BAD; break;
    case EXT_NAME: next = srv_is_token(ch) ? EXT_NAME : ch == '=' ? EXT_VALUE : ext_end(ch); break;
    case EXT_VALUE: next = srv_is_token(ch) ? EXT_TOKEN : ch == '"' ? EXT_QUOTED : BAD; break;
    case EXT_TOKEN: next = srv_is_token(ch) ? EXT_TOKEN : ext_end(ch); break;
    case EXT_QUOTED:
        next = ch == '"'         ? EXT_CLOSED
               : ch == '\\'      ? EXT_ESCAPED
               : srv_is_text(ch) ? EXT_QUOTED
                                 : BAD;
        break;
    case EXT_ESCAPED: next = srv_is_text(ch) ? EXT_QUOTED : BAD; break;
    default: /* EXT_CLOSED */ next = ext_end(ch); break;
    }
    c->state_ = (uint8_t)next;
    if (next == BAD)
        bad(c, "malformed chunk extension");
}

static void on_trailer(struct srv_chunked *c, unsigned char ch)
{
    if (++c->trailer_bytes_ > SRV_CHUNKED_TRAILER_MAX) {
        bad(c, "trailer section is too long");
        return;
    }
    bool ok;
    switch (c->state_) {
    case TRAILER:
        ok = ch == '\r' || srv_is_token(ch);
        c->state_ = ch == '\r' ? END_LF : TRAILER_NAME;
        break;
    case TRAILER_NAME:
        ok = ch == ':' || srv_is_token(ch);
        c->state_ = ch == ':' ? TRAILER_VALUE : TRAILER_NAME;
        break;
    case TRAILER_VALUE:
        ok = ch == '\r' || srv_is_text(ch);
        c->state_ = ch == '\r' ? TRAILER_LF : TRAILER_VALUE;
        break;
    case TRAILER_LF:
        ok = ch == '\n';
        c->state_ = TRAILER;
        break;
    default: /* END_LF */
        ok = ch == '\n';
        c->state_ = END;
        break;
    }
    if (!ok)
        bad(c, "malformed trailer field");
}

/* One byte of framing. */
static void on_byte(struct srv_chunked *c, unsigned char ch)
{
    switch (c->state_) {
    case SIZE: on_size(c, ch); break;
    case SIZE_LF:
        if (ch != '\n')
            bad(c, "chunk size line does not end in CRLF");
        else
            c->state_ = c->left_ == 0 ? TRAILER : DATA;
        break;
    case DATA_CR:
        if (ch != '\r')
            bad(c, "chunk is longer than its size");
        else
            c->state_ = DATA_LF;
        break;
    case DATA_LF:
        c->digits_ = 0;
        if (ch != '\n')
            bad(c, "chunk does not end in CRLF");
        else
            c->state_ = SIZE;
        break;
    case TRAILER:
    case TRAILER_NAME:
    case TRAILER_VALUE:
    case TRAILER_LF:
    case END_LF: on_trailer(c, ch); break;
    default: on_ext(c, ch); break;
    }
}

enum srv_chunked_result srv_chunked_feed(struct srv_chunked *c, const char *bytes, size_t len,
                                         size_t *used_out, struct srv_str *data_out)
{
    size_t used = 0;
    *data_out = (struct srv_str){NULL, 0};
    while (used < len && c->state_ != DATA && c->state_ != END && c->state_ != BAD)
        on_byte(c, (unsigned char)bytes[used++]);
    enum srv_chunked_result result = SRV_CHUNKED_MORE;
    if (c->state_ == DATA && used < len) {
        size_t run = len - used < c->left_ ? len - used : (size_t)c->left_;
        *data_out = (struct srv_str){bytes + used, run};
        used += run;
        c->left_ -= run;
        c->total += run;
        if (c->left_ == 0)
            c->state_ = DATA_CR;
        result = SRV_CHUNKED_DATA;
    } else if (c->state_ == END) {
        result = SRV_CHUNKED_END;
    } else if (c->state_ == BAD) {
        result = SRV_CHUNKED_BAD;
    }
    *used_out = used;
    return result;
}

uint64_t srv_chunked_left(const struct srv_chunked *c)
{
    return c->state_ == DATA ? c->left_ : 0;
}
