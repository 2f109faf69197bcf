// SHA-256 (FIPS 180-4), by which golden data stands for orders too long to keep. For comparing in
// tests, and slow; nothing here is made for keeping secrets. Tested by sha256_test.cpp.

#pragma once

#include <string>
#include <string_view>

namespace capo::testing_support {

/// The digest in 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

}  // namespace capo::testing_support
