// The file of a campaign's lines: a header, then a line an order, whole or not there.
//
// Opening it reads what an earlier run left. Half a line that a kill left is cut off; so is a last
// line that disagrees, since it is to be judged again. Lines of another campaign, or lines that are
// none, are refused and stay as they are. Without a path nothing is read or written. Tested by
// tests/testing/truth/campaign_test.cpp.

#pragma once

#include <capo/core/base/error.h>
#include <capo/core/base/result.h>
#include <capo/testing/truth/tally.h>

#include <fstream>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace capo::testing {

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
  std::ofstream out_;
  Tally resumed_;
};

/// A whole file, as written.
struct ReadLines {
  std::string header;
  Tally tally;
};
[[nodiscard]] Result<ReadLines, Error> read_lines(std::istream& in);

}  // namespace capo::testing
