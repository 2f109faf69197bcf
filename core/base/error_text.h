// The system's words for an error, in English whatever locale a host sets: messages are bytes that
// tests compare and people search for. Tested by error_text_test.cpp and
// tests/locale/locale_test.cpp.

#pragma once

#include <string>

namespace capo {

/// `code` is a value of errno. Example: error_text(ENOENT) is "No such file or directory".
[[nodiscard]] std::string error_text(int code);

}  // namespace capo
