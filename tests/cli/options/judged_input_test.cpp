// Every command takes its order, its replay and its declarations by the same steps: each file is
// read once, and `check` and `run` judge the same.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::program_under_test;
using testing_support::run_capo;
using testing_support::ScratchFolder;

using Arguments = std::vector<std::string>;

constexpr const char* kModel =
    R"({"schema": 1, "topology": "loop", "plan": "te", "layers": "mlp", "modules": {"mlp": {)"
    R"("kind": "linear",)"
    R"( "flags": {"fuse_wgrad_accumulation": true, "grad_added_to_main_grad": true}}}})";

class JudgedInput : public ::testing::Test {
 protected:
  JudgedInput() {
    folder_.write("model.json", kModel);
    folder_.write("capture.order",
                  "capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
    folder_.write("replay.order",
                  "capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
  }

  [[nodiscard]] Outcome run(const Arguments& arguments, const std::string& input = "") const {
    return run_capo(arguments, {.input = input, .directory = folder_.path()});
  }

  // `arguments` is a shell's command line, in which the shell may substitute processes for files.
  [[nodiscard]] Outcome run_in_bash(const std::string& arguments) const {
    return run_capo({"-c", std::string(program_under_test()) + " " + arguments},
                    {.directory = folder_.path(), .program = "/bin/bash"});
  }

  ScratchFolder folder_;
};

// Counts how often a file is opened from now on. Events that are alike are told once if nobody has
// read the first, so it is told of closing as well, which comes between.
class Opened {
 public:
  explicit Opened(const std::string& file) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(events_, file.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { close(events_); }

  [[nodiscard]] std::ptrdiff_t times() const {
    std::array<inotify_event, 64> events{};  // a file's events have no names behind them
    const auto bytes = read(events_, events.data(), sizeof(events));
    const auto count = std::max<std::ptrdiff_t>(bytes, 0) / std::ptrdiff_t{sizeof(inotify_event)};
    return std::count_if(events.begin(), events.begin() + count,
                         [](const inotify_event& event) { return (event.mask & IN_OPEN) != 0; });
  }

 private:
  int events_;
};

nlohmann::json without_times(const std::string& report) {
  auto json = nlohmann::json::parse(report, nullptr, false);
  json.erase("times");
  return json;
}

TEST_F(JudgedInput, ARunWithAReplayReadsItsModelFromStandardInput) {
  const Arguments order{"run",  "capture.order", "--replay", "replay.order", "--device",
                        "host", "--format",      "json",     "--model"};
  const auto with = [&](const std::string& model, const std::string& input) {
    Arguments arguments = order;
    arguments.push_back(model);
    return run(arguments, input);
  };
  const Outcome from_file = with("model.json", "");
  const Outcome from_input = with("-", kModel);
  EXPECT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(from_input.exit_code, 0) << from_input.err;
  EXPECT_EQ(without_times(from_input.out), without_times(from_file.out));
}

TEST_F(JudgedInput, ARunWithAReplayReadsPipesOnce) {
  const Outcome outcome = run_in_bash(
      "run <(cat capture.order) --form order --replay <(cat replay.order) --model <(cat model.json)"
      " --device host");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(JudgedInput, EveryCommandReadsItsModelOnce) {
  const std::vector<Arguments> commands{{"check", "capture.order", "--replay", "replay.order"},
                                        {"minimise", "capture.order"},
                                        {"graph", "capture.order"},
                                        {"convert", "capture.order", "--to", "csv"},
                                        {"simulate", "capture.order"},
                                        {"compare", "capture.order", "replay.order"}};
  for (const Arguments& command : commands) {
    const auto with = [&](const std::string& model, const std::string& input) {
      Arguments arguments = command;
      arguments.insert(arguments.end(), {"--model", model});
      return run(arguments, input);
    };
    const Outcome from_file = with("model.json", "");
    const Outcome from_input = with("-", kModel);
    EXPECT_EQ(from_file.exit_code, 0) << command[0] << from_file.err;
    EXPECT_EQ(from_input.exit_code, 0) << command[0] << from_input.err;
    EXPECT_EQ(from_input.out, from_file.out) << command[0];
  }
}

TEST_F(JudgedInput, ACheckReadsItsProjectOnce) {
  const std::string project = folder_.path() / "capo.toml";
  folder_.write("capo.toml", "model = \"model.json\"\nformat = \"json\"\n");
  for (const Arguments& files : {Arguments{"capture.order"}, {"capture.order", "replay.order"}}) {
    Arguments check{"check"};
    check.insert(check.end(), files.begin(), files.end());
    const Opened opened(project);
    const Outcome outcome = run(check);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\"verdict\""), std::string::npos) << outcome.out;
    EXPECT_EQ(opened.times(), 1);
  }
}

// Under every topology `run` runs the replays that `check` accepts, and turns the others down
// with the same exit code.
// The mistake; the next line names the command whose help to read.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

TEST_F(JudgedInput, CheckAndRunAgreeOnAReplayUnderADeclaredTopology) {
  folder_.write("more.order",
                "capo 1\nrank 0: F1.0 F1.1 F2.0 B2.0 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
  folder_.write("table.csv", "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  folder_.write("swapped.csv", "1F0,1B0,1F1,1B1\n0F0,0B0,0F1,0B1\n");
  folder_.write("stages.json", R"({"schema": 1, "stages": [[0], [1]]})");
  folder_.write("three.json", R"({"schema": 1, "stages": [[0], [1], [2]]})");
  std::vector<int> codes(4);
  for (const char* replay : {"replay.order", "more.order", "table.csv", "swapped.csv"}) {
    for (const char* topology : {"chain", "loop", "v", "stages.json", "three.json"}) {
      const auto with = [&](Arguments arguments) {
        arguments.insert(arguments.end(), {"capture.order", "--replay", replay, "--topology",
                                           topology, "--plan", "te", "--modules", "linear"});
        return run(arguments);
      };
      const Outcome checked = with({"check"});
      const Outcome ran = with({"run", "--device", "host"});
      EXPECT_EQ(ran.exit_code, checked.exit_code) << replay << " " << topology << "\n"
                                                  << ran.err << checked.out;
      if (checked.exit_code == 2) {
        EXPECT_EQ(first_line(ran.err), first_line(checked.err));
      }
      ASSERT_LT(checked.exit_code, 4);
      ++codes[static_cast<std::size_t>(checked.exit_code)];
    }
  }
  EXPECT_GT(codes[0], 0);
  EXPECT_GT(codes[1], 0);
  EXPECT_GT(codes[2], 0);
}

TEST_F(JudgedInput, AReplayWithAnEntryThatIsNoActionIsJudgedByItself) {
  folder_.write("capture.te", "[1, -1]");
  folder_.write("odd.te", "[1, -1, 0.7]");
  const Outcome checked = run({"check", "capture.te", "--replay", "odd.te"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_NE(checked.out.find("error[S05]"), std::string::npos) << checked.out;
  const Outcome ran = run({"run", "capture.te", "--replay", "odd.te", "--device", "host"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.err.find("error: odd.te was not run: rejected for S05"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace capo
