/* What the files of the index share; for names.c, names_join.c, names_commit.c and names_scan.c.
 *
 *   BEHIND -> READY [srv_names_join]     READY -> BEHIND (the file is damaged, gone or not
 * writable)
 *
 * Threads: fields carry keys: [c] const after create  [w] under `lock`  [o] the index's thread
 * [a] atomic  [r] under readers_lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/s3/names.h"
#include "server/s3/names_db.h"

enum { SRV_NAMES_READERS_MAX = 8, SRV_NAMES_PATH_MAX = 4096, SRV_NAMES_WRITERS_MAX = 256 };

/* Const once it is in place; all there ever were form a list. */
struct srv_names_unlisted {
    struct srv_names_unlisted *former;
    char lines[];
};

struct srv_names {
    struct gyre_store *store;      /* [c] */
    char path[SRV_NAMES_PATH_MAX]; /* [c] */
    unsigned wal_bytes;            /* [c] */
    pthread_t thread;              /* [c] */
    pthread_mutex_t lock;
    pthread_cond_t wake, joined;
    struct srv_names_note *head, **tail; /* [w] */
    bool is_stopping;                    /* [w] */
    bool is_awaited;                     /* [w] the first joining is over */

    _Atomic(struct srv_names_unlisted *) unlisted; /* [a] never NULL once created */
    _Atomic bool is_ready;                         /* [a] */
    _Atomic bool is_resized;                       /* [a] other buckets have an index now */
    _Atomic bool is_suspect;                       /* [a] a reader found damage */
    _Atomic bool has_lost;       /* [a] a change could not be told for want of memory */
    _Atomic unsigned turn;       /* [a] the lowest bit says which of `inside` to count in */
    _Atomic uint32_t inside[2];  /* [a] between enter and note or leave */
    _Atomic uint64_t generation; /* [a] of the file: connections of another one are stale */

    struct srv_names_db db;          /* [o] */
    int lock_fd;                     /* [o] -1: none */
    int slot;                        /* [o] -1: none */
    uint64_t device, inode;          /* [o] of the file that is open; written under readers_lock */
    bool is_failing;                 /* [o] a fault was met and nothing done about it yet */
    bool is_damaged;                 /* [o] the file has to be made anew */
    bool has_missed;                 /* [o] changes since `mark` lack a row */
    bool was_moved;                  /* [o] another file took the place of ours */
    bool has_complained;             /* [o] the log knows */
    uint64_t noted;                  /* [o] notes since the mark was taken */
    struct srv_names_mark mark;      /* [o] what was stored before it has its row */
    bool is_marking;                 /* [o] next_mark was taken; who was inside then is awaited */
    unsigned marking_turn;           /* [o] */
    struct srv_names_mark next_mark; /* [o] */
    struct srv_names_note *again, **again_tail; /* [o] names to be looked at with the next batch */
    size_t n_again;                             /* [o] */
    size_t cursor_len;                          /* [o] where sweeping goes on */
    char cursor[SRV_NAME_MAX];                  /* [o] */

    pthread_mutex_t readers_lock;
    size_t n_readers;                                   /* [r] idle ones */
    struct srv_names_db readers[SRV_NAMES_READERS_MAX]; /* [r] */
    uint64_t reader_generations[SRV_NAMES_READERS_MAX]; /* [r] */
};

/* ---- names_commit.c: [o] ---- */

/* Adds a name to those of the next batch. */
void srv_names_again(struct srv_names *names, struct srv_str name);
/* Brings the rows of all that was noted into step with the store and says so. What cannot be
 * written is forgotten, and the index is behind from then on. Returns how many there were. */
size_t srv_names_flush(struct srv_names *names);
/* Looks at the next `n` rows and has those looked at again whose object seems gone. */
void srv_names_sweep(struct srv_names *names, size_t n);
/* Notes a fault: closes the file and makes lists wait. */
void srv_names_fail(struct srv_names *names, enum srv_names_fault fault);

/* ---- names_join.c: [o] ---- */

/* Opens the file and brings it into step; it stays closed if that cannot be done now. */
void srv_names_join(struct srv_names *names);
/* Whether the file that is open is still the one with its name. */
bool srv_names_is_in_place(const struct srv_names *names);
/* Finds what processes that died were not able to write, from time to time. */
void srv_names_mourn(struct srv_names *names);
/* The end: nothing will be noted any more. */
void srv_names_part(struct srv_names *names);

/* A reader found damage: any thread. */
void srv_names_suspect(struct srv_names *names);

/* Closes the connections that nobody uses: any thread. */
void srv_names_close_readers(struct srv_names *names);

/* Whether somebody wants the thread to end. */
bool srv_names_is_stopping(struct srv_names *names);
