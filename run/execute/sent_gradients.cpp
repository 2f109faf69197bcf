#include "run/execute/sent_gradients.h"

#include <algorithm>
#include <map>
#include <set>

namespace capo::run {

namespace {

// Adds the messages of one reduction to those before it.
class OfReduction {
 public:
  OfReduction(const DividedStep& step, const Reduction& reduction,
              std::map<Channel, std::uint32_t>& sent)
      : step_(step), reduction_(reduction), sent_(sent) {
    std::set<std::int32_t> homes;
    for (const std::int32_t rank : reduction.ranks) {
      if (homes.insert(step.division.home(rank)).second) firsts_.push_back(rank);
    }
  }

  [[nodiscard]] std::vector<SentGradient> all() {
    for (const auto& of_ranks : reduced_parameters(step_.layers, step_.table, reduction_)) {
      const auto gradients =
          gradients_to_sum(step_.layers, step_.deposits, step_.outputs, of_ranks);
      const bool sums = std::none_of(gradients.begin(), gradients.end(),
                                     [](const GroupedTensor* each) { return each->parts.empty(); });
      for (std::size_t member = 0; sums && member < gradients.size(); ++member) {
        send(reduction_.ranks[member], *gradients[member]);
      }
    }
    return std::move(all_);
  }

 private:
  // Sends a rank's gradient to each process that does not have it.
  void send(std::int32_t rank, const GroupedTensor& gradient) {
    for (const std::int32_t to : firsts_) {
      if (step_.division.home(to) == step_.division.home(rank)) continue;
      const Channel channel{.sender = rank, .receiver = to, .communicator = kReductionsThrough};
      for (std::byte* const part : gradient.parts) {
        SentGradient& one = all_.emplace_back();
        one.message = {
            .channel = channel, .number = sent_[channel]++, .bytes = gradient.part_bytes()};
        one.gradient = part;
        if (step_.own.contains(rank)) one.end = End::Send;
        if (step_.own.contains(to)) one.end = End::Receive;
      }
    }
  }

  const DividedStep& step_;
  const Reduction& reduction_;
  std::map<Channel, std::uint32_t>& sent_;
  std::vector<std::int32_t> firsts_;  // the first member of each process
  std::vector<SentGradient> all_;
};

}  // namespace

SentGradients gradients_between(const DividedStep& step) {
  SentGradients sent_gradients;
  std::map<Channel, std::uint32_t> sent;
  for (const Reduction& reduction : step.program.reductions) {
    sent_gradients.push_back(OfReduction(step, reduction, sent).all());
  }
  return sent_gradients;
}

std::vector<const GroupedTensor*> gradients_to_sum(const StepLayers& layers,
                                                   const Deposits& deposits,
                                                   const StepOutputs& outputs,
                                                   const std::vector<std::uint32_t>& of_ranks) {
  std::vector<const GroupedTensor*> gradients;
  for (const std::uint32_t parameter : of_ranks) {
    const GradientMemory& memory = outputs.gradients(parameter);
    gradients.push_back(layers.parameters()[parameter].fused          ? &memory.main_grad
                        : deposits.book(parameter).grad_is_returned() ? &memory.returned
                                                                      : &memory.grad);
  }
  return gradients;
}

}  // namespace capo::run
