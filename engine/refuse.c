#include "engine/refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gyre_err eng_refuse(const struct eng_open *open, gyre_err err, const char *format, ...)
{
    va_list args;

    if (open->message == NULL || open->message_size == 0 || open->message[0] != '\0')
        return err;
    va_start(args, format);
    vsnprintf(open->message, open->message_size, format, args);
    va_end(args);
    return err;
}

static const char *remedy(gyre_err err)
{
    switch (err) {
    case GYRE_ACCESS: return "run as the owner of the files, or give this user write permission";
    case GYRE_DISK_FULL: return "free some space, or choose a smaller size";
    case GYRE_NO_FILES: return "raise the limit on open files (ulimit -n)";
    case GYRE_NO_MEMORY: return "free memory, or raise the limit on address space (ulimit -v)";
    case GYRE_INVALID:
        return "Gyre's files must be plain files: move it away, or name another directory";
    case GYRE_NO_STORE: return "check the path";
    case GYRE_UNSUPPORTED: return "put the store on a local file system such as ext4 or XFS";
    default: return "look at the system log for the device";
    }
}

gyre_err eng_refuse_io(const struct eng_open *open, gyre_err err, int errno_value, const char *path,
                       const char *tried)
{
    char reason[128];

    if (err == GYRE_INVALID && errno_value == 0)
        return eng_refuse(open, err, "%s: %s: not a regular file: %s", path, tried, remedy(err));
    return eng_refuse(open, err, "%s: %s: %s: %s", path, tried,
                      strerror_r(errno_value, reason, sizeof reason), remedy(err));
}
