#include "server/s3/names_vfs.h"

#include <endian.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

enum { SUM_OFF = SRV_NAMES_PAGE - SRV_NAMES_RESERVED };

/* A database file; SQLite's own file structure follows. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
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

static int on_open(sqlite3_vfs *self, const char *path, sqlite3_file *file, int flags,
                   int *flags_out)
{
    struct file *own = (struct file *)file;

    (void)self;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
        return real_vfs->xOpen(real_vfs, path, file, flags, flags_out);
    own->base.pMethods = NULL;
    own->real = (sqlite3_file *)(own + 1);
    int rc = real_vfs->xOpen(real_vfs, path, own->real, flags, flags_out);
    if (own->real->pMethods != NULL)
        own->base.pMethods = &methods; /* also after a failure, to be closed */
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
