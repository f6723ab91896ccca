/* Handles whose bytes were given to the kernel: kept until told, or until they have arrived. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/fixture.h"

enum { LENGTH = 400000, LONG_MS = 600000 };

static uint64_t pins(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    return stats.pins;
}

static struct gyre_handle *get(struct gyre_store *store, uint64_t n)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    return handle;
}

/* The log is written through more than once. */
static void lap(struct gyre_store *store)
{
    for (uint64_t n = 1000; n < 1080; n++)
        put_pattern(store, n, n, 1000000);
}

TEST(a_token_keeps_the_bytes_and_works_once)
{
    struct gyre_store *store = open_store();
    uint64_t token = 0, other = 0;
    put_pattern(store, 1, 1, LENGTH);
    struct gyre_handle *handle = get(store, 1);
    struct gyre_piece piece;
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    CHECK_ERR(gyre_release_deferred(NULL, &token), GYRE_INVALID);
    CHECK_ERR(gyre_release_deferred(handle, NULL), GYRE_INVALID);
    CHECK_OK(gyre_release_deferred(handle, &token));
    CHECK_OK(gyre_release_deferred(get(store, 1), &other));
    CHECK(token != 0 && other != token);
    CHECK_EQ_U64(gyre_deferred(), 2);
    CHECK_OK(gyre_release_token(other));
    lap(store);
    CHECK(pattern_is(1, 0, piece.base, piece.len));
    CHECK_ERR(gyre_release_token(other), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_release_token(token + 100), GYRE_NOT_FOUND);
    CHECK(pins(store) >= 2);
    CHECK_OK(gyre_release_token(token));
    CHECK_ERR(gyre_release_token(token), GYRE_NOT_FOUND);
    CHECK_EQ_U64(pins(store), 0);
    CHECK_EQ_U64(gyre_deferred(), 0);
    close_store(store);
}

TEST(a_token_outlives_its_store)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options), *again;
    uint64_t token;
    struct gyre_piece piece;
    put_pattern(store, 1, 1, LENGTH);
    struct gyre_handle *handle = get(store, 1);
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    CHECK_OK(gyre_release_deferred(handle, &token));
    close_store(store);
    CHECK(pattern_is(1, 0, piece.base, piece.len));
    CHECK_ERR(gyre_open(&options, &again, NULL, 0), GYRE_LOCKED);
    CHECK_OK(gyre_release_token(token));
    again = open_with(&options);
    check_object(again, 1, 1, LENGTH);
    close_store(again);
}

/* ---- Sockets ---- */

/* A connection over loopback whose receiver takes little until it reads. */
static void connect_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int small = 4096, big = 4 << 20;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    CHECK(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &big, sizeof big) == 0);
    CHECK(connect(fds[0], (struct sockaddr *)&at, sizeof at) == 0);
    fds[1] = accept(listener, NULL, NULL);
    CHECK(fds[1] >= 0);
    close(listener);
}

/* How much the kernel takes without the receiver's help. */
static size_t send_pages(int fd, const struct gyre_handle *handle)
{
    struct gyre_piece piece;
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    off_t at = (off_t)piece.file_offset;
    ssize_t n = sendfile(fd, piece.fd, &at, piece.len);
    CHECK(n > 0);
    return (size_t)n;
}

/* Whether all that arrives is what was stored. */
static bool receive(int fd, size_t len)
{
    uint8_t buffer[8192];
    bool right = true;
    for (size_t offset = 0; offset < len;) {
        ssize_t n = read(fd, buffer, sizeof buffer);
        CHECK(n > 0);
        right = right && pattern_is(1, offset, buffer, (size_t)n);
        offset += (size_t)n;
    }
    return right;
}

/* The peer is stopped while the log goes round; what it then reads is the object. Released at once
 * it is not, which shows that the test can fail. */
TEST(inv_E58_pages_given_to_the_kernel_stay_until_they_have_arrived)
{
    for (int deferred = 0; deferred < 2; deferred++) {
        struct gyre_store *store = open_store();
        struct gyre_key key = key_of(1);
        int fds[2];
        connect_pair(fds);
        put_pattern(store, 1, 1, LENGTH);
        struct gyre_handle *handle = get(store, 1);
        size_t n = send_pages(fds[0], handle);
        CHECK(n > 100000);
        if (deferred)
            CHECK_OK(gyre_release_when_sent(handle, fds[0], LONG_MS));
        else
            gyre_release(handle);
        CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
        lap(store);
        CHECK(receive(fds[1], n) == deferred);
        CHECK(shutdown(fds[0], SHUT_WR) == 0);
        close(fds[0]);
        close(fds[1]);
        CHECK_SOON(gyre_deferred() == 0);
        CHECK_SOON(pins(store) == 0);
        close_store(store);
    }
}

TEST(a_unix_peer_that_has_read_all_is_enough)
{
    struct gyre_store *store = open_store();
    int fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    put_pattern(store, 1, 1, 60000);
    struct gyre_handle *handle = get(store, 1);
    size_t n = send_pages(fds[0], handle);
    CHECK_OK(gyre_release_when_sent(handle, fds[0], LONG_MS));
    usleep(100000);
    CHECK_EQ_U64(gyre_deferred(), 1);
    CHECK(receive(fds[1], n));
    CHECK_SOON(gyre_deferred() == 0);
    CHECK_EQ_U64(pins(store), 0);
    close(fds[0]);
    close(fds[1]);
    close_store(store);
}

TEST(a_grace_that_is_over_and_a_peer_that_is_gone_are_enough)
{
    struct gyre_store *store = open_store();
    int fds[2];
    put_pattern(store, 1, 1, 60000);
    for (int gone = 0; gone < 2; gone++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        struct gyre_handle *handle = get(store, 1);
        (void)send_pages(fds[0], handle);
        CHECK_OK(gyre_release_when_sent(handle, fds[0], gone ? LONG_MS : 50));
        if (gone)
            close(fds[1]);
        CHECK_SOON(gyre_deferred() == 0);
        close(fds[0]);
        if (!gone)
            close(fds[1]);
    }
    CHECK_EQ_U64(pins(store), 0);
    close_store(store);
}

TEST(what_is_no_connection_is_refused)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 100);
    struct gyre_handle *handle = get(store, 1);
    int fds[2];
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(pipe(fds) == 0 && udp >= 0);
    CHECK_ERR(gyre_release_when_sent(handle, -1, 1), GYRE_INVALID);
    CHECK_ERR(gyre_release_when_sent(handle, fds[0], 1), GYRE_INVALID);
    CHECK_ERR(gyre_release_when_sent(handle, udp, 1), GYRE_INVALID);
    CHECK_ERR(gyre_release_when_sent(NULL, fds[0], 1), GYRE_INVALID);
    CHECK_EQ_U64(gyre_deferred(), 0);
    check_pieces(handle, 1);
    gyre_release(handle);
    close_store(store);
}

TEST(inv_E54_a_childs_table_is_empty)
{
    struct gyre_store *store = open_store();
    uint64_t token;
    put_pattern(store, 1, 1, 100);
    CHECK_OK(gyre_release_deferred(get(store, 1), &token));
    pid_t pid = test_fork();
    if (pid == 0) {
        CHECK_EQ_U64(gyre_deferred(), 0);
        CHECK_ERR(gyre_release_token(token), GYRE_NOT_FOUND);
        _exit(0);
    }
    test_join(pid);
    CHECK_EQ_U64(pins(store), 1);
    CHECK_OK(gyre_release_token(token));
    close_store(store);
}
