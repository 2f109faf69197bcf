// torch 2.15's budget of sends: no rank may have more than so many for which no wait was served.
//
//   0SEND_F0,0F1,0SEND_F1,...,0WAIT_SEND_F0   with one:   0SEND_F0,0F1,0WAIT_SEND_F0,0SEND_F1,...
//
// The wait of an earlier send moves before a send that would be one too many. A wait may move
// if that closes no circle of the ranks' orders, sends before their receives, and receives before
// what stands behind the waits as they are now; torch takes a wait to be served once its receive is
// issued. It prefers waits that are served anyway. Communicators, on which transfers queue, are no
// part of it.
//
// torch asks for paths in the whole graph. Here actions are numbered so that every edge goes up,
// and a path is looked for among the numbers between its ends; only a wait that may stall can make
// a new numbering necessary. Tested by passes_test.cpp.

#include "core/base/index.h"
#include "core/frameworks/torch/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace capo::torch {

namespace {

using Node = std::uint32_t;
constexpr Node kNone = 0xffffffff;

// The actions that are no waits, and the edges between them, of which there may be several.
class Actions {
 public:
  explicit Actions(std::size_t count) : after_(count), seen_(count, 0), number_(count, 0) {}

  void connect(Node from, Node to) {
    for (auto& [node, times] : after_[from]) {
      if (node != to) continue;
      ++times;
      return;
    }
    after_[from].emplace_back(to, 1);
    if (numbered_ && number_[from] >= number_[to]) numbered_ = renumber();
  }

  void disconnect(Node from, Node to) {
    auto& edges = after_[from];
    const auto found = std::find_if(edges.begin(), edges.end(),
                                    [to](const auto& edge) { return edge.first == to; });
    if (--found->second == 0) edges.erase(found);
  }

  // Numbers the actions so that every edge goes up; false if there is a circle.
  bool renumber() {
    std::vector<std::uint32_t> before(after_.size());
    for (const auto& edges : after_) {
      for (const auto& [node, times] : edges) ++before[node];
    }
    std::vector<Node> ready;
    for (Node node = 0; node < before.size(); ++node) {
      if (before[node] == 0) ready.push_back(node);
    }
    for (std::size_t at = 0; at < ready.size(); ++at) {
      number_[ready[at]] = static_cast<std::uint32_t>(at);
      for (const auto& [node, times] : after_[ready[at]]) {
        if (--before[node] == 0) ready.push_back(node);
      }
    }
    numbered_ = ready.size() == after_.size();
    return numbered_;
  }

  [[nodiscard]] bool reaches(Node from, Node to) {
    if (from == to) return true;
    if (number_[from] > number_[to]) return false;
    ++search_;
    std::vector<Node> left{from};
    while (!left.empty()) {
      const Node at = left.back();
      left.pop_back();
      for (const auto& [node, times] : after_[at]) {
        if (node == to) return true;
        if (number_[node] > number_[to] || seen_[node] == search_) continue;
        seen_[node] = search_;
        left.push_back(node);
      }
    }
    return false;
  }

 private:
  std::vector<std::vector<std::pair<Node, std::uint32_t>>> after_;
  std::vector<std::uint64_t> seen_;  // the search that came by last
  std::vector<std::uint32_t> number_;
  std::uint64_t search_ = 0;
  bool numbered_ = false;
};

class Budget {
 public:
  Budget(const Rows& rows, const Homes& homes, std::int64_t most)
      : rows_(rows), homes_(homes), most_(most), actions_(number_actions()) {}

  Lowered run() {
    if (find_receives() && find_waits() && connect()) move_waits();
    return std::move(out_);
  }

 private:
  struct Send {
    Node receive = kNone;
    Node wait_before = kNone;  // the action behind its wait; kNone: the wait is the last
    bool waited = false;       // its wait is an action of its own
    bool moved = false;        // its wait stands before where it stood
  };

  // Gives each action that is no wait a node, and returns how many there are.
  std::size_t number_actions() {
    Node count = 0;
    for (const auto& row : rows_) {
      auto& nodes = nodes_.emplace_back();
      for (const Slot& slot : row)
        nodes.push_back(is_send_wait(slot.head().type) ? kNone : count++);
    }
    return count;
  }

  bool refuse(std::string error) {
    out_.error = std::move(error);
    return false;
  }
  // A send or wait among the members of a composite is no action of the graph, and torch trips over
  // the key that it lacks.
  bool refuse_unknown(const TorchAction& send) {
    return refuse(fmt::format("KeyError: (<_ComputationType.{}: '{}'>, {}, {})",
                              torch_name(send.type), torch_name(send.type), send.stage,
                              send.microbatch));
  }

  // A composite whose container is a send or wait has no microbatch.
  bool refuse_unnamed(std::string_view what, const Slot& slot) {
    return refuse(
        fmt::format("AssertionError: {} action {} has no microbatch index", what, to_text(slot)));
  }

  template <typename Visit>
  void for_each_action(Visit visit) const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t at = 0; at < rows_[r].size(); ++at) visit(r, at, rows_[r][at].head());
    }
  }

  bool find_receives() {
    std::map<std::pair<std::size_t, TorchAction>, Node> receives;
    std::vector<TorchAction> sends;
    for_each_action([&](std::size_t r, std::size_t at, const TorchAction& action) {
      if (action.microbatch < 0) return;
      if (is_receive(action.type)) receives[{r, action}] = nodes_[r][at];
      if (is_send(action.type)) sends.push_back(action);
    });
    for (const TorchAction& send : sends) {
      const bool forward = send.type == TorchType::SendForward;
      const TorchAction receive{
          .stage = send.stage + (forward ? 1 : -1),
          .type = forward ? TorchType::ReceiveForward : TorchType::ReceiveBackward,
          .microbatch = send.microbatch};
      const auto home = homes_.find(receive.stage);
      if (home == homes_.end()) return refuse(fmt::format("KeyError: {}", receive.stage));
      const auto found = receives.find({home->second, receive});
      if (found == receives.end())
        return refuse(fmt::format("ValueError: Pipeline send {} has no matching receive",
                                  capo::to_text(send)));
      sends_[send].receive = found->second;
    }
    return true;
  }

  // torch trips only over a wait that holds something back.
  bool find_waits() {
    std::optional<TorchAction> unknown;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      Node next = kNone;
      for (std::size_t at = rows_[r].size(); at-- > 0;) {
        const TorchAction action = rows_[r][at].head();
        if (!is_send_wait(action.type)) {
          next = nodes_[r][at];
          continue;
        }
        if (action.microbatch < 0) return refuse_unnamed("Wait", rows_[r][at]);
        const auto send = sends_.find(send_of(action));
        if (send != sends_.end()) {
          send->second.wait_before = next;
          send->second.waited = true;
        } else if (next != kNone && !unknown) {
          unknown = send_of(action);
        }
      }
    }
    return !unknown || refuse_unknown(*unknown);
  }

  bool connect() {
    for (const auto& row : nodes_) {
      Node before = kNone;
      for (const Node node : row) {
        if (node == kNone) continue;
        if (before != kNone) actions_.connect(before, node);
        before = node;
      }
    }
    for_each_action([&](std::size_t r, std::size_t at, const TorchAction& action) {
      if (!is_send(action.type) || action.microbatch < 0) return;
      const Send& send = sends_.at(action);
      actions_.connect(nodes_[r][at], send.receive);
      if (send.wait_before != kNone) actions_.connect(send.receive, send.wait_before);
    });
    return actions_.renumber() ||
           refuse("ValueError: Pipeline sends, receives, and waits form a cycle");
  }

  void move_waits() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      out_.rows.emplace_back();
      pending_.clear();
      for (std::size_t at = 0; at < rows_[r].size(); ++at) {
        const Slot& slot = rows_[r][at];
        const TorchAction action = slot.head();
        if (is_send_wait(action.type)) {
          if (has_moved(send_of(action))) continue;
          if (!serve(send_of(action))) return;
        }
        if (is_send(action.type)) {
          if (!make_room(r, slot, nodes_[r][at])) return;
          if (action.microbatch < 0) return static_cast<void>(refuse_unnamed("Send", slot));
          pending_.push_back(action);
        }
        out_.rows[r].push_back(slot);
      }
    }
  }

  // Whether the wait that stood here for a send has been put before another.
  bool has_moved(const TorchAction& send) {
    const auto found = sends_.find(send);
    return found != sends_.end() && std::exchange(found->second.moved, false);
  }

  bool serve(const TorchAction& send) {
    const auto found = std::find(pending_.begin(), pending_.end(), send);
    if (found == pending_.end()) return refuse_unknown(send);
    pending_.erase(found);
    return true;
  }

  bool make_room(std::size_t rank, const Slot& action, Node before) {
    while (static_cast<std::int64_t>(pending_.size()) >= most_) {
      const auto hidden = std::find_if(pending_.begin(), pending_.end(),
                                       [&](const auto& send) { return !sends_.at(send).waited; });
      if (hidden != pending_.end()) return refuse_unknown(*hidden);
      const auto chosen = movable(before);
      if (chosen == pending_.end()) return refuse_send(rank, action);
      Send& send = sends_.at(*chosen);
      if (send.wait_before != kNone) actions_.disconnect(send.receive, send.wait_before);
      actions_.connect(send.receive, before);
      send.wait_before = before;
      send.moved = true;
      out_.rows[rank].push_back({.actions = {wait_of(*chosen)}});
      pending_.erase(chosen);
    }
    return true;
  }

  // The first pending send whose wait may move before an action: one whose receive is issued by
  // then anyway if there is one.
  std::vector<TorchAction>::iterator movable(Node before) {
    auto may_stall = pending_.end();
    for (auto at = pending_.begin(); at != pending_.end(); ++at) {
      const Send& send = sends_.at(*at);
      const bool held = send.wait_before != kNone;
      if (held) actions_.disconnect(send.receive, send.wait_before);
      const bool safe = !actions_.reaches(before, send.receive);
      const bool issued = safe && actions_.reaches(send.receive, before);
      if (held) actions_.connect(send.receive, send.wait_before);
      if (issued) return at;
      if (safe && may_stall == pending_.end()) may_stall = at;
    }
    return may_stall;
  }

  bool refuse_send(std::size_t rank, const Slot& action) {
    std::string pending;
    for (const TorchAction& send : pending_)
      pending += (pending.empty() ? "" : ", ") + capo::to_text(send);
    return refuse(
        fmt::format("ValueError: Cannot satisfy max_outstanding_sends={} on pipeline rank "
                    "{} before {}. Outstanding: [{}]. Increase the limit or change the "
                    "schedule.",
                    most_, rank, to_text(action), pending));
  }

  const Rows& rows_;
  const Homes& homes_;
  std::int64_t most_;
  std::vector<std::vector<Node>> nodes_;  // by rank and position; kNone: a wait
  Actions actions_;
  std::map<TorchAction, Send> sends_;
  std::vector<TorchAction> pending_;  // of the rank at hand
  Lowered out_;
};

}  // namespace

Lowered add_send_budget(const Rows& rows, const Homes& homes, std::int64_t most) {
  return Budget(rows, homes, most).run();
}

}  // namespace capo::torch
