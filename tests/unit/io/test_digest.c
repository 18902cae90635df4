/* SHA-256 against the examples of FIPS 180-4. */
#include "controller/io/digest.h"
#include "tests/harness/test.h"

TEST(sha256_of_nothing_and_of_abc_are_those_of_the_standard)
{
    char hex[DIGEST_HEX_BYTES];
    CU_ASSERT_EQUAL(digest_sha256(view_of(""), hex, NULL), OK);
    CU_ASSERT_STRING_EQUAL(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CU_ASSERT_EQUAL(digest_sha256(view_of("abc"), hex, NULL), OK);
    CU_ASSERT_STRING_EQUAL(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TESTS(T(sha256_of_nothing_and_of_abc_are_those_of_the_standard))
