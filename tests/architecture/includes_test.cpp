// The direction of dependencies, walked in the sources: between parts as listed below, between
// folders as the table of docs/architecture.md has it, and between units without a circle. The
// oracle includes only the standard library, headers stay free of heavy libraries, every file
// of capo's that a comment names exists, and no two headers define one name.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = CAPO_SOURCE_DIR;
const std::vector<std::string> kParts{"core", "schedules", "sim",    "optimise", "run",
                                      "gpu",  "cli",       "python", "testing"};

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

// "core/order/schedule.h" -> "core"; empty for what is not capo's.
std::string part_of(const std::string& include) {
  const std::string part = include.substr(0, include.find('/'));
  return std::find(kParts.begin(), kParts.end(), part) == kParts.end() ? "" : part;
}

std::string unit_of(std::string path) {
  return path.substr(0, path.rfind('.'));
}

bool may_include(const std::string& from, const std::string& to) {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"core", {"core"}},
      {"schedules", {"core", "schedules"}},
      {"sim", {"core", "sim"}},
      {"optimise", {"core", "schedules", "sim", "optimise"}},
      {"run", {"core", "run"}},
      {"gpu", {"core", "run", "gpu"}},
      {"cli", {"core", "schedules", "sim", "optimise", "run", "gpu", "cli"}},
      {"python", {"core", "schedules", "sim", "run", "python"}},
      {"testing", {"core", "schedules", "sim", "run", "gpu", "testing"}},
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
      const bool system = std::set<std::string>{"dlfcn.h",
                                                "nccl.h",
                                                "mpi.h",
                                                "fcntl.h",
                                                "poll.h",
                                                "unistd.h",
                                                "signal.h",
                                                "spawn.h",
                                                "locale.h",
                                                "cuda_runtime.h",
                                                "cuda_runtime_api.h",
                                                "cuda.h",
                                                "cuda_bf16.h",
                                                "cuda_fp16.h",
                                                "cuda_fp8.h",
                                                "rapidcheck.h"}
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
      const bool own = include.starts_with("testing/oracle/");
      EXPECT_TRUE(standard || own) << file.path << " includes " << include;
    }
  }
  EXPECT_GT(files, 1U);
}

TEST(Architecture, HeadersOfCoreStayFreeOfHeavyLibraries) {
  for (const SourceFile& file : product_files()) {
    if (file.part != "core" || !file.path.ends_with(".h")) continue;
    for (const std::string& include : file.includes) {
      const bool heavy = include.starts_with("nlohmann/") || include.starts_with("CLI/") ||
                         include.starts_with("boost/") || include.starts_with("fmt/");
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
      const std::string to = unit_of(include);
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

// The table of docs/architecture.md: a folder a line, with the folders that it may include.
using Arrows = std::vector<std::pair<std::string, std::set<std::string>>>;

Arrows allowed_arrows() {
  std::ifstream in(kRoot / "docs/architecture.md");
  Arrows arrows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```arrows";
      continue;
    }
    if (!inside) continue;
    std::istringstream words(line);
    std::string folder;
    words >> folder;
    auto& row = arrows.emplace_back(folder, std::set<std::string>());
    for (std::string word; words >> word;) row.second.insert(word);
  }
  return arrows;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// A line may name only folders of lines above it, so that a table that passes has no circle.
TEST(Architecture, FoldersStandOnFoldersAbove) {
  std::set<std::string> above;
  for (const auto& [folder, includes] : allowed_arrows()) {
    for (const std::string& include : includes)
      EXPECT_TRUE(above.contains(include)) << folder << " -> " << include;
    above.insert(folder);
  }
  EXPECT_GT(above.size(), 20U);
}

TEST(Architecture, FoldersIncludeWhatTheTableAllowsAndAllOfIt) {
  std::map<std::string, std::set<std::string>> found;
  for (const SourceFile& file : product_files()) {
    const std::string from = folder_of(file.path);
    found[from];
    for (const std::string& include : file.includes) {
      if (part_of(include).empty() || folder_of(include) == from) continue;
      found[from].insert(folder_of(include));
    }
  }
  std::map<std::string, std::set<std::string>> table;
  for (const auto& [folder, includes] : allowed_arrows()) table[folder] = includes;
  for (const auto& [folder, includes] : found) {
    ASSERT_TRUE(table.contains(folder)) << "docs/architecture.md has no line for " << folder;
    for (const std::string& include : includes)
      EXPECT_TRUE(table[folder].contains(include))
          << "not allowed: " << folder << " -> " << include;
    for (const std::string& include : table[folder])
      EXPECT_TRUE(includes.contains(include)) << "not used: " << folder << " -> " << include;
    table.erase(folder);
  }
  for (const auto& [folder, includes] : table) ADD_FAILURE() << "no such folder: " << folder;
}

// The third column of the tables of folders names types, and sends a reader to where they are
// declared.
std::vector<std::pair<std::string, std::string>> types_of_the_page() {
  static const std::regex row(R"(^\| `([a-z]+(?:/[a-z]+)*)`[^|]*\|[^|]*\|([^|]*)\|$)");
  static const std::regex name(R"(`(\w+)`)");
  std::vector<std::pair<std::string, std::string>> types;
  std::ifstream in(kRoot / "docs/architecture.md");
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, row)) continue;
    const std::string names = match[2];
    for (auto it = std::sregex_iterator(names.begin(), names.end(), name);
         it != std::sregex_iterator(); ++it) {
      types.emplace_back(match[1], (*it)[1]);
    }
  }
  return types;
}

TEST(Architecture, TypesAreDeclaredWhereThePageHasThem) {
  static const std::regex declared(
      R"(^\s*(?:struct|class|enum class|using) (?:\[\[\w+\]\] )?(\w+)[^;(]*[{=])");
  std::set<std::pair<std::string, std::string>> found;
  for (const SourceFile& file : product_files()) {
    if (!file.path.ends_with(".h")) continue;
    std::ifstream in(kRoot / file.path);
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (std::regex_search(line, match, declared))
        found.emplace(folder_of(file.path), match[1].str());
    }
  }
  const auto types = types_of_the_page();
  EXPECT_GT(types.size(), 150U);
  for (const auto& [folder, type] : types)
    EXPECT_TRUE(found.contains({folder, type})) << folder << " declares no " << type;
}

// A test that a comment names and that does not exist is worth less than none.
// Two classes of one name in one namespace are one class to the linker, which takes the functions
// of either: memory is overwritten, and only where nothing is inlined.
TEST(Architecture, NoTwoHeadersDefineAClassOfOneName) {
  static const std::regex defined(R"(^(namespace|struct|class|enum class) ([\w:]+)[^;]*\{)");
  std::map<std::string, std::string> where;
  for (const SourceFile& file : product_files()) {
    if (!file.path.ends_with(".h")) continue;
    std::ifstream in(kRoot / file.path);
    std::string space;
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, defined)) continue;
      if (match[1] == "namespace") {
        space = match[2];
        continue;
      }
      const auto [first, is_new] = where.emplace(space + "::" + match[2].str(), file.path);
      EXPECT_TRUE(is_new || first->second == file.path)
          << first->first << " is defined in " << first->second << " and in " << file.path;
    }
  }
  EXPECT_GT(where.size(), 300U);
}

TEST(Architecture, FilesThatCommentsNameExist) {
  static const std::regex name(R"(([A-Za-z0-9_]+/)*[A-Za-z0-9_]+\.(h|cpp|cu|cuh)\b)");
  std::set<std::string> known;  // every path, and every end of one
  std::vector<fs::path> files;
  for (const char* top : {"core", "schedules", "sim", "optimise", "run", "gpu", "cli", "python",
                          "testing", "tests", "bench", "fuzz", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      files.push_back(entry.path());
      std::string path = fs::relative(entry.path(), kRoot).string();
      known.insert(path);
      while (path.find('/') != std::string::npos) {
        path.erase(0, path.find('/') + 1);
        known.insert(path);
      }
    }
  }
  for (const fs::path& file : files) {
    std::ifstream in(file);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::size_t comment = line.find("//");
      if (comment == std::string::npos || line.find("http") != std::string::npos) continue;
      for (auto it = std::sregex_iterator(line.begin() + static_cast<std::ptrdiff_t>(comment),
                                          line.end(), name);
           it != std::sregex_iterator(); ++it) {
        EXPECT_TRUE(known.contains(it->str()))
            << fs::relative(file, kRoot).string() << ":" << number << " names " << it->str();
      }
    }
  }
}

}  // namespace
