// The scenarios that run while the world fails: a small one for each command and each way to write,
// with the files that lie there before. `out` is there with old bytes if it is to be replaced.
// Clocks stand still (preload.cpp), so commands that measure print the same bytes as well.

#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace capo::failing {

/// nlohmann's json, made of a list in braces, gives nothing back where memory runs out within it:
/// what prints JSON may leave memory behind then, on its way to leaving altogether.
enum class Prints { Text, Json };

struct Scenario {
  std::string name;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> files;
  int exit_code = 0;  ///< the result if no call fails
  Prints prints = Prints::Text;
  /// How it begins to say, in words, that an engine broke off.
  std::string breaks_off = "error: the run of ";
};

inline void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

[[nodiscard]] inline std::vector<Scenario> scenarios() {
  const std::string wrong = "[1, 2, -1, -1]\n";
  const std::string late = "[1, -1, 1, -1.5, -1, -1.5]\n";
  const std::string pipeline =
      "capo 1\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n";
  const std::string zero_bubble = "0F0,0F1,0I0,0W0,0I1,0W1\n,1F0,1B0,1F1,1B1,\n";
  const std::string batch =
      "{\"order\": [1, -1], \"id\": 7}\n{\"order\": [1, 2, -1, -1]}\n{\"order\": [1\n";
  const std::string model = "{\"modules\": {\"default\": {\"kind\": \"linear\"}}}\n";
  const std::string shaped_model =
      "{\"modules\": {\"default\": {\"kind\": \"linear\", \"dtype\": \"bf16\", "
      "\"shape\": {\"tokens\": 2, \"hidden\": 2, \"ffn\": 2}}}}\n";
  const std::string trace =
      "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"PP:0F0\", "
      "\"pid\": 1, \"ts\": 5, \"dur\": 2}]}\n";
  const std::string old = "what was there before\n";
  return {
      {"Check", {"check", "a.te", "--profile", "sound,te,mcore"}, {{"a.te", wrong}}, 1},
      {"CheckPipeline", {"check", "a.order", "--explain-model"}, {{"a.order", pipeline}}},
      {"CheckTable",
       {"check", "a.csv", "--profile", "torch", "--format", "json"},
       {{"a.csv", zero_bubble}},
       0,
       Prints::Json},
      {"CheckPlan",
       {"check", "a.te", "--plan", "te", "--modules", "linear", "--format", "sarif"},
       {{"a.te", late}},
       1,
       Prints::Json},
      {"CheckBatch", {"check", "--batch", "a.jsonl"}, {{"a.jsonl", batch}}, 3, Prints::Json},
      {"Convert",
       {"convert", "a.order", "--to", "json", "-o", "out"},
       {{"a.order", pipeline}, {"out", old}},
       0,
       Prints::Json},
      {"ConvertToNew", {"convert", "a.te", "--to", "order", "-o", "out"}, {{"a.te", late}}},
      {"Generate",
       {"generate", "zb-h1", "--ranks", "2", "--microbatches", "2", "-o", "out"},
       {{"out", old}}},
      {"GenerateMegatron",
       {"generate", "megatron", "--pp", "2", "--microbatches", "2", "--rank", "0"},
       {}},
      {"Simulate",
       {"simulate", "a.order", "--cost", "f=1,b=2,comm=2", "--trace", "trace", "-o", "out"},
       {{"a.order", pipeline}, {"out", old}, {"trace", old}},
       0,
       Prints::Json},
      {"Compare", {"compare", "a.order", "a.order"}, {{"a.order", pipeline}}},
      {"Sweep",
       {"sweep", "1f1b", "--ranks", "2", "--microbatches", "2,3", "--threads", "2", "-o", "out"},
       {}},
      {"Optimise",
       {"optimise", "--ranks", "1", "--microbatches", "1", "--threads", "1", "--bound-out", "bound",
        "-o", "out"},
       {{"out", old}}},
      {"SweepOptimise",
       {"sweep", "--optimise", "--ranks", "2", "--microbatches", "1", "--threads", "1", "-o",
        "out.svg"},
       {}},
      {"Graph", {"graph", "a.order", "-o", "out"}, {{"a.order", pipeline}, {"out", old}}},
      {"Draw", {"draw", "a.te", "-o", "out.svg"}, {{"a.te", wrong}}, 1},
      {"DrawPage",
       {"draw", "a.order", "--format", "html", "-o", "out"},
       {{"a.order", pipeline}, {"out", old}},
       0,
       Prints::Json},
      {"DrawGrid", {"draw", "a.te", "--format", "txt", "-o", "-"}, {{"a.te", late}}},
      {"Minimise", {"minimise", "a.te", "-o", "out"}, {{"a.te", wrong}, {"out", old}}},
      {"Run",
       {"run", "a.te", "--device", "host", "--model", "m.json", "--replays", "1", "-o", "out"},
       {{"a.te", "[1, 1, -1, -1]\n"}, {"m.json", model}, {"out", old}},
       0,
       Prints::Json},
      {"RunUnchecked",
       {"run", "a.te", "--device", "host", "--plan", "te", "--modules", "linear", "--replays", "1",
        "--unchecked", "--format", "json"},
       {{"a.te", late}},
       1,
       Prints::Json},
      {"Measure",
       {"measure", "--model", "m.json", "--device", "host", "--microbatches", "2", "-o", "out"},
       {{"m.json", shaped_model}, {"out", old}},
       0,
       Prints::Json,
       "error: host engine: "},
      {"MeasureTrace",
       {"measure", "--trace", "t.json", "-o", "out"},
       {{"t.json", trace}, {"out", old}}},
      {"DrawTrace", {"draw", "t.json", "-o", "out.svg"}, {{"t.json", trace}}},
      {"Explain", {"explain", "S15"}, {}},
      {"Rules", {"rules", "--markdown"}, {}},
      {"Usage", {"chekc"}, {}, 2},
      {"MissingInput", {"check", "none.te"}, {}, 3},
      {"MalformedInput", {"check", "a.te"}, {{"a.te", "[1, -1"}}, 3},
  };
}

}  // namespace capo::failing
