/* Dates against known values, and against each other over all days to the year 9999. */
#include "server/http_date.h"

#include "tests/harness/test.h"

static bool parse(const char *text, int64_t *out)
{
    return srv_http_date_parse((struct srv_str){text, strlen(text)}, 1700000000, out);
}

TEST(known_dates_are_written_and_read)
{
    static const struct {
        int64_t unix_s;
        const char *http;
        const char *iso;
    } rows[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29T00:00:00.000Z"},
        {1709251199, "Thu, 29 Feb 2024 23:59:59 GMT", "2024-02-29T23:59:59.000Z"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT", "2100-03-01T00:00:00.000Z"},
        {SRV_DATE_MAX_S, "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.000Z"},
    };
    char text[SRV_HTTP_DATE_LEN + 1], iso[SRV_ISO_DATE_LEN + 1];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t back;
        srv_http_date_write(rows[i].unix_s, text);
        CHECK_EQ_STR(text, rows[i].http);
        CHECK(parse(text, &back));
        CHECK_EQ_INT(back, rows[i].unix_s);
        srv_iso_date_write(rows[i].unix_s * 1000, iso);
        CHECK_EQ_STR(iso, rows[i].iso);
    }
    srv_iso_date_write(784111777042, iso);
    CHECK_EQ_STR(iso, "1994-11-06T08:49:37.042Z");
}

TEST(times_out_of_bounds_are_clamped)
{
    char text[SRV_HTTP_DATE_LEN + 1], iso[SRV_ISO_DATE_LEN + 1];
    srv_http_date_write(INT64_MIN, text);
    CHECK_EQ_STR(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    srv_http_date_write(INT64_MAX, text);
    CHECK_EQ_STR(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    srv_iso_date_write(INT64_MAX, iso);
    CHECK_EQ_STR(iso, "9999-12-31T23:59:59.999Z");
    srv_iso_date_write(-1, iso);
    CHECK_EQ_STR(iso, "1970-01-01T00:00:00.000Z");
}

TEST(every_day_survives_the_round_trip)
{
    char text[SRV_HTTP_DATE_LEN + 1];
    for (int64_t day = 0; day <= SRV_DATE_MAX_S / 86400; day++) {
        int64_t back;
        srv_http_date_write(day * 86400 + day % 86400, text);
        CHECK_MSG(parse(text, &back) && back == day * 86400 + day % 86400, "%s", text);
    }
}

TEST(the_old_forms_are_read)
{
    int64_t got;
    CHECK(parse("Sunday, 06-Nov-94 08:49:37 GMT", &got));
    CHECK_EQ_INT(got, 784111777);
    CHECK(parse("Sun Nov  6 08:49:37 1994", &got));
    CHECK_EQ_INT(got, 784111777);
    CHECK(parse("Wed Nov 16 08:49:37 1994", &got));
    CHECK_EQ_INT(got, 784111777 + 10 * 86400);
    /* Seen from 2023: 73 is 50 years ahead, 74 is 49 years past. */
    CHECK(parse("Monday, 01-Jan-73 00:00:00 GMT", &got));
    CHECK_EQ_INT(got, 3250454400);
    CHECK(parse("Tuesday, 01-Jan-74 00:00:00 GMT", &got));
    CHECK_EQ_INT(got, 126230400);
}

TEST(anything_else_is_no_date)
{
    static const char *const bad[] = {
        "",
        "Sun",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 2023 00:00:00 GMT",
        "Mon, 29 Feb 2100 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "784111777",
        "0",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t got = 7;
        CHECK_MSG(!parse(bad[i], &got) && got == 0, "'%s' was read", bad[i]);
    }
}
