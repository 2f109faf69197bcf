// The direction of dependencies, walked in the sources: core <- sim <- cli, core <- run <- gpu <-
// cli, sim a stranger to run and gpu, the product never includes testing/, the oracle includes only
// the standard library, no unit includes itself in a circle, and headers stay free of heavy
// libraries.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = CAPO_SOURCE_DIR;
const std::vector<std::string> kParts{"core", "sim", "run", "gpu", "cli", "testing"};

struct SourceFile {
  std::string path;  // relative to the root
  std::string part;
  std::vector<std::string> includes;  // as written between the brackets or quotes
};

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

SourceFile read(const fs::path& path, const std::string& part) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  SourceFile file{.path = fs::relative(path, kRoot).string(), .part = part, .includes = {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, include)) file.includes.push_back(match[1]);
  }
  return file;
}

std::vector<SourceFile> product_files() {
  std::vector<SourceFile> files;
  for (const std::string& part : kParts) {
    if (!fs::exists(kRoot / part)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / part)) {
      if (entry.is_regular_file() && is_source(entry.path()))
        files.push_back(read(entry.path(), part));
    }
  }
  return files;
}

// "capo/core/order/schedule.h" -> "core"; empty for what is not capo's.
std::string part_of(const std::string& include) {
  if (!include.starts_with("capo/")) return "";
  return include.substr(5, include.find('/', 5) - 5);
}

std::string unit_of(std::string path) {
  return path.substr(0, path.rfind('.'));
}

bool may_include(const std::string& from, const std::string& to) {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"core", {"core"}},
      {"sim", {"core", "sim"}},
      {"run", {"core", "run"}},
      {"gpu", {"core", "run", "gpu"}},
      {"cli", {"core", "sim", "run", "gpu", "cli"}},
      {"testing", {"core", "sim", "run", "gpu", "testing"}},
  };
  return allowed.at(from).contains(to);
}

TEST(Architecture, PartsIncludeOnlyWhatTheyStandOn) {
  for (const SourceFile& file : product_files()) {
    for (const std::string& include : file.includes) {
      const std::string to = part_of(include);
      if (to.empty()) continue;
      EXPECT_TRUE(may_include(file.part, to)) << file.path << " includes " << include;
    }
  }
}

TEST(Architecture, OwnHeadersAreIncludedByTheirFullName) {
  for (const SourceFile& file : product_files()) {
    for (const std::string& include : file.includes) {
      const bool standard = include.find('.') == std::string::npos;
      const bool library = include.find('/') != std::string::npos;
      const bool system =
          std::set<std::string>{"fcntl.h",     "poll.h",         "unistd.h",           "signal.h",
                                "locale.h",    "cuda_runtime.h", "cuda_runtime_api.h", "cuda.h",
                                "cuda_bf16.h", "cuda_fp16.h",    "rapidcheck.h"}
              .contains(include);
      EXPECT_TRUE(standard || library || system) << file.path << " includes " << include;
    }
  }
}

TEST(Architecture, OracleIncludesOnlyTheStandardLibrary) {
  std::size_t files = 0;
  for (const SourceFile& file : product_files()) {
    if (!file.path.starts_with("testing/oracle/")) continue;
    ++files;
    for (const std::string& include : file.includes) {
      const bool standard = include.find('.') == std::string::npos;
      const bool own = include.starts_with("capo/testing/oracle/");
      EXPECT_TRUE(standard || own) << file.path << " includes " << include;
    }
  }
  EXPECT_GT(files, 1U);
}

TEST(Architecture, HeadersOfCoreStayFreeOfHeavyLibraries) {
  for (const SourceFile& file : product_files()) {
    if (file.part != "core" || !file.path.ends_with(".h")) continue;
    for (const std::string& include : file.includes) {
      // Internal to rules/: templates of two rule families that print.
      const bool internal =
          file.path == "core/rules/odd_entry.h" || file.path == "core/rules/cell_fault.h";
      // Boost.Graph is what the task graph is made of: whoever includes this asks for it.
      const bool opted = file.path == "core/graph/task_graph.h";
      const bool heavy = include.starts_with("nlohmann/") || include.starts_with("CLI/") ||
                         (include.starts_with("boost/") && !opted) ||
                         (include.starts_with("fmt/") && !internal);
      EXPECT_FALSE(heavy) << file.path << " includes " << include;
    }
  }
}

TEST(Architecture, NoUnitIncludesItselfInACircle) {
  std::map<std::string, std::set<std::string>> uses;
  for (const SourceFile& file : product_files()) {
    const std::string from = unit_of(file.path);
    for (const std::string& include : file.includes) {
      if (part_of(include).empty()) continue;
      const std::string to = unit_of(include.substr(5));
      if (to != from) uses[from].insert(to);
    }
  }
  std::map<std::string, int> state;  // 0 unseen, 1 on the path, 2 done
  std::vector<std::string> path;
  const std::function<void(const std::string&)> visit = [&](const std::string& unit) {
    state[unit] = 1;
    path.push_back(unit);
    for (const std::string& next : uses[unit]) {
      if (state[next] == 1) {
        std::string circle;
        for (auto it = std::find(path.begin(), path.end(), next); it != path.end(); ++it)
          circle += *it + " -> ";
        ADD_FAILURE() << "circle: " << circle << next;
      } else if (state[next] == 0) {
        visit(next);
      }
    }
    path.pop_back();
    state[unit] = 2;
  };
  std::vector<std::string> units;
  for (const auto& [unit, used] : uses) units.push_back(unit);
  for (const std::string& unit : units) {
    if (state[unit] == 0) visit(unit);
  }
  EXPECT_GT(units.size(), 50U);
}

}  // namespace
