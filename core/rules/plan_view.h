// The plan of a step and its hazards, for the rules about memory: assigned once from the orders as
// captured, judged by the orders as replayed.
//
// A declared plan is always looked at. If none is declared, TE's is looked at in two cases, and its
// hazards are warnings that name their condition: a TE list with weight gradients of their own, up
// to
// --max-unasked-buffers, and a replay order that is not the order of capture. Tested by
// tests/core/frameworks/te/could_hurt_test.cpp and tests/corpus/rules/B01 to B08, E01, E02, Y01.

#pragma once

#include "core/frameworks/assign.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/plan_result.h"
#include "core/rules/wiring.h"
#include "core/text/refusal.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace capo {

/// A hazard of the orders as they run.
struct JudgedHazard {
  Hazard hazard;
  const Wiring* wiring = nullptr;  ///< holds the orders that writer and reader stand in
  HazardKind kind = HazardKind::StaticInput;
  bool unsure = false;     ///< nobody declared whether the reader reads it
  bool possible = false;   ///< it depends on PyTorch's allocator, or on operands nobody declared
  bool by_replay = false;  ///< replayed as captured there would be none
};

class PlanView;

/// The hazards of a plan view, each judged when it is asked for.
class JudgedHazards {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = JudgedHazard;
    using difference_type = std::ptrdiff_t;
    using pointer = const JudgedHazard*;
    using reference = JudgedHazard;

    JudgedHazard operator*() const;
    Iterator& operator++() {
      ++at_;
      ++number_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class JudgedHazards;
    Iterator(const PlanView& view, HazardList::Iterator at) : view_(&view), at_(at) {}

    const PlanView* view_;
    HazardList::Iterator at_;
    std::size_t number_ = 0;
  };

  /// Both outlive it.
  JudgedHazards(const PlanView& view, const HazardList& found) : view_(view), found_(found) {}

  [[nodiscard]] std::size_t size() const { return found_.size(); }
  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] Iterator begin() const { return {view_, found_.begin()}; }
  [[nodiscard]] Iterator end() const { return {view_, found_.end()}; }

 private:
  const PlanView& view_;
  const HazardList& found_;
};

/// Whether a rank replays other actions than it captured, or the same in another order or grouping.
[[nodiscard]] bool replays_otherwise(const Schedule& schedule);

class PlanView {
 public:
  /// A step whose orders are sound by themselves; all of it outlives the view.
  struct Subject {
    const Input& input;
    const CheckOptions& options;
    std::int32_t microbatches;
    const std::vector<std::unique_ptr<Wiring>>& wirings;  ///< as captured, and as replayed
    std::shared_ptr<const Plan> te_plan;  ///< of the step, if it is known; null: it is not
  };

  /// Whether there is anything to look at; cheap.
  [[nodiscard]] static bool wanted(const Input& input, const CheckOptions& options);
  /// Whether the input asks for it: by declaring a plan, or a replay that parts from its capture.
  [[nodiscard]] static bool asked_for(const Input& input, const CheckOptions& options);

  /// If table() is beyond addresses or the given plan is a misfit there is no plan, and no other
  /// member may be asked.
  explicit PlanView(const Subject& subject);

  /// Why the given plan does not fit the orders, with its place in its own text; null if it does.
  [[nodiscard]] const Refusal* misfit() const { return misfit_ ? &*misfit_ : nullptr; }
  [[nodiscard]] bool declared() const { return declared_; }
  [[nodiscard]] PlanKind kind() const { return plan_->kind; }
  [[nodiscard]] const BufferTable& table() const { return table_; }
  /// Without lower bounds, which memory() has.
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  /// The plan that reuses memory as te does, if it is the same in every environment; else null.
  [[nodiscard]] std::shared_ptr<const Plan> te_plan() const;
  /// The memory that each rank takes, and the least that any plan takes. The first call, though
  /// const, plans the whole step again for those lower bounds; a view belongs to one thread.
  [[nodiscard]] const std::vector<RankMemory>& memory() const;
  /// The orders as captured, rank by rank.
  [[nodiscard]] const std::vector<std::vector<Work>>& captured() const;
  /// The orders as they run when captured. The first call, though const, may build their task
  /// graph, which a plan and its hazards do without where a sweep tells as much.
  [[nodiscard]] const Course& course() const;
  /// How the orders of a wiring run: the captured ones, or those that are replayed. Views into
  /// both.
  [[nodiscard]] Course course_of(const Wiring& wiring) const;
  [[nodiscard]] JudgedHazards hazards() const { return {*this, found_}; }

 private:
  void make_plan(const Subject& subject);
  [[nodiscard]] Plan assigned(const Subject& subject, PlanKind kind) const;
  void warm_up(Plan& plan, bool keeps_outputs) const;
  void judge_all(const Subject& subject);
  [[nodiscard]] Course shortest_course_of(const Wiring& wiring, const CheckOptions& options) const;
  [[nodiscard]] HazardList hazards_of(const Wiring& wiring, const Course& course,
                                      bool findings_alone) const;
  friend class JudgedHazards::Iterator;
  /// `number` is its position among those that were found.
  [[nodiscard]] JudgedHazard judged(const Hazard& hazard, std::size_t number) const;

  bool declared_ = false;
  std::vector<std::vector<Delay>> delay_;
  BufferTable table_;
  const Wiring* capture_ = nullptr;
  mutable Course captured_;
  std::shared_ptr<const Plan> plan_ = std::make_shared<const Plan>();
  std::optional<Refusal> misfit_;
  const Wiring* replay_ = nullptr;
  HazardList found_;
  std::vector<bool> by_replay_;  // by hazard; empty if orders are replayed as captured
  mutable std::vector<RankMemory> memory_;
};

}  // namespace capo
