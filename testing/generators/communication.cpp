#include "testing/generators/communication.h"

#include "core/frameworks/megatron/orders.h"
#include "testing/generators/fewer_microbatches.h"
#include "testing/generators/moved_transfers.h"
#include "testing/generators/sound_schedule.h"
#include "testing/shown_order.h"

#include <ostream>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

Communication draw_written(Dice& dice) {
  Schedule schedule = draw_sound_named_schedule(dice);
  while (schedule.topology == Topology::Independent || schedule.ranks.size() < 2)
    schedule = draw_sound_named_schedule(dice);
  Environment environment;
  if (dice.one_in(2)) environment.communicators = static_cast<Communicators>(dice.below(3));
  if (dice.one_in(2)) environment.transfers = static_cast<TransferMode>(dice.below(2));
  return {.schedule = with_transfers(schedule), .environment = environment};
}

mcore::Configuration draw_configuration(Dice& dice) {
  while (true) {
    mcore::Configuration configuration{.pipeline = dice.between(2, 4)};
    const auto ranks = static_cast<std::int32_t>(configuration.pipeline);
    configuration.microbatches = dice.between(ranks, 2 * ranks + 2);
    if (!dice.one_in(4)) {
      configuration.virtual_stages = dice.between(1, 3);
      configuration.group_size = dice.between(ranks, ranks + 2);
      configuration.ep_overlap = dice.one_in(3);
    }
    if (!mcore::refusal(configuration)) return configuration;
  }
}

Communication draw_called(Dice& dice) {
  const mcore::Configuration configuration = draw_configuration(dice);
  const bool several = configuration.virtual_stages.value_or(1) > 1;
  std::vector<MegatronCalls> calls;
  if (configuration.virtual_stages) calls.push_back(MegatronCalls::Overlap);
  if (configuration.pipeline > 2 || !several) calls.push_back(MegatronCalls::Batch);
  if (several) calls.push_back(MegatronCalls::Flush);
  Communication communication{
      .schedule = megatron::schedule_of(
          megatron::orders_of({.configuration = configuration, .which = megatron::Which::Runtime})
              .value()),
      .environment = {.p2p = dice.pick(std::span<const MegatronCalls>(calls)),
                      .ep_overlap = configuration.ep_overlap}};
  if (communication.environment.p2p == MegatronCalls::Flush)
    communication.environment.communicators = Communicators::PerPair;
  return communication;
}

}  // namespace

rc::Gen<Communication> sound_communication() {
  return generator(
      [](Dice& dice) { return dice.one_in(2) ? draw_written(dice) : draw_called(dice); },
      [](const Communication& communication) {
        // Megatron-LM's calls are found in its own orders only.
        return communication.environment.p2p ? std::vector<Communication>{}
                                             : with_fewer_microbatches(communication);
      });
}

void showValue(const Communication& communication, std::ostream& out) {
  out << shown_order(communication.schedule,
                     {.environment = communication.environment, .groups = communication.groups});
}

}  // namespace capo::testing
