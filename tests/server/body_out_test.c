/* Responses: sources that give, wait and fail; clients that read slowly or not at all. */
#include "tests/server/front_fixture.h"

static struct fixture fixture;
static char heard[1 << 14];

/* Reads a response of `n` bytes of the pattern, at most `rate` bytes at a time with a pause;
 * returns how many were right. */
static uint64_t read_pattern(int fd, uint64_t n, size_t rate, unsigned pause_us)
{
    static char bytes[1 << 20];
    uint64_t at = 0;
    /* The head, byte by byte: it ends at the first empty line. */
    size_t head = 0;
    while (head < sizeof heard - 1 && recv(fd, heard + head, 1, 0) == 1) {
        heard[++head] = '\0';
        if (head >= 4 && memcmp(heard + head - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    while (at < n) {
        ssize_t got = recv(fd, bytes, rate < n - at ? rate : (size_t)(n - at), 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++, at++)
            CHECK_MSG((uint8_t)bytes[i] == fixture_byte(at), "byte %llu differs",
                      (unsigned long long)at);
        if (pause_us > 0)
            usleep(pause_us);
    }
    return at;
}

static void get(int fd, const char *path)
{
    char text[128];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    CHECK(client_say(fd, text));
}

TEST(sources_are_sent_whole_whether_they_wait_or_not)
{
    static const unsigned long sizes[] = {1, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 3000000};
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, i % 2 ? "/wait/%lu" : "/bytes/%lu", sizes[i]);
        get(fd, path);
        CHECK_EQ_U64(read_pattern(fd, sizes[i], 1 << 20, 0), sizes[i]);
        snprintf(path, sizeof path, "Content-Length: %lu\r\n", sizes[i]);
        CHECK(strstr(heard, path) != NULL);
    }
    get(fd, "/bytes/0");
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strstr(heard, "Content-Length: 0\r\n") != NULL);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_failed_source_ends_the_connection_short_of_its_length)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    get(fd, "/fail/1000000");
    uint64_t got = read_pattern(fd, 1000000, 1 << 20, 0);
    CHECK_MSG(got >= 500000 && got < 1000000, "got %llu", (unsigned long long)got);
    close(fd);
    fd = fixture_connect(&fixture); /* fails before anything was sent: an error of its own */
    get(fd, "/fail/1");
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strncmp(heard, "HTTP/1.1 500 ", 13) == 0);
    close(fd);
    fixture_close(&fixture);
}

static uint64_t sends_stalled(void)
{
    struct srv_front_stats stats;
    srv_front_stats(fixture.front, &stats);
    return stats.sends_stalled;
}

/* A client that reads nothing, and one that takes longer than the timeout but never pauses for so
 * long. False if that one was cut off, as it may be when this machine is slower still. */
static bool tells_slow_from_stalled(uint64_t timeout_ms)
{
    enum { SIZE = 12000000 };
    fixture_init(&fixture);
    fixture.config.send_timeout_ms = timeout_ms;
    fixture_open(&fixture);
    int stalled = fixture_connect(&fixture);
    int slow = fixture_connect(&fixture);
    int bytes = 65536; /* so that the kernels do not take it all at once */
    setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(stalled, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    get(stalled, "/bytes/12000000");
    get(slow, "/bytes/12000000");
    bool is_served = read_pattern(slow, SIZE, 80000, 40000) == SIZE;
    CHECK_SOON(sends_stalled() == (is_served ? 1 : 2));
    CHECK(read_pattern(stalled, SIZE, 1 << 20, 0) < SIZE);
    close(slow);
    close(stalled);
    fixture_close(&fixture);
    return is_served;
}

TEST(a_client_that_reads_nothing_is_cut_off_and_a_slow_one_is_served)
{
    CHECK(tells_slow_from_stalled(400) || tells_slow_from_stalled(800) ||
          tells_slow_from_stalled(1600) || tells_slow_from_stalled(3200));
}

enum { DOCUMENT = 9000000 };

static void respond_with_document(void *data, struct srv_exchange *ex)
{
    char *bytes = malloc(DOCUMENT);
    (void)data;
    for (size_t i = 0; i < DOCUMENT; i++)
        bytes[i] = (char)fixture_byte(i);
    struct srv_response response = {.status = 200};
    srv_respond_bytes(ex, &response, bytes, DOCUMENT);
    memset(bytes, 0, DOCUMENT);
    free(bytes);
}

TEST(bytes_may_be_freed_at_once_however_slow_the_client_is)
{
    fixture_init(&fixture);
    fixture.handler.start = respond_with_document;
    fixture_open(&fixture);
    int bytes = 65536, fd = fixture_connect(&fixture);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    for (int i = 0; i < 2; i++) {
        get(fd, "/");
        usleep(100000);
        CHECK_EQ_U64(read_pattern(fd, DOCUMENT, 1 << 20, 0), DOCUMENT);
    }
    close(fd);
    fixture_close(&fixture);
}

static void respond_by_path(void *data, struct srv_exchange *ex)
{
    const struct srv_str path = srv_exchange_request(ex)->path;
    int status = atoi(path.base + 1);
    (void)data;
    const struct srv_field fields[] = {{{"ETag", 4}, {"\"x\"", 3}}, {{"x-Empty", 7}, {"", 0}}};
    struct srv_response response = {.status = status,
                                    .fields = fields,
                                    .n_fields = 2,
                                    .content_length = status == 304 ? SRV_LENGTH_UNKNOWN : 0};
    srv_respond(ex, &response, NULL);
}

TEST(responses_without_content_are_framed_as_the_rfc_says)
{
    fixture_init(&fixture);
    fixture.handler.start = respond_by_path;
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    get(fd, "/304");
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strncmp(heard, "HTTP/1.1 304 Not Modified\r\n", 27) == 0);
    CHECK(strstr(heard, "ETag: \"x\"\r\n") != NULL && strstr(heard, "x-Empty: \r\n") != NULL);
    CHECK(strstr(heard, "Content-Length") == NULL && strstr(heard, "Transfer-Encoding") == NULL);
    get(fd, "/204");
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strstr(heard, "Content-Length") == NULL && strstr(heard, "Transfer-Encoding") == NULL);
    get(fd, "/200");
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strstr(heard, "Content-Length: 0\r\n") != NULL && strstr(heard, "Date: ") != NULL);
    CHECK(strstr(heard, "keep-alive") != NULL);
    close(fd);
    fixture_close(&fixture);
}
