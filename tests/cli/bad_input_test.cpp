// Bad inputs of every class against every reader, in the real program: each gets one clear report
// and one of the documented exit codes, none is accepted, none crashes or hangs.
//
// tests/corpus/input/<reader>/<class>-<what>.<ext> is the corpus; nesting a million deep is
// generated here. Some inputs are in the language and break a rule, so exit code 1 is as good as 3
// and 4. What is in tests/corpus/input/line-ends is no bad input: CRLF ends a line as LF does, so
// the twins there get the same report.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

namespace capo {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using testing_support::lines_of;
using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;
using testing_support::RunOptions;

const fs::path kCorpus = CAPO_SOURCE_DIR "/tests/corpus/input";
const std::vector<std::string> kReaders{"te", "order", "csv", "json"};
const std::vector<std::string> kClasses{"truncated", "empty",       "nul",           "bom",
                                        "crlf",      "huge-number", "negative-zero", "nan",
                                        "duplicate", "surrogate",   "garbage"};

// The inputs are small, so a report beyond this repeats the input or itself.
constexpr std::size_t kLongestReport = 8192;

// Names relative to the corpus, sorted.
std::vector<std::string> inputs_of(const std::string& reader, const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCorpus / reader)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kind + "-")) names.push_back(reader + "/" + name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

// Raw control characters reach the terminal: ESC colours it, BEL rings, U+009B is ESC [ in one.
std::size_t control_characters(const std::string& text) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f || c1) ++found;
  }
  return found;
}

struct Place {
  std::string source;
  std::size_t line = 0;  // 0: the input as a whole
  std::size_t column = 0;
};

// Takes ":12" off the end; 0 if there is none.
std::size_t take_number(std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool digits = colon != std::string::npos && colon + 1 < text.size() &&
                      text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!digits) return 0;
  const std::size_t number = std::stoul(text.substr(colon + 1));
  text.resize(colon);
  return number;
}

// "  --> plan.te:1:9" or, where the input as a whole is at fault, "  --> plan.te".
Place place_in(const std::string& line) {
  Place place;
  const std::size_t arrow = line.find("--> ");
  if (arrow == std::string::npos) return place;
  place.source = line.substr(arrow + 4);
  place.column = take_number(place.source);
  place.line = take_number(place.source);
  return place;
}

bool lies_within(const Place& place, const std::string& text) {
  if (place.line == 0) return true;
  std::vector<std::string> lines = lines_of(text);
  lines.emplace_back();  // the end of the input may be a line of its own
  return place.line <= lines.size() && place.column <= lines[place.line - 1].size() + 1;
}

void expect_readable(const std::string& report) {
  EXPECT_TRUE(is_utf8(report)) << "the report is not UTF-8:\n" << report;
  EXPECT_EQ(control_characters(report), 0U) << "the report holds raw control characters:\n"
                                            << report;
  EXPECT_LE(report.size(), kLongestReport) << report.substr(0, 500);
}

// The report of an input that got no verdict: one finding, its place, and the words "no verdict".
Place expect_refusal(const Outcome& outcome, const std::string& name) {
  const std::string& report = outcome.out.empty() ? outcome.err : outcome.out;
  const std::vector<std::string> lines = lines_of(report);
  const std::string rule = outcome.exit_code == 4 ? "error[I02]: " : "error[I01]: ";
  const auto findings = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("error") || line.starts_with("warning");
  });
  EXPECT_EQ(findings, 1) << report;
  if (lines.size() < 2) {
    ADD_FAILURE() << "the report is too short:\n" << report;
    return {};
  }
  EXPECT_TRUE(lines[0].starts_with(rule)) << report;
  EXPECT_GT(lines[0].size(), rule.size() + 3) << "the message says nothing:\n" << report;
  EXPECT_EQ(lines.back(), "no verdict") << report;
  Place place = place_in(lines[1]);
  EXPECT_EQ(place.source, name) << report;
  return place;
}

void expect_rejection(const Outcome& outcome) {
  EXPECT_TRUE(outcome.out.starts_with("error[")) << outcome.out;
  EXPECT_FALSE(outcome.out.starts_with("error[I0")) << outcome.out;
  EXPECT_NE(outcome.out.find("\nrejected: "), std::string::npos) << outcome.out;
}

void expect_same_in_json(const Outcome& outcome, const Outcome& text, const Place& place) {
  EXPECT_EQ(outcome.exit_code, text.exit_code);
  EXPECT_EQ(outcome.err, "");
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.out;
  EXPECT_EQ(report.at("schema"), 1);
  EXPECT_EQ(report.at("verdict"), text.exit_code == 1 ? "rejected" : "no-verdict");
  const json& diagnostics = report.at("diagnostics");
  ASSERT_FALSE(diagnostics.empty());
  if (text.exit_code == 1) return;
  EXPECT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics[0].at("rule"), text.exit_code == 4 ? "I02" : "I01");
  EXPECT_EQ(diagnostics[0].at("family"), "input");
  if (place.line == 0) return;
  ASSERT_FALSE(diagnostics[0].at("spans").empty());
  EXPECT_EQ(diagnostics[0].at("spans")[0].at("line"), place.line);
  EXPECT_EQ(diagnostics[0].at("spans")[0].at("column"), place.column);
}

// `arguments` name the input, which is `text` and goes by `name` in the report.
void expect_one_clear_report(std::vector<std::string> arguments, const std::string& name,
                             const std::string& text, const RunOptions& options) {
  const Outcome outcome = run_capo(arguments, options);
  ASSERT_TRUE(outcome.exit_code == 1 || outcome.exit_code == 3 || outcome.exit_code == 4)
      << "exit code " << outcome.exit_code << "\n"
      << outcome.out.substr(0, kLongestReport) << outcome.err;
  EXPECT_NE(outcome.out.empty(), outcome.err.empty())
      << outcome.out << "--- and on standard error\n"
      << outcome.err;
  expect_readable(outcome.out + outcome.err);

  Place place;
  if (outcome.exit_code == 1) {
    expect_rejection(outcome);
  } else {
    place = expect_refusal(outcome, name);
    EXPECT_TRUE(lies_within(place, text)) << outcome.out;
  }
  arguments.insert(arguments.end(), {"--format", "json"});
  expect_same_in_json(run_capo(arguments, options), outcome, place);
}

std::string test_name(const testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// --- the corpus ---------------------------------------------------------------------------------

class BadInput : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(BadInput, GetsOneClearReport) {
  const auto& [reader, kind] = GetParam();
  const std::vector<std::string> names = inputs_of(reader, kind);
  std::printf("%s/%s: %zu inputs\n", reader.c_str(), kind.c_str(), names.size());
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_one_clear_report({"check", name, "--form", reader}, name, read_file(kCorpus / name),
                            {.directory = kCorpus.string()});
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, BadInput,
                         testing::Combine(testing::ValuesIn(kReaders), testing::ValuesIn(kClasses)),
                         test_name);

TEST(BadInputCorpus, HoldsThreeHundredInputsAndNothingElse) {
  std::size_t inputs = 0;
  for (const std::string& reader : kReaders) {
    std::size_t of_reader = 0;
    for (const std::string& kind : kClasses) of_reader += inputs_of(reader, kind).size();
    const auto files =
        std::distance(fs::directory_iterator(kCorpus / reader), fs::directory_iterator{});
    EXPECT_EQ(of_reader, static_cast<std::size_t>(files)) << reader << " holds a file of no class";
    std::printf("%s: %zu inputs\n", reader.c_str(), of_reader);
    inputs += of_reader;
  }
  std::printf("all readers: %zu inputs\n", inputs);
  EXPECT_GE(inputs, 300U);
}

// --- lines of a batch ---------------------------------------------------------------------------

std::size_t count_lines(const std::string& text) {
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return text.empty() || text.ends_with('\n') ? ends : ends + 1;
}

// Blank lines at the end of a file are none.
std::string without_blank_end(std::string text) {
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

TEST(BadBatch, EveryBadLineIsAResultOfItsOwn) {
  for (const std::string& kind : kClasses) {
    const std::vector<std::string> names = inputs_of("batch", kind);
    std::printf("batch/%s: %zu inputs\n", kind.c_str(), names.size());
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const Outcome outcome = run_capo({"check", "--batch", name}, {.directory = kCorpus.string()});
      EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 3 || outcome.exit_code == 4)
          << outcome.exit_code;
      EXPECT_EQ(outcome.err, "");
      expect_readable(outcome.out);
      const std::vector<std::string> results = lines_of(outcome.out);
      EXPECT_EQ(results.size(), count_lines(without_blank_end(read_file(kCorpus / name))));
      for (const std::string& line : results) {
        const json result = json::parse(line, nullptr, false);
        ASSERT_FALSE(result.is_discarded()) << line;
        EXPECT_NE(result.at("verdict"), "accepted") << line;
        EXPECT_FALSE(result.at("diagnostics").empty()) << line;
        if (result.at("verdict") == "no-verdict") {
          EXPECT_NE(outcome.exit_code, 0) << line;
        }
      }
    }
  }
}

// --- line ends ----------------------------------------------------------------------------------

TEST(LineEnds, CrlfGetsTheReportOfLf) {
  const fs::path folder = kCorpus / "line-ends";
  std::size_t pairs = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string crlf = entry.path().filename().string();
    const std::size_t mark = crlf.find("-crlf.");
    if (mark == std::string::npos) continue;
    SCOPED_TRACE(crlf);
    const std::string lf = crlf.substr(0, mark) + "-lf" + crlf.substr(mark + 5);
    const std::string verdict = crlf.substr(0, crlf.find('-'));
    ASSERT_NE(read_file(folder / crlf).find("\r\n"), std::string::npos)
        << "something has converted the corpus";
    ASSERT_EQ(read_file(folder / lf).find('\r'), std::string::npos);

    const RunOptions options{.directory = folder.string()};
    const Outcome of_lf = run_capo({"check", lf}, options);
    const Outcome of_crlf = run_capo({"check", crlf}, options);
    EXPECT_EQ(of_crlf.exit_code, of_lf.exit_code);
    EXPECT_EQ(std::regex_replace(of_crlf.out, std::regex("-crlf\\."), "-lf."), of_lf.out);
    EXPECT_EQ(of_crlf.err, "");
    EXPECT_EQ(of_lf.exit_code, verdict == "accepted"   ? 0
                               : verdict == "rejected" ? 1
                                                       : 3)
        << of_lf.out;
    ++pairs;
  }
  EXPECT_GE(pairs, 15U);
}

// --- places -------------------------------------------------------------------------------------

struct Misplaced {
  std::string reader;
  std::string text;
  std::size_t line;
  std::size_t column;
};

// The place is where the mistake begins.
TEST(Place, IsWhereTheMistakeBegins) {
  const std::vector<Misplaced> inputs{
      {"te", "[1, x, -1]", 1, 5},
      {"te", "[1,\n -1,\n 1.5.5]", 3, 2},
      {"te", "1 -1(", 1, 5},
      {"te", "# [\n[1 -1", 2, 1},
      {"te", "[1, -1]\n\n2", 3, 1},
      {"order", "capo 1\nrank 0: F1 X1\n", 2, 12},
      {"order", "capo 1\nrank 0: F1 B1\n  F1 X1\n", 3, 6},
      {"order", "capo 1\nchunks x\nrank 0: F1 B1\n", 2, 8},
      {"order", "capo 1\nrank 0: (F1.0\n", 2, 9},
      {"order", "capo 1\nchunks 1\ndelayed 1,2\nrank 0: F1 B1\n", 3, 11},
      {"csv", "0F0,0B0\n1F0,what\n", 2, 5},
      {"csv", "0F0,\"0B0", 1, 5},
      {"csv", "0F0,\"a\"\"b\"", 1, 5},
      {"json", R"({"order":[1,1e400,-1]})", 1, 13},
      {"json", R"({"order":[1,-1],"order":[]})", 1, 17},
      {"json", R"({"order":[1,-1],"microbatches":0})", 1, 32},
      {"json", "{\n\"order\":\n[1,\n\"x\"]}", 4, 1},
      {"json", R"({"csv":["0F0,0B0","1F0,what"]})", 1, 24},
      {"json", R"({"ranks":[{"order":["F1",["B1","X1"]]}]})", 1, 32},
  };
  for (const auto& [reader, text, line, column] : inputs) {
    SCOPED_TRACE(reader + ": " + text);
    const Outcome outcome = run_capo({"check", "-", "--form", reader}, {.input = text});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
    const Place place = expect_refusal(outcome, "<stdin>");
    EXPECT_EQ(place.line, line) << outcome.out;
    EXPECT_EQ(place.column, column) << outcome.out;
  }
}

// What stands before the mistake is no part of it.
TEST(Place, AMessageQuotesNothingButTheMistake) {
  for (const std::string text :
       {R"({"order":[1,nan]})", R"({"need_wgrad":[True],"order":[1,-1]})"}) {
    const Outcome outcome = run_capo({"check", "-", "--form", "json"}, {.input = text});
    const std::string message = outcome.out.substr(0, outcome.out.find('\n'));
    EXPECT_EQ(message.find("1,n"), std::string::npos) << message;
    EXPECT_EQ(message.find("need_wgrad"), std::string::npos) << message;
  }
}

// --- nesting ------------------------------------------------------------------------------------

std::string repeated(const std::string& piece, std::size_t times = 1'000'000) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

struct Nested {
  std::string reader;
  std::vector<std::string> texts;
};

std::vector<Nested> nested_texts() {
  return {
      {"te",
       {repeated("["), repeated("("), repeated("[("), "[1" + repeated("("),
        "[" + repeated("1,[") + repeated("]"), repeated("{")}},
      {"order",
       {"capo 1\nrank 0: " + repeated("("), "capo 1\nrank 0: " + repeated("(F1.0 "),
        "capo 1\nlayers " + repeated("["), "capo 1\nrank 0: F1 B1" + repeated(")"), repeated("["),
        "capo 1\nrank 0: " + repeated("{")}},
      {"csv",
       {repeated("("), repeated("(0F0;"), repeated("(") + "0F0" + repeated(")"), repeated("["),
        repeated("\""), "0F0," + repeated("(0F0;0B0)", 100'000)}},
      {"json",
       {repeated("["), repeated("{\"a\":"), "{\"order\":" + repeated("[") + repeated("]") + "}",
        repeated("[{\"a\":"), "{\"order\":[1,-1],\"note\":" + repeated("[") + repeated("]") + "}",
        "{\"ranks\":[{\"order\":" + repeated("[") + "\"F1\"" + repeated("]") + "}]}"}},
  };
}

TEST(DeepNesting, AMillionDeepGetsOneClearReport) {
  for (const Nested& nested : nested_texts()) {
    std::printf("%s/nested: %zu inputs\n", nested.reader.c_str(), nested.texts.size());
    EXPECT_GE(nested.texts.size(), 5U);
    for (const std::string& text : nested.texts) {
      SCOPED_TRACE(nested.reader + ": " + text.substr(0, 40) + "...");
      expect_one_clear_report({"check", "-", "--form", nested.reader}, "<stdin>", text,
                              {.input = text});
    }
  }
}

TEST(DeepNesting, ALineOfABatchIsRefusedAndTheNextIsRead) {
  const Outcome outcome =
      run_capo({"check", "--batch", "-"}, {.input = repeated("[") + "\n{\"order\":[1,-1]}\n"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  const std::vector<std::string> results = lines_of(outcome.out);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(json::parse(results[0]).at("verdict"), "no-verdict");
  EXPECT_EQ(json::parse(results[1]).at("verdict"), "accepted");
}

// --- long pieces --------------------------------------------------------------------------------

// A report quotes the input; what it quotes is cut, and never within a character.
TEST(LongPieces, AReportStaysReadable) {
  const std::vector<std::pair<std::string, std::string>> inputs{
      {"te", "[1, " + std::string(100'000, 'x') + "]"},
      {"te", "[1, 1." + std::string(100'000, '0') + "]"},
      {"te", "[1, " + std::string(100'000, '9') + "]"},
      {"te", "[1, " + repeated("é", 200) + "]"},
      {"te", "[1, x" + repeated("é", 200) + "]"},
      {"te", "[1 " + repeated("(é)", 200) + " x]"},
      {"te", "[1 " + repeated("(aé)", 201) + " x" + repeated(" (é)", 201) + "]"},
      {"order", "capo 1\nrank 0: " + std::string(100'000, 'x')},
      {"order", "capo 1\n" + repeated("順", 1000)},
      {"order", "capo 1\nmicrobatches " + std::string(100'000, '9') + "\nrank 0: F1 B1"},
      {"csv", std::string(100'000, 'x')},
      {"csv", "0F0" + std::string(100'000, 'x')},
      {"csv", "(0F0;0B0)" + std::string(100'000, 'x')},
      {"csv", "0F0," + repeated("é", 1000)},
      {"json", "{\"order\":\"" + std::string(100'000, 'a')},
      {"json", "{\"" + std::string(100'000, 'a') + "\":1}"},
      {"json", "{\"order\":[" + std::string(100'000, '9') + "]}"},
      {"json", "{\"ranks\":[{\"order\":[\"" + std::string(100'000, 'x') + "\"]}]}"},
      {"json", "{\"csv\":[\"" + std::string(100'000, 'x') + "\"]}"},
      {"json", "{\"" + repeated("é", 1000) + "\":1,\"order\":[1,-1]}"},
  };
  for (const auto& [reader, text] : inputs) {
    SCOPED_TRACE(reader + ": " + text.substr(0, 40) + "...");
    expect_one_clear_report({"check", "-", "--form", reader}, "<stdin>", text, {.input = text});
  }
}

TEST(LongPieces, AQuotedWordKeepsItsBeginning) {
  const Outcome outcome =
      run_capo({"check", "-", "--form", "te"}, {.input = "[1, " + repeated("é", 100) + "]"});
  EXPECT_NE(outcome.out.find("`é"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace capo
