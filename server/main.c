/* The program: finds the command, reads its options, runs it. Exit status: 0, 1 when it failed, 2
 * for a wrong command line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/commands.h"
#include "server/nearest.h"
#include "server/options.h"
#include "server/options_help.h"

enum { EXIT_USAGE = 2 };

static const char *const words[] = {"serve", "stat", "check", "verify", "version", "help"};
static int (*const commands[])(const struct srv_options *) = {
    [SRV_COMMAND_SERVE] = srv_command_serve,
    [SRV_COMMAND_STAT] = srv_command_stat,
    [SRV_COMMAND_CHECK] = srv_command_check,
    [SRV_COMMAND_VERIFY] = srv_command_verify,
};

/* A standard stream that came closed would give its number to a socket or a file of ours, and what
 * is printed would go there. It is taken by one that can only fail, in the order open() gives out
 * numbers. */
static bool occupy_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
    while (fd >= 0 && fd < STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
    return fd >= 0;
}

static int run(enum srv_command command, int argc, char **argv)
{
    struct srv_options options;
    char error[SRV_OPTIONS_ERROR_MAX];
    int status = EXIT_USAGE;
    if (!srv_options_parse(&options, command, argc, argv, error)) {
        fprintf(stderr, "gyre: %s\n", error);
        status = options.is_file_missing ? 1 : EXIT_USAGE;
    } else if (options.help) {
        srv_help_command(stdout, command);
        status = 0;
    } else {
        srv_log_set_level((enum srv_log_level)options.log_level);
        status = commands[command](&options);
    }
    srv_options_fini(&options);
    return status;
}

static int refuse(const char *word)
{
    const char *near = srv_nearest(word, words, sizeof(words) / sizeof(words[0]));
    fprintf(stderr, "gyre: unknown command \"%s\"%s%s%s\n", word,
            near != NULL ? ": did you mean gyre " : "; gyre help lists all",
            near != NULL ? near : "", near != NULL ? "?" : "");
    return EXIT_USAGE;
}

static int refuse_more(const char *word, const char *more)
{
    fprintf(stderr, "gyre: \"%s\": gyre %s takes no options and no arguments\n", more, word);
    return EXIT_USAGE;
}

static bool is_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_command(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (int command = SRV_COMMAND_SERVE; command <= SRV_COMMAND_VERIFY; command++) {
        if (strcmp(word, words[command]) == 0)
            return run((enum srv_command)command, argc - 2, argv + 2);
        if (argc > 2 && strcmp(word, "help") == 0 && strcmp(argv[2], words[command]) == 0) {
            srv_help_command(stdout, (enum srv_command)command);
            return 0;
        }
    }
    bool is_version = strcmp(word, "version") == 0 || strcmp(word, "--version") == 0;
    bool is_help = strcmp(word, "help") == 0 || is_for_help(word);
    if (argc <= 1) {
        srv_help_program(stderr);
        return EXIT_USAGE;
    }
    if (!is_version && !is_help)
        return refuse(word);
    const char *more = argc > 2 ? argv[2] : "";
    if (is_help && argc > 2 && strcmp(more, "version") != 0 && strcmp(more, "help") != 0)
        return refuse(more);
    if (is_version && argc > 2 && !is_for_help(more))
        return refuse_more(word, more);
    if (is_help || argc > 2)
        srv_help_program(stdout);
    else
        printf("gyre %s\n", gyre_version());
    return 0;
}

/* What was printed has to have arrived. */
int main(int argc, char **argv)
{
    if (!occupy_standard_streams())
        return 1;
    int status = run_command(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "gyre: standard output could not be written: %s\n", strerror(errno));
    return status != 0 ? status : 1;
}
