#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

/* Whether the thread sleeps, or is gone. */
static bool sleeps(const char *tid)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end == NULL || strlen(name_end) < 3 || name_end[2] == 'S';
}

static bool others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool all = true;
    CHECK(tasks != NULL);
    for (const struct dirent *task; all && (task = readdir(tasks)) != NULL;)
        all = task->d_name[0] == '.' || atoi(task->d_name) == gettid() || sleeps(task->d_name);
    closedir(tasks);
    return all;
}

pid_t test_fork(void)
{
    if (TEST_ASAN)
        CHECK_SOON(others_sleep());
    pid_t pid = fork();
    CHECK(pid >= 0);
    return pid;
}

void test_join(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
