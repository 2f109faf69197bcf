#include "core/rules/plan_view.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/te/reuse.h"
#include "core/rules/given_plan.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <tuple>

namespace capo {

namespace {

// Two orders have the same hazard if these are equal.
using Signature = std::tuple<BufferId, std::int32_t, Kind, std::int32_t, std::int32_t>;

// A send that is over only by the end of some later work is the victim's own send in every order,
// whichever work that is.
Signature signature_of(const BufferTable& table, const Hazard& hazard, Action reader) {
  const Buffer& victim = hazard.victim;
  if (hazard.window) {
    reader = {.kind = Kind::SendBackward, .chunk = victim.chunk, .microbatch = victim.microbatch};
  }
  const Kind kind = hazard.window ? reader.kind : hazard.reader.kind;
  return {table.id(victim.rank, victim.chunk, victim.layer, victim.microbatch, victim.kind),
          hazard.reader.rank, kind, reader.chunk, reader.microbatch};
}

}  // namespace

bool replays_otherwise(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const auto& rank) {
    return rank.replay && !std::equal(rank.order.begin(), rank.order.end(), rank.replay->begin(),
                                      rank.replay->end(), [](const Entry& a, const Entry& b) {
                                        return a.action() == b.action() && a.group == b.group;
                                      });
  });
}

bool PlanView::wanted(const Input& input, const CheckOptions& options) {
  if (input.schedule.ranks.empty()) return false;
  if (asked_for(input, options)) return true;
  const auto& ranks = input.schedule.ranks;
  return input.form == Form::TeList && std::any_of(ranks.begin(), ranks.end(), te_could_hurt);
}

bool PlanView::asked_for(const Input& input, const CheckOptions& options) {
  return options.plan.kind.has_value() || replays_otherwise(input.schedule);
}

PlanView::PlanView(const Subject& subject)
    : declared_(subject.options.plan.kind.has_value()),
      table_(subject.input.schedule, subject.microbatches, subject.options.modules,
             subject.options.plan) {
  for (const RankOrder& rank : subject.input.schedule.ranks) {
    delay_.push_back(resolved_delay(rank));
  }
  if (table_.beyond_addresses()) return;
  capture_ = subject.wirings.front().get();
  captured_ = shortest_course_of(*capture_, subject.options);
  make_plan(subject);
  if (!misfit_) judge_all(subject);
}

void PlanView::make_plan(const Subject& subject) {
  const CheckOptions& options = subject.options;
  const PlanKind kind = options.plan.kind.value_or(PlanKind::Te);
  if (kind == PlanKind::Te && captured_.swept && subject.te_plan) {
    plan_ = subject.te_plan;
  } else if (kind != PlanKind::Given) {
    plan_ = std::make_shared<const Plan>(assigned(subject, kind));
  } else {
    CAPO_ASSERT(options.given != nullptr, "whoever asks for a given plan gives it");
    Read<Plan> given = plan_of(*options.given, table_, *captured_.map, captured());
    if (!given) {
      misfit_ = given.error();
      return;
    }
    given->granularity = options.plan.granularity;
    plan_ = std::make_shared<const Plan>(*std::move(given));
  }
}

Plan PlanView::assigned(const Subject& subject, PlanKind kind) const {
  const CheckOptions& options = subject.options;
  const bool alike = subject.wirings.front() == subject.wirings.back();
  const Course replayed = alike ? Course{} : shortest_course_of(*subject.wirings.back(), options);
  Plan plan = assign(table_, captured_, kind, options.plan.granularity, LowerBounds::Without,
                     alike ? &captured_ : &replayed);
  const bool asked = !options.findings_alone || options.plan.budget;
  if (kind == PlanKind::Te && asked) warm_up(plan, options.plan.warm_up_keeps_outputs);
  return plan;
}

void PlanView::warm_up(Plan& plan, bool keeps_outputs) const {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    RankMemory& memory = plan.ranks[r];
    const auto rank = static_cast<std::int32_t>(r);
    const WarmUp warm_up = warm_up_of(table_, rank, RankWork(captured_, rank).all(),
                                      memory.static_inputs, keeps_outputs);
    memory.warm_up = warm_up.most;
    memory.warm_up_entry = warm_up.entry;
  }
}

// A sweep has the work of the orders, which is all that a framework's reuse of memory goes by.
std::shared_ptr<const Plan> PlanView::te_plan() const {
  return plan_->kind == PlanKind::Te && captured_.swept ? plan_ : nullptr;
}

const std::vector<RankMemory>& PlanView::memory() const {
  if (!memory_.empty()) return memory_;
  memory_ = plan_->ranks;
  if (plan_->kind == PlanKind::Safe) return memory_;
  add_under_every_plan(table_, captured_, memory_);
  return memory_;
}

const std::vector<std::vector<Work>>& PlanView::captured() const {
  if (captured_.work.empty() && captured_.swept) {
    for (std::size_t r = 0; r < captured_.swept->ranks(); ++r)
      captured_.work.push_back(captured_.swept->work_of(static_cast<std::int32_t>(r)));
  }
  return captured_.work;
}

const Course& PlanView::course() const {
  if (captured_.swept) captured_ = course_of(*capture_);
  return captured_;
}

// If ranks have several communicators, the order in which events come decides which slot a receive
// is posted into, and from when on a send that has arrived counts as over: what a plan's hazards
// are does not hang on either, and nobody else looks. Copies of Megatron's are made in the order of
// the graph as well.
Course PlanView::shortest_course_of(const Wiring& wiring, const CheckOptions& options) const {
  const PlanKind kind = options.plan.kind.value_or(PlanKind::Te);
  const bool alike = wiring.environment().layout() == Communicators::PerRank
                         ? kind != PlanKind::McoreLocal
                         : (kind == PlanKind::Safe || kind == PlanKind::Te) &&
                               options.findings_alone && !options.plan.budget;
  const auto swept = alike ? wiring.swept() : std::nullopt;
  if (!swept) return course_of(wiring);
  Course course{.map = &wiring.map(), .delay = &delay_};
  course.swept =
      std::make_shared<const SweptCourse>(wiring.map(), *swept, delay_, wiring.swept_log());
  return course;
}

Course PlanView::course_of(const Wiring& wiring) const {
  Course course{.map = &wiring.map(), .delay = &delay_};
  const auto& ranks = wiring.schedule().ranks;
  if (wiring.transfers_matter()) {
    course.graph = &wiring.transfers().graph;
    course.lowered = &wiring.lowered();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      auto& work = course.work.emplace_back();
      for (const Step& step : course.lowered->ranks[r]) {
        if (is_work(step)) work.push_back(work_of(step, delay_[r]));
      }
    }
  } else {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      course.work.push_back(work_of(ranks[r].order, delay_[r]));
    }
  }
  return course;
}

// A sweep meets hazards in another order than the graph, which is the order that reports have, and
// of a given plan, whose receives write where it says, it may take for a race what is none. The
// order alone is not worth the graph of a large step.
HazardList PlanView::hazards_of(const Wiring& wiring, const Course& course,
                                bool findings_alone) const {
  constexpr std::size_t kLarge = std::size_t{1} << 23;
  HazardList found = judge(table_, course, *plan_);
  const bool alike = plan_->kind != PlanKind::Given && (findings_alone || table_.all() > kLarge);
  if (found.empty() || !course.swept || alike) return found;
  return judge(table_, course_of(wiring), *plan_);
}

void PlanView::judge_all(const Subject& subject) {
  const auto signature = [&](const Wiring& wiring, const Hazard& hazard) {
    const auto& order = wiring.schedule().ranks[RankId(hazard.reader.rank).index()].order;
    return signature_of(table_, hazard, order[hazard.reader.entry].action());
  };
  const Wiring& capture = *subject.wirings.front();
  replay_ = subject.wirings.back().get();
  const bool findings_alone = subject.options.findings_alone;
  found_ = hazards_of(capture, captured_, findings_alone);
  if (&capture == replay_) return;
  std::set<Signature> captured;
  for (const Hazard& hazard : found_) captured.insert(signature(capture, hazard));
  found_ = hazards_of(*replay_, shortest_course_of(*replay_, subject.options), findings_alone);
  for (const Hazard& hazard : found_)
    by_replay_.push_back(!captured.contains(signature(*replay_, hazard)));
}

JudgedHazard PlanView::judged(const Hazard& hazard, std::size_t number) const {
  JudgedHazard judged{.hazard = hazard, .wiring = replay_, .kind = kind_of(hazard)};
  const Buffer& victim = hazard.victim;
  const bool allocated = judged.kind == HazardKind::Pool || judged.kind == HazardKind::P2pWindow;
  const bool always = victim.kind == BufferKind::GradOutput && is_backward(hazard.reader.kind);
  judged.unsure = !allocated && !always &&
                  !table_.facts(victim.rank, victim.chunk, victim.layer).aliases_declared;
  judged.possible = judged.unsure || plan_->kind == PlanKind::McoreLocal ||
                    (allocated && plan_->kind == PlanKind::Te);
  judged.by_replay = !by_replay_.empty() && by_replay_[number];
  return judged;
}

JudgedHazard JudgedHazards::Iterator::operator*() const {
  return view_->judged(*at_, number_);
}

}  // namespace capo
