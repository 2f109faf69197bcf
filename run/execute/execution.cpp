#include "run/execute/execution.h"

#include <fmt/format.h>

namespace capo::run {

std::string name_of(std::int32_t rank, const Work& work) {
  const char* letter = work.kind == Kind::Forward          ? "F"
                       : work.kind == Kind::BackwardWeight ? "W"
                       : work.kind == Kind::BackwardInput  ? "I"
                                                           : "B";
  const std::string layer = work.layer == kAllLayers ? "" : fmt::format("layer {} of ", work.layer);
  return fmt::format("{} of {}chunk {}, microbatch {} of rank {}", letter, layer, work.chunk,
                     work.microbatch, rank);
}

}  // namespace capo::run
