#include "core/profiles/consult.h"

#include "core/base/index.h"
#include "core/frameworks/megatron/version.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/predict.h"
#include "core/rules/context.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

// TE gets one rank's list at a time, with these declarations.
struct TeQuestion {
  TeList list;
  Layers layers;
  std::vector<bool> need_wgrad;
};

std::vector<bool> need_wgrad_of(const RankOrder& rank) {
  std::vector<bool> need;
  if (rank.delay) {
    for (const Delay delay : *rank.delay) need.push_back(delay != Delay::Never);
    return need;
  }
  for (const Delay delay : resolved_delay(rank)) need.push_back(delay != Delay::Never);
  return need;
}

Result<TeQuestion, Inexpressible> question_of(const Input& input, std::size_t r) {
  const RankOrder& rank = input.schedule.ranks[r];
  TeQuestion question{.layers = rank.layers, .need_wgrad = need_wgrad_of(rank)};
  if (input.form == Form::TeList) {
    const auto entries = te_list_of(input, r);
    question.list.entries.assign(entries.begin(), entries.end());
    return question;
  }
  auto list = to_te_list(rank, rank.order, Beside::Drop);
  if (!list) return list.error();
  question.list = std::move(*list);
  return question;
}

std::string rank_prefix(const Input& input, std::size_t r) {
  return input.schedule.ranks.size() > 1 ? fmt::format("rank {}: ", r) : "";
}

void raise(Opinion& opinion, std::string kind, std::string reason, std::optional<Span> where) {
  opinion.accepts = false;
  opinion.error_kind = std::move(kind);
  opinion.reason = std::move(reason);
  opinion.where = where;
}

// Fills in TE's answer for one rank; false ends the round.
bool ask_te(const Input& input, std::size_t r, const TeQuestion& question,
            const ConsultOptions& consult, Opinion& opinion) {
  const te::Options& options = consult.te;
  auto prediction = te::predict(question.list, question.layers, question.need_wgrad, options);
  if (!prediction) {
    opinion.accepts.reset();
    opinion.reason = fmt::format("{}more than {} graphs; raise --max-graphs", rank_prefix(input, r),
                                 options.max_graphs);
    return false;
  }
  if (consult.modules != nullptr) {
    const te::Modules modules{.table = consult.modules,
                              .environment = &consult.environment,
                              .rank = static_cast<std::int32_t>(r)};
    prediction = te::earlier(*std::move(prediction),
                             te::predict_modules(question.list, modules, *options.version));
  }
  if (prediction->accepts()) return true;
  std::optional<Span> where;
  std::string at;
  if (prediction->entry) {
    where = question.list.entries[*prediction->entry].span();
    at = fmt::format(", at index {}", *prediction->entry);
  }
  raise(opinion, std::string(te::name_of(prediction->kind)),
        fmt::format("{}{} in {}{}: {}", rank_prefix(input, r), te::name_of(prediction->kind),
                    te::name_of(prediction->step), at, prediction->reason),
        where);
  return false;
}

Opinion opinion_of(std::string_view framework, std::string_view version) {
  return {.profile = std::string(framework), .framework = framework, .version = version};
}

template <typename Ask>
Opinion consult_ranks(const Input& input, Opinion opinion, Ask&& ask) {
  opinion.accepts = true;
  for (std::size_t r = 0; r < input.schedule.ranks.size(); ++r) {
    const RankOrder& rank = input.schedule.ranks[r];
    if (rank.chunks_declared && rank.chunks == 0 && rank.order.empty())
      continue;  // nothing to capture
    const auto question = question_of(input, r);
    if (!question) {
      opinion.accepts.reset();
      opinion.reason = rank_prefix(input, r) + question.error().reason;
      opinion.where = question.error().span;
      return opinion;
    }
    if (!ask(r, *question, opinion)) return opinion;
  }
  return opinion;
}

// The first entry that PyTorch has no action for.
const Entry* first_exchange(const Schedule& schedule) {
  for (const RankOrder& rank : schedule.ranks) {
    const auto found = std::find_if(rank.order.begin(), rank.order.end(),
                                    [](const Entry& entry) { return is_exchange(entry.kind); });
    if (found != rank.order.end()) return &*found;
  }
  return nullptr;
}

// A table is read by the newest version; an older one may have no such word, and read another.
void add_unknown_words(const Input& input, const torch::Version& version, Opinion& opinion) {
  const torch::Rows meant = torch::rows_of(input);
  const torch::Rows read = torch::rows_of(input, version);
  for (std::size_t r = 0; r < meant.size(); ++r) {
    for (std::size_t at = 0; at < meant[r].size(); ++at) {
      const std::string text = torch::to_text(meant[r][at]);
      const std::string torch_reads = torch::to_text(read[r][at]);
      if (text == torch_reads) continue;
      opinion.misreadings.push_back({.rank = static_cast<std::int32_t>(r),
                                     .cell = static_cast<std::uint32_t>(at),
                                     .text = text,
                                     .torch_reads = torch_reads});
    }
  }
}

}  // namespace

Opinion consult_te(const Input& input, const ConsultOptions& options) {
  return consult_ranks(input, opinion_of("te", options.te.version->release),
                       [&](std::size_t r, const TeQuestion& question, Opinion& opinion) {
                         return ask_te(input, r, question, options, opinion);
                       });
}

Opinion consult_mcore(const Input& input, const ConsultOptions& options) {
  if (options.megatron) {
    if (const auto reason = mcore::refusal(*options.megatron)) {
      Opinion opinion = opinion_of("mcore", megatron::kNewest.release);
      raise(opinion, "mcore.configuration", "the configuration is refused: " + *reason, {});
      return opinion;
    }
  }
  return consult_ranks(input, opinion_of("mcore", megatron::kNewest.release),
                       [&](std::size_t r, const TeQuestion& question, Opinion& opinion) {
                         if (!ask_te(input, r, question, options, opinion)) return false;
                         const auto loose =
                             mcore::first_loose_weight(question.list, question.need_wgrad);
                         if (!loose) return true;
                         const std::string next =
                             loose->next ? fmt::format(
                                               "the next backward-type entry, at index {}, is not "
                                               "its weight gradient",
                                               *loose->next)
                                         : "no weight gradient follows it";
                         raise(opinion, "mcore.order",
                               fmt::format("{}Megatron's rule: for the backward at index {} {}",
                                           rank_prefix(input, r), loose->backward, next),
                               question.list.entries[loose->backward].span());
                         return false;
                       });
}

Opinion consult_torch(const Input& input, const torch::Version& version) {
  Opinion opinion = opinion_of("torch", version.number);
  if (const Entry* exchange = first_exchange(input.schedule)) {
    opinion.reason = "a table has no notation for dispatch and combine";
    opinion.where = exchange->span();
    return opinion;
  }
  // A table has to pass validation and lowering before it trains; the simulator is a tool that no
  // run uses, and cannot take composites.
  const CheckOptions nothing_declared;
  const Context context(input, nothing_declared);
  const torch::Predicted said =
      torch::predict(input, torch::stages_of(input), context.microbatches(), version);
  const std::string& first = said.validate != "ok" ? said.validate : said.lower.value_or("ok");
  opinion.accepts = first == "ok";
  if (first != "ok") {
    opinion.error_kind = "torch." + first.substr(0, first.find(':'));
    opinion.reason = (said.validate != "ok" ? "" : "in lowering: ") + first;
  }
  opinion.steps = {{"validate", said.validate}, {"lower", said.lower}, {"simulate", said.simulate}};
  if (version.counts_slots) {
    for (const auto& row : torch::rows_of(input, version))
      opinion.slots.push_back(torch::activation_slots(row, context.microbatches()));
  }
  for (const CellFault& fault : input.cell_faults) {
    if (fault.kind == CellFault::Kind::TransferInCompute || fault.kind == CellFault::Kind::IdleSlot)
      continue;
    opinion.misreadings.push_back({.rank = fault.rank,
                                   .cell = fault.cell,
                                   .text = std::string(input.source.slice(fault.span)),
                                   .torch_reads = fault.torch_reads});
  }
  if (input.form == Form::TorchComms || input.form == Form::TorchCompute)
    add_unknown_words(input, version, opinion);
  return opinion;
}

std::vector<AskedProfile> known_profiles() {
  std::vector<AskedProfile> known{{},
                                  {.profile = Profile::Te, .name = "te"},
                                  {.profile = Profile::Mcore, .name = "mcore"},
                                  {.profile = Profile::Torch, .name = "torch"}};
  for (const te::Version& version : te::kVersions) {
    known.push_back(
        {.profile = Profile::Te, .name = fmt::format("te@{}", version.release), .te = &version});
  }
  for (const megatron::Version& version : megatron::kVersions) {
    known.push_back({.profile = Profile::Mcore, .name = fmt::format("mcore@{}", version.release)});
  }
  for (const torch::Version& version : torch::kVersions) {
    known.push_back({.profile = Profile::Torch,
                     .name = fmt::format("torch@{}", version.release),
                     .torch = &version});
  }
  return known;
}

Opinion opinion_of(const AskedProfile& asked, const Input& input, ConsultOptions options) {
  options.te.version = asked.te;
  Opinion opinion = asked.profile == Profile::Te      ? consult_te(input, options)
                    : asked.profile == Profile::Mcore ? consult_mcore(input, options)
                                                      : consult_torch(input, *asked.torch);
  opinion.profile = asked.name;
  return opinion;
}

}  // namespace capo
