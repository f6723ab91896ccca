/* Users, keys and rights as the configuration has them; and what follows for an object. */
#include "server/s3/access.h"

#include <stdlib.h>

#include "server/s3/who.h"
#include "tests/harness/test.h"

#define READ SRV_S3_MAY_READ
#define LIST SRV_S3_MAY_LIST
#define ALL SRV_S3_MAY_ALL

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, text == NULL ? 0 : strlen(text)};
}

static char *copy(const char *text)
{
    char *made = strdup(text);
    CHECK(made != NULL);
    return made;
}

static struct srv_s3_rules rules_of(const char *bucket, unsigned rights, const char *other,
                                    unsigned other_rights)
{
    struct srv_s3_rules rules = {calloc(2, sizeof(struct srv_s3_rule)), other != NULL ? 2 : 1};

    CHECK(rules.at != NULL);
    rules.at[0] = (struct srv_s3_rule){copy(bucket), rights};
    if (other != NULL)
        rules.at[1] = (struct srv_s3_rule){copy(other), other_rights};
    return rules;
}

static void add_user(struct srv_s3_access *access, const char *name, const char *key,
                     struct srv_s3_rules rules)
{
    struct srv_s3_user *users =
        realloc(access->users, (access->n_users + 1) * sizeof *access->users);

    CHECK(users != NULL);
    access->users = users;
    struct srv_s3_user *user = &users[access->n_users++];
    *user = (struct srv_s3_user){
        .name = copy(name), .keys = calloc(1, sizeof *user->keys), .n_keys = 1, .rules = rules};
    CHECK(user->keys != NULL);
    user->keys[0] = (struct srv_s3_key_pair){copy(key), copy("secret"), 1};
}

TEST(rights_of_a_bucket_and_of_all_add_up)
{
    struct srv_s3_access access = {.users = NULL};
    const struct srv_s3_key_pair *key;

    add_user(&access, "alice", "AKA", rules_of("*", SRV_S3_MAY_ADMIN, NULL, 0));
    add_user(&access, "bob", "AKB", rules_of("one", READ, "*", LIST));
    access.everyone = rules_of("open", READ, NULL, 0);
    static const struct {
        const char *key; /* NULL: no signature */
        const char *bucket;
        unsigned rights;
    } rows[] = {
        {"AKA", "one", ALL},
        {"AKA", "open", ALL},
        {"AKB", "one", READ | LIST},
        {"AKB", "two", LIST},
        {"AKB", "open", READ | LIST},
        {NULL, "open", READ},
        {NULL, "one", 0},
        {NULL, "ope", 0},
        {NULL, "opens", 0},
        {NULL, "*", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct srv_s3_user *user =
            rows[i].key == NULL ? NULL : srv_s3_access_find(&access, str(rows[i].key), &key);
        CHECK_MSG(srv_s3_access_rights(&access, user, str(rows[i].bucket)) == rows[i].rights,
                  "row %zu", i);
    }
    CHECK(srv_s3_access_find(&access, str("AKC"), &key) == NULL && key == NULL);
    CHECK(srv_s3_access_find(&access, str("AK"), &key) == NULL);
    CHECK(srv_s3_access_find(&access, str(""), &key) == NULL);
    CHECK(srv_s3_access_find(&access, str("AKB"), &key) == &access.users[1] &&
          key == &access.users[1].keys[0]);
    CHECK(srv_s3_access_named(&access, str("bob")) == &access.users[1]);
    CHECK(srv_s3_access_named(&access, str("bo")) == NULL);
    CHECK(srv_s3_access_mailed(&access, str("")) == NULL);
    srv_s3_access_fini(&access);
}

TEST(an_object_is_for_those_with_rights_its_owner_and_its_list)
{
    static const char public_read[] = {SRV_S3_GRANTEE_EVERYONE, SRV_S3_ACL_READ, 0};
    const struct srv_str list = {public_read, sizeof public_read}, none = {NULL, 0};
    const struct srv_s3_who open = {.is_open = true};
    const struct srv_s3_who stranger = {.rights = 0};
    const struct srv_s3_who reader = {.rights = READ};
    const struct srv_s3_who admin = {.rights = ALL};
    const struct srv_s3_who alice = {.is_signed = true, .id_len = 5, .id = "alice"};
    const struct {
        const struct srv_s3_who *who;
        const char *owner;
        struct srv_str acl;
        enum srv_s3_permission permission;
        bool may;
    } rows[] = {
        {&open, NULL, none, SRV_S3_ACL_WRITE_ACP, true},
        {&open, "bob", none, SRV_S3_ACL_READ, true},
        {&stranger, "bob", none, SRV_S3_ACL_READ, false},
        {&stranger, "bob", list, SRV_S3_ACL_READ, true},
        {&stranger, "bob", list, SRV_S3_ACL_WRITE, false},
        {&stranger, NULL, none, SRV_S3_ACL_READ, false}, /* stored before there were users */
        {&alice, NULL, none, SRV_S3_ACL_READ, false},
        {&alice, "alice", none, SRV_S3_ACL_WRITE_ACP, true},
        {&alice, "bob", none, SRV_S3_ACL_READ, false},
        {&reader, "bob", none, SRV_S3_ACL_READ, true},
        {&reader, "bob", none, SRV_S3_ACL_WRITE, false},
        {&reader, "bob", none, SRV_S3_ACL_READ_ACP, false},
        {&admin, "bob", none, SRV_S3_ACL_WRITE_ACP, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_MSG(srv_s3_may_use(rows[i].who, str(rows[i].owner), rows[i].acl,
                                 rows[i].permission) == rows[i].may,
                  "row %zu", i);
    const struct srv_s3_who lister = {.rights = LIST}, listed = {.bucket_acl = SRV_S3_ACL_READ};
    CHECK(srv_s3_may_know(&open) && srv_s3_may_know(&lister) && srv_s3_may_know(&listed));
    CHECK(!srv_s3_may_know(&stranger) && !srv_s3_may_know(&reader));
}
