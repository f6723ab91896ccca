/* The operations whose instructions tests/gate/run counts: each in a function of its own that
 * callgrind is told to collect in.
 *
 *   ops OPERATION DIR    prints how many operations were run inside gate_counted()
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/gyre.h"

enum { ROUNDS = 2000, BODY = 4096, KEYS = 64 };

struct gate {
    struct gyre_store *store;
    struct gyre_key keys[KEYS];
    uint8_t body[BODY];
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "tests/gate/ops: %s\n", what);
    exit(1);
}

static void get_hit(struct gate *gate, unsigned i)
{
    struct gyre_handle *handle;
    if (gyre_get(gate->store, &gate->keys[i % KEYS], 0, 0, &handle) != GYRE_OK)
        die("a stored object is missing");
    gyre_release(handle);
}

static void get_miss(struct gate *gate, unsigned i)
{
    struct gyre_key absent = gate->keys[i % KEYS];
    absent.bytes[0] ^= (uint8_t)(1 + i / KEYS);
    absent.bytes[1] ^= 0xff;
    struct gyre_handle *handle;
    if (gyre_get(gate->store, &absent, 0, 0, &handle) != GYRE_NOT_FOUND)
        die("an absent object was found");
}

static void put_4k(struct gate *gate, unsigned i)
{
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.length = BODY;
    options.created = 1;
    if (gyre_put(gate->store, &gate->keys[i % KEYS], &options, gate->body, BODY, NULL) != GYRE_OK)
        die("put failed");
}

/* Callgrind collects between entering and leaving this function. */
__attribute__((noinline)) static void gate_counted(struct gate *gate,
                                                   void (*op)(struct gate *, unsigned))
{
    for (unsigned i = 0; i < ROUNDS; i++)
        op(gate, i);
}

static void open_store(struct gate *gate, const char *dir)
{
    char message[512];
    struct gyre_data_dir data = {dir, GYRE_SIZE_MIN};
    struct gyre_options options;
    gyre_options_init(&options);
    options.dirs = &data;
    options.n_dirs = 1;
    options.sync_interval_ms = 0;
    if (gyre_open(&options, &gate->store, message, sizeof message) != GYRE_OK)
        die(message);
    memset(gate->body, 'x', BODY);
    for (unsigned i = 0; i < KEYS; i++) {
        gate->keys[i] = gyre_key_of_bytes(&i, sizeof i);
        put_4k(gate, i);
        get_hit(gate, i);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*op)(struct gate *, unsigned);
    } ops[] = {{"get_hit", get_hit}, {"get_miss", get_miss}, {"put_4k", put_4k}};
    static struct gate gate;
    if (argc != 3)
        die("usage: ops OPERATION DIR");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(argv[1], ops[i].name) != 0)
            continue;
        open_store(&gate, argv[2]);
        gate_counted(&gate, ops[i].op);
        if (gyre_close(&gate.store, 10000) != GYRE_OK)
            die("close failed");
        printf("%d\n", ROUNDS);
        return 0;
    }
    die("no such operation");
}
