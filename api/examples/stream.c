/* A body whose length nobody knows before its end, put piece by piece, then read back where it
 * lies: got off the calling thread, made resident window by window, and looked at without a copy.
 *
 *   stream [DIR]
 */
#include <gyre.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PIECES = 300, WINDOW = 1 << 20 };

/* What a callback leaves for the thread that waits. A real event loop would post to itself instead.
 */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    bool done;
    gyre_err err;
    struct gyre_handle *handle;
};

static void answer(struct answer *answer, gyre_err err, struct gyre_handle *handle)
{
    pthread_mutex_lock(&answer->lock);
    answer->done = true;
    answer->err = err;
    answer->handle = handle;
    pthread_cond_signal(&answer->ready);
    pthread_mutex_unlock(&answer->lock);
}

static void got(void *data, gyre_err err, struct gyre_handle *handle)
{
    answer((struct answer *)data, err, handle);
}

static void populated(void *data, gyre_err err)
{
    answer((struct answer *)data, err, NULL);
}

static gyre_err await(struct answer *answer, struct gyre_handle **handle_out)
{
    pthread_mutex_lock(&answer->lock);
    while (!answer->done)
        pthread_cond_wait(&answer->ready, &answer->lock);
    answer->done = false;
    if (handle_out != NULL)
        *handle_out = answer->handle;
    gyre_err err = answer->err;
    pthread_mutex_unlock(&answer->lock);
    return err;
}

/* The bytes come in pieces of 1 to 20 kB; half are handed over, half made in the staging buffer. */
static gyre_err put_stream(struct gyre_store *store, const struct gyre_key *key,
                           unsigned long *sum_out)
{
    static unsigned char piece[20000];
    struct gyre_put_options options;
    struct gyre_put *put;
    gyre_put_options_init(&options); /* length: GYRE_LENGTH_UNKNOWN */
    gyre_err err = gyre_put_begin(store, key, &options, &put);
    if (err != GYRE_OK)
        return err;
    *sum_out = 0;
    for (int i = 0; i < PIECES && err == GYRE_OK; i++) {
        size_t len = 1000 + (size_t)(i * 7919) % 19000;
        if (i % 2 == 0) {
            memset(piece, i & 255, len);
            err = gyre_put_write(put, piece, len);
        } else {
            void *buffer;
            err = gyre_put_reserve(put, &len, &buffer); /* may lend less than was asked for */
            if (err == GYRE_OK) {
                memset(buffer, i & 255, len);
                err = gyre_put_advance(put, len);
            }
        }
        *sum_out += len * (unsigned long)(i & 255);
    }
    if (err != GYRE_OK) {
        gyre_put_abort(&put);
        return err;
    }
    return gyre_put_commit(&put, NULL);
}

/* One window: if it is not in memory yet, a thread of the library brings it in. */
static gyre_err add_window(struct gyre_handle *handle, uint64_t offset, uint64_t len,
                           struct answer *wait, unsigned long *sum)
{
    gyre_err err = GYRE_OK;
    if (!gyre_resident(handle, offset, len)) {
        err = gyre_populate_async(handle, offset, len, populated, wait);
        if (err == GYRE_OK)
            err = await(wait, NULL);
    }
    while (err == GYRE_OK && len > 0) {
        struct gyre_piece piece;
        err = gyre_handle_piece(handle, offset, &piece);
        if (err != GYRE_OK)
            break;
        size_t n = piece.len < len ? piece.len : (size_t)len;
        for (size_t i = 0; i < n; i++)
            *sum += piece.base[i];
        offset += n;
        len -= n;
    }
    return err;
}

static gyre_err read_stream(struct gyre_store *store, const struct gyre_key *key,
                            unsigned long *sum_out)
{
    struct answer wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, GYRE_OK,
                          NULL};
    struct gyre_handle *handle = NULL;
    *sum_out = 0;
    gyre_err err = gyre_get_async(store, key, 0, GYRE_GET_LAZY, got, &wait);
    if (err == GYRE_OK)
        err = await(&wait, &handle);
    uint64_t length = err == GYRE_OK ? gyre_handle_info(handle)->length : 0;
    for (uint64_t offset = 0; offset < length && err == GYRE_OK; offset += WINDOW)
        err = add_window(handle, offset, length - offset < WINDOW ? length - offset : WINDOW, &wait,
                         sum_out);
    gyre_release(handle);
    return err;
}

int main(int argc, char **argv)
{
    struct gyre_data_dir dir = {.path = argc > 1 ? argv[1] : "stream-store"};
    struct gyre_options options;
    struct gyre_store *store;
    char message[512];
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    if (gyre_open(&options, &store, message, sizeof message) != GYRE_OK) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    struct gyre_key key = gyre_key_of_bytes("stream", 6);
    unsigned long put_sum = 0, read_sum = 0;
    gyre_err err = put_stream(store, &key, &put_sum);
    if (err == GYRE_OK)
        err = read_stream(store, &key, &read_sum);
    printf("stream: %s, sums %lu and %lu\n", gyre_err_text(err), put_sum, read_sum);
    gyre_err closed = gyre_close(&store, 1000);
    return err == GYRE_OK && closed == GYRE_OK && put_sum == read_sum ? 0 : 1;
}
