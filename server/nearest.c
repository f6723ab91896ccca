#include "server/nearest.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LEN_MAX = 63 };

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int lower(char c)
{
    return tolower((unsigned char)c);
}

size_t srv_edit_distance(const char *a, const char *b)
{
    /* Optimal string alignment with the last three rows of the matrix. */
    size_t rows[3][LEN_MAX + 1];
    size_t a_len = strnlen(a, LEN_MAX);
    size_t b_len = strnlen(b, LEN_MAX);
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *up = rows[(i + 2) % 3];
        const size_t *up2 = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = lower(a[i - 1]) != lower(b[j - 1]);
            now[j] = min(up[j - 1] + change, min(up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = min(now[j], up2[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

/* Beyond some two fifths of the letters a guess is noise. */
static bool is_sensible(size_t distance, const char *text)
{
    return distance <= (2 * strlen(text) + 2) / 5;
}

/* "tls" for "tls-cert" costs many letters and is still a good guess. */
static size_t distance_to(const char *text, const char *name)
{
    size_t len = strlen(text);
    if (len >= 3 && strncasecmp(text, name, len) == 0)
        return 1;
    return srv_edit_distance(text, name);
}

const char *srv_nearest(const char *text, const char *const *names, size_t n_names)
{
    const char *best = NULL;
    size_t best_distance = (size_t)-1;
    for (size_t i = 0; i < n_names; i++) {
        size_t distance = distance_to(text, names[i]);
        if (distance < best_distance && is_sensible(distance, text)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

bool srv_nearest_file(const char *path, char *path_out, size_t size)
{
    char folder[4096];
    path_out[0] = '\0';
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t folder_len = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (folder_len >= sizeof(folder))
        return false;
    memcpy(folder, path, folder_len);
    folder[folder_len] = '\0';
    DIR *dir = opendir(folder_len == 0 ? "." : folder);
    if (dir == NULL)
        return false;
    size_t best_distance = (size_t)-1;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        size_t distance = srv_edit_distance(name, entry->d_name);
        if (entry->d_name[0] == '.' || distance >= best_distance || !is_sensible(distance, name))
            continue;
        int n = snprintf(path_out, size, "%s%s", folder, entry->d_name);
        best_distance = n > 0 && (size_t)n < size ? distance : best_distance;
    }
    closedir(dir);
    if (best_distance == (size_t)-1)
        path_out[0] = '\0';
    return best_distance != (size_t)-1;
}
