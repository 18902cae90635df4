#include "detectors/xid_table.h"
#include "tests/harness/test.h"

#include <stddef.h>

TEST(codes_mean_what_the_vendor_says)
{
    static const struct {
        int32_t code, subcode;
        enum xid_class class;
    } ROWS[] = {
        {13, -1, XID_APPLICATION}, {31, -1, XID_APPLICATION}, {43, -1, XID_APPLICATION},
        {45, -1, XID_APPLICATION}, {48, -1, XID_FATAL},       {74, -1, XID_NVLINK},
        {79, -1, XID_FATAL},       {94, -1, XID_CONTAINED},   {95, -1, XID_FATAL},
        {119, -1, XID_FATAL},      {145, -1, XID_INFO},       {149, -1, XID_INFO},
        {149, 2, XID_NVLINK},      {9999, -1, XID_INFO},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        CU_ASSERT_EQUAL(xid_class_of(ROWS[i].code, ROWS[i].subcode), ROWS[i].class);
}

TEST(every_class_has_a_name_and_unknown_codes_no_row)
{
    for (int c = 0; c < XID_CLASS_COUNT; c++)
        CU_ASSERT_PTR_NOT_NULL(xid_class_name((enum xid_class)c));
    CU_ASSERT_PTR_NULL(xid_find(9999));
    CU_ASSERT_PTR_NOT_NULL(xid_find(79)->meaning);
}

TESTS(T(codes_mean_what_the_vendor_says), T(every_class_has_a_name_and_unknown_codes_no_row))
