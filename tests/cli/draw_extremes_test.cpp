// Pictures of what is at the edge of what there is, in every form: nothing may break or mislead.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

struct Extreme {
  std::string name;
  std::string text;   // of the order; empty: it is generated
  std::string flags;  // split at blanks
  std::size_t actions = 0;
  std::string says;  // in the pictures that have words
};

void PrintTo(const Extreme& extreme, std::ostream* out) {
  *out << extreme.name;
}

std::vector<Extreme> extremes() {
  const std::string pair =
      "capo 1\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 F1.1 B1.0 B1.1\n";
  return {
      {"AnEmptySchedule", "[]", "", 0, ""},
      {"OneTask", "0F0\n", "", 1, "F0"},
      {"ARankThatDoesNothing", "capo 1\nranks 2\nrank 0: F1.0 B1.0\nrank 1:\n", "", 2, "rank 1"},
      {"TasksWithoutALength", pair, "--cost f=0,b=0,w=0,comm=0", 8, "F0"},
      {"OneTaskWithoutALength", pair, "--cost r0:f=0", 8, "F0"},
      {"TimesOfANanosecond", pair, "--cost f=1e-9,b=1e-9,w=1e-9,comm=1e-10", 8, "F0"},
      {"TimesOfThousandSeconds", pair, "--cost f=1e9,b=1e9,w=1e9,comm=1e8", 8, "F0"},
      {"TimesOfBothSizes", pair, "--cost f=1e9,b=1e-9,w=1e-9,comm=1e-9", 8, "F0"},
      {"ManyRanks", "", "--max-tasks 100000 --cost comm=0.1", 8192, "rank 4095"},
  };
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Whether a text has a number that is none, as a word of its own.
bool has_no_number(const std::string& text) {
  for (const std::string_view word : {"nan", "inf", "-nan", "-inf", "NaN", "Infinity"}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const auto letter = [&](std::size_t place) {
        return place < text.size() && std::isalnum(static_cast<unsigned char>(text[place])) != 0;
      };
      if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
    }
  }
  return false;
}

class DrawExtremes : public ::testing::TestWithParam<Extreme> {
 protected:
  void SetUp() override {
    if (!GetParam().text.empty()) {
      folder_.write("order", GetParam().text);
      return;
    }
    const Outcome made =
        run_capo({"generate", "1f1b", "--ranks", "4096", "--microbatches", "1", "-o", "order"},
                 {.directory = folder_.path()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  // The picture in a format, which is written whether or not the order is accepted.
  [[nodiscard]] std::string drawn(const std::string& format) const {
    std::vector<std::string> arguments{"draw", "order", "-o", "out." + format};
    std::istringstream in(GetParam().flags);
    for (std::string word; in >> word;) arguments.push_back(word);
    const Outcome outcome = run_capo(arguments, {.directory = folder_.path()});
    EXPECT_LE(outcome.exit_code, 1) << format << ": " << outcome.err;
    return folder_.read("out." + format);
  }

  ScratchFolder folder_;
};

TEST_P(DrawExtremes, AsSvg) {
  for (const char* flag : {"", " --paper", " --fold"}) {
    std::vector<std::string> arguments{"draw", "order", "-o", "out.svg"};
    std::istringstream in(GetParam().flags + flag);
    for (std::string word; in >> word;) arguments.push_back(word);
    const Outcome outcome = run_capo(arguments, {.directory = folder_.path()});
    EXPECT_LE(outcome.exit_code, 1) << flag << ": " << outcome.err;
    const std::string text = folder_.read("out.svg");
    EXPECT_EQ(count(text, "<g class=\"task "), GetParam().actions) << flag;
    EXPECT_EQ(count(text, "class=\"verdict\""), 1U) << flag;
    EXPECT_TRUE(holds(text, GetParam().says)) << flag;
    EXPECT_FALSE(has_no_number(text)) << flag;
    EXPECT_TRUE(text.ends_with("</svg>\n")) << flag;
  }
}

TEST_P(DrawExtremes, AsPdf) {
  if (std::system("command -v rsvg-convert >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "rsvg-convert is not installed";
  }
  EXPECT_TRUE(drawn("pdf").starts_with("%PDF-"));
}

TEST_P(DrawExtremes, AsText) {
  const std::string text = drawn("txt");
  EXPECT_TRUE(holds(text, "accepted") || holds(text, "rejected") || holds(text, "no verdict"))
      << text.substr(0, 400);
  EXPECT_FALSE(has_no_number(text)) << text.substr(0, 400);
}

TEST_P(DrawExtremes, AsTraces) {
  const std::string trace = drawn("json");
  EXPECT_TRUE(holds(trace, "\"verdict\""));
  EXPECT_FALSE(has_no_number(trace));
  EXPECT_GE(count(trace, "\"ph\":\"X\"") + count(trace, "\"ph\": \"X\""), GetParam().actions);
  EXPECT_FALSE(drawn("pftrace").empty());
}

TEST_P(DrawExtremes, ATraceIsDrawnAgainAsItWas) {
  (void)drawn("json");
  const Outcome outcome = run_capo({"draw", "out.json", "-o", "again.svg", "--max-tasks", "100000"},
                                   {.directory = folder_.path()});
  EXPECT_LE(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(count(folder_.read("again.svg"), "<g class=\"task "), GetParam().actions);
}

TEST_P(DrawExtremes, AsPage) {
  const std::string page = drawn("html");
  EXPECT_EQ(count(page, "<p class=\"verdict"), 1U);
  EXPECT_FALSE(holds(page, "null,null")) << "JSON has no other word for a number that is none";
}

TEST_P(DrawExtremes, AsGraph) {
  const Outcome outcome = run_capo({"graph", "order", "-o", "out.dot", "--max-nodes", "100000"},
                                   {.directory = folder_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string text = folder_.read("out.dot");
  EXPECT_GE(count(text, "tooltip="), GetParam().actions);
  EXPECT_FALSE(has_no_number(text));
}

INSTANTIATE_TEST_SUITE_P(Draw, DrawExtremes, testing::ValuesIn(extremes()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace capo
