/* SHA-256 against the examples of FIPS 180-4, HMAC against those of RFC 4231. */
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

TEST(hmac_is_that_of_the_standard_for_short_and_long_keys)
{
    char hex[DIGEST_HEX_BYTES];
    char long_key[131];
    for (size_t i = 0; i < sizeof long_key; i++)
        long_key[i] = (char)0xaa;
    CU_ASSERT_EQUAL(
        digest_hmac_sha256(view_of("Jefe"), view_of("what do ya want for nothing?"), hex, NULL),
        OK);
    CU_ASSERT_STRING_EQUAL(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CU_ASSERT_EQUAL(
        digest_hmac_sha256((struct view){long_key, sizeof long_key},
                           view_of("Test Using Larger Than Block-Size Key - Hash Key First"), hex,
                           NULL),
        OK);
    CU_ASSERT_STRING_EQUAL(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    CU_ASSERT_EQUAL(digest_hmac_sha256(view_of(NULL), view_of(NULL), hex, NULL), OK);
    CU_ASSERT_STRING_EQUAL(hex, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TESTS(T(sha256_of_nothing_and_of_abc_are_those_of_the_standard),
      T(hmac_is_that_of_the_standard_for_short_and_long_keys))
