#include "server/s3/signing_key.h"

#include <string.h>

enum { SLOTS = 8, SCOPE_MAX = 112 };

struct slot {
    uint64_t serial; /* of the key pair; 0: the slot is empty */
    size_t scope_len;
    char scope[SCOPE_MAX];
    struct srv_hmac_key key;
};

static _Thread_local struct slot slots[SLOTS];
static _Thread_local unsigned next_slot;

const struct srv_hmac_key *srv_s3_signing_key(const struct srv_s3_key_pair *pair,
                                              const struct srv_sigv4 *sig)
{
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (slot->serial == pair->serial && slot->scope_len == sig->scope.len &&
            memcmp(slot->scope, sig->scope.base, slot->scope_len) == 0)
            return &slot->key;
    }
    struct slot *slot = &slots[next_slot++ % SLOTS];
    struct srv_str day = {sig->scope.base, SRV_SIGV4_DAY_LEN};
    srv_sigv4_key((struct srv_str){pair->secret, strlen(pair->secret)}, day, sig->region,
                  &slot->key);
    slot->serial = sig->scope.len <= SCOPE_MAX ? pair->serial : 0;
    slot->scope_len = sig->scope.len;
    if (slot->serial != 0)
        memcpy(slot->scope, sig->scope.base, sig->scope.len);
    return &slot->key;
}
