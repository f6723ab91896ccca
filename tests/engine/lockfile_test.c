/* The note in the lock file, and who may hold it. */
#include "engine/lockfile.h"

#include "tests/engine/open_store.h"

static struct eng_lockfile some_file(const char *text)
{
    struct eng_lockfile lock = {.fd = open(test_path("note"), O_RDWR | O_CREAT | O_TRUNC, 0600)};

    CHECK(lock.fd >= 0);
    CHECK(write(lock.fd, text, strlen(text)) == (ssize_t)strlen(text));
    return lock;
}

TEST(a_note_is_read_as_it_was_written)
{
    struct eng_lockfile lock =
        some_file("something much longer that was there before, over many a line\n\n\n");
    struct eng_lock_note note = {.boot_id = "0123456789abcdef0123456789abcdef",
                                 .volume_dev = UINT64_MAX,
                                 .volume_ino = 7,
                                 .rt_path = "/dev/shm/with a blank.rt",
                                 .rt_dev = 3,
                                 .rt_ino = 4};
    struct eng_lock_note again;

    CHECK_OK(eng_lockfile_write(&lock, &note));
    CHECK(eng_lockfile_read(&lock, &again));
    CHECK_EQ_STR(again.boot_id, note.boot_id);
    CHECK_EQ_STR(again.rt_path, note.rt_path);
    CHECK(again.volume_dev == UINT64_MAX && again.volume_ino == 7 && again.rt_dev == 3 &&
          again.rt_ino == 4);
    note = (struct eng_lock_note){0};
    CHECK_OK(eng_lockfile_write(&lock, &note));
    CHECK(eng_lockfile_read(&lock, &again));
    CHECK_EQ_STR(again.boot_id, "unknown");
    CHECK_EQ_STR(again.rt_path, "");
    close(lock.fd);
}

TEST(nonsense_is_no_note)
{
    static const char *const texts[] = {
        "",
        "gyre-lock 2\n",
        "gyre-lock 1\nboot x\nvolume 1 2\n",
        "gyre-lock 1\nboot x\nvolume 1 2\nrt 3 4 /no/end",
        "\xff\xfe\xfd",
        "gyre-lock 1\nboot 0123456789012345678901234567890123456789x\nvolume 1 2\nrt 3 4 /p\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct eng_lockfile lock = some_file(texts[i]);
        struct eng_lock_note note;
        CHECK_MSG(!eng_lockfile_read(&lock, &note), "text %zu", i);
        CHECK(note.boot_id[0] == '\0' && note.rt_path[0] == '\0');
        close(lock.fd);
    }
}

TEST(this_boot_has_a_name)
{
    char a[40];
    char b[40];

    eng_boot_text(a);
    eng_boot_text(b);
    CHECK_EQ_STR(a, b);
}
