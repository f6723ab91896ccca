/* Locks are taken by rising rank only. */
#include "engine/base/rank.h"

#include "engine/base/check.h"
#include "tests/harness/test.h"

static void need_tracking(void)
{
    eng_rank_enter(1, false);
    bool tracked = eng_rank_any();
    eng_rank_leave(1);
    if (!tracked)
        test_skip("lock order is checked in debug and sanitizer builds only");
}

TEST(rising_ranks_pass_in_any_order_of_release)
{
    need_tracking();
    eng_rank_enter(1, false);
    eng_rank_enter(5, false);
    eng_rank_enter(9, false);
    CHECK(eng_rank_held(1) && eng_rank_held(5) && eng_rank_held(9) && !eng_rank_held(2));
    eng_rank_leave(5);
    CHECK(!eng_rank_held(5) && eng_rank_held(1) && eng_rank_held(9));
    eng_rank_leave(1);
    eng_rank_leave(9);
    CHECK(!eng_rank_any());
    eng_rank_enter(2, false);
    eng_rank_leave(2);
}

TEST(equal_and_falling_ranks_abort)
{
    need_tracking();
    eng_rank_enter(5, false);
    CHECK_ABORTS(eng_rank_enter(5, false));
    CHECK_ABORTS(eng_rank_enter(4, false));
    eng_rank_enter(6, false);
    eng_rank_leave(6);
    eng_rank_leave(5);
}

TEST(a_try_may_go_against_the_order_but_is_remembered)
{
    need_tracking();
    eng_rank_enter(5, false);
    eng_rank_enter(3, true);
    CHECK(eng_rank_held(3));
    CHECK_ABORTS(eng_rank_enter(4, false));
    eng_rank_enter(6, false);
    eng_rank_leave(6);
    eng_rank_leave(3);
    eng_rank_leave(5);
}

TEST(leaving_what_is_not_held_aborts)
{
    need_tracking();
    CHECK_ABORTS(eng_rank_leave(5));
}

TEST(no_rank_is_not_tracked)
{
    eng_rank_enter(ENG_RANK_NONE, false);
    eng_rank_enter(ENG_RANK_NONE, false);
    CHECK(!eng_rank_any());
    CHECK(eng_rank_held(ENG_RANK_NONE));
    eng_rank_leave(ENG_RANK_NONE);
    eng_rank_leave(ENG_RANK_NONE);
}
