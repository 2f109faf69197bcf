// One program at a time adds lines to a file: who has the lock writes, and who comes later is told.
//
// An advisory lock of the system (flock), which goes with the process whatever ends it, so that no
// file is ever left locked. Tested by tests/testing/truth/campaign_test.cpp, and with every call
// that fails by tests/failing/lines_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"

#include <string>
#include <utility>

namespace capo::testing {

class FileLock {
 public:
  /// Of nothing.
  FileLock() = default;
  /// Makes the file where there is none, and does not wait.
  [[nodiscard]] static Result<FileLock, Error> take(const std::string& path);

  ~FileLock();
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

 private:
  int file_ = -1;  ///< -1: none
};

}  // namespace capo::testing
