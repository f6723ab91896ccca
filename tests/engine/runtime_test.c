/* The runtime segment: where it lies, and that its parts do not overlap. */
#include "engine/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/geometry.h"
#include "tests/harness/test.h"

static struct eng_superblock make_superblock(uint64_t bytes, uint32_t stripes)
{
    struct eng_geometry_want want = {&bytes, 1, 0, stripes, 0, NULL, 0};
    struct eng_superblock super;
    char why[256];

    CHECK_OK(eng_geometry_make(&want, &super, why, sizeof why));
    return super;
}

TEST(parts_follow_each_other_without_overlap)
{
    struct eng_superblock super = make_superblock(UINT64_C(1) << 30, 3);
    struct eng_runtime rt;

    CHECK_OK(eng_runtime_create(&super, NULL, test_tmpdir(), &rt));
    const struct eng_runtime_head *head = rt.head;
    CHECK(head->process_off + ENG_PROCESSES * sizeof(struct eng_process) <= head->pin_off);
    uint64_t end = head->pin_off + ENG_PINS * sizeof(struct eng_pin);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t n_slots = (uint64_t)super.stripes[i].n_buckets * ENG_BUCKET_ENTRIES;
        CHECK(end <= head->stripe_off[i]);
        CHECK(head->stripe_off[i] + sizeof(struct eng_stripe_rt) <= head->slot_off[i]);
        CHECK(head->slot_off[i] + n_slots * sizeof(struct eng_slot) <= head->granule_off[i]);
        end = head->granule_off[i] + eng_area_bytes(&super, i) / ENG_GRANULE * sizeof(uint32_t);
        const uint32_t *granules = (const void *)((const uint8_t *)head + head->granule_off[i]);
        CHECK_EQ_INT(granules[0], ENG_NO_SLOT);
        CHECK_EQ_INT(granules[eng_area_bytes(&super, i) / ENG_GRANULE - 1], ENG_NO_SLOT);
    }
    CHECK(end <= rt.bytes && rt.bytes == eng_runtime_bytes(&super));
    eng_runtime_close(&rt, true);
}

TEST(the_file_is_private_has_all_its_pages_and_goes_when_told)
{
    struct eng_superblock super = make_superblock(UINT64_C(64) << 20, 1);
    struct eng_runtime rt;
    struct stat status;
    char path[512];

    CHECK_OK(eng_runtime_create(&super, NULL, test_tmpdir(), &rt));
    snprintf(path, sizeof path, "%s", rt.path);
    CHECK(lstat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 07777) == 0600);
    CHECK((uint64_t)status.st_blocks * 512 >= rt.bytes);
    eng_runtime_close(&rt, false);
    CHECK(lstat(path, &status) == 0);
    CHECK_OK(eng_runtime_create(&super, NULL, test_tmpdir(), &rt));
    CHECK(strcmp(path, rt.path) != 0);
    snprintf(path, sizeof path, "%s", rt.path);
    eng_runtime_close(&rt, true);
    CHECK(lstat(path, &status) != 0 && errno == ENOENT);
}

TEST(without_shared_memory_it_lies_beside_the_store)
{
    struct eng_superblock super = make_superblock(UINT64_C(64) << 20, 1);
    struct eng_runtime rt;

    CHECK_OK(eng_runtime_create(&super, "/nonexistent", test_tmpdir(), &rt));
    CHECK(strncmp(rt.path, test_tmpdir(), strlen(test_tmpdir())) == 0);
    eng_runtime_close(&rt, true);
    CHECK(eng_runtime_create(&super, "/nonexistent", "/nonexistent", &rt) != GYRE_OK);
    CHECK(rt.head == NULL && rt.fd == -1);
}

TEST(segments_of_the_dead_are_swept_and_those_of_the_living_are_not)
{
    struct eng_superblock super = make_superblock(UINT64_C(64) << 20, 1);
    struct eng_runtime alive;
    struct eng_runtime next;
    struct stat status;
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};

    CHECK_OK(eng_runtime_create(&super, test_tmpdir(), test_tmpdir(), &alive));
    int fd = open(test_path("gyre-00000000-0000000000000000.rt"), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && futimens(fd, old) == 0 && close(fd) == 0);
    fd = open(test_path("gyre-mine.txt"), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && futimens(fd, old) == 0 && close(fd) == 0);
    CHECK(futimens(alive.fd, old) == 0);
    CHECK_OK(eng_runtime_create(&super, test_tmpdir(), test_tmpdir(), &next));
    CHECK(lstat(test_path("gyre-00000000-0000000000000000.rt"), &status) != 0);
    CHECK(lstat(test_path("gyre-mine.txt"), &status) == 0);
    CHECK(lstat(alive.path, &status) == 0 && lstat(next.path, &status) == 0);
    eng_runtime_close(&alive, true);
    eng_runtime_close(&next, true);
}
