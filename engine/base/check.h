/* Checks of our own promises, the one error macro, and branch hints.
 *
 * GYRE_CHECK stays on in release and aborts: a process that broke its own rules must not go on
 * writing to a store others read. GYRE_ASSERT is for what is too slow to check always. Neither is
 * ever applied to bytes that came from a disk or a peer; those are answered with an error.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/gyre_err.h"

#define likely(cond) __builtin_expect(!!(cond), 1)
#define unlikely(cond) __builtin_expect(!!(cond), 0)

/* Says on stderr which condition failed where, and aborts. Async-signal-safe. */
_Noreturn void eng_check_failed(const char *file, int line, const char *condition);

/* Aborts unless `cond` holds, in every build. `cond` is evaluated exactly once. */
#define GYRE_CHECK(cond)                                 \
    do {                                                 \
        if (unlikely(!(cond)))                           \
            eng_check_failed(__FILE__, __LINE__, #cond); \
    } while (0)

/* 1 where the costly checks (GYRE_ASSERT, lock order) are on: builds without NDEBUG, and every
 * sanitizer build. */
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GYRE_DEBUG_CHECKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define GYRE_DEBUG_CHECKS 1
#endif
#endif
#ifndef GYRE_DEBUG_CHECKS
#define GYRE_DEBUG_CHECKS 0
#endif

/* As GYRE_CHECK where GYRE_DEBUG_CHECKS is 1; elsewhere `cond` is compiled but not evaluated. */
#define GYRE_ASSERT(cond)                                \
    do {                                                 \
        if (GYRE_DEBUG_CHECKS && unlikely(!(cond)))      \
            eng_check_failed(__FILE__, __LINE__, #cond); \
    } while (0)

/* Leaves the function through `out` with the error in `err` when `expr` is not GYRE_OK. Both names
 * must exist in the function. */
#define TRY(expr)                     \
    do {                              \
        err = (expr);                 \
        if (unlikely(err != GYRE_OK)) \
            goto out;                 \
    } while (0)

/* Pin down a layout that is shared between processes or stored. */
#define GYRE_STATIC_SIZE(type, bytes) \
    _Static_assert(sizeof(type) == (bytes), #type " must be " #bytes " bytes")
#define GYRE_STATIC_OFFSET(type, field, bytes) \
    _Static_assert(offsetof(type, field) == (bytes), #type "." #field " must be at byte " #bytes)

#define GYRE_ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
