/* Log lines: level, form, controls, length, and lines of several threads. */
#include "server/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/test.h"

/* Sends stderr into a file while `write` runs and returns what came, terminated. */
static char *capture(void (*write)(void))
{
    static char text[1 << 20];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    int saved = dup(STDERR_FILENO);
    CHECK(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    write();
    CHECK(dup2(saved, STDERR_FILENO) >= 0 && close(saved) == 0);
    rewind(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static void write_levels(void)
{
    srv_log_set_level(SRV_LOG_WARN);
    srv_log(SRV_LOG_ERROR, "one %d", 1);
    srv_log(SRV_LOG_WARN, "two");
    srv_log(SRV_LOG_INFO, "three");
}

TEST(entries_above_the_level_are_dropped)
{
    const char *text = capture(write_levels);
    CHECK(strstr(text, " error one 1\n") != NULL);
    CHECK(strstr(text, " warn  two\n") != NULL);
    CHECK(strstr(text, "three") == NULL);
    CHECK(text[4] == '-' && text[10] == 'T' && text[23] == 'Z');
    CHECK(srv_log_wants(SRV_LOG_WARN) && !srv_log_wants(SRV_LOG_INFO));
}

static void write_controls(void)
{
    errno = 77;
    srv_log(SRV_LOG_ERROR, "a\nb\x1b[0m\x7f\td");
    CHECK_EQ_INT(errno, 77);
}

TEST(an_entry_stays_one_line)
{
    CHECK(strstr(capture(write_controls), " error a?b?[0m??d\n") != NULL);
}

static void write_long(void)
{
    srv_log(SRV_LOG_ERROR, "%05000d", 7);
}

TEST(long_entries_are_cut)
{
    const char *text = capture(write_long);
    size_t len = strlen(text);
    CHECK(len > 1000 && len <= 1100 && text[len - 1] == '\n' &&
          strchr(text, '\n') == text + len - 1);
}

static void *write_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        srv_log(SRV_LOG_ERROR, "%s%s%s", (const char *)arg, (const char *)arg, (const char *)arg);
    return NULL;
}

static void write_from_threads(void)
{
    static const char *const words[] = {"aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, write_many, (void *)(uintptr_t)words[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

TEST(lines_of_threads_never_mix)
{
    char *text = capture(write_from_threads);
    size_t lines = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        CHECK_EQ_U64(strlen(line), 24 + 7 + 60);
        CHECK(strspn(line + 31, "a") == 60 || strspn(line + 31, "b") == 60);
    }
    CHECK_EQ_U64(lines, 400);
}
