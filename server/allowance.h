/* What somebody may still do of a thing that costs work: so many at once, and so many a second in
 * the long run (a token bucket).
 *
 * Owns:    the caller owns struct srv_allowance.
 * Threads: one at a time. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct srv_allowance_rate {
    uint32_t burst;
    uint32_t per_s;
};

struct srv_allowance {
    uint64_t left_milli; /* thousandths of one */
    uint64_t at_ms;      /* when `left_milli` was true */
};

static inline void srv_allowance_init(struct srv_allowance *allowance,
                                      struct srv_allowance_rate rate, uint64_t now_ms)
{
    *allowance = (struct srv_allowance){(uint64_t)rate.burst * 1000, now_ms};
}

/* Adds `n`, but never goes over the burst. */
static inline void srv_allowance_earn(struct srv_allowance *allowance,
                                      struct srv_allowance_rate rate, uint64_t n)
{
    uint64_t full = (uint64_t)rate.burst * 1000;
    uint64_t room = full - allowance->left_milli;
    allowance->left_milli = n >= room / 1000 + 1 ? full : allowance->left_milli + n * 1000;
    if (allowance->left_milli > full)
        allowance->left_milli = full;
}

/* Takes one; false when there is none. A clock that goes backwards earns nothing. */
static inline bool srv_allowance_spend(struct srv_allowance *allowance,
                                       struct srv_allowance_rate rate, uint64_t now_ms)
{
    uint64_t full = (uint64_t)rate.burst * 1000;
    uint64_t passed = now_ms > allowance->at_ms ? now_ms - allowance->at_ms : 0;
    allowance->at_ms = now_ms;
    if (rate.per_s > 0 && passed >= (full - allowance->left_milli) / rate.per_s + 1)
        allowance->left_milli = full;
    else
        allowance->left_milli += passed * rate.per_s;
    if (allowance->left_milli > full)
        allowance->left_milli = full;
    if (allowance->left_milli < 1000)
        return false;
    allowance->left_milli -= 1000;
    return true;
}
