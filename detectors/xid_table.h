/* What an Xid or SXid means, as data. Sources stand in detectors/README.md. */
#ifndef BROOM_DETECTORS_XID_TABLE_H
#define BROOM_DETECTORS_XID_TABLE_H

#include <stdint.h>

enum xid_class {
    XID_INFO = 0,    /* worth a line, nothing to do */
    XID_APPLICATION, /* the program's own doing, or the echo of another fault */
    XID_CONTAINED,   /* hardware erred, the process dies, the GPU goes on */
    XID_NVLINK,      /* a link or the fabric */
    XID_FATAL,       /* the GPU is gone until reset or replaced */
    XID_CLASS_COUNT
};

struct xid_row {
    int32_t code;
    enum xid_class class;
    const char *meaning;
};

/* NULL when the code is in no table: treat as XID_INFO. */
const struct xid_row *xid_find(int32_t code);

/* Class of a code with its sub-code (< 0: none came). NVLink 5 codes (144 to 150) say nothing
 * without. */
enum xid_class xid_class_of(int32_t code, int32_t subcode);

const char *xid_class_name(enum xid_class class);

#endif
