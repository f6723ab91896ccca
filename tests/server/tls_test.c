/* TLS: what is negotiated, what is refused, and HTTP/1 through it. */
#include "tests/server/front_fixture.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static struct fixture fixture;
static char heard[1 << 14];
static SSL_CTX *tls;

static void start_fixture(void)
{
    fixture_open(&fixture);
    tls = SSL_CTX_new(TLS_client_method());
    CHECK(tls != NULL);
}

static void open_fixture(void)
{
    fixture_init(&fixture);
    start_fixture();
}

static void close_fixture(void)
{
    SSL_CTX_free(tls);
    fixture_close(&fixture);
}

/* A connection after its handshake, or NULL if that failed. `alpn` is in wire format. */
static SSL *connect_tls(const char *alpn)
{
    int fd = client_connect(srv_front_port(fixture.front, 1));
    SSL *ssl = SSL_new(tls);
    CHECK(ssl != NULL && SSL_set_fd(ssl, fd) == 1);
    if (alpn != NULL)
        CHECK(SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn)) == 0);
    if (SSL_connect(ssl) == 1)
        return ssl;
    ERR_clear_error();
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static void close_tls(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_free(ssl);
    close(fd);
}

static void say(SSL *ssl, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        int sent = SSL_write(ssl, (const char *)bytes + at, n - at > 65536 ? 65536 : (int)(n - at));
        CHECK(sent > 0);
        at += (size_t)sent;
    }
}

static bool hear(SSL *ssl, const char *until)
{
    size_t at = 0;
    for (;;) {
        heard[at] = '\0';
        if (until != NULL && strstr(heard, until) != NULL)
            return true;
        int n = SSL_read(ssl, heard + at, (int)(sizeof heard - 1 - at));
        if (n <= 0)
            return until == NULL && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
        at += (size_t)n;
    }
}

#define SAY(ssl, literal) say(ssl, literal, sizeof(literal) - 1)

static const char *selected(SSL *ssl)
{
    static char name[16];
    const unsigned char *protocol;
    unsigned len;
    SSL_get0_alpn_selected(ssl, &protocol, &len);
    snprintf(name, sizeof name, "%.*s", (int)len, (const char *)protocol);
    return name;
}

TEST(alpn_prefers_h2_and_refuses_strangers)
{
    open_fixture();
    SSL *ssl = connect_tls("\x08http/1.1\x02h2");
    CHECK_EQ_STR(selected(ssl), "h2");
    close_tls(ssl);
    ssl = connect_tls("\x08http/1.1");
    CHECK_EQ_STR(selected(ssl), "http/1.1");
    close_tls(ssl);
    CHECK(connect_tls("\x03"
                      "ftp") == NULL);
    ssl = connect_tls(NULL);
    SAY(ssl, "GET /fields HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK(hear(ssl, NULL));
    CHECK(strstr(heard, "host: a\n") != NULL);
    close_tls(ssl);
    close_fixture();
}

TEST(versions_before_1_2_are_refused)
{
    open_fixture();
    SSL_CTX_set_security_level(tls, 0);
    SSL_CTX_set_max_proto_version(tls, TLS1_1_VERSION);
    CHECK(connect_tls(NULL) == NULL);
    SSL_CTX_set_max_proto_version(tls, TLS1_2_VERSION);
    SSL *ssl = connect_tls(NULL);
    CHECK(ssl != NULL);
    SAY(ssl, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(hear(ssl, "hello\n"));
    /* A renegotiation is refused without harm, or ends the connection; it is never carried out. */
    SSL_renegotiate(ssl);
    SSL_do_handshake(ssl);
    close_tls(ssl);
    close_fixture();
}

TEST(the_self_signed_certificate_names_this_machine)
{
    open_fixture();
    SSL *ssl = connect_tls(NULL);
    X509 *cert = SSL_get1_peer_certificate(ssl);
    CHECK(X509_check_host(cert, "localhost", 0, 0, NULL) == 1);
    CHECK(X509_check_ip_asc(cert, "127.0.0.1", 0) == 1);
    CHECK(X509_check_ip_asc(cert, "::1", 0) == 1);
    CHECK(X509_check_host(cert, "example.org", 0, 0, NULL) == 0);
    X509_free(cert);
    close_tls(ssl);
    close_fixture();
}

TEST(bodies_expectations_and_pipelining_work_through_tls)
{
    enum { LONG = 3000000 };
    static char body[LONG];
    open_fixture();
    SSL *ssl = connect_tls(NULL);
    SAY(ssl, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    CHECK(hear(ssl, "\r\n\r\n"));
    CHECK_EQ_STR(heard, "HTTP/1.1 100 Continue\r\n\r\n");
    SAY(ssl, "abcPUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
             "chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"
             "GET /text HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(hear(ssl, "hello\n"));
    CHECK(strstr(heard, "\r\n3 ") != NULL && strstr(heard, "\r\n4 ") != NULL);
    for (int i = 0; i < 2; i++) {
        SAY(ssl, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        say(ssl, body, LONG);
        CHECK(hear(ssl, "\r\n3000000 "));
    }
    SAY(ssl, "PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    say(ssl, body, 100000);
    CHECK(hear(ssl, "denied\n"));
    SAY(ssl, "PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    say(ssl, body, LONG);
    CHECK(hear(ssl, NULL));
    CHECK(strncmp(heard, "HTTP/1.1 403 ", 13) == 0);
    close_tls(ssl);
    close_fixture();
}

TEST(malformed_heads_are_answered_through_tls)
{
    open_fixture();
    SSL *ssl = connect_tls(NULL);
    SAY(ssl, "GET /text HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    CHECK(hear(ssl, NULL));
    CHECK(strncmp(heard, "HTTP/1.1 400 ", 13) == 0);
    close_tls(ssl);
    close_fixture();
}

TEST(handshakes_that_do_not_come_are_given_up)
{
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture.config.handshake_timeout_ms = 500;
    start_fixture();
    int silent = client_connect(srv_front_port(fixture.front, 1));
    int noise = client_connect(srv_front_port(fixture.front, 1));
    CHECK(client_say(noise, "\x16\x03\x01\xff\xffnot a hello"));
    client_hear(noise, heard, sizeof heard, NULL);
    CHECK(client_hear(silent, heard, sizeof heard, NULL));
    srv_front_stats(fixture.front, &stats);
    CHECK_EQ_U64(stats.tls_failed, 2);
    close(silent);
    close(noise);
    close_fixture();
}

/* Whether a session of one TLS listener is taken up again on the listener `index`. */
static bool resumes_on(size_t index)
{
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT);
    SSL *first = connect_tls(NULL);
    SAY(first, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(hear(first, "hello\n"));
    SSL_SESSION *session = SSL_get1_session(first);
    int fd = client_connect(srv_front_port(fixture.front, index));
    SSL *second = SSL_new(tls);
    CHECK(SSL_set_fd(second, fd) == 1 && SSL_set_session(second, session) == 1);
    CHECK(SSL_connect(second) == 1);
    bool is_reused = SSL_session_reused(second) == 1;
    SAY(second, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(hear(second, "hello\n"));
    SSL_SESSION_free(session);
    close_tls(first);
    close_tls(second);
    return is_reused;
}

TEST(a_session_resumes_on_its_listener_and_on_no_other)
{
    fixture_init(&fixture);
    fixture.listeners[0].is_tls = true;
    start_fixture();
    CHECK(resumes_on(1));
    CHECK(!resumes_on(0));
    close_fixture();
}
