#include "testing/oracle/placement.h"

#include <algorithm>
#include <cstddef>

namespace capo::oracle {

namespace {

class Walker {
 public:
  explicit Walker(const std::vector<int>& chunks) : chunks_(chunks) {
    for (const int count : chunks) stages_.emplace_back(static_cast<std::size_t>(count));
  }
  void visit(std::size_t rank, int chunk) {
    if (chunk < chunks_[rank]) stages_[rank][static_cast<std::size_t>(chunk)] = next_;
    ++next_;
  }
  void down(int chunk) {
    for (std::size_t rank = 0; rank < chunks_.size(); ++rank) visit(rank, chunk);
  }
  void up(int chunk) {
    for (std::size_t rank = chunks_.size(); rank-- > 0;) visit(rank, chunk);
  }
  std::vector<std::vector<int>> stages() { return stages_; }

 private:
  const std::vector<int>& chunks_;
  std::vector<std::vector<int>> stages_;
  int next_ = 0;
};

}  // namespace

std::vector<std::vector<int>> stages(Walk walk, const std::vector<int>& chunks) {
  Walker walker(chunks);
  const int most = chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end());
  switch (walk) {
    case Walk::RankByRank:
      for (std::size_t rank = 0; rank < chunks.size(); ++rank) {
        for (int chunk = 0; chunk < chunks[rank]; ++chunk) walker.visit(rank, chunk);
      }
      break;
    case Walk::Down:
      for (int chunk = 0; chunk < most; ++chunk) walker.down(chunk);
      break;
    case Walk::DownAndUp:
      for (int chunk = 0; chunk < most; chunk += 2) {
        walker.down(chunk);
        walker.up(chunk + 1);
      }
      break;
    case Walk::FromBothEnds:
      for (int chunk = 0; chunk < most; chunk += 2) walker.down(chunk);
      for (int chunk = 1; chunk < most; chunk += 2) walker.up(chunk);
      break;
  }
  return walker.stages();
}

}  // namespace capo::oracle
