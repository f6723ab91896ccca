/* Binding: what is said when it fails, and that an address is never shared by accident. */
#include "server/bind.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/harness/test.h"

static char error[256];

static void close_all(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
}

TEST(all_sockets_get_the_port_that_was_found)
{
    int fds[3];
    uint16_t port = 0;
    CHECK_MSG(srv_bind("127.0.0.1", &port, 0, fds, 3, error, sizeof error), "%s", error);
    CHECK(port != 0);
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in address;
        socklen_t len = sizeof address;
        CHECK(getsockname(fds[i], (struct sockaddr *)&address, &len) == 0);
        CHECK_EQ_INT(ntohs(address.sin_port), port);
    }
    close_all(fds, 3);
}

TEST(a_taken_port_is_refused_even_though_its_owner_shares)
{
    int fds[2], more[2];
    uint16_t port = 0;
    char want[64];
    CHECK(srv_bind("127.0.0.1", &port, 0, fds, 2, error, sizeof error));
    uint16_t again = port;
    CHECK(!srv_bind("127.0.0.1", &again, 0, more, 2, error, sizeof error));
    snprintf(want, sizeof want, "127.0.0.1:%u: the address is already in use", port);
    CHECK_MSG(strstr(error, want) != NULL, "said: %s", error);
    CHECK(strchr(error, '\n') == NULL);
    close_all(fds, 2);
    CHECK_MSG(srv_bind("127.0.0.1", &again, 0, more, 2, error, sizeof error), "%s", error);
    close_all(more, 2);
}

TEST(what_is_no_address_is_called_so)
{
    int fd;
    uint16_t port = 0;
    CHECK(!srv_bind("localhost", &port, 0, &fd, 1, error, sizeof error));
    CHECK_MSG(strstr(error, "localhost: not a numeric") != NULL, "said: %s", error);
    CHECK(!srv_bind("203.0.113.7", &port, 0, &fd, 1, error, sizeof error));
    CHECK_MSG(strstr(error, "no such address") != NULL, "said: %s", error);
}

TEST(names_of_ipv6_are_bracketed)
{
    char text[64];
    srv_bind_name("::1", 80, text, sizeof text);
    CHECK_EQ_STR(text, "[::1]:80");
    srv_bind_name("10.0.0.1", 8080, text, sizeof text);
    CHECK_EQ_STR(text, "10.0.0.1:8080");
}
