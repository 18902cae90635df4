/* POSIX.1-1988 ustar, files only. */
#include "controller/cli/tar.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char padding[12];
};
static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a tar header is one block");

static const char zeros[TAR_BLOCK_BYTES];

/* The sum of all bytes, with the checksum field taken as blanks. */
static unsigned checksum(const struct header *header)
{
    unsigned char bytes[TAR_BLOCK_BYTES];
    memcpy(bytes, header, sizeof bytes);
    memset(bytes + offsetof(struct header, checksum), ' ', sizeof header->checksum);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        sum += bytes[i];
    return sum;
}

static void put_octal(char *field, size_t bytes, uint64_t value)
{
    for (size_t i = bytes - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
    field[bytes - 1] = '\0';
}

/* One right header for a name, a size and a time: what differs from it was damaged. */
static struct header make_header(const char *name, uint64_t bytes, int64_t mtime_s)
{
    struct header header = {0};
    memcpy(header.name, name, strlen(name));
    put_octal(header.mode, sizeof header.mode, 0644);
    put_octal(header.uid, sizeof header.uid, 0);
    put_octal(header.gid, sizeof header.gid, 0);
    put_octal(header.size, sizeof header.size, bytes);
    put_octal(header.mtime, sizeof header.mtime, mtime_s > 0 ? (uint64_t)mtime_s : 0);
    header.type = '0';
    memcpy(header.magic, "ustar", 6);
    memcpy(header.version, "00", 2);
    memcpy(header.user, "root", 4);
    memcpy(header.group, "root", 4);
    put_octal(header.checksum, sizeof header.checksum - 1, checksum(&header));
    header.checksum[7] = ' ';
    return header;
}

void tar_add(struct text *out, const char *name, struct view bytes, int64_t mtime_s)
{
    assert(name[0] != '\0' && name[0] != '/' && strlen(name) < sizeof((struct header *)NULL)->name);
    struct header header = make_header(name, bytes.length, mtime_s);
    text_add_bytes(out, &header, sizeof header);
    if (bytes.length > 0)
        text_add_bytes(out, bytes.bytes, bytes.length);
    text_add_bytes(out, zeros,
                   (TAR_BLOCK_BYTES - bytes.length % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
}

void tar_end(struct text *out)
{
    text_add_bytes(out, zeros, sizeof zeros);
    text_add_bytes(out, zeros, sizeof zeros);
}

static bool get_octal(const char *field, size_t bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    *ret_value = value;
    return i > 0 && i < bytes && (field[i] == '\0' || field[i] == ' ');
}

/* Two empty blocks, and nothing behind them. */
static enum status check_end(struct view archive, size_t offset, struct error *reterr)
{
    if (archive.length - offset != sizeof zeros * 2)
        return error_set(reterr, ERR_INVALID,
                         "the archive does not end where it should, at byte %zu", offset);
    for (size_t i = offset; i < archive.length; i++)
        if (archive.bytes[i] != '\0')
            return error_set(reterr, ERR_INVALID, "bytes stand behind the end, at byte %zu", i);
    return OK;
}

enum status tar_next(struct view archive, size_t *offset, struct tar_entry *ret_entry,
                     struct error *reterr)
{
    struct header header;
    uint64_t size;
    uint64_t mtime_s;
    if (*offset > archive.length || archive.length - *offset < sizeof header)
        return error_set(reterr, ERR_INVALID, "the archive is cut short at byte %zu",
                         archive.length);
    memcpy(&header, archive.bytes + *offset, sizeof header);
    if (memcmp(&header, zeros, sizeof header) == 0) {
        *ret_entry = (struct tar_entry){0};
        return check_end(archive, *offset, reterr);
    }
    if (header.name[sizeof header.name - 1] != '\0' ||
        !get_octal(header.size, sizeof header.size, &size) ||
        !get_octal(header.mtime, sizeof header.mtime, &mtime_s))
        return error_set(reterr, ERR_INVALID, "the header at byte %zu is damaged", *offset);
    struct header right = make_header(header.name, size, (int64_t)mtime_s);
    if (memcmp(&header, &right, sizeof header) != 0)
        return error_set(reterr, ERR_INVALID, "the header at byte %zu is damaged", *offset);
    size_t start = *offset + sizeof header;
    size_t padding = (TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES;
    if (size > archive.length - start || padding > archive.length - start - size)
        return error_set(reterr, ERR_INVALID, "the archive is cut short at byte %zu",
                         archive.length);
    for (size_t i = start + size; i < start + size + padding; i++)
        if (archive.bytes[i] != '\0')
            return error_set(reterr, ERR_INVALID, "the padding at byte %zu is damaged", i);
    *ret_entry = (struct tar_entry){.bytes = {archive.bytes + start, size}};
    memcpy(ret_entry->name, header.name, sizeof header.name);
    *offset = start + size + padding;
    return OK;
}
