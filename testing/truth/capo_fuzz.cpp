// capo-fuzz: random orders, run on an engine, verdict against gradients.
//
//   capo-fuzz --orders 1000 --device host --seed 1 --lines out.jsonl
//
// One JSON line an order, in the order of their numbers; in the end the matrix of verdicts against
// what was seen. A run that was killed goes on where its lines end. Exit code 0: they agree; 1:
// some do not, and the first is named; 5: the machine refused.

#include <capo/run/host/host_engine.h>
#include <capo/testing/truth/cases.h>
#include <capo/testing/truth/verdict.h>

#ifdef CAPO_HAVE_CUDA
#include <capo/gpu/engine/cuda_engine.h>
#endif

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace {

using namespace capo;
using namespace capo::testing;

struct Request {
  std::uint64_t orders = 1000;
  std::uint64_t seed = 1;
  std::string device = "host";
  std::string lines;
};

std::unique_ptr<run::Engine> engine_for(const std::string& device) {
  if (device == "host") return std::make_unique<run::host::HostEngine>();
#ifdef CAPO_HAVE_CUDA
  auto made = gpu::CudaEngine::make();
  if (made) return *std::move(made);
  fmt::print(stderr, "error: {}\n", made.error().message);
#else
  fmt::print(stderr, "error: this capo-fuzz was built without CUDA\n");
#endif
  return nullptr;
}

// Whole lines that are there already; half a line that a kill left is cut off.
std::uint64_t resume(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t lines = 0;
  std::uintmax_t whole = 0;
  std::uintmax_t read = 0;
  for (std::string line; std::getline(in, line);) {
    read += line.size() + 1;
    if (in.eof()) break;  // without its line break
    ++lines;
    whole = read;
  }
  if (lines > 0 || read > 0) std::filesystem::resize_file(path, whole);
  return lines;
}

struct Matrix {
  std::array<std::array<std::uint64_t, 2>, 2> counts{};  // by accepted, right
  std::uint64_t disagreements = 0;
};

void print(const Matrix& matrix) {
  fmt::print("            all gradients right   some wrong\n");
  fmt::print("  accepted  {:>19}   {:>10}\n", matrix.counts[1][1], matrix.counts[1][0]);
  fmt::print("  rejected  {:>19}   {:>10}\n", matrix.counts[0][1], matrix.counts[0][0]);
  fmt::print("{} disagreements of verdict, victims and gradients\n", matrix.disagreements);
}

int campaign(const Request& request) {
  const std::uint64_t done = request.lines.empty() ? 0 : resume(request.lines);
  if (done > 0) fmt::print(stderr, "going on behind {} orders\n", done);
  std::ofstream out;
  if (!request.lines.empty()) out.open(request.lines, std::ios::app);
  Matrix matrix;
  for (std::uint64_t number = done; number < request.orders; ++number) {
    const auto engine = engine_for(request.device);
    if (engine == nullptr) return 5;
    const TruthVerdict verdict = judge_truth(truth_case(request.seed, number), number, *engine);
    ++matrix.counts[verdict.accepted ? 1 : 0][verdict.right ? 1 : 0];
    if (!verdict.agrees) {
      if (matrix.disagreements++ == 0) fmt::print("disagreement: {}\n", verdict.line);
    }
    if (out.is_open()) {
      out << verdict.line << '\n' << std::flush;
      if (!out) {
        fmt::print(stderr, "error: cannot write {}\n", request.lines);
        return 5;
      }
    }
    if (number % 500 == 499) fmt::print(stderr, "{} of {} orders\n", number + 1, request.orders);
  }
  fmt::print("{} orders on {}, seed {}\n", request.orders - done, request.device, request.seed);
  print(matrix);
  return matrix.disagreements == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"capo-fuzz: random orders, verdict against gradients", "capo-fuzz"};
  Request request;
  app.add_option("--orders", request.orders, "How many")->capture_default_str();
  app.add_option("--seed", request.seed, "Of all that is drawn")->capture_default_str();
  app.add_option("--device", request.device, "host or cuda")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  app.add_option("--lines", request.lines,
                 "Write a JSON line an order here; where there are some, go on behind them");
  CLI11_PARSE(app, argc, argv);
  return campaign(request);
}
