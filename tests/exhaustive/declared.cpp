// Only declarations tell these things of TransformerEngine's reuse of buffers (plan te): tensors
// that its keys take for alike and that are not (B05, B06) or may not be, a gradient that is sent
// while its memory is given away (B04), a budget (B08), and tensors that the keys tell apart or
// whose readers are not declared.
//
// Every sound bare list of two chunks and two microbatches with weight gradients, and of three
// microbatches without, under each of a row of declarations: chunks of one layer, whose weight
// gradients read the shared buffers. Of budgets each that some list needs to the byte, and one
// less, so that both sides of each bound occur; on the smaller sizes also with outputs that stay to
// the end of the passes before capture. Quick: the few lists of two chunks and one
// microbatch, and of two without weight gradients.

#include "testing/oracle/declared.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/misreads.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::exhaustive {

namespace {

using Layers = std::vector<oracle::DeclaredLayer>;

struct Row {
  std::string_view name;
  Layers chunks;
  std::vector<std::int32_t> model_chunks = {};
  bool operands_said = true;
  bool second_size_said = true;
};

// Tensors have different keys if they differ in size, and only then.
Row row(std::string_view name, oracle::DeclaredLayer first, oracle::DeclaredLayer second) {
  for (oracle::DeclaredLayer* layer : {&first, &second}) {
    layer->keys = {.input = layer->input_bytes, .output = layer->output_bytes};
  }
  return {.name = name, .chunks = {first, second}};
}

// Undeclared tensors of the second layer may be as the first's are.
Row of_unsaid_size(Row row) {
  row.second_size_said = false;
  for (oracle::DeclaredLayer& layer : row.chunks) layer.keys = {};
  return row;
}

Row with_model_chunks(Row row, std::vector<std::int32_t> model_chunks) {
  std::size_t first = 0;
  for (const std::int32_t layers : model_chunks) {
    row.chunks[first].sends = true;
    first += static_cast<std::size_t>(layers);
  }
  row.model_chunks = std::move(model_chunks);
  return row;
}

std::vector<Row> rows() {
  std::vector<Row> rows{
      row("inputs of two sizes", {.input_bytes = 2}, {.input_bytes = 3}),
      row("outputs of two sizes", {.output_bytes = 2}, {.output_bytes = 3}),
      row("no gradient for the first input", {.needs_gradient = false}, {}),
      row("no gradient for the second input", {}, {.needs_gradient = false}),
      row("no gradient for an input of its own size", {.input_bytes = 2, .needs_gradient = false},
          {}),
      row("outputs at two positions", {.output_position = 1}, {}),
      row("outputs of two sizes at two positions", {.output_bytes = 2, .output_position = 1}, {}),
      of_unsaid_size(row("sizes of the first alone", {.input_bytes = 2, .output_bytes = 3}, {})),
      of_unsaid_size(row("no gradient for the first input, of which alone the size is said",
                         {.input_bytes = 2, .needs_gradient = false}, {})),
      of_unsaid_size(row("the size of the output at another position alone",
                         {.output_bytes = 2, .output_position = 1}, {})),
      with_model_chunks(row("two layers to a chunk of the model", {}, {}), {2}),
      with_model_chunks(row("two layers of two sizes", {.input_bytes = 2}, {.input_bytes = 3}),
                        {2}),
      with_model_chunks(row("each layer a chunk of the model", {}, {}), {1, 1}),
      row("nobody says who reads", {}, {}),
  };
  rows.back().operands_said = false;
  return rows;
}

std::vector<Row> rows_with_weights() {
  return {row("layers alike", {.weight_bytes = 1}, {.weight_bytes = 1}),
          row("layers of two sizes", {.input_bytes = 2, .output_bytes = 3, .weight_bytes = 5},
              {.input_bytes = 7, .output_bytes = 11, .weight_bytes = 13})};
}

ModuleTable modules_of(const Row& row, const Size& size) {
  ModuleTable table{.list = {}, .layers = {{}}};
  for (std::size_t chunk = 0; chunk < row.chunks.size(); ++chunk) {
    const oracle::DeclaredLayer& layer = row.chunks[chunk];
    Module module{.name = fmt::format("m{}", chunk + 1)};
    // Delayed and fused: TransformerEngine keeps all gradients, and gradients/ has nothing to say.
    module.flags.delay_wgrad = size.weights;
    module.flags.fuse_wgrad_accumulation = size.weights;
    module.flags.input_requires_grad = layer.needs_gradient;
    module.bytes = {.input = layer.input_bytes,
                    .output = layer.output_bytes,
                    .activations = 0,
                    .operands = 0,
                    .weight = layer.weight_bytes};
    if (chunk == 1 && !row.second_size_said) module.bytes.input = module.bytes.output = {};
    module.output_position = layer.output_position;
    table.layers[0].push_back({static_cast<std::int32_t>(chunk)});
    table.list.push_back(std::move(module));
  }
  return table;
}

constexpr Aliases kBoth{.input = true, .grad_output = true};

Verdicts::Declared declared_of(const Row& row, const Size& size) {
  Verdicts::Declared declared;
  declared.options.plan = {.kind = PlanKind::Te, .model_chunks = row.model_chunks};
  if (row.operands_said) declared.options.plan.aliases = kBoth;
  declared.options.modules = modules_of(row, size);
  return declared;
}

std::string_view rule_of(oracle::Flaw::Kind kind) {
  switch (kind) {
    case oracle::Flaw::Lost:
      return "B05";
    case oracle::Flaw::Misplaced:
      return "B06";
    case oracle::Flaw::CutOff:
      break;
  }
  return "B04";
}

Answer oracle_of(const List& list, const Row& row) {
  Answer first;
  if (row.operands_said) {
    std::vector<oracle::LayerKeys> keys;
    for (const oracle::DeclaredLayer& layer : row.chunks) keys.push_back(layer.keys);
    first = first_misread(oracle::replay(capture_of(list, keys, false)), kBoth);
  }
  for (const oracle::Flaw& flaw : oracle::flaws({row.chunks, entries_of(list)}))
    first = earlier(first, {.rule = rule_of(flaw.kind), .position = flaw.position});
  return first;
}

// Calls visit(list) for every sound list.
template <typename Visit>
void for_each_list(const Size& size, Visit visit) {
  List list;
  const Needs needs = needs_of_each_chunk(size);
  Interleavings(needs, size.microbatches).for_each([&](const auto& tokens) {
    list.clear();
    for (const std::size_t token : tokens) list.push_back(entry_of_token(size, token));
    return visit(std::as_const(list));
  });
}

bool compare_row(const Row& row, const Size& size, std::uint64_t sound, const Options& options) {
  Comparison comparison(fmt::format("plan te of {}, {}", name_of(size), row.name), options);
  Judge judge(declared_of(row, size), options);
  std::uint64_t orders = 0;
  for_each_list(size, [&](const List& list) {
    ++orders;
    if (comparison.mine()) {
      comparison.compare(judge.of(list), oracle_of(list, row), [&] { return shown(list); });
    }
    return !comparison.stopped();
  });
  if (!comparison.stopped()) comparison.expect("orders", orders, sound);
  return comparison.finish();
}

// A list needs so much at capture or, if that is more, before.
oracle::Need need_of(const Row& row, const List& list, bool keeps_outputs) {
  const oracle::DeclaredCapture capture{row.chunks, entries_of(list)};
  const oracle::Need captured = oracle::need(capture);
  const oracle::Need before = oracle::need_of_warm_up(capture, keeps_outputs);
  return before.bytes > captured.bytes ? before : captured;
}

// Those of which a list needs the last byte, or one more.
std::set<int> budgets(const Row& row, const Size& size, bool keeps_outputs) {
  std::set<int> budgets;
  for_each_list(size, [&](const List& list) {
    const int need = need_of(row, list, keeps_outputs).bytes;
    budgets.insert({need - 1, need});
    return true;
  });
  return budgets;
}

bool compare_budget(const Row& row, const Size& size, int budget, bool keeps_outputs,
                    const Options& options) {
  Comparison comparison(fmt::format("plan te of {}, {}, a budget of {}{}", name_of(size), row.name,
                                    budget, keeps_outputs ? ", outputs kept before capture" : ""),
                        options);
  Verdicts::Declared declared = declared_of(row, size);
  declared.options.plan.budget = budget;
  declared.options.plan.warm_up_keeps_outputs = keeps_outputs;
  Judge judge(std::move(declared), options);
  for_each_list(size, [&](const List& list) {
    if (!comparison.mine()) return true;
    const oracle::Need need = need_of(row, list, keeps_outputs);
    Answer wanted = oracle_of(list, row);
    if (need.bytes > budget) wanted = earlier(wanted, {.rule = "B08", .position = need.position});
    comparison.compare(judge.of(list), wanted, [&] { return shown(list); });
    return !comparison.stopped();
  });
  return comparison.finish();
}

struct Scope {
  Size size;
  std::uint64_t sound;  // table A13
};

std::vector<Scope> scopes(Effort effort) {
  if (effort == Effort::Quick) return {{{2, 1, true}, 20}, {{2, 2, false}, 280}};
  return {
      {{2, 1, true}, 20}, {{2, 2, false}, 280}, {{2, 2, true}, 23'100}, {{2, 3, false}, 23'100}};
}

// Outputs that stay are compared on the few orders of a small size, which tell the two apart.
constexpr std::uint64_t kMostOfBothPasses = 1000;

}  // namespace

bool declared(const Options& options) {
  bool agree = true;
  const auto goes_on = [&](bool agreed) {
    agree = agreed && agree;
    return agree || !options.stop_at_first;
  };
  for (const Scope& scope : scopes(options.effort)) {
    for (const Row& row : rows()) {
      if (!goes_on(compare_row(row, scope.size, scope.sound, options))) return false;
    }
    for (const Row& row : rows_with_weights()) {
      for (const bool keeps_outputs : {false, true}) {
        if (keeps_outputs && scope.sound > kMostOfBothPasses) continue;
        for (const int budget : budgets(row, scope.size, keeps_outputs)) {
          if (!goes_on(compare_budget(row, scope.size, budget, keeps_outputs, options)))
            return false;
        }
      }
    }
  }
  return agree;
}

}  // namespace capo::exhaustive
