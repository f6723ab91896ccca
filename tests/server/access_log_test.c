/* The access log's way out: lines of several threads whole and in order, files opened anew, readers
 * that do not read. */
#include "server/access_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/test.h"

static char error[256];

static void add(struct srv_access_log *log, unsigned loop, unsigned long number)
{
    char path[64];
    int len = snprintf(path, sizeof path, "/%u/%lu", loop, number);
    const struct srv_access_entry entry = {.client = "c",
                                           .method = {"GET", 3},
                                           .path = {path, (size_t)len},
                                           .version = 11,
                                           .result = "hit",
                                           .role = "s3",
                                           .operation = "get",
                                           .id = "i"};
    srv_access_log_add(log, loop, &entry);
}

static void set(struct srv_access_log *log, const char *path)
{
    int fd;
    CHECK_MSG(srv_access_log_open(path, &fd, error, sizeof error), "%s", error);
    CHECK(srv_access_log_set(log, path, fd, SRV_ACCESS_COMBINED));
}

/* Reads "... /LOOP/NUMBER ..." lines that must be whole and, for each loop, in order; how many. */
static unsigned long read_lines(const char *path, unsigned long next[], unsigned n_loops)
{
    char text[512];
    unsigned long n = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(text, sizeof text, file) != NULL) {
        unsigned loop;
        unsigned long number;
        const char *at = strstr(text, "\"GET /");
        CHECK_MSG(at != NULL && sscanf(at, "\"GET /%u/%lu HTTP", &loop, &number) == 2 &&
                      text[strlen(text) - 1] == '\n' && loop < n_loops,
                  "%s", text);
        CHECK_MSG(number >= next[loop], "%lu before %lu", number, next[loop]);
        next[loop] = number + 1;
        n++;
    }
    fclose(file);
    return n;
}

struct adder {
    struct srv_access_log *log;
    unsigned loop;
    unsigned long n;
    pthread_t thread;
};

static void *add_many(void *arg)
{
    struct adder *adder = arg;
    for (unsigned long i = 0; i < adder->n; i++) {
        add(adder->log, adder->loop, i);
        if (i % 1000 == 0)
            usleep(100);
    }
    return NULL;
}

TEST(lines_are_whole_in_order_and_all_accounted_for)
{
    enum { LOOPS = 3, EACH = 40000 };
    struct srv_access_log *log = srv_access_log_create(LOOPS);
    struct adder adders[LOOPS];
    char path[256], old[260];
    unsigned long next[LOOPS] = {0};
    uint64_t written, dropped;
    snprintf(path, sizeof path, "%s", test_path("log"));
    snprintf(old, sizeof old, "%s.1", path);
    add(log, 0, 7); /* switched off */
    set(log, path);
    for (unsigned i = 0; i < LOOPS; i++) {
        adders[i] = (struct adder){log, i, EACH, 0};
        CHECK(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]) == 0);
    }
    usleep(5000);
    CHECK(rename(path, old) == 0);
    srv_access_log_reopen(log);
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(adders[i].thread, NULL);
    for (written = dropped = 0; written + dropped < LOOPS * EACH; usleep(1000))
        srv_access_log_count(log, &written, &dropped);
    CHECK_EQ_U64(written + dropped, LOOPS * EACH);
    srv_access_log_destroy(log);
    unsigned long before = read_lines(old, next, LOOPS), after = read_lines(path, next, LOOPS);
    CHECK_EQ_U64(before + after, written);
    CHECK(after > 0);
}

TEST(a_reader_that_does_not_read_costs_lines_but_no_time)
{
    struct srv_access_log *log = srv_access_log_create(1);
    int ends[2];
    uint64_t written, dropped = 0;
    CHECK(pipe(ends) == 0);
    CHECK(srv_access_log_set(log, "-", ends[1], SRV_ACCESS_JSON));
    for (unsigned long i = 0; i < 100000; i++)
        add(log, 0, i);
    srv_access_log_count(log, &written, &dropped);
    CHECK_MSG(dropped > 50000, "dropped %llu", (unsigned long long)dropped);
    time_t before = time(NULL);
    srv_access_log_destroy(log); /* gives up after a while */
    CHECK(time(NULL) - before < 60);
    close(ends[0]);
}

TEST(what_cannot_be_opened_is_said)
{
    struct srv_access_log *log = srv_access_log_create(1);
    char path[256];
    unsigned long next[1] = {0};
    int fd;
    CHECK(!srv_access_log_open("/no/such/folder/log", &fd, error, sizeof error) && fd == -1);
    CHECK_MSG(strstr(error, "/no/such/folder/log") != NULL, "said: %s", error);
    snprintf(path, sizeof path, "%s", test_path("log"));
    set(log, path);
    add(log, 0, 0);
    for (uint64_t written = 0, dropped; written < 1; usleep(1000))
        srv_access_log_count(log, &written, &dropped);
    set(log, NULL);
    CHECK(!srv_access_log_on(log));
    add(log, 0, 1);
    srv_access_log_destroy(log);
    CHECK_EQ_U64(read_lines(path, next, 1), 1);
}

TEST(a_log_that_ends_at_once_has_its_lines)
{
    char path[256];
    snprintf(path, sizeof path, "%s", test_path("log"));
    for (unsigned long i = 0; i < 50; i++) {
        unsigned long next[1] = {0};
        struct srv_access_log *log = srv_access_log_create(1);
        set(log, path);
        add(log, 0, i);
        srv_access_log_destroy(log);
        CHECK_EQ_U64(read_lines(path, next, 1), i + 1);
    }
}

TEST(a_full_disk_costs_lines_and_is_counted)
{
    struct srv_access_log *log = srv_access_log_create(1);
    uint64_t written = 0, dropped = 0;
    int fd = open("/dev/full", O_WRONLY);
    CHECK(srv_access_log_set(log, "/dev/full", fd, SRV_ACCESS_COMBINED));
    for (unsigned long i = 0; i < 10; i++)
        add(log, 0, i);
    for (; dropped < 10; usleep(1000))
        srv_access_log_count(log, &written, &dropped);
    CHECK_EQ_U64(written, 0);
    srv_access_log_destroy(log);
}
