// The file of a campaign's lines: a header, then a line an order, whole or not there.
//
// Opening it reads what an earlier run left. Half a line that a kill left is cut off; so is a last
// line that disagrees, since it is to be judged again. Lines of another campaign, or lines that are
// none, are refused and stay as they are; so is what is no regular file. While one campaign has the
// file open, another one is refused. Without a path nothing is read or written. Tested by
// tests/testing/truth/campaign_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "testing/truth/file_lock.h"
#include "testing/truth/tally.h"

#include <fstream>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace capo::testing {

/// Of every header; the number is that of the form of the lines.
inline constexpr std::string_view kHeaderBegin = R"({"campaign":1,)";

class LinesFile {
 public:
  [[nodiscard]] static Result<LinesFile, Error> open(const std::string& path,
                                                     std::string_view header);

  /// The lines that were there.
  [[nodiscard]] const Tally& resumed() const { return resumed_; }
  /// With a line break, and handed to the system; or why not.
  [[nodiscard]] std::optional<Error> write(std::string_view line);

 private:
  LinesFile() = default;

  std::string path_;
  FileLock lock_;
  std::ofstream out_;
  Tally resumed_;
};

/// A whole file, as written. What is no such file is refused, with the line that is wrong.
struct ReadLines {
  std::string header;
  Tally tally = {};
};
[[nodiscard]] Result<ReadLines, Error> read_lines(std::istream& in);

}  // namespace capo::testing
