#include <stdlib.h>
#include <string.h>

#include "server/nearest.h"
#include "server/options_section.h"
#include "server/s3/name.h"

/* "users": {NAME: {"keys": {ACCESS KEY: SECRET}, "rights": {BUCKET: [RIGHT]}, "email": TEXT}} and
 * "everyone": {BUCKET: [RIGHT]}: who may do what. No message ever repeats a secret. */

static const struct {
    const char *name;
    unsigned right;
} rights[] = {
    {"read", SRV_S3_MAY_READ},
    {"write", SRV_S3_MAY_WRITE},
    {"list", SRV_S3_MAY_LIST},
    {"admin", SRV_S3_MAY_ADMIN},
};

enum { N_RIGHTS = sizeof rights / sizeof rights[0] };

static const char rights_form[] =
    "give an object such as {\"my-bucket\": [\"read\", \"list\"], \"*\": [\"admin\"]}";

static bool read_right(struct srv_section *section, const json_t *value, unsigned *rights_inout)
{
    const char *names[N_RIGHTS];
    const char *text = json_string_value(value);

    for (size_t i = 0; i < N_RIGHTS; i++) {
        names[i] = rights[i].name;
        if (text != NULL && strcmp(text, names[i]) == 0) {
            *rights_inout |= rights[i].right;
            return true;
        }
    }
    const char *near = text == NULL ? NULL : srv_nearest(text, names, N_RIGHTS);
    return srv_section_error(section, "rights are read, write, list and admin%s%s%s",
                             near != NULL ? ": did you mean \"" : "", near != NULL ? near : "",
                             near != NULL ? "\"?" : "");
}

static bool read_rule(struct srv_section *section, const char *bucket, const json_t *value,
                      struct srv_s3_rule *rule_out)
{
    struct srv_str name = {bucket, strlen(bucket)};

    if (strcmp(bucket, "*") != 0 && !srv_s3_bucket_valid(name))
        return srv_section_error(section, "this is neither a bucket's name nor \"*\"");
    if (!json_is_array(value))
        return srv_section_error(section, "give a list such as [\"read\", \"list\"]");
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!read_right(section, json_array_get(value, i), &rule_out->rights))
            return false;
    }
    rule_out->bucket = strdup(bucket);
    return rule_out->bucket != NULL || srv_section_error(section, "out of memory");
}

static bool read_rules(struct srv_section *section, const json_t *value, struct srv_s3_rules *rules)
{
    const char *bucket;
    json_t *member;

    if (!json_is_object(value))
        return srv_section_error(section, "%s", rights_form);
    rules->at = calloc(json_object_size(value) + 1, sizeof rules->at[0]);
    if (rules->at == NULL)
        return srv_section_error(section, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)value, bucket, member)
    {
        srv_section_enter(section, bucket);
        if (!read_rule(section, bucket, member, &rules->at[rules->n++]))
            return false;
        srv_section_leave(section);
    }
    return true;
}

/* Each loading of a key gets a number of its own, so that nothing derived from an older secret is
 * taken for the new one's. */
static uint64_t next_serial(void)
{
    static uint64_t serial;
    return ++serial;
}

static bool read_key(struct srv_section *section, const char *access_key, const json_t *value,
                     struct srv_s3_key_pair *key_out)
{
    const struct srv_s3_access *access = &section->options->access;
    const struct srv_s3_key_pair *other;
    const char *secret = json_string_value(value);
    size_t len = strlen(access_key);

    if (len == 0 || len > SRV_S3_ACCESS_KEY_MAX || strpbrk(access_key, "/ ,\t") != NULL)
        return srv_section_error(section,
                                 "an access key is 1 to 128 characters without slash or space");
    if (srv_s3_access_find(access, (struct srv_str){access_key, len}, &other) != NULL)
        return srv_section_error(section, "two users have this access key");
    if (secret == NULL || strlen(secret) < SRV_S3_SECRET_MIN || strlen(secret) > SRV_S3_SECRET_MAX)
        return srv_section_error(section, "the secret must be a string of 8 to 256 characters");
    key_out->serial = next_serial();
    key_out->access_key = strdup(access_key);
    key_out->secret = strdup(secret);
    return (key_out->access_key != NULL && key_out->secret != NULL) ||
           srv_section_error(section, "out of memory");
}

static bool read_keys(struct srv_section *section, const json_t *value, struct srv_s3_user *user)
{
    const char *access_key;
    json_t *member;

    if (!json_is_object(value) || json_object_size(value) == 0)
        return srv_section_error(section, "give an object such as {\"ACCESSKEY\": \"secret\"}");
    user->keys = calloc(json_object_size(value), sizeof user->keys[0]);
    if (user->keys == NULL)
        return srv_section_error(section, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)value, access_key, member)
    {
        srv_section_enter(section, access_key);
        if (!read_key(section, access_key, member, &user->keys[user->n_keys]))
            return false;
        srv_section_leave(section);
        user->n_keys++;
    }
    return true;
}

static bool read_email(struct srv_section *section, const json_t *value, struct srv_s3_user *user)
{
    if (!json_is_string(value))
        return srv_section_error(section, "give a string");
    user->email = strdup(json_string_value(value));
    return user->email != NULL || srv_section_error(section, "out of memory");
}

static bool read_user_member(struct srv_section *section, const char *key, const json_t *value,
                             struct srv_s3_user *user)
{
    static const char *const keys[] = {"keys", "rights", "email"};

    if (strcmp(key, "keys") == 0)
        return read_keys(section, value, user);
    if (strcmp(key, "rights") == 0)
        return read_rules(section, value, &user->rules);
    if (strcmp(key, "email") == 0)
        return read_email(section, value, user);
    return srv_section_unknown(section, "a user", keys, sizeof keys / sizeof keys[0]);
}

static bool read_user(struct srv_section *section, const char *name, const json_t *value,
                      struct srv_s3_user *user)
{
    const char *key;
    json_t *member;

    if (!json_is_object(value))
        return srv_section_error(section,
                                 "give an object such as {\"keys\": {\"ACCESSKEY\": \"secret\"}}");
    if (name[0] == '\0' || strlen(name) > SRV_S3_ID_MAX)
        return srv_section_error(section, "a user's name is 1 to 64 bytes long");
    user->name = strdup(name);
    if (user->name == NULL)
        return srv_section_error(section, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        srv_section_enter(section, key);
        if (!read_user_member(section, key, member, user))
            return false;
        srv_section_leave(section);
    }
    return user->n_keys > 0 ||
           srv_section_error(section, "a user needs \"keys\": {\"ACCESSKEY\": \"secret\"}");
}

bool srv_users_section_read(struct srv_section *section)
{
    struct srv_s3_access *access = &section->options->access;
    const char *name;
    json_t *member;

    if (!json_is_object(section->value))
        return srv_section_error(section,
                                 "give an object such as {\"name\": {\"keys\": {\"ACCESSKEY\": "
                                 "\"secret\"}}}");
    access->users = calloc(json_object_size(section->value) + 1, sizeof access->users[0]);
    if (access->users == NULL)
        return srv_section_error(section, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)section->value, name, member)
    {
        /* Counted first: what was read of a user before an error is freed with the rest. */
        srv_section_enter(section, name);
        if (!read_user(section, name, member, &access->users[access->n_users++]))
            return false;
        srv_section_leave(section);
    }
    return true;
}

bool srv_everyone_section_read(struct srv_section *section)
{
    return read_rules(section, section->value, &section->options->access.everyone);
}

void srv_users_section_fini(struct srv_options *options)
{
    srv_s3_access_fini(&options->access);
}

void srv_everyone_section_fini(struct srv_options *options)
{
    (void)options; /* goes with the users */
}
