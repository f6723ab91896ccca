/* Clients by address: counting, forgetting, the request rate; networks that may connect; allowances
 * that time refills. */
#include "server/allowance.h"
#include "server/cidr.h"
#include "server/clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include "tests/harness/test.h"

static void address_of(const char *text, uint8_t out[16])
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        CHECK(srv_cidr_address((struct sockaddr *)&v4, out));
        return;
    }
    CHECK(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    CHECK(srv_cidr_address((struct sockaddr *)&v6, out));
}

static struct srv_client *enter(struct srv_clients *clients, const char *text, uint32_t limit,
                                bool *over)
{
    uint8_t address[16];
    address_of(text, address);
    return srv_clients_enter(clients, address, limit, over);
}

TEST(connections_are_counted_by_address_and_an_ipv6_client_is_its_network)
{
    static const struct {
        const char *one, *other;
        bool is_same;
    } rows[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"10.0.0.1", "::ffff:10.0.0.2", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_clients *clients = srv_clients_create(4);
        bool over;
        struct srv_client *one = enter(clients, rows[i].one, 1, &over);
        CHECK(one != NULL && !over);
        struct srv_client *other = enter(clients, rows[i].other, 1, &over);
        CHECK_MSG((one == other) == rows[i].is_same && over == rows[i].is_same, "row %zu", i);
        srv_clients_leave(clients, other);
        srv_clients_leave(clients, one);
        srv_clients_destroy(clients);
    }
}

TEST(a_full_table_forgets_who_left_first_and_nobody_who_is_here_or_holds_memory)
{
    struct srv_clients *clients = srv_clients_create(3);
    bool over;
    struct srv_client *a = enter(clients, "10.0.0.1", 9, &over);
    struct srv_client *b = enter(clients, "10.0.0.2", 9, &over);
    struct srv_client *c = enter(clients, "10.0.0.3", 9, &over);
    CHECK(a != b && b != c && !over);
    CHECK(enter(clients, "10.0.0.4", 9, &over) == NULL && over);
    b->buffered_bytes = 1;
    srv_clients_leave(clients, b);
    srv_clients_leave(clients, a);
    struct srv_client *d = enter(clients, "10.0.0.4", 9, &over);
    CHECK(d == a && !over);
    CHECK(enter(clients, "10.0.0.5", 9, &over) == NULL);
    CHECK(enter(clients, "10.0.0.2", 9, &over) == b);
    b->buffered_bytes = 0;
    srv_clients_leave(clients, b);
    CHECK(enter(clients, "10.0.0.5", 9, &over) == b);
    CHECK(enter(clients, "10.0.0.4", 9, &over) == d);
    srv_clients_leave(clients, d);
    srv_clients_leave(clients, d);
    srv_clients_leave(clients, b);
    srv_clients_leave(clients, c);
    CHECK(enter(clients, "10.0.0.4", 9, &over) == d);
    srv_clients_leave(clients, d);
    srv_clients_destroy(clients);
}

TEST(a_client_that_comes_back_finds_its_debt)
{
    struct srv_clients *clients = srv_clients_create(2);
    bool over;
    struct srv_client *client = enter(clients, "10.0.0.1", 9, &over);
    for (int i = 0; i < 5; i++)
        CHECK(srv_client_ask(client, 1000000, 10, 5));
    CHECK(!srv_client_ask(client, 1000000, 10, 5));
    srv_clients_leave(clients, client);
    client = enter(clients, "10.0.0.1", 9, &over);
    CHECK(!srv_client_ask(client, 1099999, 10, 5));
    CHECK(srv_client_ask(client, 1100000, 10, 5));
    CHECK(!srv_client_ask(client, 1100000, 10, 5));
    /* A refusal costs nothing: the next one is due at the same time. */
    CHECK(srv_client_ask(client, 1200000, 10, 5));
    /* A long rest gives a burst, not more. */
    for (int i = 0; i < 5; i++)
        CHECK(srv_client_ask(client, 99000000, 10, 5));
    CHECK(!srv_client_ask(client, 99000000, 10, 5));
    srv_clients_leave(clients, client);
    srv_clients_destroy(clients);
}

/* ---- Many threads ---- */

enum { ROUNDS = 20000, THREADS = 4 };

static struct srv_clients *shared;
static _Atomic int n_admitted;

static void *come_and_go(void *arg)
{
    uint8_t address[16];
    bool over;
    (void)arg;
    address_of("10.0.0.1", address);
    for (int i = 0; i < ROUNDS; i++) {
        struct srv_client *client = srv_clients_enter(shared, address, 1 << 20, &over);
        CHECK(client != NULL && !over);
        if (srv_client_ask(client, 1, 1, 100))
            n_admitted++;
        srv_clients_leave(shared, client);
    }
    return NULL;
}

TEST(loops_may_share_a_client)
{
    pthread_t threads[THREADS];
    bool over;
    shared = srv_clients_create(1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, come_and_go, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ_INT(n_admitted, 100);
    struct srv_client *client = enter(shared, "10.0.0.1", 1, &over);
    CHECK_EQ_U64(client->n_conns, 1);
    srv_clients_leave(shared, client);
    srv_clients_destroy(shared);
}

/* ---- Networks ---- */

TEST(networks_decide_in_their_order)
{
    static const struct {
        const char *list; /* +allowed -denied */
        const char *address;
        bool is_admitted;
    } rows[] = {
        {"", "10.0.0.1", true},
        {"+10.0.0.0/8", "10.255.0.1", true},
        {"+10.0.0.0/8", "11.0.0.1", false},
        {"-10.0.0.0/8", "10.0.0.1", false},
        {"-10.0.0.0/8", "11.0.0.1", true},
        {"-10.1.0.0/16 +10.0.0.0/8", "10.1.0.1", false},
        {"-10.1.0.0/16 +10.0.0.0/8", "10.2.0.1", true},
        {"+10.0.0.0/8 -10.1.0.0/16", "10.1.0.1", true},
        {"+10.0.0.1", "10.0.0.1", true},
        {"+10.0.0.1", "10.0.0.2", false},
        {"-0.0.0.0/0", "1.2.3.4", false},
        {"-0.0.0.0/0", "2001:db8::1", true},
        {"-::/0", "1.2.3.4", false},
        {"+2001:db8::/33", "2001:db8:7fff::1", true},
        {"+2001:db8::/33", "2001:db8:8000::1", false},
        {"+10.0.0.0/9", "10.127.255.255", true},
        {"+10.0.0.0/9", "10.128.0.0", false},
        {"+127.0.0.1", "::ffff:127.0.0.1", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_cidr_list list = {.n = 0};
        uint8_t address[16];
        const char *why, *at = rows[i].list;
        while (*at != '\0') {
            size_t len = strcspn(at, " ");
            CHECK_MSG(srv_cidr_add(&list, at + 1, len - 1, *at == '+', &why), "row %zu: %s", i,
                      why);
            at += len + (at[len] == ' ');
        }
        address_of(rows[i].address, address);
        CHECK_MSG(srv_cidr_admits(&list, address) == rows[i].is_admitted, "row %zu", i);
    }
}

TEST(what_is_no_network_is_refused_with_a_reason)
{
    static const char *const rows[] = {
        "",
        "10.0.0",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10.0.0.0/8x",
        "localhost",
        "2001:db8::/129",
        "2001:db8::1/64",
        "10.0.0.0/0008",
        "/8",
        "10.0.0.0/8/8",
    };
    struct srv_cidr_list list = {.n = 0};
    const char *why = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_MSG(!srv_cidr_add(&list, rows[i], strlen(rows[i]), true, &why), "%s", rows[i]);
        CHECK(why != NULL);
    }
    CHECK(!srv_cidr_add(&list, "10.0.0.1\0", 9, true, &why));
    CHECK_EQ_U64(list.n, 0);
    for (size_t i = 0; i < SRV_CIDR_MAX; i++)
        CHECK(srv_cidr_add(&list, "10.0.0.0/8", 10, true, &why));
    CHECK(!srv_cidr_add(&list, "10.0.0.0/8", 10, true, &why));
}

/* ---- Allowances ---- */

TEST(allowances_are_refilled_by_time_up_to_the_burst)
{
    const struct srv_allowance_rate rate = {3, 2};
    struct srv_allowance allowance;
    srv_allowance_init(&allowance, rate, 1000);
    for (int i = 0; i < 3; i++)
        CHECK(srv_allowance_spend(&allowance, rate, 1000));
    CHECK(!srv_allowance_spend(&allowance, rate, 1000));
    CHECK(!srv_allowance_spend(&allowance, rate, 1499));
    CHECK(srv_allowance_spend(&allowance, rate, 1500));
    CHECK(!srv_allowance_spend(&allowance, rate, 1400));
    srv_allowance_earn(&allowance, rate, 1);
    CHECK(srv_allowance_spend(&allowance, rate, 1400));
    CHECK(!srv_allowance_spend(&allowance, rate, 1400));
    srv_allowance_earn(&allowance, rate, UINT64_MAX);
    for (int i = 0; i < 3; i++)
        CHECK(srv_allowance_spend(&allowance, rate, 1400));
    CHECK(!srv_allowance_spend(&allowance, rate, 1400));
    CHECK(srv_allowance_spend(&allowance, rate, UINT64_MAX));
    CHECK(srv_allowance_spend(&allowance, (struct srv_allowance_rate){3, 0}, UINT64_MAX));
}
