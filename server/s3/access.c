#include "server/s3/access.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static void rules_fini(struct srv_s3_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        free(rules->at[i].bucket);
    free(rules->at);
    *rules = (struct srv_s3_rules){NULL, 0};
}

static void user_fini(struct srv_s3_user *user)
{
    for (size_t i = 0; i < user->n_keys; i++) {
        struct srv_s3_key_pair *key = &user->keys[i];
        free(key->access_key);
        if (key->secret != NULL)
            OPENSSL_cleanse(key->secret, strlen(key->secret));
        free(key->secret);
    }
    free(user->keys);
    rules_fini(&user->rules);
    free(user->name);
    free(user->email);
}

void srv_s3_access_fini(struct srv_s3_access *access)
{
    for (size_t i = 0; i < access->n_users; i++)
        user_fini(&access->users[i]);
    free(access->users);
    rules_fini(&access->everyone);
    *access = (struct srv_s3_access){.users = NULL};
}

static bool equals(struct srv_str text, const char *word)
{
    return word != NULL && text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

const struct srv_s3_user *srv_s3_access_find(const struct srv_s3_access *access,
                                             struct srv_str access_key,
                                             const struct srv_s3_key_pair **key_out)
{
    *key_out = NULL;
    for (size_t i = 0; i < access->n_users; i++) {
        const struct srv_s3_user *user = &access->users[i];
        for (size_t k = 0; k < user->n_keys; k++) {
            if (!equals(access_key, user->keys[k].access_key))
                continue;
            *key_out = &user->keys[k];
            return user;
        }
    }
    return NULL;
}

const struct srv_s3_user *srv_s3_access_named(const struct srv_s3_access *access,
                                              struct srv_str name)
{
    for (size_t i = 0; i < access->n_users; i++) {
        if (equals(name, access->users[i].name))
            return &access->users[i];
    }
    return NULL;
}

const struct srv_s3_user *srv_s3_access_mailed(const struct srv_s3_access *access,
                                               struct srv_str email)
{
    for (size_t i = 0; i < access->n_users; i++) {
        if (equals(email, access->users[i].email))
            return &access->users[i];
    }
    return NULL;
}

static unsigned rights_of(const struct srv_s3_rules *rules, struct srv_str bucket)
{
    unsigned rights = 0;

    for (size_t i = 0; i < rules->n; i++) {
        if (strcmp(rules->at[i].bucket, "*") == 0 || equals(bucket, rules->at[i].bucket))
            rights |= rules->at[i].rights;
    }
    return rights & SRV_S3_MAY_ADMIN ? SRV_S3_MAY_ALL : rights;
}

unsigned srv_s3_access_rights(const struct srv_s3_access *access, const struct srv_s3_user *user,
                              struct srv_str bucket)
{
    unsigned rights = rights_of(&access->everyone, bucket);

    return user == NULL ? rights : rights | rights_of(&user->rules, bucket);
}
