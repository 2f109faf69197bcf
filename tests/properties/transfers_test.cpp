// Transfers: what is sound stays sound under every way of communicating, and whether moved
// transfers finish, and meet as they are meant to, is what an executor says that shares no code
// with capo.

#include "core/frameworks/megatron/calls.h"
#include "core/frameworks/megatron/orders.h"
#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/text/order_text.h"
#include "testing/generators/communication.h"
#include "testing/generators/moved_transfers.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/checked.h"
#include "testing/oracle_pipeline.h"
#include "tests/properties/every_environment.h"
#include "tests/support/check_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::check_in;
using testing_support::Checked;

std::string name_of(const Environment& environment) {
  const auto word = [](const auto& value) { return value ? capo::name_of(*value) : "undeclared"; };
  return fmt::format("{} {}{}", word(environment.communicators), word(environment.transfers),
                     environment.p2p ? fmt::format(" {}", capo::name_of(*environment.p2p)) : "");
}

void require(bool holds, const Checked& checked, const Environment& environment,
             std::string_view what) {
  if (!holds) {
    RC_FAIL(fmt::format("{}: {}; findings [{}]", name_of(environment), what,
                        fmt::join(checked.findings(), " ")));
  }
}

bool transfers_matter(const Schedule& schedule) {
  return schedule.topology != Topology::Independent && schedule.ranks.size() > 1;
}

RC_GTEST_PROP(Transfers, OfASoundStepAreAccepted, ()) {
  const Communication sound = *sound_communication();
  RC_CLASSIFY(sound.environment.p2p.has_value());
  RC_CLASSIFY(sound.environment.ep_overlap);
  const testing::Checked verdict = checked(sound);
  if (!verdict.accepted()) RC_FAIL(verdict.report());
}

RC_GTEST_PROP(Transfers, ThatPyTorchAddsToASoundScheduleFinishEverywhere, ()) {
  const Schedule schedule = *sound_named_schedule();
  if (!transfers_matter(schedule)) return;
  const Schedule communicating = with_transfers(schedule);
  for (const Environment& environment : declared_environments()) {
    for (const Schedule* of : {&schedule, &communicating}) {
      const Checked checked = check_schedule(*of, environment);
      require(checked.accepted(), checked, environment, "not accepted");
      require(checked.result.finishes == true, checked, environment, "does not finish");
    }
  }
}

RC_GTEST_PROP(Transfers, ThatAreMovedFinishExactlyWhereTheOracleSaysSo, ()) {
  const Schedule schedule = *moved_transfers();
  const StageMap map(schedule);
  for (const Environment& environment : declared_environments()) {
    const Checked checked = check_schedule(schedule, environment);
    const oracle::Pipeline pipeline = oracle_pipeline(as_written(schedule), map, environment);
    const bool finishes = oracle::finishes(pipeline);
    const bool mixes_up = oracle::mixes_up(pipeline);
    // To an executor that knows no names, ends on two communicators are messages that meet others.
    if (reports(checked, "T13")) {
      require(environment.layout() == Communicators::LazyHybrid, checked, environment,
              "no other layout has two communicators for a message");
      require(!checked.accepted() && (mixes_up || !finishes), checked, environment,
              "to the oracle every message is met");
      continue;
    }
    require(checked.result.finishes == finishes, checked, environment,
            finishes ? "the oracle finishes" : "the oracle does not finish");
    require(reports(checked, "T08") == mixes_up, checked, environment,
            mixes_up ? "to the oracle messages are mixed up" : "to the oracle all messages fit");
    require(checked.accepted() == (finishes && !mixes_up), checked, environment, "other verdict");
    const bool explained = reports(checked, "T06") || reports(checked, "T07");
    require(reports(checked, "T09") == (!finishes && !explained), checked, environment,
            "a deadlock is what nothing else explains");
  }
}

RC_GTEST_PROP(Transfers, ThatAreMovedMakeTheirCommunicatorsExactlyWhereTheOracleSaysSo, ()) {
  const Schedule schedule = *moved_transfers();
  const StageMap map(schedule);
  for (Environment environment : declared_environments()) {
    const Checked eager = check_schedule(schedule, environment);
    environment.comm_init = CommInit::Lazy;
    const Checked lazy = check_schedule(schedule, environment);
    const bool all =
        !oracle::first_never_made(oracle_pipeline(as_written(schedule), map, environment));
    const bool explained = reports(lazy, "T06") || reports(lazy, "T07") || reports(lazy, "T13");
    require(reports(lazy, "T14") == (!all && !explained), lazy, environment,
            all ? "the oracle makes all" : "the oracle does not make all");
    require(lazy.accepted() == (eager.accepted() && all), lazy, environment, "other verdict");
  }
}

// A chain of which the first two ranks alone exchange a group that goes both ways.
std::string with_one_exchange(int ranks) {
  std::string text =
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 F1.1 (send-F1.1 recv-B1.0) B1.0 recv-B1.1 B1.1\n";
  for (int rank = 1; rank < ranks; ++rank) {
    const auto onward = [&](int m) {
      return rank + 1 == ranks ? "" : fmt::format("send-F1.{0} recv-B1.{0} ", m);
    };
    text +=
        fmt::format("rank {}: recv-F1.0 F1.0 {}B1.0 {} F1.1 {}B1.1 send-B1.1\n", rank, onward(0),
                    rank == 1 ? "(send-B1.0 recv-F1.1)" : "send-B1.0 recv-F1.1", onward(1));
  }
  return text;
}

RC_GTEST_PROP(Transfers, OnAParentThatSomeRankNeverUsesHangWhereItIsMadeLazily, ()) {
  const int ranks = *rc::gen::inRange(2, 6);
  const Environment environment{
      .communicators = Communicators::LazyHybrid,
      .transfers = *rc::gen::element(TransferMode::Rendezvous, TransferMode::Buffered),
      .comm_init = CommInit::Lazy};
  const Checked checked = testing_support::check_in(
      {.environment = environment}, with_one_exchange(ranks), {.form = TextForm::OrderFile});
  const Schedule& schedule = checked.input.schedule;
  const bool all = !oracle::first_never_made(
      oracle_pipeline(as_written(schedule), StageMap(schedule), environment));
  RC_ASSERT(all == (ranks == 2));
  require(reports(checked, "T14") == !all, checked, environment, "the oracle says otherwise");
  require(checked.accepted() == all, checked, environment, "other verdict");
}

// Fuses some of the transfers of one direction that stand one behind another.
Schedule fused_one_way(Schedule schedule) {
  const auto one_way = [](const Entry& a, const Entry& b) {
    return (is_send(a.kind) && is_send(b.kind)) || (is_receive(a.kind) && is_receive(b.kind));
  };
  for (RankOrder& rank : schedule.ranks) {
    for (std::size_t at = 1; at < rank.order.size(); ++at) {
      Entry& before = rank.order[at - 1];
      Entry& entry = rank.order[at];
      if (!one_way(before, entry) || !*rc::gen::arbitrary<bool>()) continue;
      if (before.group == Group::Alone) before.group = Group::Opens;
      entry.group = Group::Continues;
    }
  }
  return schedule;
}

RC_GTEST_PROP(Transfers, OfOneDirectionAreIssuedApartWherePairsHaveChannels, ()) {
  const Schedule schedule = *moved_transfers();
  const Schedule fused = fused_one_way(schedule);
  for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
    const Environment environment{.communicators = Communicators::LazyHybrid, .transfers = mode};
    const Checked apart = check_schedule(schedule, environment);
    const Checked together = check_schedule(fused, environment);
    RC_CLASSIFY(apart.result.finishes != true);
    require(apart.result.finishes == together.result.finishes, together, environment,
            "a group of one direction is no group");
    require(apart.accepted() == together.accepted(), together, environment, "other verdict");
  }
}

// Compares the verdict on a table with transfers with the oracle's.
void require_what_the_oracle_says(const std::string& table, const Environment& environment) {
  const Checked checked =
      testing_support::check_in({.environment = environment}, table, {.form = TextForm::TorchCsv});
  const Schedule& schedule = checked.input.schedule;
  const oracle::Pipeline pipeline =
      oracle_pipeline(as_written(schedule), StageMap(schedule), environment);
  const bool finishes = oracle::finishes(pipeline);
  require(checked.result.finishes == finishes, checked, environment,
          finishes ? "the oracle finishes" : "the oracle does not finish");
  require(reports(checked, "T08") == oracle::mixes_up(pipeline), checked, environment,
          "other messages are mixed up");
}

// Rank 0 sends so many activations before it takes a gradient; rank 1 answers each at once.
std::string sent_ahead(int microbatches, int ahead) {
  std::string first;
  std::string second;
  for (int m = 0; m < microbatches; ++m) first += fmt::format("0F{},", m);
  for (int m = 0; m < microbatches + ahead; ++m) {
    if (m < microbatches) first += fmt::format("0SEND_F{},", m);
    if (m >= ahead) first += fmt::format("0RECV_B{0},0B{0},", m - ahead);
  }
  for (int m = 0; m < microbatches; ++m)
    second += fmt::format("1RECV_F{0},1F{0},1B{0},1SEND_B{0},", m);
  first.pop_back();
  second.pop_back();
  return first + "\n" + second + "\n";
}

RC_GTEST_PROP(Transfers, SentAheadFinishWhereTheirChannelHoldsThem, ()) {
  const int microbatches = *rc::gen::inRange(1, 8);
  const std::string table = sent_ahead(microbatches, *rc::gen::inRange(0, microbatches));
  for (const std::int64_t held : {0, 1, 2, 3}) {
    require_what_the_oracle_says(table, {.communicators = Communicators::PerRank,
                                         .transfers = TransferMode::Buffered,
                                         .channel_bytes = held,
                                         .message_bytes = 1});
  }
}

// Stages 0 and 3 are on rank 0, so both passes go from each rank to the other, in any order.
RC_GTEST_PROP(Transfers, OfTwoPassesMeetByPassOrTogether, ()) {
  const auto either = [](const char* one, const char* other) {
    return *rc::gen::arbitrary<bool>() ? fmt::format("{},{}", one, other)
                                       : fmt::format("{},{}", other, one);
  };
  const std::string table = fmt::format(
      "0F0,0SEND_F0,0F1,3RECV_F0,3F0,3B0,{},0RECV_B0,0B0,3RECV_F1,3F1,3B1,3SEND_B1,"
      "0RECV_B1,0B1\n1RECV_F0,1F0,2F0,2SEND_F0,{},2B0,1F1,2F1,1B0,{},2RECV_B1,2B1,1B1,"
      "1SEND_B1\n",
      either("0SEND_F1", "3SEND_B0"), either("2RECV_B0", "1RECV_F1"),
      either("1SEND_B0", "2SEND_F1"));
  for (const Environment& environment : declared_environments())
    require_what_the_oracle_says(table, environment);
}

// Leaves the layout of communicators, the kind of send or both undeclared.
Environment any_undeclared() {
  Environment declared;
  const int stated = *rc::gen::inRange(0, 4);
  if (stated == 0)
    declared.communicators =
        *rc::gen::element(Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge);
  if (stated == 1)
    declared.transfers = *rc::gen::element(TransferMode::Rendezvous, TransferMode::Buffered);
  return declared;
}

bool may_be(const Environment& value, const Environment& declared) {
  return value.communicators == declared.communicators.value_or(*value.communicators) &&
         value.transfers == declared.transfers.value_or(*value.transfers);
}

RC_GTEST_PROP(Transfers, ThatNobodyDeclaresAreJudgedByTheWorstThatTheOracleSays, ()) {
  const Schedule schedule = *moved_transfers();
  const StageMap map(schedule);
  const Environment declared = any_undeclared();
  std::size_t sound = 0;
  std::size_t values = 0;
  for (const Environment& environment : environments()) {
    if (!may_be(environment, declared)) continue;
    const oracle::Pipeline pipeline = oracle_pipeline(as_written(schedule), map, environment);
    ++values;
    sound += oracle::finishes(pipeline) && !oracle::mixes_up(pipeline) ? 1 : 0;
  }
  RC_CLASSIFY(sound == values, "sound under each");
  RC_CLASSIFY(sound > 0 && sound < values, "sound under some");
  const Checked checked = check_schedule(schedule, declared);
  require(checked.accepted() == (sound == values), checked, declared, "other than the worst");
}

// A transfer of any rank, and a place in its order.
std::pair<std::size_t, std::size_t> any_transfer(const Schedule& schedule) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& order = schedule.ranks[r].order;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (is_transfer(order[at].kind) && order[at].group == Group::Alone) all.emplace_back(r, at);
    }
  }
  RC_PRE(!all.empty());
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

void require_same_end(const Schedule& schedule) {
  const StageMap map(schedule);
  for (const Environment& environment : environments()) {
    const Checked checked = check_schedule(schedule, environment);
    const bool finishes = oracle::finishes(oracle_pipeline(as_written(schedule), map, environment));
    require(!checked.accepted(), checked, environment, "accepted");
    require(checked.result.finishes == finishes, checked, environment,
            finishes ? "the oracle finishes" : "the oracle does not finish");
  }
}

RC_GTEST_PROP(Transfers, OfWhichOneIsMissingEndAsTheOracleSays, ()) {
  Schedule schedule = *moved_transfers();
  const auto [rank, at] = any_transfer(schedule);
  auto& order = schedule.ranks[rank].order;
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
  require_same_end(schedule);
}

// Nobody can say which of the two the other end meets, so whether it finishes is not said.
RC_GTEST_PROP(Transfers, OfWhichOneIsThereTwiceHaveNoEnd, ()) {
  Schedule schedule = *moved_transfers();
  const auto [rank, at] = any_transfer(schedule);
  auto& order = schedule.ranks[rank].order;
  order.push_back(order[at]);
  for (const Environment& environment : environments()) {
    const Checked checked = check_schedule(schedule, environment);
    require(reports(checked, "T01"), checked, environment, "the second one passes");
    require(!checked.result.finishes, checked, environment, "an end where nobody can tell");
  }
}

// Groups may be smaller than the pipeline and the last one short; forward and backward run as one
// only where Megatron accepts the configuration.
megatron::Request any_megatron_step() {
  megatron::Request request{.which = megatron::Which::Runtime};
  request.configuration.pipeline = *rc::gen::inRange<std::int64_t>(2, 6);
  request.configuration.microbatches = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto chunks = *rc::gen::inRange<std::int64_t>(0, 4);
  if (chunks > 0) request.configuration.virtual_stages = chunks;
  if (chunks > 0) request.configuration.group_size = *rc::gen::inRange<std::int64_t>(1, 9);
  const bool accepted = !mcore::refusal(request.configuration);
  request.configuration.ep_overlap = chunks > 0 && accepted && *rc::gen::arbitrary<bool>();
  return request;
}

RC_GTEST_PROP(Transfers, AsMegatronCallsThemFinishExactlyWhereTheOracleSaysSo, ()) {
  const megatron::Request request = any_megatron_step();
  const auto generated = megatron::orders_of(request);
  RC_PRE(generated.has_value());
  const Schedule schedule = megatron::schedule_of(*generated);
  const StageMap map(schedule);
  const auto microbatches = static_cast<std::int32_t>(request.configuration.microbatches);
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    const MegatronLowering lowering =
        lower_megatron(schedule, calls, request.configuration.ep_overlap);
    if (!lowering.faults.empty()) continue;
    for (const Environment& environment : environments()) {
      const WiredTransfers wired = wire_transfers(lowering.lowered, map, microbatches, environment);
      const oracle::Pipeline pipeline = oracle_pipeline(lowering.lowered, map, environment);
      RC_ASSERT(execute(wired.graph).finishes() == oracle::finishes(pipeline));
      RC_ASSERT(wired.faults.empty() == !oracle::mixes_up(pipeline));
    }
  }
}

// Two entries of a rank change places, whatever comes of it.
Schedule with_two_swapped(Schedule schedule) {
  RankOrder& rank = schedule.ranks[*rc::gen::inRange<std::size_t>(0, schedule.ranks.size())];
  const auto place = [&] { return *rc::gen::inRange<std::size_t>(0, rank.order.size()); };
  RC_PRE(rank.order.size() > 1);
  Entry& a = rank.order[place()];
  Entry& b = rank.order[place()];
  std::swap(a, b);
  std::swap(a.group, b.group);
  if (schedule.naming == Naming::Counted) number_microbatches(rank.order, rank.chunks);
  return schedule;
}

// Somewhere in an order, also as the first of a composite or between two of its members.
void put_in_anywhere(const Entry& entry, std::vector<Entry>& order) {
  const auto at = *rc::gen::inRange<std::size_t>(0, order.size() + 1);
  const Group behind = at < order.size() ? order[at].group : Group::Alone;
  const auto put = order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), entry);
  put->group = behind;
  if (behind == Group::Opens) std::next(put)->group = Group::Continues;
}

// An entry that is no computation, for a chunk and microbatch that the order has.
Entry any_beside(const std::vector<Entry>& order) {
  Entry entry = order[*rc::gen::inRange<std::size_t>(0, order.size())];
  RC_PRE(is_compute(entry.kind));
  entry.kind = *rc::gen::element(Kind::SendForward, Kind::ReceiveForward, Kind::ReduceGradient);
  if (!has_microbatch(entry.kind)) entry.microbatch = kNoMicrobatch;
  return entry;
}

std::vector<std::string> dependencies_of(const Schedule& schedule) {
  std::vector<std::string> rules;
  for (const Diagnostic& finding : checked(schedule).of(Family::Dependencies))
    rules.emplace_back(finding.rule);
  std::sort(rules.begin(), rules.end());
  return rules;
}

RC_GTEST_PROP(Transfers, AndOtherActionsChangeNoDependencyOfComputations, ()) {
  const Schedule computations = with_two_swapped(*sound_named_schedule());
  const std::vector<std::string> rules = dependencies_of(computations);
  RC_CLASSIFY(!rules.empty());
  Schedule schedule = computations;
  for (RankOrder& rank : schedule.ranks) {
    if (rank.order.empty()) continue;
    const Entry entry = any_beside(rank.order);
    for (int i = 0; i < 3; ++i) put_in_anywhere(entry, rank.order);
  }
  RC_ASSERT(dependencies_of(schedule) == rules);
}

RC_GTEST_PROP(Transfers, AreAcceptedOnlyWhereTheyFinish, ()) {
  const Communication sound = *sound_communication();
  const Schedule schedule = with_two_swapped(sound.schedule);
  std::vector<Environment> all = environments();
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    for (const bool overlap : {false, true}) all.push_back({.p2p = calls, .ep_overlap = overlap});
  }
  for (const Environment& environment : all) {
    const Checked checked = check_in({.environment = environment}, print_order_file(schedule), {});
    if (checked.accepted()) {
      RC_ASSERT(checked.result.finishes == true);
      RC_ASSERT(checked.result.skipped.empty());
    } else {
      RC_ASSERT(!checked.findings().empty());
    }
  }
}

}  // namespace
}  // namespace capo::testing
