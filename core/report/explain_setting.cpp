#include "core/report/report.h"

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/text/stated_transfers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace capo {

namespace {

class FactLines {
 public:
  explicit FactLines(const Setting& setting) : setting_(setting) {}

  void add_value(std::string_view fact, std::string_view value, bool declared,
                 std::string_view means) {
    text += fmt::format("  {} {} ({})\n      {}\n", fact, value,
                        declared ? "declared" : "not declared", means);
  }
  // `fact` as it is called among the assumed ones; `means` for the value it has.
  void add(std::string_view fact, std::string_view value, std::string_view means) {
    const bool assumed =
        std::find(setting_.assumed.begin(), setting_.assumed.end(), fact) != setting_.assumed.end();
    add_value(fact, value, !assumed, means);
  }

  std::string text = "\nThe verdict is relative to:\n";

 private:
  const Setting& setting_;
};

std::string_view meaning(std::string_view topology) {
  if (topology == "independent")
    return "chunks are not wired to each other, so that no rule about stages or transfers applies; "
           "--topology wires them";
  if (topology == "chain") return "stages follow each other chunk by chunk, rank by rank";
  if (topology == "bidirectional") {
    return "two pipelines with weights of their own: odd chunks go down the ranks, even ones up";
  }
  if (topology == "loop") return "stage s is on rank s mod P: chunks go around the ranks";
  if (topology == "v") return "stages go down the ranks and up again";
  return "stages are where the input places them";
}

std::string_view meaning(Communicators communicators) {
  switch (communicators) {
    case Communicators::PerRank:
      return "all transfers of a rank run in the order in which it issues them: what finishes so "
             "finishes with every layout, and what races so races with every layout";
    case Communicators::PerPair:
      return "transfers between the same two ranks run in the order of issue, as NCCL's lazily "
             "made "
             "communicators do";
    case Communicators::PerEdge:
      return "transfers from one rank to another run in the order of issue, each direction by "
             "itself";
    case Communicators::PerDirection:
      return "activations run in the order in which a rank issues them, and so do gradients, each "
             "by "
             "themselves";
    case Communicators::LazyHybrid:
      return "transfers between the same two ranks run in the order of issue, but groups that hold "
             "both sends and receives run on one communicator for all ranks, in an order of their "
             "own";
  }
  CAPO_UNREACHABLE();
}

std::string_view meaning(std::optional<PlanKind> plan) {
  if (!plan) {
    return "memory is not judged, but for a TE list and a replay of its own, of which warnings say "
           "what TransformerEngine's reuse of buffers would do to them";
  }
  switch (*plan) {
    case PlanKind::Te:
      return "graphs share memory as TransformerEngine's make_graphed_callables has them share it";
    case PlanKind::Safe:
      return "memory is shared only where the one use is over before the other begins";
    case PlanKind::Given:
      return "memory is shared as the file of --plan-in has it";
    case PlanKind::McoreLocal:
      return "graphs share memory as Megatron's own have it, captured in the order in which the "
             "first step ran them";
  }
  CAPO_UNREACHABLE();
}

std::string meaning_of_sends(const Environment& across) {
  if (!across.buffered()) return "a send ends when its receive does";
  if (!across.channel_bytes) return "a send ends by itself, received or not";
  return fmt::format("a channel holds {}, and a send of one more waits for a receive",
                     counted(static_cast<std::int64_t>(across.held()), "message"));
}

bool judged_under_all(const Setting& setting, std::string_view key) {
  return std::any_of(setting.undeclared.begin(), setting.undeclared.end(),
                     [key](const Undeclared& fact) { return fact.key == key; });
}

std::string chunks_of(const Setting& setting) {
  if (setting.chunks.size() > 16) return fmt::format("of {} ranks", setting.chunks.size());
  return fmt::format("{}", fmt::join(setting.chunks, ", "));
}

// Says how transfers run, for orders whose ranks communicate.
void say_transfers(const Setting& setting, FactLines& lines) {
  const Environment& across = setting.across;
  if (judged_under_all(setting, "communicators")) {
    lines.add("communicators", "any",
              "the verdict holds with one for each rank, for each pair of ranks and for each "
              "direction between two; findings say which of them they need");
  } else {
    lines.add("communicators", name_of(across.layout()), meaning(across.layout()));
  }
  if (across.made_lazily()) {
    lines.add_value("comm-init", name_of(CommInit::Lazy), true,
                    "a communicator is made where its members first use it, each of which waits "
                    "there for all others");
  }
  if (judged_under_all(setting, "transfers")) {
    lines.add("transfers", "any",
              "the verdict holds whether a send ends when its receive does or by itself");
  } else {
    lines.add("transfers", transfers_text(across), meaning_of_sends(across));
  }
  lines.add_value("p2p", across.p2p ? name_of(*across.p2p) : "none", across.p2p.has_value(),
                  across.p2p
                      ? "transfers are those that Megatron's runtime calls around the computations"
                      : "transfers are those that the orders write; where they write none, those "
                        "that PyTorch adds");
  if (across.ep_overlap) {
    lines.add("ep-overlap", "on", "forward and backward of a step run as one");
  }
}

// Says which streams and kernels devices have, as far as that is declared.
void say_devices(const Environment& across, FactLines& lines) {
  if (across.has_weight_stream()) {
    lines.add_value("weight-stream", "on", true,
                    "weight gradients run on a stream of their own, and nothing but a reduction "
                    "waits for them");
  }
  if (across.architecture) {
    lines.add(
        "architecture", name_of(*across.architecture),
        "captures are those of such a device: which recipes it runs, and with which products");
  }
  if (const auto version = across.cublaslt) {
    lines.add("cublaslt", fmt::format("{}.{}", *version / 100, *version % 100),
              "grouped products are those of this version");
  }
  if (!across.amax_group.empty()) {
    lines.add("amax-group", fmt::format("{}", fmt::join(across.amax_group, ", ")),
              "these ranks reduce the largest magnitudes of delayed scaling together");
  }
}

}  // namespace

std::string explain_setting(const Report& report) {
  if (!report.environment) return "";
  const Setting& setting = *report.environment;
  FactLines lines(setting);
  lines.add("topology", setting.topology, meaning(setting.topology));
  lines.add("chunks", chunks_of(setting),
            "parts of the model on each rank; if not declared, the "
            "largest that its order names");
  lines.add(
      "microbatches", std::to_string(setting.microbatches),
      "of one step; if not declared, as many as most chunks run forward, or where the order names "
      "them the largest plus one");
  if (setting.communicates) say_transfers(setting, lines);
  say_devices(setting.across, lines);
  lines.add_value("plan", setting.plan ? name_of(*setting.plan) : "none", setting.plan.has_value(),
                  meaning(setting.plan));
  lines.add_value(
      "modules",
      setting.modules.empty() ? "none" : fmt::format("{}", fmt::join(setting.modules, ", ")),
      !setting.modules.empty(),
      setting.modules.empty()
          ? "what a weight gradient reads, what becomes of it, and sizes are not known: what "
            "depends "
            "on them is a warning"
          : "they say what a weight gradient reads, what becomes of it, and how large buffers are");
  return lines.text;
}

}  // namespace capo
