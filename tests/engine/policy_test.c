/* Decisions of the policy, as tables. */
#include "engine/format.h"
#include "engine/policy.h"
#include "tests/harness/test.h"

static struct eng_policy policy_of(enum eng_retention retention, enum eng_mode mode)
{
    struct eng_policy policy = {.retention = retention};
    atomic_store(&policy.mode, mode);
    return policy;
}

TEST(inv_E70_newcomers_go_to_s_unless_there_is_a_reason)
{
    const struct {
        enum eng_retention retention;
        enum eng_mode mode;
        bool may_grow, remembered;
        uint64_t units;
        bool to_main;
    } rows[] = {
        {ENG_RETENTION_AUTO, ENG_MODE_F, false, false, 32, false},
        {ENG_RETENTION_AUTO, ENG_MODE_F, true, false, 32, true},
        {ENG_RETENTION_AUTO, ENG_MODE_F, false, true, 32, true},
        {ENG_RETENTION_AUTO, ENG_MODE_F, false, false, 2048, false},
        {ENG_RETENTION_AUTO, ENG_MODE_F, false, false, 2049, true},
        {ENG_RETENTION_AUTO, ENG_MODE_R, false, false, 32, true},
        {ENG_RETENTION_FIFO, ENG_MODE_F, false, false, 32, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct eng_policy policy = policy_of(rows[i].retention, rows[i].mode);
        struct eng_newcomer newcomer = {rows[i].units, 8192, rows[i].may_grow, rows[i].remembered};
        CHECK_MSG(eng_policy_admits(&policy, &newcomer) == rows[i].to_main, "row %zu", i);
    }
}

TEST(inv_E72_who_is_asked_for_stays)
{
    const struct {
        bool in_main;
        uint32_t hits;
        enum eng_grade grade;
        enum eng_verdict verdict;
    } rows[] = {
        {false, 0, ENG_GRADE_COMMON, ENG_LEAVES},   {false, 1, ENG_GRADE_COMMON, ENG_LEAVES},
        {false, 2, ENG_GRADE_COMMON, ENG_PROMOTED}, {false, 1, ENG_GRADE_SMALL, ENG_PROMOTED},
        {false, 2, ENG_GRADE_LARGE, ENG_LEAVES},    {false, 3, ENG_GRADE_LARGE, ENG_PROMOTED},
        {true, 0, ENG_GRADE_COMMON, ENG_LEAVES},    {true, 1, ENG_GRADE_COMMON, ENG_STAYS},
        {true, 1, ENG_GRADE_LARGE, ENG_LEAVES},     {true, 2, ENG_GRADE_LARGE, ENG_STAYS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct eng_policy policy = policy_of(ENG_RETENTION_AUTO, ENG_MODE_F);
        struct eng_resident resident = {rows[i].in_main, rows[i].hits, rows[i].grade};
        CHECK_MSG(eng_policy_judge(&policy, &resident) == rows[i].verdict, "row %zu", i);
        policy.retention = ENG_RETENTION_FIFO;
        CHECK_EQ_INT(eng_policy_judge(&policy, &resident), ENG_LEAVES);
    }
}

TEST(inv_E73_copies_never_exceed_a_quarter_of_what_is_inserted)
{
    struct eng_policy policy = policy_of(ENG_RETENTION_AUTO, ENG_MODE_F);
    struct test_rng rng = {test_seed()};
    uint64_t most = 100000;
    for (int i = 0; i < 100000; i++) {
        eng_policy_earn(&policy, 1 + test_rng_below(&rng, 5000), most);
        while (test_rng_below(&rng, 4) != 0)
            (void)eng_policy_pay(&policy, 1 + test_rng_below(&rng, 5000));
        CHECK(policy.copied_units * 4 <= policy.inserted_units);
        CHECK(policy.tokens_units <= most);
    }
    CHECK(policy.copied_units * 5 > policy.inserted_units); /* and they are worth having */
    policy.retention = ENG_RETENTION_FIFO;
    CHECK(!eng_policy_pay(&policy, 1));
}

TEST(grades_follow_the_mean)
{
    struct eng_policy policy = policy_of(ENG_RETENTION_AUTO, ENG_MODE_F);
    for (int i = 0; i < 1000; i++)
        eng_policy_inserted(&policy, 100);
    CHECK_EQ_INT(eng_policy_grade(&policy, 100), ENG_GRADE_COMMON);
    CHECK_EQ_INT(eng_policy_grade(&policy, 400), ENG_GRADE_COMMON);
    CHECK_EQ_INT(eng_policy_grade(&policy, 401), ENG_GRADE_LARGE);
    CHECK_EQ_INT(eng_policy_grade(&policy, 24), ENG_GRADE_SMALL);
    for (int i = 0; i < 100000; i++)
        eng_policy_inserted(&policy, 1000);
    CHECK_EQ_INT(eng_policy_grade(&policy, 100), ENG_GRADE_SMALL);
}

TEST(s_has_a_tenth_where_there_are_segments_for_it)
{
    struct eng_policy policy = policy_of(ENG_RETENTION_AUTO, ENG_MODE_F);
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 3), 0);
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 8), 1);
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 64), 6);
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 4096), 410);
    atomic_store(&policy.mode, ENG_MODE_R);
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 64), 1);
    policy.retention = ENG_RETENTION_FIFO;
    CHECK_EQ_INT(eng_policy_s_segments(&policy, 64), 0);
}
