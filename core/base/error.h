// The reason why something outside capo's control did not work. It says what was tried, on what,
// and the system's words.
//
// An Error is not a finding about the user's order (that is a Diagnostic): it means that there is
// no verdict. Its kind decides the exit code.
//
// The system's words are English whatever locale a host sets: messages are bytes that tests compare
// and people search for. Tested by error_text_test.cpp and tests/locale/locale_test.cpp.

#pragma once

#include <string>

namespace capo {

enum class ErrorKind {
  Unreadable,   ///< the input cannot be read: missing, a directory, no permission; exit 3
  Limit,        ///< a limit of capo was reached, so there is no verdict; exit 4
  Environment,  ///< the machine refused: output not writable, no device; exit 5
};

struct Error {
  ErrorKind kind;
  std::string message;  ///< "cannot read plan.order: Permission denied"
  std::string help;     ///< advice that would make it work; may be empty

  friend bool operator==(const Error&, const Error&) = default;
};

/// The system's words for a value of errno: error_text(ENOENT) is "No such file or directory".
[[nodiscard]] std::string error_text(int code);

}  // namespace capo
