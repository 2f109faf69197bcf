#include "python/make.h"

#include "core/base/assert.h"
#include "core/text/order_text.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <variant>

namespace nb = nanobind;

namespace capo::python {

namespace {

void refuse_large(const schedules::Request& request) {
  const auto size = schedules::size_of(request);
  if (!size) throw std::invalid_argument(size.error());
  const double entries = 2.0 * static_cast<double>(size->chunks) * request.ranks *
                         static_cast<double>(size->microbatches);
  const Limits limits;
  if (entries <= static_cast<double>(limits.entries)) return;
  throw std::invalid_argument(fmt::format("the schedule has more than {} entries", limits.entries));
}

std::string words_of(const megatron::NoOrder& why) {
  if (const auto* limit = std::get_if<Error>(&why)) return limit->message;
  const auto& raised = std::get<megatron::Raised>(why);
  return fmt::format("Megatron's {} raises {} ({})", raised.function, raised.exception,
                     raised.place);
}

}  // namespace

std::shared_ptr<HeldSchedule> held(const Schedule& schedule) {
  auto input = load({.name = "<schedule>", .text = print_order_file(schedule)},
                    {.form = TextForm::OrderFile});
  if (!input) throw std::invalid_argument(input.error().refusal.finding.message);
  return std::make_shared<HeldSchedule>(HeldSchedule{*std::move(input)});
}

std::shared_ptr<HeldSchedule> generate(const std::string& name, std::int32_t ranks,
                                       std::int32_t microbatches,
                                       std::optional<std::int32_t> chunks,
                                       std::optional<std::int32_t> group,
                                       std::optional<double> memory_limit) {
  const schedules::Request request{.name = name,
                                   .ranks = ranks,
                                   .microbatches = microbatches,
                                   .chunks = chunks,
                                   .group = group,
                                   .memory_limit = memory_limit};
  refuse_large(request);
  const auto schedule = schedules::schedule_named(request);
  if (!schedule) throw std::invalid_argument(schedule.error());
  return held(*schedule);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const schedules::Entry& entry : schedules::entries()) names.emplace_back(entry.name);
  return names;
}

std::shared_ptr<HeldSchedule> MegatronOrders::schedule(
    const std::optional<std::string>& calls) const {
  if (generated.request.rank) throw std::invalid_argument("rank: a schedule is of all ranks");
  Schedule made = megatron::schedule_of(generated);
  if (calls && made.p2p) {
    made.p2p = megatron_calls_named(*calls);
    if (!made.p2p) throw std::invalid_argument("calls: there are batch, overlap and flush");
  }
  return held(made);
}

std::optional<std::string> MegatronOrders::refusal() const {
  return mcore::refusal(generated.request.configuration);
}

std::optional<std::string> MegatronOrders::nonsense() const {
  return megatron::nonsense_in(generated);
}

MegatronOrders megatron_orders(std::int64_t pp, std::optional<std::int64_t> vp,
                               std::int64_t microbatches, std::optional<std::int64_t> group_size,
                               bool overlap, bool delayed_wgrad, std::vector<std::int64_t> layers,
                               std::optional<std::int64_t> rank, bool runtime) {
  using megatron::WeightGradients;
  using megatron::Which;
  if (pp < 1) throw std::invalid_argument("pp: a pipeline has at least one rank");
  if (rank && (*rank < 0 || *rank >= pp)) {
    throw std::invalid_argument(fmt::format("rank: there are ranks 0 to {}", pp - 1));
  }
  auto made = megatron::orders_of(
      {.configuration = {.pipeline = pp,
                         .virtual_stages = vp,
                         .microbatches = microbatches,
                         .group_size = group_size,
                         .ep_overlap = overlap},
       .which = runtime ? Which::Runtime : Which::Capture,
       .rank = rank,
       .layers_per_chunk = std::move(layers),
       .weight_gradients = delayed_wgrad ? WeightGradients::Delayed : WeightGradients::InBackward});
  if (!made) throw std::invalid_argument(words_of(made.error()));
  return {*std::move(made)};
}

nb::list numbers_of(const std::vector<TeList>& lists) {
  nb::list ranks;
  for (const TeList& list : lists) {
    nb::list numbers;
    for (const TeEntry& entry : list.entries) {
      if (entry.type == NumberType::Integer) {
        numbers.append(static_cast<std::int64_t>(entry.value));
      } else {
        numbers.append(entry.value);
      }
    }
    ranks.append(numbers);
  }
  return ranks;
}

}  // namespace capo::python
