#include "testing/oracle/captures.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace capo::oracle {

namespace {

// A chunk is known so well while its graphs are captured.
struct Seen {
  bool forward = false;
  bool backward = false;
  bool weight = false;
  std::optional<bool> delays;
  bool at_odds = false;
};

bool goes_back(const GraphToCapture& graph) {
  return graph.kind == GraphToCapture::Backward || graph.kind == GraphToCapture::HalfBackward;
}

class Capturing {
 public:
  Capturing(Capturer who, const std::vector<ChunkToCapture>& chunks)
      : te_(who == Capturer::TransformerEngine), chunks_(chunks), seen_(chunks.size()) {}

  void take(const GraphToCapture& graph, int position) {
    position_ = position;
    const auto chunk = static_cast<std::size_t>(graph.chunk);
    if (graph.kind == GraphToCapture::Forward) {
      forward(chunks_[chunk], seen_[chunk]);
      layers_in_front_ = chunks_[chunk].layers;
    } else if (goes_back(graph)) {
      backward(graph, chunks_[chunk], seen_[chunk]);
    } else {
      if (!te_ && !seen_[chunk].weight) say(CaptureFault::InNoGraph);
      seen_[chunk].weight = true;
    }
  }

  std::vector<CaptureFault> faults;

 private:
  void say(CaptureFault::Kind kind) { faults.push_back({position_, kind}); }

  void forward(const ChunkToCapture& chunk, Seen& seen) {
    if (te_ && !seen.forward) {
      if (chunk.hooks) say(CaptureFault::Refused);
      if (chunk.hooks_each_call) say(CaptureFault::HooksNotRun);
    }
    seen.forward = true;
  }

  void backward(const GraphToCapture& graph, const ChunkToCapture& chunk, Seen& seen) {
    if (chunk.offloaded && !seen.backward) say(CaptureFault::Moved);
    seen.backward = true;
    const bool half = graph.kind == GraphToCapture::HalfBackward;
    if (te_ && seen.delays.value_or(half) != half && !seen.at_odds) {
      say(CaptureFault::HalfDelayed);
      seen.at_odds = true;
    }
    if (!seen.delays) seen.delays = half;
    if (!te_ && graph.beside && layers_in_front_ > 1 && !between_) {
      say(CaptureFault::BetweenLayers);
      between_ = true;
    }
  }

  bool te_;
  const std::vector<ChunkToCapture>& chunks_;
  std::vector<Seen> seen_;
  int layers_in_front_ = 1;
  int position_ = 0;
  bool between_ = false;  // the rank's first has been said
};

}  // namespace

std::vector<CaptureFault> faults_of_capture(Capturer who, const std::vector<ChunkToCapture>& chunks,
                                            const std::vector<GraphToCapture>& order) {
  Capturing capturing(who, chunks);
  for (std::size_t at = 0; at < order.size(); ++at) capturing.take(order[at], static_cast<int>(at));
  std::sort(capturing.faults.begin(), capturing.faults.end());
  return capturing.faults;
}

}  // namespace capo::oracle
