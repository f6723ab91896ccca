/* A front that changes while it runs: listeners come and go, limits and certificates change,
 * another process takes over. No connection that is in use is lost. */
#include "tests/server/front_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/un.h>

#include "server/inherit.h"

static struct fixture fixture;
static char heard[1 << 14];
static const char GET[] = "GET /text HTTP/1.1\r\nHost: a\r\n\r\n";

/* Takes the fixture's configuration, which the test has changed, while it runs. */
static void change(void)
{
    char error[256] = "";
    struct srv_setting *setting =
        srv_front_prepare(fixture.front, &fixture.config, error, sizeof error);
    CHECK_MSG(setting != NULL, "%s", error);
    srv_front_commit(fixture.front, setting);
}

static bool refused(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_refused = connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

static bool answers(int fd, const char *connection)
{
    return client_say(fd, GET) && client_hear(fd, heard, sizeof heard, "hello\n") &&
           strstr(heard, connection) != NULL;
}

TEST(listeners_come_and_go)
{
    fixture_init(&fixture);
    fixture.config.n_listeners = 1;
    fixture_open(&fixture);
    uint16_t first = srv_front_port(fixture.front, 0);
    int old = client_connect(first);
    CHECK(answers(old, "keep-alive"));

    fixture.config.n_listeners = 2;
    fixture.listeners[1].is_tls = false;
    change();
    CHECK_EQ_INT(srv_front_port(fixture.front, 0), first);
    uint16_t second = srv_front_port(fixture.front, 1);
    int added = client_connect(second);
    CHECK(answers(added, "keep-alive") && answers(old, "keep-alive"));

    fixture.listeners[0] = fixture.listeners[1];
    fixture.config.n_listeners = 1;
    fixture.listeners[0].port = second;
    int queued = client_connect(first);
    change();
    CHECK(refused(first));
    CHECK(answers(queued, "close") && answers(old, "close"));
    CHECK(client_hear(old, heard, sizeof heard, NULL));
    close(old);
    close(added);
    close(queued);
    fixture_close(&fixture);
}

TEST(a_bad_change_changes_nothing)
{
    char error[256] = "";
    fixture_init(&fixture);
    fixture_open(&fixture);
    uint16_t port = srv_front_port(fixture.front, 0);
    fixture.config.tls_self_signed = false;
    fixture.config.tls_cert_path = "/no/such.pem";
    fixture.listeners[0].port = 0;
    CHECK(srv_front_prepare(fixture.front, &fixture.config, error, sizeof error) == NULL);
    CHECK_MSG(strstr(error, "/no/such.pem") != NULL, "said: %s", error);
    int fd = client_connect(port);
    CHECK(answers(fd, "keep-alive"));
    close(fd);
    fixture_close(&fixture);
}

TEST(limits_and_timeouts_hold_at_once)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int old = client_connect(srv_front_port(fixture.front, 0));
    CHECK(answers(old, "keep-alive"));
    fixture.config.max_connections = 1;
    change();
    int over = client_connect(srv_front_port(fixture.front, 0));
    CHECK(client_say(over, GET) && client_hear(over, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "HTTP/1.1 503") != NULL);
    CHECK(answers(old, "keep-alive"));
    fixture.config.idle_timeout_ms = 50; /* also for whoever is idle already */
    change();
    CHECK(client_hear(old, heard, sizeof heard, NULL));
    close(old);
    close(over);
    fixture_close(&fixture);
}

/* The certificate that a new connection sees, as text. */
static void certificate(char text[64])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    int fd = client_connect(srv_front_port(fixture.front, 1));
    CHECK(SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1);
    X509 *cert = SSL_get1_peer_certificate(ssl);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    CHECK(cert != NULL && X509_digest(cert, EVP_sha1(), digest, &len) == 1);
    for (unsigned i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    X509_free(cert);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
}

static void write_pem(const char *path)
{
    FILE *file = fopen(path, "w");
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    CHECK(file != NULL && key != NULL);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"a", -1, -1, 0);
    CHECK(X509_set_issuer_name(cert, name) == 1 && X509_set_pubkey(cert, key) == 1);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    CHECK(PEM_write_X509(file, cert) == 1);
    CHECK(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    CHECK(fclose(file) == 0);
}

TEST(certificates_are_read_again)
{
    char one[64], same[64], two[64], path[256];
    fixture_init(&fixture);
    snprintf(path, sizeof path, "%s", test_path("cert.pem"));
    write_pem(path);
    fixture.config.tls_self_signed = false;
    fixture.config.tls_cert_path = path;
    fixture_open(&fixture);
    certificate(one);
    change();
    certificate(same);
    CHECK_EQ_STR(same, one);
    write_pem(path);
    change();
    certificate(two);
    CHECK(strcmp(one, two) != 0);
    fixture_close(&fixture);
}

TEST(a_throw_away_certificate_stays)
{
    char one[64], same[64];
    fixture_init(&fixture);
    fixture_open(&fixture);
    certificate(one);
    change();
    certificate(same);
    CHECK_EQ_STR(same, one);
    fixture_close(&fixture);
}

TEST(nobody_is_answered_by_a_front_that_ends_before_it_opens)
{
    char error[256] = "";
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture.pool = srv_pool_create(1, 8);
    fixture.front = srv_front_create(&fixture.config, error, sizeof error);
    CHECK_MSG(fixture.front != NULL, "%s", error);
    srv_front_start(fixture.front);
    int early = client_connect(srv_front_port(fixture.front, 0));
    CHECK(client_say(early, GET));
    srv_front_end_unopened(fixture.front);
    srv_front_stats(fixture.front, &stats);
    CHECK_EQ_INT(stats.requests, 0);
    srv_front_destroy(fixture.front);
    srv_pool_destroy(fixture.pool);
    CHECK(recv(early, heard, sizeof heard, 0) <= 0);
    close(early);
}

TEST(only_admin_listeners_answer_before_the_front_opens_and_while_it_drains)
{
    char error[256] = "";
    fixture_init(&fixture);
    fixture.listeners[1].is_tls = false;
    fixture.listeners[1].is_admin = true;
    fixture.config.max_connections = 1;
    fixture.pool = srv_pool_create(1, 8);
    fixture.front = srv_front_create(&fixture.config, error, sizeof error);
    CHECK_MSG(fixture.front != NULL, "%s", error);
    srv_front_start(fixture.front);
    int early = client_connect(srv_front_port(fixture.front, 0));
    int admin = client_connect(srv_front_port(fixture.front, 1));
    CHECK(client_say(early, GET) && answers(admin, "keep-alive"));
    CHECK_EQ_INT(srv_front_state(fixture.front), SRV_FRONT_STARTING);
    CHECK(recv(early, heard, sizeof heard, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(pthread_create(&fixture.thread, NULL, fixture_run, &fixture) == 0);
    CHECK(client_hear(early, heard, sizeof heard, "hello\n"));
    int more = client_connect(srv_front_port(fixture.front, 1)); /* beyond the limit of clients */
    CHECK(answers(more, "keep-alive"));
    CHECK_EQ_INT(srv_front_state(fixture.front), SRV_FRONT_OPEN);

    struct srv_front_stats stats;
    srv_front_stats(fixture.front, &stats);
    CHECK(client_say(early, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_SOON(fixture_has_requests(&fixture, stats.requests + 1));
    srv_front_stop(fixture.front);
    while (srv_front_state(fixture.front) != SRV_FRONT_ENDING)
        usleep(1000);
    while (!refused(srv_front_port(fixture.front, 0)))
        usleep(1000);
    CHECK_MSG(answers(admin, "close"), "said: %s", heard);
    int late = client_connect(srv_front_port(fixture.front, 1));
    CHECK(answers(late, "close"));
    close(early);
    close(admin);
    close(more);
    close(late);
    fixture_close(&fixture);
}

/* What a successor would do with the sockets; there is but one process here. */
TEST(a_retired_front_loses_no_request)
{
    struct fixture second;
    struct srv_inherited inherited;
    int fds[16];
    fixture_init(&fixture);
    fixture.config.n_listeners = 1;
    fixture.config.n_threads = 3;
    /* None of its connections is to end for want of time. */
    fixture.config.drain_timeout_ms = fixture.config.handshake_timeout_ms =
        fixture.config.idle_timeout_ms = 300000;
    fixture_open(&fixture);
    uint16_t port = srv_front_port(fixture.front, 0);
    int idle = client_connect(port), silent = client_connect(port), busy = client_connect(port);
    CHECK(answers(idle, "keep-alive"));
    CHECK(client_say(busy, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (struct srv_front_stats stats = {0}; stats.connections_accepted < 3; usleep(1000))
        srv_front_stats(fixture.front, &stats);

    for (unsigned threads = 1; threads <= 4; threads += 3) { /* fewer and more than before */
        srv_inherited_init(&inherited);
        size_t n = srv_front_sockets(fixture.front, fds, 16);
        CHECK_EQ_U64(n, 3);
        for (size_t i = 0; i < n; i++)
            srv_inherited_add(&inherited, fcntl(fds[i], F_DUPFD_CLOEXEC, 0));
        fixture_init(&second);
        second.config.n_listeners = 1;
        second.config.n_threads = threads;
        second.config.inherited = &inherited;
        second.listeners[0].port = port;
        fixture_open(&second);
        CHECK_EQ_U64(srv_inherited_left(&inherited), 0);
        srv_inherited_fini(&inherited);
        if (threads == 1)
            fixture_close(&second);
    }
    srv_front_retire(fixture.front);
    for (int i = 0; i < 50; i++) {
        int fd = client_connect(port);
        CHECK(answers(fd, "HTTP/1.1 200"));
        close(fd);
    }
    usleep(1200000); /* longer than idle connections have when nobody succeeds */
    CHECK_MSG(answers(idle, "close"), "idle: %s", heard);
    CHECK_MSG(answers(silent, "close"), "silent: %s", heard);
    CHECK(client_hear(busy, heard, sizeof heard, "late\n"));
    CHECK(strstr(heard, "Connection: close") != NULL || answers(busy, "close"));
    pthread_join(fixture.thread, NULL);
    CHECK(fixture.is_clean);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
    fixture_close(&second);
    close(idle);
    close(silent);
    close(busy);
}

TEST(a_unix_socket_is_replaced_when_dead_and_goes_with_the_front)
{
    char path[108];
    snprintf(path, sizeof path, "%s", test_path("s"));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(dead, (struct sockaddr *)&address, sizeof address) == 0);
    close(dead);
    fixture_init(&fixture);
    fixture.listeners[1] =
        (struct srv_listener_config){.path = path, .is_admin = true, .handler = &fixture.handler};
    fixture_open(&fixture);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(answers(fd, "keep-alive"));
    char error[256];
    CHECK(srv_front_create(&fixture.config, error, sizeof error) == NULL);
    CHECK_MSG(strstr(error, "another process does") != NULL, "said: %s", error);
    close(fd);
    fixture_close(&fixture);
    CHECK(access(path, F_OK) != 0);
}
