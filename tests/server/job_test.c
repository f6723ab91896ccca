/* The worker pool and posts to loops: every job runs once on a worker, and is done once on its
 * loop's thread. */
#include "tests/server/front_fixture.h"

enum { N_THREADS = 4, N_JOBS = 5000 };

static struct fixture fixture;
static struct srv_loop *_Atomic loop; /* of the exchange that was caught */
static pthread_t loop_thread;
static struct srv_pool *pool;
static _Atomic int n_run, n_done;

static void catch_loop(void *data, struct srv_exchange *ex)
{
    (void)data;
    loop_thread = pthread_self();
    loop = srv_exchange_loop(ex);
    srv_respond_bytes(ex, &(struct srv_response){.status = 200}, "caught", 6);
}

static void open_loop(void)
{
    fixture_init(&fixture);
    fixture.handler.start = catch_loop;
    fixture_open(&fixture);
    char answer[512];
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, answer, sizeof answer, "caught"));
    close(fd);
}

struct counted {
    struct srv_job job;
    int n_run, n_done;
};

static void run(struct srv_job *job)
{
    CHECK(!pthread_equal(pthread_self(), loop_thread));
    ((struct counted *)job)->n_run++;
    n_run++;
}

static void done(struct srv_job *job)
{
    struct counted *counted = (struct counted *)job;
    CHECK(pthread_equal(pthread_self(), loop_thread));
    CHECK_EQ_INT(counted->n_run, ++counted->n_done);
    n_done++;
}

static struct counted jobs[N_THREADS][N_JOBS];

static void *submit_all(void *arg)
{
    struct counted *mine = arg;
    for (int i = 0; i < N_JOBS; i++) {
        mine[i].job = (struct srv_job){.run = run, .done = done};
        while (!srv_job_submit(pool, loop, &mine[i].job))
            sched_yield();
    }
    return NULL;
}

TEST(jobs_run_once_and_are_done_once_on_their_loop)
{
    pthread_t threads[N_THREADS];
    open_loop();
    pool = srv_pool_create(3, 100);
    for (int i = 0; i < N_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, submit_all, jobs[i]) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    srv_pool_destroy(pool); /* runs what is queued */
    CHECK_EQ_INT(n_run, N_THREADS * N_JOBS);
    CHECK_SOON(n_done == N_THREADS * N_JOBS);
    for (int i = 0; i < N_THREADS; i++)
        for (int k = 0; k < N_JOBS; k++)
            CHECK_EQ_INT(jobs[i][k].n_done, 1);
    fixture_close(&fixture);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static _Atomic bool is_taken;

static void run_gated(struct srv_job *job)
{
    is_taken = true;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    run(job);
}

TEST(a_full_pool_refuses_but_not_what_was_admitted)
{
    open_loop();
    pool = srv_pool_create(1, 2);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 10; i++)
        jobs[0][i].job = (struct srv_job){.run = run_gated, .done = done};
    CHECK(srv_job_submit(pool, loop, &jobs[0][0].job));
    CHECK_SOON(is_taken); /* by the worker, who waits */
    CHECK(srv_job_submit(pool, loop, &jobs[0][1].job));
    CHECK(srv_job_submit(pool, loop, &jobs[0][2].job));
    CHECK(!srv_job_submit(pool, loop, &jobs[0][3].job));
    srv_job_submit_admitted(pool, loop, &jobs[0][4].job);
    pthread_mutex_unlock(&gate);
    srv_pool_destroy(pool);
    CHECK_EQ_INT(n_run, 4);
    fixture_close(&fixture);
}

static void done_late(struct srv_job *job)
{
    (void)job;
    n_done++;
}

TEST(what_is_posted_after_the_loop_has_ended_is_done_by_destroy)
{
    open_loop();
    srv_front_stop(fixture.front);
    pthread_join(fixture.thread, NULL);
    jobs[0][0].job = (struct srv_job){.done = done_late};
    srv_loop_post(loop, &jobs[0][0].job);
    CHECK_EQ_INT(n_done, 0);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
    CHECK_EQ_INT(n_done, 1);
}

static _Atomic int n_chained;

static void chain(struct srv_job *job);

static void run_slowly(struct srv_job *job)
{
    (void)job;
    usleep(20000);
}

static void chain(struct srv_job *job)
{
    job->run = run_slowly;
    if (++n_chained < 10)
        srv_job_submit_admitted(pool, loop, job);
}

TEST(a_loop_ends_only_after_the_jobs_that_are_out)
{
    open_loop();
    pool = srv_pool_create(1, 10);
    jobs[0][0].job = (struct srv_job){.run = run_slowly, .done = chain};
    srv_job_submit_admitted(pool, loop, &jobs[0][0].job);
    srv_front_stop(fixture.front);
    pthread_join(fixture.thread, NULL);
    CHECK_EQ_INT(n_chained, 10);
    srv_pool_destroy(pool);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
}
