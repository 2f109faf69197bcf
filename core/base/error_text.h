// What the system calls an error, in English whatever locale the process speaks: messages are bytes
// that tests compare and people search for.

#pragma once

#include <string>

namespace capo {

/// `code` as errno has it.
[[nodiscard]] std::string error_text(int code);

}  // namespace capo
