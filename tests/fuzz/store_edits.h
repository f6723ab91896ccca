/* Edits of a store's files, decoded from fuzz input. Included by store_fuzz.c alone, whose names it
 * uses. */
#pragma once

struct input {
    const uint8_t *at;
    size_t left;
    bool forged; /* a document was sealed anew: its bytes are no longer judged */
};

static uint8_t take8(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static uint64_t take_n(struct input *in, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes-- > 0)
        v = v << 8 | take8(in);
    return v;
}

/* Places worth changing: metadata pages, the directory, the first segments. */
static uint64_t take_offset(struct input *in, enum file file)
{
    uint8_t how = take8(in);

    if (file == LOCK)
        return take8(in);
    if (file == DATA)
        return how < 32    ? take8(in)
               : how < 224 ? ENG_DATA_START + take_n(in, 3) % (UINT64_C(8) << 20)
                           : take_n(in, 4) % STORE_BYTES;
    if (how < 100)
        return take_n(in, 2) % super.ban_off;
    return super.stripes[0].directory_off +
           take_n(in, 3) % ((uint64_t)super.stripes[0].n_buckets * 64);
}

static void overwrite(struct input *in, int fd, enum file file)
{
    uint64_t off = take_offset(in, file);
    uint8_t bytes[64];
    size_t n = 1 + take8(in) % sizeof bytes;
    bool flip = take8(in) % 2 == 0;

    memset(bytes, 0, sizeof bytes);
    if (flip && pread(fd, bytes, n, (off_t)off) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        bytes[i] = flip ? bytes[i] ^ take8(in) : take8(in);
    (void)!pwrite(fd, bytes, n, (off_t)off);
}

static void copy_block(struct input *in, int fd, enum file file)
{
    uint8_t block[ENG_PAGE];
    uint64_t from = take_offset(in, file);
    uint64_t to = take_offset(in, file);
    size_t n = 1 + take_n(in, 2) % sizeof block;
    ssize_t got = pread(fd, block, n, (off_t)from);

    if (got > 0)
        (void)!pwrite(fd, block, (size_t)got, (off_t)to);
}

static void change_length(struct input *in, int fd)
{
    struct stat status;
    int64_t by = (int8_t)take8(in);

    by *= take8(in) % 2 == 0 ? 1 : 100000;
    if (fstat(fd, &status) == 0 && status.st_size + by >= 0)
        (void)!ftruncate(fd, status.st_size + by);
}

static void change_kind(struct input *in, enum file file)
{
    const char *path = path_of(file);

    unlink(path);
    switch (take8(in) % 4) {
    case 0: break;
    case 1: (void)!symlink("/dev/null", path); break;
    case 2: (void)!mkdir(path, 0700); break;
    case 3: (void)!mkfifo(path, 0600); break;
    }
}

static void reseal_header(int fd, unsigned copy)
{
    struct eng_stripe_header header;
    struct eng_segment_row rows[ENG_MAX_SEGMENTS];
    size_t len = super.stripes[0].n_segments * sizeof rows[0];

    if (pread(fd, &header, sizeof header, (off_t)eng_header_off(0, copy)) != sizeof header ||
        pread(fd, rows, len, (off_t)eng_table_off(&super, 0, header.table_copy & 1)) !=
            (ssize_t)len)
        return;
    header.table_crc = eng_segment_table_crc(rows, super.stripes[0].n_segments);
    eng_stripe_header_seal(&header);
    (void)!pwrite(fd, &header, sizeof header, (off_t)eng_header_off(0, copy));
}

static void reseal_doc(struct input *in, int fd)
{
    struct eng_doc doc;
    uint64_t unit = take_n(in, 2);
    uint64_t off = ENG_DATA_START + unit * ENG_UNIT;
    uint32_t seed = 0;

    if (pread(fd, &doc, sizeof doc, (off_t)off) != sizeof doc || doc.magic != ENG_DOC_MAGIC)
        return;
    ((uint8_t *)&doc)[8 + take8(in) % 120] ^= take8(in);
    seed = eng_crc_seed(super.uuid, 0);
    eng_doc_seal(&doc, seed, unit);
    in->forged = true;
    (void)!pwrite(fd, &doc, sizeof doc, (off_t)off);
}

/* Makes checksums right again, so that what is behind them is reached. */
static void reseal(struct input *in, int fd, enum file file)
{
    struct eng_superblock copy;
    unsigned which = take8(in) % 2;

    if (file == DATA) {
        reseal_doc(in, fd);
    } else if (file == VOLUME && take8(in) % 2 == 0) {
        reseal_header(fd, which);
    } else if (file == VOLUME &&
               pread(fd, &copy, sizeof copy, (off_t)eng_superblock_off(which)) == sizeof copy) {
        eng_superblock_seal(&copy);
        (void)!pwrite(fd, &copy, sizeof copy, (off_t)eng_superblock_off(which));
    }
}

static void edit(struct input *in)
{
    uint8_t op = take8(in);
    enum file file = op % 8 == 7 ? LOCK : op % 8 >= 5 ? DATA : VOLUME;
    int fd = open(path_of(file), O_RDWR | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return;
    switch (op / 8) {
    case 30: change_length(in, fd); break;
    case 31: change_kind(in, file); break;
    default:
        if (op / 8 < 16)
            overwrite(in, fd, file);
        else if (op / 8 < 20)
            copy_block(in, fd, file);
        else
            reseal(in, fd, file);
    }
    close(fd);
}
