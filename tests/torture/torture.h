/* Processes that put, read, hold and delete objects of one small store while one after the other is
 * killed, and a supervisor that knows what may be read.
 *
 * Every key has one writer at a time, whatever process that runs in, so its versions have an order:
 * a reader that finds an older one than somebody had read, or was told to be stored, before it
 * began, has found a stale one. Bytes follow from key and version, so torn and foreign ones show.
 * Counters in the pool that never evicts are changed by all, under a condition: no change may be
 * lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct torture {
    const char *dir;    /* of the store; made anew */
    unsigned seconds;   /* at least */
    unsigned laps;      /* of the log, at least */
    unsigned processes; /* at most; two at least run at a time */
    unsigned kill_ms;   /* between two kills */
    uint64_t seed;
    bool delays; /* threads fall asleep at steps now and then, where steps are live */
};

struct torture_report {
    uint64_t puts, put_bytes, gets, found, held, deletes, refused, counted;
    double laps;
    unsigned kills, stops;
    char failure[512]; /* empty: nothing was wrong */
};

/* Runs until time and laps are over, or something is wrong. Must be called while the process has
 * one thread. */
void torture_run(const struct torture *torture, struct torture_report *report_out);
