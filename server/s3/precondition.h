/* The conditions of a request that changes an object: kept apart from the request, so that a worker
 * can decide them, and turned into a condition of the store, so that nothing can change in between.
 *
 * Owns:    struct srv_s3_precondition owns copies of the fields between init and fini.
 * Threads: init on the exchange's loop; decide on any thread, one at a time.
 * Blocks:  decide, for cold metadata, unless told not to.
 */
#pragma once

#include "server/conditional.h"
#include "server/s3/call.h"

enum { SRV_S3_CONDITIONS_MAX = 8 };

struct srv_s3_precondition {
    struct srv_request req; /* method and conditional fields alone; no fields: unconditional */
    struct srv_field fields[SRV_S3_CONDITIONS_MAX];
    char *bytes_;
};

/* What a decision holds for. */
struct srv_s3_state {
    enum gyre_condition condition; /* the decision holds as long as this does */
    uint64_t serial;
    uint64_t length;    /* of what is stored; 0 if nothing is */
    int64_t modified_s; /* the same */
    const char *field;  /* PRECONDITION_FAILED: which one, static */
};

/* Copies the conditional fields. NONE; SLOW_DOWN without memory; INVALID_REQUEST for too many. */
enum srv_s3_code srv_s3_precondition_init(struct srv_s3_precondition *pre,
                                          const struct srv_request *req);
/* The same for the conditions on the source of a copy: x-amz-copy-source-if-... */
enum srv_s3_code srv_s3_precondition_init_source(struct srv_s3_precondition *pre,
                                                 const struct srv_request *req);
/* Allowed on a zeroed one. */
void srv_s3_precondition_fini(struct srv_s3_precondition *pre);

static inline bool srv_s3_precondition_is_set(const struct srv_s3_precondition *pre)
{
    return pre->req.n_fields > 0;
}

/* Whether the conditions hold for something that was found; on failure *field_out names the one
 * that does not, static. */
bool srv_s3_precondition_holds(const struct srv_s3_precondition *pre,
                               const struct srv_validators *stored, int64_t now_s,
                               const char **field_out);

/* Compares with what is stored. `get_flags` may hold GYRE_GET_NOWAIT. OK, NOT_FOUND or EXPIRED when
 * the store could be asked, with the answer in *code_out (NONE, PRECONDITION_FAILED, NO_SUCH_KEY:
 * If-Match and nothing there); otherwise what gyre_get answers, with *code_out to match. */
gyre_err srv_s3_precondition_decide(const struct srv_s3_precondition *pre, struct gyre_store *store,
                                    const struct gyre_key *key, int64_t now_s, unsigned get_flags,
                                    enum srv_s3_code *code_out, struct srv_s3_state *state_out);
