// The capo.toml that holds for an order: the nearest from the order's folder upwards; for an order
// that is no file, from the working directory upwards.
//
// A declaration in it holds where neither a flag nor a model file says otherwise. A command asks
// more than once, and each file is read once, so that all that it declares is of one moment. Tested
// by tests/cli/options/judged_input_test.cpp and tests/corpus/cli/suppress/.

#pragma once

#include "cli/options/command_error.h"
#include "core/order/input.h"
#include "core/project/project_file.h"
#include "core/text/limits.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace capo::cli {

class ProjectFiles {
 public:
  /// The nearest capo.toml; a project that declares nothing stands for none. `file` may be empty or
  /// `-`. Its model has the path that it is read by.
  [[nodiscard]] Result<Project, CommandError> project_of(const std::string& file,
                                                         const Limits& limits);

  /// The suppressions of the nearest capo.toml and of the text itself that speak of an order of
  /// this file.
  [[nodiscard]] Result<std::vector<Suppression>, CommandError> suppressions_of(
      const Input& input, const std::string& file, const Limits& limits);

 private:
  struct Found {
    Project project;
    std::filesystem::path folder;
  };

  [[nodiscard]] Result<Found, CommandError> found_for(const std::string& file,
                                                      const Limits& limits);

  std::map<std::filesystem::path, Found> read_;  // by the path of the capo.toml
};

}  // namespace capo::cli
