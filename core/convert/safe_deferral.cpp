#include "core/convert/for_torch.h"

#include <set>
#include <span>
#include <utility>
#include <vector>

namespace capo {

namespace {

using Receives = std::span<const TorchAction>;

std::vector<TorchAction> receives_of(const torch::Rows& rows) {
  std::vector<TorchAction> receives;
  for (const auto& row : rows) {
    for (const torch::Slot& slot : row) {
      if (!slot.idle() && torch::is_receive(slot.head().type)) receives.push_back(slot.head());
    }
  }
  return receives;
}

class DeferralSearch {
 public:
  DeferralSearch(const torch::Rows& rows, ForTorch wanted,
                 const std::function<bool(const std::string&)>& accepts)
      : rows_(rows), wanted_(std::move(wanted)), accepts_(accepts) {}

  // Lowers without putting anything off, and returns whether that is accepted.
  bool begin() {
    table = lower_for_torch(rows_, wanted_).value();
    return accepts_(table);
  }

  // Puts off as many of these as are accepted together with those that are put off already.
  void put_off(Receives receives) {
    if (receives.empty() || accepted_without(receives) || receives.size() == 1) return;
    const std::size_t half = receives.size() / 2;
    put_off(receives.first(half));
    put_off(receives.subspan(half));
  }

  std::string table;
  [[nodiscard]] std::set<TorchAction>& posted() { return wanted_.policy.orderly->posted; }

 private:
  bool accepted_without(Receives receives) {
    const std::set<TorchAction> before = posted();
    for (const TorchAction& receive : receives) posted().erase(receive);
    auto lowered = lower_for_torch(rows_, wanted_);
    const bool accepted = lowered && accepts_(*lowered);
    if (accepted)
      table = *std::move(lowered);
    else
      posted() = before;
    return accepted;
  }

  const torch::Rows& rows_;
  ForTorch wanted_;
  const std::function<bool(const std::string&)>& accepts_;
};

}  // namespace

Result<SafelyDeferred, RaisedByTorch> defer_safely(
    const torch::Rows& rows, ForTorch wanted,
    const std::function<bool(const std::string& table)>& accepts) {
  wanted.policy.defer_pp_recv = false;
  const auto early = lowered_rows(rows, wanted);
  if (!early) return early.error();
  const std::vector<TorchAction> receives = receives_of(*early);
  wanted.policy.defer_pp_recv = true;
  wanted.policy.orderly = {.posted = {receives.begin(), receives.end()}};
  DeferralSearch search(rows, std::move(wanted), accepts);
  const bool begun = search.begin();
  const std::string posted = search.table;
  if (begun) search.put_off(receives);
  // A table that holds its transfers is as it was.
  const bool changed = search.table != posted;
  return SafelyDeferred{.table = std::move(search.table),
                        .receives = receives.size(),
                        .put_off = changed ? receives.size() - search.posted().size() : 0};
}

}  // namespace capo
