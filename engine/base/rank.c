#include "engine/base/rank.h"

#include "engine/base/check.h"

struct held_ranks {
    unsigned ranks[ENG_RANK_HELD_MAX];
    unsigned n;
};

static _Thread_local struct held_ranks held;

void eng_rank_enter(unsigned rank, bool tried)
{
    if (!GYRE_DEBUG_CHECKS || rank == ENG_RANK_NONE)
        return;
    for (unsigned i = 0; i < held.n && !tried; i++)
        GYRE_CHECK(held.ranks[i] < rank);
    GYRE_CHECK(held.n < ENG_RANK_HELD_MAX);
    held.ranks[held.n++] = rank;
}

void eng_rank_leave(unsigned rank)
{
    if (!GYRE_DEBUG_CHECKS || rank == ENG_RANK_NONE)
        return;
    unsigned i = held.n;
    while (i > 0 && held.ranks[i - 1] != rank)
        i--;
    GYRE_CHECK(i > 0);
    for (; i < held.n; i++)
        held.ranks[i - 1] = held.ranks[i];
    held.n--;
}

bool eng_rank_held(unsigned rank)
{
    bool found = !GYRE_DEBUG_CHECKS || rank == ENG_RANK_NONE;
    for (unsigned i = 0; i < held.n && !found; i++)
        found = held.ranks[i] == rank;
    return found;
}

bool eng_rank_any(void)
{
    return held.n > 0;
}
