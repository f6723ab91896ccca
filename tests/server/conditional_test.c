/* Preconditions and If-Range as tables. The stored state: ETag "abc", modified at T; now is T +
 * 1000 s unless said. */
#include "server/conditional.h"

#include "tests/harness/test.h"

#define T 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define AT "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"
#define AT_850 "Sunday, 06-Nov-94 08:49:37 GMT"
#define AT_C "Sun Nov  6 08:49:37 1994"

#define IM "if-match"
#define INM "if-none-match"
#define IMS "if-modified-since"
#define IUS "if-unmodified-since"

enum {
    PROCEED = SRV_VERDICT_PROCEED,
    SAME = SRV_VERDICT_NOT_MODIFIED,
    FAILED = SRV_VERDICT_FAILED,
    MISSING = SRV_VERDICT_MISSING
};

struct row {
    int get;               /* verdict for GET and HEAD */
    int put;               /* for PUT and DELETE */
    int absent;            /* for PUT with nothing stored */
    const char *fields[6]; /* name, value, ... */
};

static const struct row rows[] = {
    {PROCEED, PROCEED, PROCEED, {NULL}},
    /* If-Match: strong comparison */
    {PROCEED, PROCEED, MISSING, {IM, "\"abc\""}},
    {PROCEED, PROCEED, MISSING, {IM, "abc"}},
    {PROCEED, PROCEED, MISSING, {IM, " abc "}},
    {PROCEED, PROCEED, MISSING, {IM, "*"}},
    {PROCEED, PROCEED, MISSING, {IM, " * "}},
    {PROCEED, PROCEED, MISSING, {IM, "\"x\", \"abc\""}},
    {PROCEED, PROCEED, MISSING, {IM, "\"x\",\"abc\",\"y\""}},
    {PROCEED, PROCEED, MISSING, {IM, ",, \"abc\" ,"}},
    {PROCEED, PROCEED, MISSING, {IM, "x, abc"}},
    {PROCEED, PROCEED, MISSING, {IM, "\"x\"", IM, "\"abc\""}},
    {FAILED, FAILED, MISSING, {IM, "\"x\""}},
    {FAILED, FAILED, MISSING, {IM, "x"}},
    {FAILED, FAILED, MISSING, {IM, "\"ABC\""}},
    {FAILED, FAILED, MISSING, {IM, "\"ab\""}},
    {FAILED, FAILED, MISSING, {IM, "\"abcd\""}},
    {FAILED, FAILED, MISSING, {IM, "W/\"abc\""}},
    {PROCEED, PROCEED, MISSING, {IM, "W/\"abc\", \"abc\""}},
    {FAILED, FAILED, MISSING, {IM, "\"*\""}},
    {FAILED, FAILED, MISSING, {IM, "*, \"x\""}},
    {FAILED, FAILED, MISSING, {IM, ""}},
    {FAILED, FAILED, MISSING, {IM, "\"abc"}},
    {FAILED, FAILED, MISSING, {IM, "\"\""}},
    {FAILED, FAILED, MISSING, {IM, "\"x,abc\""}},
    /* If-None-Match: weak comparison */
    {SAME, FAILED, PROCEED, {INM, "\"abc\""}},
    {SAME, FAILED, PROCEED, {INM, "abc"}},
    {SAME, FAILED, PROCEED, {INM, "W/\"abc\""}},
    {SAME, FAILED, PROCEED, {INM, "*"}},
    {SAME, FAILED, PROCEED, {INM, "\"x\", W/\"abc\""}},
    {SAME, FAILED, PROCEED, {INM, "\"x\"", INM, "\"abc\""}},
    {PROCEED, PROCEED, PROCEED, {INM, "\"x\""}},
    {PROCEED, PROCEED, PROCEED, {INM, "\"x\", \"y\""}},
    {PROCEED, PROCEED, PROCEED, {INM, "\"*\""}},
    {PROCEED, PROCEED, PROCEED, {INM, ""}},
    {PROCEED, PROCEED, PROCEED, {INM, "w/\"abc\""}},
    /* If-Modified-Since: reads only */
    {SAME, PROCEED, PROCEED, {IMS, AT}},
    {SAME, PROCEED, PROCEED, {IMS, AFTER}},
    {PROCEED, PROCEED, PROCEED, {IMS, BEFORE}},
    {SAME, PROCEED, PROCEED, {IMS, AT_850}},
    {SAME, PROCEED, PROCEED, {IMS, AT_C}},
    {SAME, PROCEED, PROCEED, {IMS, "Fri, 31 Dec 9999 23:59:59 GMT"}},
    {PROCEED, PROCEED, PROCEED, {IMS, "yesterday"}},
    {PROCEED, PROCEED, PROCEED, {IMS, ""}},
    {PROCEED, PROCEED, PROCEED, {IMS, "784111777"}},
    {PROCEED, PROCEED, PROCEED, {IMS, AT, IMS, AFTER}},
    {PROCEED, PROCEED, PROCEED, {IMS, "Sun, 06 Nov 1994 08:49:37 EST"}},
    /* If-Unmodified-Since */
    {PROCEED, PROCEED, PROCEED, {IUS, AT}},
    {PROCEED, PROCEED, PROCEED, {IUS, AFTER}},
    {FAILED, FAILED, PROCEED, {IUS, BEFORE}},
    {PROCEED, PROCEED, PROCEED, {IUS, "never"}},
    {PROCEED, PROCEED, PROCEED, {IUS, BEFORE, IUS, BEFORE}},
    /* precedence */
    {PROCEED, PROCEED, MISSING, {IM, "\"abc\"", IUS, BEFORE}},
    {FAILED, FAILED, MISSING, {IM, "\"x\"", IUS, AFTER}},
    {FAILED, FAILED, MISSING, {IUS, AFTER, IM, "\"x\""}},
    {SAME, FAILED, PROCEED, {INM, "\"abc\"", IMS, BEFORE}},
    {PROCEED, PROCEED, PROCEED, {INM, "\"x\"", IMS, AT}},
    {PROCEED, PROCEED, PROCEED, {IMS, AT, INM, "\"x\""}},
    {FAILED, FAILED, MISSING, {IM, "\"x\"", INM, "\"abc\""}},
    {SAME, FAILED, MISSING, {IM, "\"abc\"", INM, "\"abc\""}},
    {PROCEED, PROCEED, MISSING, {IM, "\"abc\"", INM, "\"x\""}},
    {FAILED, FAILED, PROCEED, {IUS, BEFORE, INM, "\"abc\""}},
    {FAILED, FAILED, PROCEED, {IUS, BEFORE, INM, "\"x\""}},
    {SAME, FAILED, PROCEED, {IUS, AFTER, INM, "\"abc\""}},
    {FAILED, FAILED, PROCEED, {IUS, BEFORE, IMS, BEFORE}},
    {SAME, PROCEED, PROCEED, {IUS, AT, IMS, AT}},
    {SAME, PROCEED, MISSING, {IM, "\"abc\"", IMS, AT}},
    {SAME, PROCEED, MISSING, {IM, "\"abc\"", IUS, BEFORE, IMS, AT}},
};

static void fill(struct srv_request *req, struct srv_field *fields, const char *const *pairs,
                 size_t max)
{
    req->fields = fields;
    for (size_t i = 0; i + 1 < max && pairs[i] != NULL; i += 2) {
        fields[req->n_fields].name = (struct srv_str){pairs[i], strlen(pairs[i])};
        fields[req->n_fields++].value = (struct srv_str){pairs[i + 1], strlen(pairs[i + 1])};
    }
}

static const struct srv_validators stored = {{"abc", 3}, T};

static void check(size_t row, enum srv_method method, const struct srv_validators *state, int want)
{
    struct srv_field fields[3];
    struct srv_request req = {.method = method};
    fill(&req, fields, rows[row].fields, 6);
    const char *field;
    int got = (int)srv_conditional_decide(&req, state, T + 1000, &field);
    CHECK_MSG(got == want, "row %zu (%s: %s), method %d: verdict %d instead of %d", row,
              rows[row].fields[0] ? rows[row].fields[0] : "",
              rows[row].fields[0] ? rows[row].fields[1] : "", (int)method, got, want);
    CHECK_MSG((field == NULL) == (got == PROCEED), "row %zu: field %s", row,
              field != NULL ? field : "none");
    CHECK((int)srv_conditional_decide(&req, state, T + 1000, NULL) == want);
}

TEST(preconditions_are_decided_as_listed)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(i, SRV_GET, &stored, rows[i].get);
        check(i, SRV_HEAD, &stored, rows[i].get);
        check(i, SRV_PUT, &stored, rows[i].put);
        check(i, SRV_DELETE, &stored, rows[i].put);
        check(i, SRV_PUT, NULL, rows[i].absent);
    }
}

TEST(the_field_that_decided_is_named)
{
    static const struct {
        const char *pairs[2];
        const char *want;
    } cases[] = {
        {{IM, "x"}, "If-Match"},
        {{INM, "abc"}, "If-None-Match"},
        {{IUS, BEFORE}, "If-Unmodified-Since"},
        {{IMS, AT}, "If-Modified-Since"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct srv_field fields[1];
        struct srv_request req = {.method = SRV_GET};
        fill(&req, fields, cases[i].pairs, 2);
        const char *field;
        CHECK(srv_conditional_decide(&req, &stored, T + 1000, &field) != SRV_VERDICT_PROCEED);
        CHECK_EQ_STR(field, cases[i].want);
    }
}

static const struct {
    const char *fields[6];
    int64_t now_s; /* seconds after T */
    bool heeded;
} ranges[] = {
    {{NULL}, 1000, false},
    {{"range", "bytes=0-1"}, 1000, true},
    {{"range", "bytes=0-1", "range", "bytes=2-3"}, 1000, false},
    {{"if-range", "\"abc\""}, 1000, false},
    {{"range", "bytes=0-1", "if-range", "\"abc\""}, 1000, true},
    {{"range", "bytes=0-1", "if-range", "abc"}, 1000, true},
    {{"range", "bytes=0-1", "if-range", "W/\"abc\""}, 1000, false},
    {{"range", "bytes=0-1", "if-range", "\"x\""}, 1000, false},
    {{"range", "bytes=0-1", "if-range", "*"}, 1000, false},
    {{"range", "bytes=0-1", "if-range", ""}, 1000, false},
    {{"range", "bytes=0-1", "if-range", AT}, 1000, true},
    {{"range", "bytes=0-1", "if-range", AT_850}, 1000, true},
    {{"range", "bytes=0-1", "if-range", AT_C}, 1000, true},
    {{"range", "bytes=0-1", "if-range", BEFORE}, 1000, false},
    {{"range", "bytes=0-1", "if-range", AFTER}, 1000, false},
    {{"range", "bytes=0-1", "if-range", AT}, 0, true},
    {{"range", "bytes=0-1", "if-range", AT}, 1, true},
    {{"if-range", "\"abc\"", "range", "bytes=0-1"}, 1000, true},
    {{"range", "bytes=0-1", "if-range", "\"abc\"", "if-range", "\"abc\""}, 1000, false},
};

TEST(ranges_are_heeded_as_listed)
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct srv_field fields[3];
        struct srv_request req = {.method = SRV_GET};
        fill(&req, fields, ranges[i].fields, 6);
        const struct srv_str *value = srv_conditional_range(&req, &stored, T + ranges[i].now_s);
        CHECK_MSG((value != NULL) == ranges[i].heeded, "row %zu", i);
        CHECK(value == NULL || memcmp(value->base, "bytes=0-1", value->len) == 0);
    }
}
