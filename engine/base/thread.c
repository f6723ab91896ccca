#include "engine/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/io.h"

static void *thread_main(void *data)
{
    struct eng_thread *thread = data;
    (void)pthread_setname_np(pthread_self(), thread->name_); /* for people; nothing depends on it */
    thread->run_(thread->data_);
    return NULL;
}

/* Faults of the thread itself must still arrive: blocked, they end the process without any report.
 */
static void background_signals(sigset_t *set_out)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(set_out);
    for (size_t i = 0; i < GYRE_ARRAY_LEN(own_faults); i++)
        sigdelset(set_out, own_faults[i]);
}

/* The mask is inherited, so it is set around the creation: the new thread has no moment without it.
 */
gyre_err eng_thread_start(struct eng_thread *thread, const char *name, void (*run)(void *data),
                          void *data)
{
    sigset_t blocked;
    sigset_t before;
    *thread = (struct eng_thread){.run_ = run, .data_ = data};
    strncpy(thread->name_, name, sizeof thread->name_ - 1);

    background_signals(&blocked);
    int rc = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    GYRE_CHECK(rc == 0);
    int created = pthread_create(&thread->id_, NULL, thread_main, thread);
    rc = pthread_sigmask(SIG_SETMASK, &before, NULL);
    GYRE_CHECK(rc == 0);

    thread->running_ = created == 0;
    return created == 0 ? GYRE_OK : eng_err_of_errno(created);
}

void eng_thread_join(struct eng_thread *thread)
{
    if (!thread->running_)
        return;
    int rc = pthread_join(thread->id_, NULL);
    GYRE_CHECK(rc == 0);
    thread->running_ = false;
}
