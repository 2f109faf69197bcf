// The file of a campaign's lines: a header, then a line an order, whole or not there.
//
// Opening it reads what an earlier run left. Half a line that a kill left is cut off; so is a last
// line that disagrees, since it is to be judged again. Lines of another campaign, or lines that are
// none, are refused and stay as they are; so is what is no regular file. While one campaign has the
// file open, another one is refused. Without a path nothing is read or written. Tested by
// tests/testing/truth/campaign_test.cpp, and with every call that fails by
// tests/failing/lines_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "testing/truth/tally.h"

#include <fstream>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace capo::testing {

/// Every header begins so; the number is the version of the lines' form.
inline constexpr std::string_view kHeaderBegin = R"({"campaign":1,)";

/// Lets one program at a time write a file: a second one is told, and does not wait. The advisory
/// lock of the system (flock) goes with its process whatever ends it, so no file is ever left
/// locked.
class FileLock {
 public:
  FileLock() = default;  ///< locks no file
  /// Makes the file if there is none.
  [[nodiscard]] static Result<FileLock, Error> take(const std::string& path);

  ~FileLock();
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

 private:
  int file_ = -1;  ///< -1 if no file is locked
};

class LinesFile {
 public:
  [[nodiscard]] static Result<LinesFile, Error> open(const std::string& path,
                                                     std::string_view header);

  /// The lines that were there.
  [[nodiscard]] const Tally& resumed() const { return resumed_; }
  /// Writes the line with a line break and hands it to the system; the error says why it could not.
  [[nodiscard]] std::optional<Error> write(std::string_view line);

 private:
  LinesFile() = default;

  std::string path_;
  FileLock lock_;
  std::ofstream out_;
  Tally resumed_;
};

/// Reads a whole file. A text that is no such file is refused with the line that is wrong.
struct ReadLines {
  std::string header;
  Tally tally = {};
};
[[nodiscard]] Result<ReadLines, Error> read_lines(std::istream& in);

}  // namespace capo::testing
