/* The table of units and the reader of what the driver prints. */
#include "detectors/nvlink5.h"

#include "controller/base/status.h"

#include <string.h>

enum { CODE_FIRST = 144, CODE_LAST = 150, MESSAGE_MOST = 512, SUBCODE_MOST = 63 };

/* A unit's place in the first word, and which bits of its error status are fatal. The lowest five
 * bits of the word say the code (144: 1 ... 149: 6, 150: 0), the next five the unit; newer drivers
 * have seven bits for the unit alone. */
struct unit {
    int32_t code, number, number_new;
    const char *name;
    uint32_t fatal, harmless; /* bits of the status; where neither is set nothing is known */
    bool always_fatal, never_fatal;
};

/* clang-format off */
static const struct unit UNITS[] = {
    {144, 1,  1,  "SAW_MVB",          0x12,     0x2d,       false, false},
    {145, 3,  3,  "RLW_CTRL",         0,        0,          false, true},
    {145, 4,  4,  "RLW_REMAP",        0xc0,     0x8000033f, false, false},
    {145, 5,  5,  "RLW_RSPCOL",       0x2,      0x80000001, false, false},
    {145, 6,  6,  "RLW_RXPIPE",       0,        0,          false, true},
    {145, 7,  7,  "RLW_SRC_TRACK",    0x31,     0x8000000e, false, false},
    {145, 8,  8,  "RLW_TAGSTATE",     0x120002, 0x80010001, false, false},
    {146, 9,  9,  "TLW_CTRL",         0x4,      0x80000003, false, false},
    {146, 10, 10, "TLW_RX",           0x4,      0x80000003, false, false},
    {146, 10, 11, "TLW_RX_PIPE1",     0x4,      0x80000003, false, false},
    {146, 11, 12, "TLW_TX",           0x4,      0x80000003, false, false},
    {146, 11, 13, "TLW_TX_PIPE1",     0x4,      0x80000003, false, false},
    {147, 12, 14, "TREX",             0,        0,          false, true},
    {148, 0,  15, "NVLPW",            0,        0,          false, true},
    {149, 0,  24, "NETIR",            0,        0,          true,  false},
    {149, 14, 17, "NETIR_LINK_EVT",   0,        0,          true,  false},
    {149, 17, 19, "NETIR_BER_EVENT",  0,        0,          false, true},
    {149, 18, 20, "NETIR_MFDE_EVENT", 0x4,      0,          false, false},
    {150, 0,  0,  "MSE_WATCHDOG",     0,        0,          true,  false},
};
/* clang-format on */

bool nvlink5_is_code(int64_t code)
{
    return code >= CODE_FIRST && code <= CODE_LAST;
}

static const struct unit *find_unit(int32_t code, uint32_t word)
{
    bool older = (word & 31) == (uint32_t)(code == CODE_LAST ? 0 : code - CODE_FIRST + 1);

    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++)
        if (UNITS[i].code == code && (older ? (uint32_t)UNITS[i].number == (word >> 5 & 31)
                                            : (uint32_t)UNITS[i].number_new == (word & 127)))
            return &UNITS[i];
    return NULL;
}

static enum nvlink5_severity severity_of(const struct unit *unit, bool has_status, uint32_t status)
{
    if (unit->always_fatal)
        return NVLINK5_FATAL;
    if (unit->never_fatal)
        return NVLINK5_NONFATAL;
    if (!has_status)
        return NVLINK5_UNKNOWN;
    /* Of this unit the status is a number: 3 is harmless, 1, 4, 5 and 7 are fatal. */
    if (strcmp(unit->name, "NETIR_MFDE_EVENT") == 0)
        return status == 3 ? NVLINK5_NONFATAL : status == 0 ? NVLINK5_UNKNOWN : NVLINK5_FATAL;
    if ((status & unit->fatal) != 0)
        return NVLINK5_FATAL;
    return (status & unit->harmless) != 0 ? NVLINK5_NONFATAL : NVLINK5_UNKNOWN;
}

static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* Words of the form 0x0409a0c2 behind the opening bracket; how many were read. */
static int read_words(const char *message, uint32_t *words, int most)
{
    const char *at = strchr(message, '(');
    int count = 0;

    /* A whole line of the kernel has a bracket around the device first. */
    while (at != NULL && strncmp(at, "(0x", 3) != 0)
        at = strchr(at + 1, '(');
    for (at = at != NULL ? at + 1 : NULL; at != NULL && count < most; count++) {
        uint32_t value = 0;
        at += strspn(at, " ");
        if (strncmp(at, "0x", 2) != 0)
            return count;
        for (at += 2; digit_of(*at) >= 0; at++)
            value = value << 4 | (uint32_t)digit_of(*at);
        words[count] = value;
    }
    return count;
}

static bool is_unit_byte(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

/* "RLW_SRC_TRACK Nonfatal": the word before the severity. */
static void read_severity(const char *message, struct nvlink5 *report)
{
    static const char *const HARMLESS[] = {" Nonfatal", " Non-fatal", " NonFatal"};
    const char *at = NULL;

    for (size_t i = 0; i < ARRAY_LEN(HARMLESS) && at == NULL; i++)
        at = strstr(message, HARMLESS[i]);
    report->severity = at != NULL ? NVLINK5_NONFATAL : NVLINK5_UNKNOWN;
    if (at == NULL && (at = strstr(message, " Fatal")) != NULL)
        report->severity = NVLINK5_FATAL;
    if (at == NULL)
        return;
    while (at > message && *at == ' ')
        at--;
    const char *end = at + 1;
    while (at > message && is_unit_byte(at[-1]))
        at--;
    if (is_unit_byte(*at) && (size_t)(end - at) < sizeof report->unit) {
        memcpy(report->unit, at, (size_t)(end - at));
        report->unit[end - at] = '\0';
    }
}

static int32_t read_link(const char *message)
{
    const char *at = strstr(message, "Link ");
    size_t digits = at != NULL ? strspn(at + 5, "0123456789") : 0;
    int64_t link;

    return digits > 0 && text_parse_int((struct view){at + 5, digits}, &link) && link < 1024
               ? (int32_t)link
               : -1;
}

struct nvlink5 nvlink5_decode(int32_t code, int64_t subcode, struct view message)
{
    struct nvlink5 report = {.subcode = -1, .link = -1};
    char text[MESSAGE_MOST] = "";
    uint32_t words[2] = {0, 0};
    size_t length = message.length < sizeof text - 1 ? message.length : sizeof text - 1;

    if (length > 0)
        memcpy(text, message.bytes, length);
    read_severity(text, &report);
    report.link = read_link(text);
    int count = read_words(text, words, 2);
    if (count == 0 && subcode > SUBCODE_MOST && subcode <= UINT32_MAX) {
        words[0] = (uint32_t)subcode;
        count = 1;
    }
    if (count > 0) {
        const struct unit *unit = find_unit(code, words[0]);
        report.subcode = (int32_t)(words[0] >> 20 & 63);
        if (unit != NULL && report.unit[0] == '\0')
            (void)text_copy(report.unit, sizeof report.unit, unit->name);
        if (unit != NULL && report.severity == NVLINK5_UNKNOWN)
            report.severity = severity_of(unit, count > 1, words[1]);
    } else if (subcode >= 0 && subcode <= SUBCODE_MOST) {
        report.subcode = (int32_t)subcode;
    }
    return report;
}
