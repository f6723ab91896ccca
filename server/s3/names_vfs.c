#include "server/s3/names_vfs.h"

#include <endian.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUM_OFF = SRV_NAMES_PAGE - SRV_NAMES_RESERVED,
    FRAME_HEADER = 24,     /* bytes of a WAL file before each page */
    FRAME_COMMIT_OFF = 4,  /* four bytes that are not all zero in the last frame of a commit */
    GATHER_MAX = 96 << 10, /* bytes; SQLite's own file system writes 128 KiB - 1 at most at once */
};

/* A file; SQLite's own file structure follows. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
    uint8_t *gathered; /* WAL: bytes that are still to be written; NULL until there are some */
    size_t n_gathered;
    sqlite3_int64 gathered_at; /* where they belong */
    bool is_last;              /* the page that comes next ends a commit */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs vfs;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Every step is a bijection of the sum so far, so one changed word always changes the result. */
static uint64_t sum_of(const uint8_t *page, uint64_t number)
{
    uint64_t sum = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t at = 0; at < SUM_OFF; at += 8) {
        uint64_t word;
        memcpy(&word, page + at, sizeof word);
        sum = (sum ^ word) * UINT64_C(0xd6e8feb86659fd93);
        sum ^= sum >> 32;
    }
    return htole64(sum);
}

static bool is_page(int len, sqlite3_int64 offset)
{
    return len == SRV_NAMES_PAGE && offset % SRV_NAMES_PAGE == 0;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

/* ---- The methods that matter ---- */

static int on_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 offset)
{
    sqlite3_file *real = real_of(file);
    uint64_t sum;
    int rc = real->pMethods->xRead(real, bytes, len, offset);

    if (!is_page(len, offset) || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
        return rc;
    if (rc == SQLITE_IOERR_SHORT_READ)
        return SQLITE_IOERR_DATA; /* the file was cut: what is missing are no zeros */
    memcpy(&sum, (const uint8_t *)bytes + SUM_OFF, sizeof sum);
    return sum == sum_of(bytes, (uint64_t)(offset / SRV_NAMES_PAGE)) ? SQLITE_OK
                                                                     : SQLITE_IOERR_DATA;
}

static int on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
    sqlite3_file *real = real_of(file);
    uint8_t page[SRV_NAMES_PAGE];

    if (!is_page(len, offset))
        return real->pMethods->xWrite(real, bytes, len, offset);
    memcpy(page, bytes, SUM_OFF);
    uint64_t sum = sum_of(page, (uint64_t)(offset / SRV_NAMES_PAGE));
    memcpy(page + SUM_OFF, &sum, sizeof sum);
    return real->pMethods->xWrite(real, page, len, offset);
}

/* ---- WAL files ---- */

/* SQLite writes header and page of each frame by itself. A commit of many pages is one write here,
 * made when its last page has come, so that a failure still fails the commit, and nobody is told
 * of frames that are not in the file. */
static int flush(struct file *file)
{
    size_t len = file->n_gathered;

    file->n_gathered = 0;
    return len == 0 ? SQLITE_OK
                    : file->real->pMethods->xWrite(file->real, file->gathered, (int)len,
                                                   file->gathered_at);
}

static int gather(struct file *file, const void *bytes, size_t len, sqlite3_int64 offset)
{
    bool follows = offset == file->gathered_at + (sqlite3_int64)file->n_gathered;
    int rc = SQLITE_OK;

    if (file->gathered == NULL)
        file->gathered = malloc(GATHER_MAX);
    if (!follows || file->n_gathered + len > GATHER_MAX)
        rc = flush(file);
    if (rc != SQLITE_OK || file->gathered == NULL || len > GATHER_MAX)
        return rc != SQLITE_OK ? rc
                               : file->real->pMethods->xWrite(file->real, bytes, (int)len, offset);
    if (file->n_gathered == 0)
        file->gathered_at = offset;
    memcpy(file->gathered + file->n_gathered, bytes, len);
    file->n_gathered += len;
    return SQLITE_OK;
}

static int on_wal_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 offset)
{
    static const uint8_t zeros[4];
    struct file *file = (struct file *)base;
    int rc = gather(file, bytes, (size_t)len, offset);

    if (rc == SQLITE_OK && file->is_last && len != FRAME_HEADER)
        rc = flush(file);
    file->is_last = len == FRAME_HEADER &&
                    memcmp((const uint8_t *)bytes + FRAME_COMMIT_OFF, zeros, sizeof zeros) != 0;
    return rc;
}

static int on_wal_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 offset)
{
    struct file *file = (struct file *)base;
    int rc = flush(file);

    return rc == SQLITE_OK ? file->real->pMethods->xRead(file->real, bytes, len, offset) : rc;
}

static int on_wal_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *file = (struct file *)base;
    int rc = flush(file);

    return rc == SQLITE_OK ? file->real->pMethods->xTruncate(file->real, size) : rc;
}

static int on_wal_sync(sqlite3_file *base, int flags)
{
    struct file *file = (struct file *)base;
    int rc = flush(file);

    return rc == SQLITE_OK ? file->real->pMethods->xSync(file->real, flags) : rc;
}

static int on_wal_file_size(sqlite3_file *base, sqlite3_int64 *size_out)
{
    struct file *file = (struct file *)base;
    int rc = flush(file);

    return rc == SQLITE_OK ? file->real->pMethods->xFileSize(file->real, size_out) : rc;
}

static int on_wal_close(sqlite3_file *base)
{
    struct file *file = (struct file *)base;

    /* What is left belongs to no commit. */
    free(file->gathered);
    return file->real->pMethods->xClose(file->real);
}

/* ---- The others ---- */

static int on_close(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xClose(real);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xTruncate(real, size);
}

static int on_sync(sqlite3_file *file, int flags)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xSync(real, flags);
}

static int on_file_size(sqlite3_file *file, sqlite3_int64 *size_out)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xFileSize(real, size_out);
}

static int on_lock(sqlite3_file *file, int level)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xLock(real, level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xUnlock(real, level);
}

static int on_check_reserved(sqlite3_file *file, int *is_reserved_out)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xCheckReservedLock(real, is_reserved_out);
}

static int on_control(sqlite3_file *file, int op, void *arg)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xFileControl(real, op, arg);
}

static int on_sector_size(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xSectorSize(real);
}

static int on_characteristics(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xDeviceCharacteristics(real);
}

static int on_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at_out)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xShmMap(real, page, size, extend, at_out);
}

static int on_shm_lock(sqlite3_file *file, int first, int n, int flags)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xShmLock(real, first, n, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    real->pMethods->xShmBarrier(real);
}

static int on_shm_unmap(sqlite3_file *file, int is_deleted)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods->xShmUnmap(real, is_deleted);
}

/* Version 2: with shared memory, but without mappings, which would pass the checksums by and turn a
 * file cut short into a signal. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static const sqlite3_io_methods wal_methods = {
    .iVersion = 1,
    .xClose = on_wal_close,
    .xRead = on_wal_read,
    .xWrite = on_wal_write,
    .xTruncate = on_wal_truncate,
    .xSync = on_wal_sync,
    .xFileSize = on_wal_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
};

static int on_open(sqlite3_vfs *self, const char *path, sqlite3_file *file, int flags,
                   int *flags_out)
{
    struct file *own = (struct file *)file;

    (void)self;
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0)
        return real_vfs->xOpen(real_vfs, path, file, flags, flags_out);
    *own = (struct file){.real = (sqlite3_file *)(own + 1)};
    int rc = real_vfs->xOpen(real_vfs, path, own->real, flags, flags_out);
    if (own->real->pMethods != NULL)
        own->base.pMethods = (flags & SQLITE_OPEN_WAL) != 0
                                 ? &wal_methods
                                 : &methods; /* also after a failure, to be closed */
    return rc;
}

static void make(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    if (real_vfs == NULL)
        return;
    vfs = *real_vfs;
    vfs.pNext = NULL;
    vfs.zName = SRV_NAMES_VFS;
    vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
    vfs.xOpen = on_open;
    if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
        real_vfs = NULL;
}

bool srv_names_vfs_register(void)
{
    pthread_once(&once, make);
    return real_vfs != NULL;
}
