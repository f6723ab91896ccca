/* The server's check of its own promises, on in every build. Never applied to what a peer sent.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* Aborts with the place and the condition unless `cond` holds. Evaluates it exactly once. */
#define SRV_CHECK(cond)                                                                \
    do {                                                                               \
        if (__builtin_expect(!(cond), 0)) {                                            \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                                   \
        }                                                                              \
    } while (0)
