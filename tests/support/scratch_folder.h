// A folder of one test's own, gone at its end. Tests run as processes beside each other, so a name
// that two of them share is a race: one removes what the other reads.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace capo::testing_support {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Writes a file here, byte for byte; returns its path.
  std::string write(const std::string& name, std::string_view text) const;
  /// The bytes of a file here; empty where there is none.
  [[nodiscard]] std::string read(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace capo::testing_support
