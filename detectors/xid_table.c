/* The table and its look-up. */
#include "detectors/xid_table.h"

#include <assert.h>
#include <stddef.h>

/* clang-format off */
static const struct xid_row ROWS[] = {
    {13,  XID_APPLICATION, "graphics engine exception"},
    {31,  XID_APPLICATION, "GPU memory page fault"},
    {32,  XID_APPLICATION, "invalid or corrupted push buffer stream"},
    {37,  XID_APPLICATION, "driver firmware method not implemented"},
    {38,  XID_INFO,        "driver firmware watchdog"},
    {43,  XID_APPLICATION, "GPU stopped processing"},
    {44,  XID_INFO,        "graphics engine fault during context switch"},
    {45,  XID_APPLICATION, "preemptive cleanup, due to an earlier error"},
    {46,  XID_FATAL,       "GPU stopped processing and did not come back"},
    {48,  XID_FATAL,       "double bit ECC error"},
    {54,  XID_INFO,        "auxiliary power is not connected"},
    {58,  XID_INFO,        "unstable video memory interface"},
    {61,  XID_FATAL,       "internal micro-controller breakpoint"},
    {62,  XID_FATAL,       "internal micro-controller halt"},
    {63,  XID_INFO,        "page retirement or row remapping recorded"},
    {64,  XID_FATAL,       "page retirement or row remapping failed"},
    {66,  XID_INFO,        "illegal access by the driver"},
    {68,  XID_APPLICATION, "video decoder exception"},
    {69,  XID_APPLICATION, "graphics engine class error"},
    {74,  XID_NVLINK,      "NVLink error"},
    {79,  XID_FATAL,       "GPU has fallen off the bus"},
    {80,  XID_APPLICATION, "push buffer checksum mismatch"},
    {92,  XID_INFO,        "high rate of single bit ECC errors"},
    {94,  XID_CONTAINED,   "contained memory error"},
    {95,  XID_FATAL,       "uncontained memory error"},
    {109, XID_FATAL,       "context switch timeout"},
    {110, XID_FATAL,       "security fault"},
    {119, XID_FATAL,       "GSP does not answer"},
    {120, XID_FATAL,       "GSP error"},
    {121, XID_INFO,        "corrected error of the chip-to-chip link"},
    {136, XID_FATAL,       "link training failed"},
    {137, XID_APPLICATION, "NVLink fault of an access to a peer"},
    {140, XID_FATAL,       "unrecovered ECC error"},
    {141, XID_INFO,        "fast path error"},
    {143, XID_FATAL,       "GPU initialisation failed"},
    {144, XID_NVLINK,      "NVLink SAW error"},
    {145, XID_NVLINK,      "NVLink RLW error"},
    {146, XID_NVLINK,      "NVLink TLW error"},
    {147, XID_NVLINK,      "NVLink TREX error"},
    {148, XID_NVLINK,      "NVLink NVLPW error"},
    {149, XID_NVLINK,      "NVLink NETIR error"},
    {150, XID_NVLINK,      "NVLink MSE error"},
    {151, XID_INFO,        "key rotation error"},
    {154, XID_INFO,        "GPU recovery action changed"},
    {155, XID_NVLINK,      "NVLink error defined by software"},
    {156, XID_CONTAINED,   "resource retirement recorded"},
    {157, XID_INFO,        "resource retirement failed"},
    {158, XID_FATAL,       "GPU fatal timeout"},
    {160, XID_INFO,        "channel retirement recorded"},
    {161, XID_INFO,        "channel retirement failed"},
};
/* clang-format on */

enum { NVLINK5_FIRST = 144, NVLINK5_LAST = 150 };

static const char *const CLASS_NAMES[XID_CLASS_COUNT] = {
    [XID_INFO] = "info",           [XID_APPLICATION] = "application",
    [XID_CONTAINED] = "contained", [XID_NVLINK] = "nvlink",
    [XID_FATAL] = "fatal",
};

const struct xid_row *xid_find(int32_t code)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        if (ROWS[i].code == code)
            return &ROWS[i];
    return NULL;
}

enum xid_class xid_class_of(int32_t code, int32_t subcode)
{
    const struct xid_row *row = xid_find(code);

    if (row == NULL || (code >= NVLINK5_FIRST && code <= NVLINK5_LAST && subcode < 0))
        return XID_INFO;
    return row->class;
}

const char *xid_class_name(enum xid_class class)
{
    assert(class < XID_CLASS_COUNT);
    return CLASS_NAMES[class];
}
