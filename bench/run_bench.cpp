// Measures a thousand small orders from text to comparison: each is read, verified, captured,
// replayed three times, run eagerly as often, and compared with eager execution and float64.
//
//   bench_run        prints the seconds that a thousand of them take on one core, and each share

#include "core/input/load.h"
#include "core/rules/verify.h"
#include "run/host/host_engine.h"
#include "run/run.h"
#include "run/setup/complete_model.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace capo;

// A sound list of two chunks and three microbatches with weight gradients of their own.
std::string order_of(std::mt19937& random) {
  constexpr int kChunks = 2;
  constexpr int kMicrobatches = 3;
  std::vector<int> forwards(kChunks, 0);
  std::vector<int> backwards(kChunks, 0);
  std::vector<int> weights(kChunks, 0);
  std::string text = "[";
  for (int left = kChunks * kMicrobatches * 3; left > 0;) {
    const auto c = static_cast<std::size_t>(random() % kChunks);
    const std::string chunk = std::to_string(c + 1);
    std::string entry;
    switch (random() % 3) {
      case 0:
        if (forwards[c] < kMicrobatches && ++forwards[c] > 0) entry = chunk;
        break;
      case 1:
        if (backwards[c] < forwards[c] && ++backwards[c] > 0) entry = "-" + chunk;
        break;
      default:
        if (weights[c] < backwards[c] && ++weights[c] > 0) entry = "-" + chunk + ".5";
    }
    if (entry.empty()) continue;
    text += (text.size() > 1 ? ", " : "") + entry;
    --left;
  }
  return text + "]";
}

double run_all(const std::vector<std::string>& orders, ModuleKind kind) {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& text : orders) {
    Input input = load(Source{.name = "order", .text = text}, LoadOptions{}).value();
    CheckOptions declared;
    declared.modules.list = {{.name = "module", .kind = kind}};
    declared.modules.layers = {{{0}}};
    const CheckOptions options = run::complete_model(declared, input.schedule).options;
    const auto plan = verify(std::move(input), options);
    run::host::HostEngine engine;
    const auto report = run::run(engine, std::get<VerifiedPlan>(plan), {});
    if (!report || !report->bit_equal || !report->within_bounds) {
      fmt::print("{} is not equal to eager execution\n", text);
      std::exit(1);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::vector<std::string> orders(1000);
  for (std::string& order : orders) order = order_of(random);
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::LayerNormLinear,
                                ModuleKind::GroupedLinear, ModuleKind::GroupedMlp}) {
    fmt::print("{} orders of 18 entries, {}: {:.2f} s on one core\n", orders.size(),
               capo::name_of(kind), run_all(orders, kind));
  }
  return 0;
}
