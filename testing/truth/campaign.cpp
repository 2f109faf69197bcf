#include <capo/testing/truth/campaign.h>

#include <capo/testing/truth/lines_file.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

// What the threads have in common: who judges which number, and which lines wait for an earlier
// one.
class Desk {
 public:
  Desk(const Campaign& campaign, LinesFile& file, CampaignResult& result)
      : campaign_(campaign),
        file_(file),
        result_(result),
        next_(result.resumed),
        written_(result.resumed) {}

  void work() {
    while (const auto number = take()) {
      hand_in(*number, campaign_.judge(campaign_.make(*number)));
    }
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::uint64_t> take() {
    const std::scoped_lock lock(mutex_);
    if (over_ || next_ >= campaign_.orders) return std::nullopt;
    return next_++;
  }

  void hand_in(std::uint64_t number, TruthLine line) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(number, std::move(line));
    for (auto first = waiting_.begin();
         !over_ && first != waiting_.end() && first->first == written_;
         first = waiting_.erase(first)) {
      write(first->second);
    }
  }

  void write(const TruthLine& line) {
    error_ = file_.write(to_text(line));
    over_ = error_.has_value();
    if (over_) return;
    ++written_;
    result_.tally.add(line);
    if (line.came == Came::Disagrees) {
      result_.disagreement = line;
      over_ = true;
    }
    if (campaign_.progress) campaign_.progress(written_);
  }

  const Campaign& campaign_;
  LinesFile& file_;
  CampaignResult& result_;
  std::mutex mutex_;
  std::uint64_t next_;
  std::uint64_t written_;
  std::map<std::uint64_t, TruthLine> waiting_;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<CampaignResult, Error> run_campaign(const Campaign& campaign) {
  auto opened = LinesFile::open(campaign.lines, campaign.header);
  if (!opened) return opened.error();
  CampaignResult result{.tally = {}, .resumed = opened->resumed().lines};
  result.tally = opened->resumed();
  Desk desk(campaign, *opened, result);
  {
    std::vector<std::jthread> others;
    for (unsigned job = 1; job < campaign.jobs; ++job) others.emplace_back([&] { desk.work(); });
    desk.work();
  }
  if (desk.error()) return *desk.error();
  return result;
}

}  // namespace capo::testing
