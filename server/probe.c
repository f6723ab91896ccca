#include "server/probe.h"

#include <time.h>

static const char NAME[] = "gyre.readyz";

/* What a probe leaves behind when the process is killed in the middle of it is gone after this. */
enum { LIFETIME_S = 60 };

void srv_probe_init(struct srv_probe *probe)
{
    *probe = (struct srv_probe){.good_until_ms = 0};
    pthread_mutex_init(&probe->lock, NULL);
}

void srv_probe_fini(struct srv_probe *probe)
{
    pthread_mutex_destroy(&probe->lock);
}

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A store that has much to do, or is full of what must stay, works. */
static bool is_failure(gyre_err err)
{
    return err != GYRE_OK && err != GYRE_BUSY && err != GYRE_NO_SPACE && err != GYRE_QUOTA &&
           err != GYRE_NO_MEMORY;
}

static gyre_err write_and_read(struct gyre_store *store)
{
    const struct gyre_key key = gyre_key_of_bytes(NAME, sizeof NAME - 1);
    const uint32_t now_s = (uint32_t)time(NULL);
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.expires = now_s + LIFETIME_S;
    options.flags = GYRE_PUT_SYNC;
    gyre_err err = gyre_put(store, &key, &options, NAME, sizeof NAME - 1, NULL);
    if (err != GYRE_OK)
        return err;
    /* Others may probe the same store, or evict. */
    err = gyre_exists(store, &key, now_s, GYRE_STRICT);
    if (err != GYRE_OK && err != GYRE_NOT_FOUND && err != GYRE_EXPIRED)
        return err;
    err = gyre_delete(store, &key, GYRE_ALWAYS, 0, 0);
    return err == GYRE_NOT_FOUND ? GYRE_OK : err;
}

gyre_err srv_probe_run(struct srv_probe *probe, struct gyre_store *store)
{
    gyre_err err = GYRE_OK;
    pthread_mutex_lock(&probe->lock);
    if (monotonic_ms() < probe->good_until_ms)
        goto out;
    err = write_and_read(store);
    if (is_failure(err)) {
        probe->good_until_ms = 0;
        goto out;
    }
    err = GYRE_OK;
    probe->good_until_ms = monotonic_ms() + SRV_PROBE_HOLDS_MS;
out:
    pthread_mutex_unlock(&probe->lock);
    return err;
}
