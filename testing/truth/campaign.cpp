#include "testing/truth/campaign.h"

#include "core/base/assert.h"
#include "core/base/in_parallel.h"
#include "core/report/report.h"
#include "testing/truth/lines_file.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

namespace capo::testing {

namespace {

std::optional<Error> of_order(std::uint64_t number, Error error) {
  error.message = fmt::format("order {}: {}", number, error.message);
  return error;
}

// Shared by all threads: it hands out the numbers to judge, and keeps the lines that wait for an
// earlier one.
class Desk {
 public:
  Desk(const Campaign& campaign, LinesFile& file, CampaignResult& result)
      : campaign_(campaign),
        file_(file),
        result_(result),
        next_(result.resumed),
        written_(result.resumed) {}

  // Until there is nothing left to judge; what is thrown ends the work of all.
  void work() {
    try {
      while (const auto number = take()) {
        hand_in(*number, line_of(*number));
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      over_ = true;
      throw;
    }
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::uint64_t> take() {
    const std::scoped_lock lock(mutex_);
    if (over_ || next_ >= campaign_.orders) return std::nullopt;
    return next_++;
  }

  [[nodiscard]] Result<TruthLine, Error> line_of(std::uint64_t number) const {
    try {
      return campaign_.judge(campaign_.make(number));
    } catch (const InternalError& broken) {
      return TruthLine{.number = number,
                       .verdict = std::string(name_of(Verdict::NoVerdict)),
                       .came = Came::Disagrees,
                       .reason = broken.what()};
    }
  }

  void hand_in(std::uint64_t number, Result<TruthLine, Error> judged) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(number, std::move(judged));
    for (auto first = waiting_.begin();
         !over_ && first != waiting_.end() && first->first == written_;
         first = waiting_.erase(first)) {
      write(first->second);
    }
  }

  void write(const Result<TruthLine, Error>& judged) {
    error_ = judged ? file_.write(to_text(*judged)) : of_order(written_, judged.error());
    over_ = error_.has_value();
    if (over_) return;
    const TruthLine& line = *judged;
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
  std::map<std::uint64_t, Result<TruthLine, Error>> waiting_;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<CampaignResult, Error> run_campaign(const Campaign& campaign) {
  auto opened = LinesFile::open(campaign.lines, campaign.header);
  if (!opened) return opened.error();
  CampaignResult result{.tally = {}, .resumed = opened->resumed().lines};
  result.tally = opened->resumed();
  if (campaign.resumed && result.resumed > 0) campaign.resumed(result.resumed);
  Desk desk(campaign, *opened, result);
  in_parallel(campaign.jobs, campaign.jobs, [&](std::size_t) { desk.work(); });
  if (desk.error()) return *desk.error();
  return result;
}

}  // namespace capo::testing
