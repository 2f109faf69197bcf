#include "run/judge.h"

#include "core/base/index.h"
#include "run/reference/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace capo::run {

namespace {

Victim victim_of(const Buffer& buffer) {
  return {.rank = buffer.rank, .chunk = buffer.chunk, .microbatch = buffer.microbatch};
}

std::set<Victim>& set_of(Victims& victims, HazardKind kind) {
  switch (kind) {
    case HazardKind::StaticInput:
      return victims.static_input;
    case HazardKind::GradOutput:
      return victims.grad_output;
    case HazardKind::P2pWindow:
      return victims.grad_input;
    default:
      return victims.other;
  }
}

Victims predicted_by(const CheckResult& result) {
  Victims victims;
  if (!result.plan) return victims;
  for (const FoundHazard& hazard : result.plan->hazards) {
    set_of(victims, hazard.kind).insert(victim_of(hazard.victim));
  }
  return victims;
}

// The replay compared with eager execution.
class BesideEager {
 public:
  /// `differs` is four bytes on the engine.
  BesideEager(const JudgedTensors& tensors, std::int32_t* differs, RunReport& report)
      : tensors_(tensors), of_(tensors.of()), differs_(differs), report_(report) {}

  void compare(std::uint32_t replay, const PlannedMemory& memory) {
    replay_ = replay;
    compare_parameters();
    compare_inputs();
    compare_sides();
    if (of_.late != nullptr) name_victims(memory);
  }

 private:
  // Bytes on the engine that go into a comparison.
  struct Piece {
    const void* begin = nullptr;
    std::int64_t bytes = 0;
  };
  using Pieces = std::vector<Piece>;

  void compare_parameters() {
    for (std::uint32_t p = 0; p < report_.parameters.size(); ++p) {
      if (!replayed(of_.layers.layer_of(p).rank)) continue;
      const ParameterForm& form = of_.layers.parameters()[p];
      const DataType type = form.fused ? DataType::Fp32 : form.type;
      if (same(pieces_held(of_.eager, of_.eager_deposits, p),
               pieces_held(of_.replayed, of_.replayed_deposits, p))) {
        continue;
      }
      note(report_.parameters[p],
           difference(tensors_.held(of_.eager, of_.eager_deposits, p),
                      tensors_.held(of_.replayed, of_.replayed_deposits, p), type));
    }
  }

  void compare_inputs() {
    for (std::size_t i = 0; i < tensors_.cells_given_out().size(); ++i) {
      const std::uint32_t cell = tensors_.cells_given_out()[i];
      if (!replayed(tensors_.cells().at(cell).rank)) continue;
      if (same(pieces_of(tensors_.given_out_tensor(of_.eager, cell)),
               pieces_of(tensors_.given_out_tensor(of_.replayed, cell)))) {
        continue;
      }
      note(report_.input_gradients[i],
           difference(tensors_.given_out(of_.eager, cell), tensors_.given_out(of_.replayed, cell),
                      tensors_.type_of(cell)));
    }
  }

  void compare_sides() {
    std::size_t at = tensors_.first_side();
    tensors_.for_each_side(
        [&](const StepLayer& layer, std::size_t number, std::int32_t m, const char*, auto member) {
          TensorReport& tensor = report_.input_gradients[at++];
          if (!replayed(layer.rank)) return;
          const float* const eager = of_.eager.side(number, m).*member;
          const float* const is = of_.replayed.side(number, m).*member;
          const std::int64_t bytes = tensors_.live_side(layer, number, m) * 4;
          if (same({{eager, bytes}}, {{is, bytes}})) return;
          note(tensor, difference(tensors_.side_values(layer, number, m, eager),
                                  tensors_.side_values(layer, number, m, is), DataType::Fp32));
        });
  }

  void note(TensorReport& tensor, const std::optional<Difference>& found) {
    if (!found) return;
    report_.bit_equal = false;
    if (tensor.difference) return;
    tensor.difference = found;
    tensor.replay = replay_;
  }

  [[nodiscard]] bool replayed(std::int32_t rank) const {
    return !of_.only || of_.only->contains(rank);
  }

  // Whether the engine finds the same bytes; pieces of other lengths are taken for different.
  [[nodiscard]] bool same(const Pieces& a, const Pieces& b) {
    const auto as_long = [](const Piece& x, const Piece& y) { return x.bytes == y.bytes; };
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), as_long)) return false;
    of_.engine.launch(0, Fill{.bytes = 4, .value = 0, .to = differs_});
    for (std::size_t i = 0; i < a.size(); ++i) {
      of_.engine.launch(0, Differ{.rows = {.count = 1},
                                  .row_bytes = a[i].bytes,
                                  .a = a[i].begin,
                                  .b = b[i].begin,
                                  .differs = differs_});
    }
    std::int32_t differs = 1;
    of_.engine.read(&differs, differs_, 4);
    return differs == 0;
  }

  [[nodiscard]] static Pieces pieces_of(const GroupedTensor& tensor) {
    Pieces pieces;
    for (const std::byte* part : tensor.parts) pieces.push_back({part, tensor.part_bytes()});
    return pieces;
  }

  [[nodiscard]] Pieces pieces_held(const StepOutputs& outcome, const Deposits& deposits,
                                   std::uint32_t parameter) const {
    Pieces pieces;
    for (const GroupedTensor* tensor : tensors_.summands(outcome, deposits, parameter)) {
      const Pieces more = pieces_of(*tensor);
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
    return pieces;
  }

  void name_victims(const PlannedMemory& memory) {
    for (LateReads::Late late : of_.late->seen()) {
      // A layer may read the tensor itself that its neighbour made, and hazards name that.
      late.buffer = of_.step.view().plan().tensor_of(late.buffer);
      const Buffer buffer = tensors_.table().at(late.buffer);
      const bool sent = late.reader == Reader::Send;
      auto& into = sent && buffer.kind == BufferKind::GradInput ? report_.victims.grad_input
                   : buffer.kind == BufferKind::StaticInput     ? report_.victims.static_input
                   : buffer.kind == BufferKind::GradOutput      ? report_.victims.grad_output
                                                                : report_.victims.other;
      if (into.insert(victim_of(buffer)).second) tell(late, memory);
    }
    tell_unseen(memory);
    for (std::uint32_t p = 0; p < of_.layers.parameters().size(); ++p) {
      const StepLayer& layer = of_.layers.layer_of(p);
      if (!replayed(layer.rank)) continue;
      for (std::int32_t m = 0; m < tensors_.table().microbatches(); ++m) {
        if (!writes(of_.eager_deposits, p, m)) continue;
        if (!writes(of_.replayed_deposits, p, m)) {  // the replay loses it
          report_.wrong_gradients.insert({layer.rank, layer.chunk, m});
          continue;
        }
        const auto pieces = [&](const StepOutputs& outcome) {
          return pieces_of(outcome.gradients(p).own[as_index(m)]);
        };
        if (!same(pieces(of_.eager), pieces(of_.replayed))) {
          report_.wrong_gradients.insert({layer.rank, layer.chunk, m});
        }
      }
    }
  }

  // Tells whether some action of the microbatch leaves a gradient that is kept.
  [[nodiscard]] static bool writes(const Deposits& deposits, std::uint32_t parameter,
                                   std::int32_t microbatch) {
    for (const bool weight : {false, true}) {
      const Deposit::Into into = deposits.of(parameter, microbatch, weight).into;
      if (into != Deposit::Into::Nothing && into != Deposit::Into::Temporary) return true;
    }
    return false;
  }

  [[nodiscard]] std::string words(BufferId id) const {
    const Buffer of = tensors_.table().at(id);
    return fmt::format("the {} of chunk {}, microbatch {} of rank {}", capo::name_of(of.kind),
                       of.chunk, of.microbatch, of.rank);
  }

  // A late read shows by its bits. An earlier victim may have given two buffers the same, and then
  // a prediction stays unseen.
  void tell_unseen(const PlannedMemory& memory) {
    if (!of_.step.result().plan) return;
    for (const FoundHazard& hazard : of_.step.result().plan->hazards) {
      const Buffer& victim = hazard.victim;
      if (!replayed(victim.rank)) continue;
      if (set_of(report_.victims, hazard.kind).contains(victim_of(victim))) continue;
      const BufferId id = tensors_.table().id(victim.rank, victim.chunk, victim.layer,
                                              victim.microbatch, victim.kind);
      const BufferId taker = memory.taken_by(id);
      if (taker == kNoBuffer || !of_.late->same_bits(id, taker)) continue;
      const std::string story = fmt::format(
          "{} was not seen to be hurt: {}, which took its memory over, holds the same bits",
          words(id), words(taker));
      if (!has_story(story)) report_.stories.push_back(story);
    }
  }

  [[nodiscard]] bool has_story(const std::string& story) const {
    return std::find(report_.stories.begin(), report_.stories.end(), story) !=
           report_.stories.end();
  }

  // Adds a sentence about a victim: what was read, and what lies there now.
  void tell(const LateReads::Late& late, const PlannedMemory& memory) {
    const BufferId taker = memory.taken_by(late.buffer);
    report_.stories.push_back(fmt::format(
        "{} was {} too late: {}", words(late.buffer), late.reader == Reader::Send ? "sent" : "read",
        taker == kNoBuffer ? "something else had been written there"
                           : words(taker) + " had taken its memory over"));
  }

  const JudgedTensors& tensors_;
  const Compared& of_;
  std::int32_t* differs_;
  RunReport& report_;
  std::uint32_t replay_ = 0;
};

}  // namespace

Judge::Judge(const Compared& of, RunReport& report)
    : report_(report), tensors_(std::make_unique<JudgedTensors>(of, report)) {
  report.predicted = predicted_by(of.step.result());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of a whole number
  differs_ = reinterpret_cast<std::int32_t*>(of.engine.allocate(4, "a comparison's result"));
}
Judge::~Judge() = default;

void Judge::compare(std::uint32_t replay, const StepValues& numbers, const PlannedMemory& memory) {
  tensors_->of_numbers(numbers);
  BesideEager(*tensors_, differs_, report_).compare(replay, memory);
}

}  // namespace capo::run
