/* What every benchmark needs: a way out, a clock, an order of figures.
 *
 * Owns: nothing. Lends: nothing. Threads: any. Blocks: never. Allocates: nothing. Keeps: nothing.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program with one line on stderr: a figure that was not measured is not to be shown. */
static inline _Noreturn void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "bench/%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

static inline uint64_t bench_now_ns(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* Orders doubles for qsort, smallest first. */
static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
