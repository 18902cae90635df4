/* Xid 144 to 150: what the driver prints beside them. */
#include "detectors/nvlink5.h"
#include "tests/harness/test.h"

#include <string.h>

TEST(the_severity_that_the_driver_prints_counts)
{
    struct nvlink5 noticed = nvlink5_decode(
        145, -1,
        view_of("pid=876767, name=python3, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 "
                "0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)"));
    struct nvlink5 down = nvlink5_decode(
        149, -1,
        view_of("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 "
                "(0x021425c6 0x00000000 0x00000000)"));

    CU_ASSERT_EQUAL(noticed.severity, NVLINK5_NONFATAL);
    CU_ASSERT_STRING_EQUAL(noticed.unit, "RLW_SRC_TRACK");
    CU_ASSERT_EQUAL(noticed.link, 12);
    CU_ASSERT_EQUAL(noticed.subcode, 0);
    CU_ASSERT_EQUAL(down.severity, NVLINK5_FATAL);
    CU_ASSERT_STRING_EQUAL(down.unit, "NETIR_LINK_EVT");
    CU_ASSERT_EQUAL(down.subcode, 33);
    CU_ASSERT_EQUAL(down.link, 1);
}

TEST(without_a_severity_unit_and_status_are_looked_up)
{
    static const struct {
        int32_t code;
        const char *message;
        enum nvlink5_severity severity;
        const char *unit;
    } CASES[] = {
        {145, "(0x040988e2 0x00000008)", NVLINK5_NONFATAL, "RLW_SRC_TRACK"},
        {145, "(0x040988e2 0x00000010)", NVLINK5_FATAL, "RLW_SRC_TRACK"},
        {145, "(0x0409a0c2 0x00000008)", NVLINK5_NONFATAL, "RLW_RXPIPE"},
        {149, "(0x00086226 0x00000001)", NVLINK5_NONFATAL, "NETIR_BER_EVENT"},
        {149, "(0x004505c6 0x00000000)", NVLINK5_FATAL, "NETIR_LINK_EVT"},
        {149, "(0x000fe406 0x00000000)", NVLINK5_FATAL, "NETIR"},
        {149, "(0x00000246 0x00000003)", NVLINK5_NONFATAL, "NETIR_MFDE_EVENT"},
        {149, "(0x00000246 0x00000004)", NVLINK5_FATAL, "NETIR_MFDE_EVENT"},
        {144, "(0x00000021 0x00000002)", NVLINK5_FATAL, "SAW_MVB"},
        {144, "(0x00000021 0x00000004)", NVLINK5_NONFATAL, "SAW_MVB"},
        {146, "(0x00000009 0x00000004)", NVLINK5_FATAL, "TLW_CTRL"}, /* newer drivers */
        {150, "(0x00000000 0x00000000)", NVLINK5_FATAL, "MSE_WATCHDOG"},
        {145, "(0x040988e2)", NVLINK5_UNKNOWN, "RLW_SRC_TRACK"},
        {145, "(0x040988e2 0x00100000)", NVLINK5_UNKNOWN, "RLW_SRC_TRACK"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct nvlink5 report = nvlink5_decode(CASES[i].code, -1, view_of(CASES[i].message));
        CU_ASSERT_EQUAL(report.severity, CASES[i].severity);
        CU_ASSERT_STRING_EQUAL(report.unit, CASES[i].unit);
    }
}

TEST(a_number_alone_is_the_sub_code_or_the_whole_word)
{
    struct nvlink5 small = nvlink5_decode(149, 4, view_of("")),
                   word = nvlink5_decode(149, 0x004505c6, view_of(NULL)),
                   none = nvlink5_decode(149, -1, view_of("")),
                   broken = nvlink5_decode(149, -1, view_of("Fatal( Link x (0x"));

    CU_ASSERT_EQUAL(small.severity, NVLINK5_UNKNOWN);
    CU_ASSERT_EQUAL(small.subcode, 4);
    CU_ASSERT_EQUAL(word.severity, NVLINK5_FATAL);
    CU_ASSERT_EQUAL(word.subcode, 4);
    CU_ASSERT_EQUAL(none.subcode, -1);
    CU_ASSERT_EQUAL(broken.link, -1);
    CU_ASSERT(nvlink5_is_code(144) && nvlink5_is_code(150) && !nvlink5_is_code(151));
}

TESTS(T(the_severity_that_the_driver_prints_counts),
      T(without_a_severity_unit_and_status_are_looked_up),
      T(a_number_alone_is_the_sub_code_or_the_whole_word))
