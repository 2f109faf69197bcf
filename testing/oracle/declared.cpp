#include "testing/oracle/declared.h"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace capo::oracle {
namespace {

/// Cells of one key or size, in the order in which they came back.
using Returned = std::map<int, std::deque<int>>;

/// Follows the memory that the graphs hold, entry by entry, in the order of capture.
class Capturing {
 public:
  explicit Capturing(const DeclaredCapture& capture) : capture_(capture) {
    for (const DeclaredLayer& layer : capture.chunks) bytes_ += layer.weight_bytes;
  }

  [[nodiscard]] int bytes() const { return bytes_; }
  [[nodiscard]] int bytes_of_inputs() const { return bytes_of_inputs_; }

  /// Cells: of what comes in, which other graphs share by its key, and of the pool for what goes
  /// out.
  struct Cells {
    int in;
    int out;
  };

  Cells forward(int chunk) {
    const DeclaredLayer& layer = of(chunk);
    std::deque<int>& back = inputs_back_[layer.keys.input];
    if (back.empty()) bytes_of_inputs_ += layer.input_bytes;
    const int input = take_first(back, layer.input_bytes);
    const int output = take_last(pool_[layer.output_bytes], layer.output_bytes);
    inputs_[chunk].push_back(input);
    outputs_[chunk].push_back(output);
    return {input, output};
  }

  Cells backward(int chunk) {
    const DeclaredLayer& layer = of(chunk);
    auto gradient = gradients_.find(layer.keys.output);
    if (gradient == gradients_.end()) {
      gradient = gradients_.emplace(layer.keys.output, make(layer.output_bytes)).first;
    }
    const int handed_back = take_last(pool_[layer.input_bytes], layer.input_bytes);
    inputs_back_[layer.keys.input].push_back(pop(inputs_[chunk]));
    pool_[layer.output_bytes].push_back(pop(outputs_[chunk]));
    if (handed_back_) pool_[handed_back_->first].push_back(handed_back_->second);
    handed_back_ = {layer.input_bytes, handed_back};
    return {gradient->second, handed_back};
  }

 private:
  [[nodiscard]] const DeclaredLayer& of(int chunk) const {
    return capture_.chunks[static_cast<std::size_t>(chunk)];
  }
  int make(int bytes) {
    bytes_ += bytes;
    return made_++;
  }
  static int pop(std::deque<int>& cells) {
    const int cell = cells.front();
    cells.pop_front();
    return cell;
  }
  int take_first(std::deque<int>& back, int bytes) {
    return back.empty() ? make(bytes) : pop(back);
  }
  int take_last(std::deque<int>& back, int bytes) {
    if (back.empty()) return make(bytes);
    const int cell = back.back();
    back.pop_back();
    return cell;
  }

  const DeclaredCapture& capture_;
  int made_ = 0;
  int bytes_ = 0;
  int bytes_of_inputs_ = 0;
  // Free inputs and the gradients are filed by key, the free cells of the pool by size.
  Returned inputs_back_;
  Returned pool_;
  std::map<int, int> gradients_;
  // Cells in use are filed by chunk, its oldest microbatch first.
  Returned inputs_;
  Returned outputs_;
  // Size and cell of the newest backward's gradient.
  std::optional<std::pair<int, int>> handed_back_;
};

/// Tells whether graphs find the contents that they count on in the cells that they share.
class Sharing {
 public:
  void forward(const DeclaredLayer& self, const Capturing::Cells& cells, int at) {
    const DeclaredLayer& maker = *inputs_made_by_.emplace(cells.in, &self).first->second;
    if (self.needs_gradient && !maker.needs_gradient) found.push_back({Flaw::Lost, at});
    written_at_[cells.out] = at;
  }

  void backward(const DeclaredLayer& self, const Capturing::Cells& cells, int at) {
    const DeclaredLayer& maker = *gradients_made_by_.emplace(cells.in, &self).first->second;
    if (self.output_position != maker.output_position) found.push_back({Flaw::Misplaced, at});
    written_at_[cells.out] = at;
    if (!self.sends) return;
    // The send before is over only now.
    send_ends(at);
    sent_ = Sent{cells.out, at};
  }

  void send_ends(int at) {
    if (sent_ && written_at_.at(sent_->cell) != sent_->at) found.push_back({Flaw::CutOff, at});
  }

  std::vector<Flaw> found;

 private:
  struct Sent {
    int cell;
    int at;
  };

  // Makers and times of writing are filed by cell; only cells of the pool have a time.
  std::map<int, const DeclaredLayer*> inputs_made_by_;
  std::map<int, const DeclaredLayer*> gradients_made_by_;
  std::map<int, int> written_at_;
  std::optional<Sent> sent_;
};

}  // namespace

std::vector<Flaw> flaws(const DeclaredCapture& capture) {
  Capturing capturing(capture);
  Sharing sharing;
  for (int at = 0; at < static_cast<int>(capture.order.size()); ++at) {
    const auto [kind, chunk] = capture.order[static_cast<std::size_t>(at)];
    const DeclaredLayer& self = capture.chunks[static_cast<std::size_t>(chunk)];
    if (kind == Capture::Forward) sharing.forward(self, capturing.forward(chunk), at);
    if (kind == Capture::Backward) sharing.backward(self, capturing.backward(chunk), at);
  }
  // The last send is over when everything is.
  sharing.send_ends(static_cast<int>(capture.order.size()) - 1);
  return sharing.found;
}

namespace {

// How many entries of a kind and chunk there are before a place.
int count(const DeclaredCapture& capture, int end, Capture::Kind kind, int chunk) {
  int found = 0;
  for (int at = 0; at < end; ++at) {
    const Capture::Entry& entry = capture.order[static_cast<std::size_t>(at)];
    found += entry.kind == kind && entry.chunk == chunk ? 1 : 0;
  }
  return found;
}

}  // namespace

Need need_of_warm_up(const DeclaredCapture& capture, bool keeps_outputs) {
  Capturing capturing(capture);
  int always = capturing.bytes();
  for (const auto& [kind, chunk] : capture.order) {
    if (kind == Capture::Forward) capturing.forward(chunk);
    if (kind == Capture::Backward) capturing.backward(chunk);
  }
  always += capturing.bytes_of_inputs();
  Need most{.bytes = always, .position = 0};
  for (int at = 0; at < static_cast<int>(capture.order.size()); ++at) {
    const Capture::Entry& entry = capture.order[static_cast<std::size_t>(at)];
    if (entry.kind == Capture::Weight) continue;
    int bytes = always;
    for (int chunk = 0; chunk < static_cast<int>(capture.chunks.size()); ++chunk) {
      int outputs = count(capture, at + 1, Capture::Forward, chunk);
      if (!keeps_outputs) outputs -= count(capture, at, Capture::Backward, chunk);
      bytes += outputs * capture.chunks[static_cast<std::size_t>(chunk)].output_bytes;
    }
    const DeclaredLayer& self = capture.chunks[static_cast<std::size_t>(entry.chunk)];
    if (entry.kind == Capture::Backward) bytes += self.output_bytes + self.input_bytes;
    if (bytes > most.bytes) most = {bytes, at};
  }
  return most;
}

Need need(const DeclaredCapture& capture) {
  Capturing capturing(capture);
  Need peak{.bytes = capturing.bytes(), .position = 0};
  for (int at = 0; at < static_cast<int>(capture.order.size()); ++at) {
    const auto [kind, chunk] = capture.order[static_cast<std::size_t>(at)];
    if (kind == Capture::Forward) capturing.forward(chunk);
    if (kind == Capture::Backward) capturing.backward(chunk);
    if (capturing.bytes() > peak.bytes) peak = {capturing.bytes(), at};
  }
  return peak;
}

}  // namespace capo::oracle
