#include "testing/accumulator.h"

#include "core/base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

namespace capo::gradients {

namespace {

void add(Holding& to, const Holding& from) {
  for (const auto& [microbatch, times] : from.times) to.times[microbatch] += times;
  to.stale |= from.stale;
  to.garbage |= from.garbage;
}

Holding one(std::int32_t microbatch) {
  return {.times = {{microbatch, 1}}};
}

// The parameter that a step follows, whose cell the contract has.
struct Followed {
  Cell cell;
  bool trained = true;
  bool of_two_in_one_queue = false;  ///< W pops once for each weight, and one of them is frozen
  bool by_handle = false;            ///< found through a weak handle, which may have expired
};

class Step {
 public:
  Step(const Setting& setting, const Followed& followed)
      : setting_(setting), cell_(followed.cell), followed_(followed) {
    const ModuleFlags& flags = setting.flags;
    main_grad_.stale =
        writes_main_grad() && (flags.overwrite_main_grad || flags.is_first_microbatch);
  }

  Outcome run(std::span<const Event> events) {
    for (const Event& event : events) {
      apply(event);
      if (outcome_.refused) return outcome_;
    }
    reduce();
    return outcome_;
  }

 private:
  void apply(const Event& event) {
    CAPO_ASSERT(event.microbatch >= 0, "microbatches are counted from 0");
    switch (event.kind) {
      case Event::Kind::Backward:
        return backward(event.microbatch);
      case Event::Kind::WeightGradient:
        return weight_gradient(event.microbatch);
      case Event::Kind::Collect:
        return collect();
      case Event::Kind::Reduce:
        return reduce();
      case Event::Kind::Expire:
        expired_ = true;
        return;
    }
  }

  void backward(std::int32_t microbatch) {
    if (!done_.insert(microbatch).second) return refuse_second_backward(microbatch);
    if (!followed_.trained) return;
    if (setting_.weight == Weight::OfSeveralParameters && te() && writes_main_grad())
      return refuse("AttributeError: the concatenated weight has no main_grad");
    if (is_gone()) return;
    if (cell_.written == Written::WithW) {
      queue_.push_back(microbatch);
      if (cell_.flagged == Flagged::AtW) flag_ = false;
    } else if (cell_.returned != Returned::Gradient) {
      write(microbatch);
    }
    // A replay sets nothing; but capture did, and then nobody resets it.
    if (cell_.flagged == Flagged::AtB) flag_ = true;
    hand_to_autograd(microbatch);
  }

  void weight_gradient(std::int32_t microbatch) {
    if (!setting_.flags.delay_wgrad) return;
    te() ? pop_as_te(microbatch) : take_own(microbatch);
    if (cell_.flagged == Flagged::AtW && !outcome_.refused) flag_ = queue_.empty();
  }

  void take_own(std::int32_t microbatch) {
    if (!followed_.trained) return;
    const auto own = std::find(queue_.begin(), queue_.end(), microbatch);
    if (own == queue_.end()) {
      return refuse(
          fmt::format("nothing is queued for the weight gradient of `{}` of microbatch {}",
                      setting_.parameter, microbatch));
    }
    if (is_gone()) return;
    queue_.erase(own);
    write(microbatch);
  }

  // First in, first out. A frozen weight queues nothing, and W asks for its entry all the same.
  void pop_as_te(std::int32_t microbatch) {
    if (cell_.written != Written::WithW && followed_.trained) return;
    for (int pops = followed_.of_two_in_one_queue ? 2 : 1; pops > 0; --pops) {
      if (queue_.empty()) {
        if (te_raises_on_empty_queue(setting_.kind)) refuse("RuntimeError: Pop empty queue");
        return;
      }
      const std::int32_t oldest = queue_.front();
      queue_.pop_front();
      if (oldest != microbatch || followed_.of_two_in_one_queue) outcome_.mixed_up = true;
      write(oldest);
    }
  }

  void write(std::int32_t microbatch) {
    outcome_.written_late |= reduced_;
    switch (destination()) {
      case Destination::Nowhere:
      case Destination::AssignsTemporary:
        break;
      case Destination::AddsToGrad:
        add(grad(), one(microbatch));
        break;
      case Destination::AssignsGrad:
        grad_ = one(microbatch);
        break;
      case Destination::AssignsGradIfNone:
        if (!grad_) grad_ = one(microbatch);
        break;
      case Destination::AddsToMainGrad:
        add(main_grad_, one(microbatch));
        break;
      case Destination::OverwritesMainGrad:
        main_grad_ = one(microbatch);
        break;
      case Destination::FirstForwardOverwrites:
        if (microbatch == 0) main_grad_ = {};
        add(main_grad_, one(microbatch));
        break;
      case Destination::FirstWriteOverwrites:
        if (!written_) main_grad_ = {};
        add(main_grad_, one(microbatch));
        break;
    }
    written_ = true;
  }

  // The cell says where the gradient goes, except where this run or this weight changes it.
  [[nodiscard]] Destination destination() const {
    if (!te()) return cell_.destination;
    const bool by_python = cell_.destination == Destination::AssignsGrad ||
                           cell_.destination == Destination::AssignsGradIfNone;
    if (by_python && replayed()) return Destination::Nowhere;
    if (by_python && setting_.weight == Weight::OfSeveralParameters)
      return Destination::AssignsTemporary;
    if (cell_.destination == Destination::FirstForwardOverwrites && replayed())
      return Destination::AddsToMainGrad;
    return cell_.destination;
  }

  void hand_to_autograd(std::int32_t microbatch) {
    switch (cell_.returned) {
      case Returned::Nothing:
        return;
      case Returned::Gradient:
        return write(microbatch);
      case Returned::Zeros:
        return add(grad(), {});
      case Returned::Dummy:
      case Returned::SharedDummy:
      case Returned::Uninitialised:
        return add(grad(), {.garbage = true});
      case Returned::LiveView:
        // The first becomes .grad; one that is added to it is added to itself.
        if (grad_is_main_grad_) add(main_grad_, Holding(main_grad_));
        grad_is_main_grad_ = true;
        return;
    }
  }

  void collect() {
    const bool adds = !flag_ || setting_.flags.zero_out_wgrad;
    if (adds && grad_) add(main_grad_, *grad_);
    if (adds && grad_is_main_grad_) add(main_grad_, Holding(main_grad_));
    grad_.reset();
    grad_is_main_grad_ = false;
  }

  void reduce() {
    collect();
    if (std::exchange(reduced_, true)) return;
    outcome_.held = main_grad_;
    outcome_.read_early = !queue_.empty();
    outcome_.flag_ahead = !queue_.empty() && flag_;
  }

  // Whether the parameter is gone, which is refused.
  bool is_gone() {
    if (!expired_ || !followed_.by_handle) return false;
    refuse(te() ? "AssertionError: weight was removed while fuse_wgrad_accumulation=True"
                : fmt::format("the parameter `{}` is gone, and its gradient has nowhere to go",
                              setting_.parameter));
    return true;
  }

  void refuse_second_backward(std::int32_t microbatch) {
    refuse(te() ? "AttributeError: the state of a backward is dropped with the first"
                : fmt::format("microbatch {} of `{}` has had its backward", microbatch,
                              setting_.parameter));
  }

  void refuse(std::string reason) { outcome_.refused = std::move(reason); }

  Holding& grad() {
    if (!grad_) grad_.emplace();
    return *grad_;
  }

  [[nodiscard]] bool te() const { return setting_.whose == Contract::Te; }
  [[nodiscard]] bool replayed() const { return setting_.execution == Execution::Replayed; }
  [[nodiscard]] bool writes_main_grad() const { return is_main_grad(cell_.destination); }

  const Setting& setting_;
  Cell cell_;
  Followed followed_;
  std::optional<Holding> grad_;
  bool grad_is_main_grad_ = false;  ///< .grad is a view
  Holding main_grad_;
  bool flag_ = false;
  bool written_ = false;  ///< in this step
  bool reduced_ = false;
  bool expired_ = false;
  std::deque<std::int32_t> queue_;  ///< microbatches whose B ran and whose W did not
  std::set<std::int32_t> done_;     ///< microbatches whose B ran
  Outcome outcome_;
};

Followed follow_weight(const Setting& setting) {
  const bool te = setting.whose == Contract::Te;
  const bool frozen = setting.flags.frozen_weight;
  const bool mlp = setting.kind == ModuleKind::LayerNormMlp;
  ModuleFlags flags = setting.flags;
  flags.frozen_weight = frozen && !mlp;
  const std::optional<Cell> cell = contract_under(setting.kind, flags, setting.whose);
  CAPO_ASSERT(cell.has_value(), "only settings that the contract has a cell of are run");
  return {
      .cell = *cell,
      .trained = !flags.frozen_weight,
      .of_two_in_one_queue = te && frozen && mlp,
      // TE's operations know their parameters, and its modules look only where main_grad is wanted.
      .by_handle = !te || (flags.fuse_wgrad_accumulation && !is_operation(setting.kind)),
  };
}

}  // namespace

Outcome accumulate(const Setting& setting, std::span<const Event> events) {
  return Step(setting, follow_weight(setting)).run(events);
}

Outcome accumulate_bias(const Setting& setting, std::span<const Event> events) {
  if (!setting.flags.bias) return {};
  const std::optional<Cell> cell = bias_contract(setting.kind, setting.flags, setting.whose);
  CAPO_ASSERT(cell.has_value(), "only settings that the contract has a cell of are run");
  return Step(setting, {.cell = *cell, .by_handle = setting.whose == Contract::Sound}).run(events);
}

}  // namespace capo::gradients
