#include "tests/support/corpus_orders.h"

#include "tests/support/file_text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string_view>

namespace capo::testing_support {

namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = CAPO_SOURCE_DIR "/tests/corpus";
const fs::path kExamples = CAPO_SOURCE_DIR "/examples";

bool is_order(const fs::path& path) {
  constexpr std::array<std::string_view, 4> kForms{".te", ".order", ".csv", ".json"};
  constexpr std::array<std::string_view, 2> kOthers{"case.json", "model.json"};
  return std::count(kForms.begin(), kForms.end(), path.extension()) > 0 &&
         std::count(kOthers.begin(), kOthers.end(), path.filename()) == 0;
}

std::vector<std::string> words_of(const fs::path& path) {
  std::istringstream words(read_file(path));
  return {std::istream_iterator<std::string>(words), {}};
}

// The flags that lie beside an order: of its own, or of all orders of its folder.
std::vector<std::string> flags_beside(const fs::path& file) {
  const fs::path own = fs::path(file).replace_extension(".args");
  return words_of(fs::exists(own) ? own : file.parent_path() / "args");
}

std::vector<fs::path> files_under(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The files that a case of the command line begins with.
void add_files_of_case(const fs::path& file, const ScratchFolder& folder,
                       std::vector<CorpusOrder>& orders) {
  const std::string begin = "== ";
  const std::vector<std::string> lines = lines_of(read_file(file));
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    if (!line->starts_with(begin)) continue;
    const std::string name = line->substr(begin.size());
    const auto end = std::find(line, lines.end(), "==");
    if (end == lines.end()) return;
    std::string text;
    while (++line != end) text += *line + "\n";
    if (!is_order(name)) continue;
    orders.push_back({.file = folder.write(file.stem().string() + "-" + name, text), .flags = {}});
  }
}

void add_lines_of_batch(const fs::path& file, const ScratchFolder& folder,
                        std::vector<CorpusOrder>& orders) {
  int number = 0;
  for (const std::string& line : lines_of(read_file(file))) {
    const std::string name = file.stem().string() + "-" + std::to_string(++number) + ".json";
    orders.push_back({.file = folder.write(name, line), .flags = {}});
  }
}

}  // namespace

std::string CorpusOrder::form() const {
  const std::string text = read_file(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return "json";
  return file.extension().string().substr(1);
}

Outcome CorpusOrder::check(const std::vector<std::string>& more,
                           const std::optional<std::string>& text) const {
  std::vector<std::string> arguments{"check"};
  if (text) {
    arguments.insert(arguments.end(), {"-", "--form", form()});
  } else {
    arguments.push_back(file.filename());
  }
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_capo(arguments, {.input = text.value_or(""), .directory = file.parent_path()});
}

std::vector<CorpusOrder> corpus_orders(const ScratchFolder& folder) {
  std::vector<CorpusOrder> orders;
  for (const fs::path& root : {kCorpus, kExamples}) {
    for (const fs::path& file : files_under(root)) {
      if (is_order(file)) orders.push_back({.file = file, .flags = flags_beside(file)});
      if (file.extension() == ".txt") add_files_of_case(file, folder, orders);
      if (file.extension() == ".jsonl") add_lines_of_batch(file, folder, orders);
    }
  }
  return orders;
}

}  // namespace capo::testing_support
