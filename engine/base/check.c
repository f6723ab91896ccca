#include "engine/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct iovec piece(const char *text)
{
    return (struct iovec){(void *)(uintptr_t)text, strlen(text)};
}

/* One writev and no stdio: the heap or a stdio lock may be what is broken, and the line must not
 * mix with other threads'. */
void eng_check_failed(const char *file, int line, const char *condition)
{
    char digits[16];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + line % 10);
        line /= 10;
    } while (line > 0 && first > digits);

    const struct iovec pieces[] = {piece(file),      piece(":"),
                                   piece(first),     piece(": check failed: "),
                                   piece(condition), piece("\n")};
    if (writev(STDERR_FILENO, pieces, (int)GYRE_ARRAY_LEN(pieces)) < 0) {
        /* nobody is listening; the abort says enough */
    }
    abort();
}
