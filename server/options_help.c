#include "server/options_help.h"

#include <string.h>

#include "server/options_set.h"

enum { COLUMN = 26, WIDTH = 100 };

static const struct {
    const char *name;
    const char *summary;
} commands[] = {
    [SRV_COMMAND_SERVE] = {"serve", "run the gateway in the foreground"},
    [SRV_COMMAND_STAT] = {"stat", "show what is in a store"},
    [SRV_COMMAND_CHECK] = {"check", "check the index of a store, and with --bodies its objects"},
    [SRV_COMMAND_VERIFY] =
        {"verify", "read everything from the disk and compare checksums, beside a server or not"},
};

void srv_help_program(FILE *out)
{
    fputs("Usage: gyre COMMAND [OPTION]...\n\nAn object cache: S3 over HTTP/1.1 and HTTP/2, kept "
          "on local disk.\n\n",
          out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("  version  print the version\n  help     print this; gyre COMMAND --help lists a "
          "command's options\n\n"
          "Without options, gyre serve listens on 127.0.0.1:9000 and keeps its data in "
          "./gyre-data.\n",
          out);
}

/* Prints `text` in lines of WIDTH from COLUMN on, where the first one has begun. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t at = COLUMN;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (at > COLUMN && at + 1 + len > WIDTH) {
            fprintf(out, "\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", (int)len, text);
        at += len;
        text += len;
        text += *text == ' ';
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct srv_option *option)
{
    char text[512];
    int n = fprintf(out, "  --%s%s%s", option->name, option->argument[0] != '\0' ? " " : "",
                    option->argument);
    if (n < COLUMN - 1)
        fprintf(out, "%*s", COLUMN - n, "");
    else
        fprintf(out, "\n%*s", COLUMN, "");
    bool has_default = option->shown_default[0] != '\0';
    snprintf(text, sizeof(text), "%s%s%s%s", option->help, has_default ? " (default: " : "",
             option->shown_default, has_default ? ")" : "");
    print_wrapped(out, text);
}

void srv_help_command(FILE *out, enum srv_command command)
{
    fprintf(out, "Usage: gyre %s [OPTION]...\n\n%c%s.\n\n", commands[command].name,
            commands[command].summary[0] & ~0x20, commands[command].summary + 1);
    for (size_t i = 0; i < SRV_OPTION_COUNT_ALL; i++)
        if ((srv_option_table[i].places & (1u << command)) != 0)
            print_option(out, &srv_option_table[i]);
    fputs("  --help                  print this\n", out);
    if (command == SRV_COMMAND_SERVE)
        fputs("\nSignals: HUP reads the configuration file and certificates again, USR1 opens the "
              "access log anew,\nUSR2 starts a successor that takes over, TERM stops when requests "
              "have ended, once more at once.\n",
              out);
}
