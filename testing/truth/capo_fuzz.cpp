// capo-fuzz: the truth campaign. Orders by the thousand, judged and run, verdict against gradients.
//
//   capo-fuzz --orders 1000 --device host --seed 1 --jobs 2 --lines out.jsonl
//   capo-fuzz --report out.jsonl
//
// One JSON line an order, in the order of their numbers; in the end the matrix of verdicts against
// what was seen. A run that was killed goes on where its lines end. The first disagreement ends it,
// made as small as it gets, in lines to paste; so does an invariant of capo's own that breaks. Exit
// code 0: they agree; 1: two disagree, in this run or in lines that were there; 2: the command
// line; 3: lines that cannot be read; 5: the machine refused, or another capo-fuzz has the file.

#include "core/base/assert.h"
#include "run/host/host_engine.h"
#include "testing/truth/across.h"
#include "testing/truth/campaign.h"
#include "testing/truth/cases.h"
#include "testing/truth/judge.h"
#include "testing/truth/lines_file.h"
#include "testing/truth/minimal_case.h"
#include "testing/truth/paste.h"
#include "testing/truth/report_page.h"
#include "testing/truth/tables.h"

#ifdef CAPO_HAVE_CUDA
#include "gpu/engine/cuda_engine.h"
#endif
#ifdef CAPO_HAVE_NCCL
#include "gpu/nccl/between_devices.h"
#include "gpu/nccl/nccl_messages.h"
#include "run/processes/processes.h"
#endif

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace capo;
using namespace capo::testing;

constexpr int kDisagreement = 1;
constexpr int kUsage = 2;
constexpr int kUnreadable = 3;
constexpr int kEnvironment = 5;

struct Request {
  std::uint64_t orders = 1000;
  std::uint64_t seed = 1;
  unsigned jobs = 1;
  std::string device = "host";
  std::string float64 = "every";
  bool against_host = false;
  bool across = false;
  std::string lines;
  std::string report;
  std::string about;
  std::string tables;
  std::string transport = "mpi";
  double message_mib = 256;
  double timeout = 20;
  int devices = 2;
};

using Engine = std::unique_ptr<run::Engine>;

Result<Engine> engine_for(const std::string& device) {
  if (device == "host") return Engine(std::make_unique<run::host::HostEngine>());
#ifdef CAPO_HAVE_CUDA
  auto made = gpu::CudaEngine::make();
  if (!made) return made.error();
  return Engine(*std::move(made));
#else
  return Error{.kind = ErrorKind::Environment,
               .message = "this capo-fuzz was built without CUDA",
               .help = ""};
#endif
}

int fail(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  if (!error.help.empty()) fmt::print(stderr, "  help: {}\n", error.help);
  return error.kind == ErrorKind::Environment ? kEnvironment : kUnreadable;
}

Result<TruthLine> judge_on(const Request& request, const TruthCase& of) {
  const auto engine = engine_for(request.device);
  if (!engine) return engine.error();
  if (!request.against_host) return judge_truth(of, **engine);
  run::host::HostEngine host;
  return judge_truth(of, **engine, host);
}

std::string header_of(const Request& request) {
  return fmt::format(R"({}"seed":{},"device":"{}","against_host":{},"float64":"{}"}})",
                     kHeaderBegin, request.seed, request.device, request.against_host,
                     request.float64);
}

Campaign campaign_of(const Request& request) {
  Campaign campaign{.orders = request.orders,
                    .jobs = request.jobs,
                    .lines = request.lines,
                    .header = header_of(request)};
  campaign.make = [&request](std::uint64_t number) {
    TruthCase of = truth_case(request.seed, number);
    if (request.float64 == "first") of.float64 = run::Float64::FirstReplay;
    return of;
  };
  campaign.judge = [&request](const TruthCase& of) { return judge_on(request, of); };
  campaign.resumed = [](std::uint64_t lines) {
    fmt::print(stderr, "went on behind {} orders\n", lines);
  };
  campaign.progress = [&request](std::uint64_t done) {
    const bool shown = done % 500 == 0 || done == request.orders;
    if (shown) fmt::print(stderr, "{} of {} orders\n", done, request.orders);
  };
  return campaign;
}

// The disagreement as it is, and as small as it gets.
void tell(const Campaign& campaign, const TruthLine& line, const Request& request) {
  fmt::print("disagreement: {}\n", to_text(line));
  if (line.order.empty()) return;  // capo broke while it was drawn
  fmt::print("\nmade smaller:\n");
  const TruthCase of = campaign.make(line.number);
  const MinimalCase least = minimal_case(of, line, campaign.judge);
  fmt::print("{}\n{}", to_text(least.line), paste_text(least.of, request.device));
}

int run_orders(const Request& request) {
  if (const auto engine = engine_for(request.device); !engine) return fail(engine.error());
  const Campaign campaign = campaign_of(request);
  const auto result = run_campaign(campaign);
  if (!result) return fail(result.error());
  if (result->resumed > request.orders) {
    fmt::print("there were {} orders already, more than the {} asked for; all are counted\n",
               result->resumed, request.orders);
  }
  fmt::print("{} orders on {}, seed {}\n{}{}", result->tally.lines, request.device, request.seed,
             matrix_text(result->tally), rules_text(result->tally));
  if (result->disagreement) tell(campaign, *result->disagreement, request);
  return result->tally.disagreements() == 0 ? 0 : kDisagreement;
}

run::Processes::Duration timeout_of(const Request& request) {
  return run::Processes::Duration(request.timeout);
}

// Rank 0 prints for all processes, and ends them if two things disagree.
int end_across(run::Processes& processes, const AcrossTally& tally) {
  run::MessageLibrary& library = processes.library();
  if (processes.rank() == 0) fmt::print("{}", to_text(tally));
  std::fflush(stdout);
  if (!tally.disagreement.empty()) {
    // Others may have seen nothing wrong, and the first to end would take the words of rank 0
    // along.
    if (processes.rank() != 0) std::this_thread::sleep_for(processes.timeout());
    library.end_all(kDisagreement);
  }
  library.leave();
  return 0;
}

int run_orders_across(const Request& request) {
  const auto processes = run::Processes::start(timeout_of(request));
  if (!processes) return fail(processes.error());
  return end_across(**processes, run_across(**processes, request.orders, request.seed));
}

// Runs stored tables over processes that have been started; rank 0 prints.
int run_tables_over(const Request& request, const TableRun& run) {
  std::ifstream in(request.tables);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad() || !in.is_open()) {
    const int code = fail(
        {.kind = ErrorKind::Unreadable, .message = "cannot read " + request.tables, .help = ""});
    run.processes.library().end_all(code);
    return code;
  }
  const auto tally = run_tables(run, text);
  run::MessageLibrary& library = run.processes.library();
  if (!tally) {
    const int code = fail(tally.error());
    library.end_all(code);
    return code;
  }
  if (run.processes.rank() == 0) fmt::print("{}", to_text(*tally));
  std::fflush(stdout);
  library.leave();
  const bool agree = tally->as_judged == tally->tables;
  return agree ? 0 : kDisagreement;
}

int run_tables_over_mpi(const Request& request) {
  const auto processes = run::Processes::start(timeout_of(request));
  if (!processes) return fail(processes.error());
  run::MessageLibrary& library = (*processes)->library();
  return run_tables_over(
      request, {.processes = **processes,
                .messages = [&](Communicators) -> run::MessageLibrary& { return library; },
                .renew = [] {}});
}

#ifdef CAPO_HAVE_NCCL
// Two devices, a process each, and the messages of each layout that was asked for.
class OverDevices {
 public:
  static Result<std::unique_ptr<OverDevices>> start(const Request& request) {
    const auto nccl = gpu::nccl_functions();
    if (!nccl) return nccl.error();
    const auto library = run::spawn(request.devices, timeout_of(request));
    if (!library) return library.error();
    auto engine = gpu::CudaEngine::make((*library)->rank());
    if (!engine) {
      (void)fail(engine.error());
      (*library)->end_all(kEnvironment);
      return engine.error();
    }
    const auto bytes = static_cast<std::int64_t>(request.message_mib * (1 << 20));
    return std::unique_ptr<OverDevices>(
        new OverDevices(**nccl, **library, *std::move(engine), bytes, timeout_of(request)));
  }

  [[nodiscard]] run::Processes& processes() { return processes_; }
  [[nodiscard]] gpu::CudaEngine& engine() { return *engine_; }
  [[nodiscard]] gpu::NcclMessages& messages(Communicators layout) {
    auto& of = messages_[layout];
    const bool two = layout == Communicators::PerDirection || layout == Communicators::LazyHybrid;
    if (!of) {
      of = std::make_unique<gpu::NcclMessages>(
          *engine_, nccl_, processes_,
          gpu::Layout{.of = layout, .used = two ? std::vector{0, 2} : std::vector{0}}, bytes_);
    }
    return *of;
  }

 private:
  OverDevices(const gpu::NcclFunctions& nccl, run::MessageLibrary& library,
              std::unique_ptr<gpu::CudaEngine> engine, std::int64_t bytes,
              run::Processes::Duration timeout)
      : nccl_(nccl), processes_(library, timeout), engine_(std::move(engine)), bytes_(bytes) {}

  const gpu::NcclFunctions& nccl_;
  run::Processes processes_;
  std::unique_ptr<gpu::CudaEngine> engine_;
  std::int64_t bytes_;
  std::map<Communicators, std::unique_ptr<gpu::NcclMessages>> messages_;
};

int run_tables_over_nccl(const Request& request) {
  const auto over = OverDevices::start(request);
  if (!over) return fail(over.error());
  OverDevices& devices = **over;
  Communicators last{};
  return run_tables_over(request, {.processes = devices.processes(),
                                   .messages = [&](Communicators layout) -> run::MessageLibrary& {
                                     last = layout;
                                     return devices.messages(layout);
                                   },
                                   .renew = [&] { devices.messages(last).renew(); },
                                   .patience = run::Processes::Duration(2)});
}

// Names the part of an order that takes longer than all its own limits together, and ends all
// processes.
class Part {
 public:
  static constexpr double kParts = 6;  // timeouts: a walk waits for others up to five

  explicit Part(run::Processes& processes)
      : processes_(processes),
        longest_(
            kParts * processes.timeout(),
            [this] {
              tell();
              return true;
            },
            [&library = processes.library()] { library.end_all(kEnvironment); }) {}

  void begin(const std::string& part) {
    {
      const std::scoped_lock lock(mutex_);
      part_ = part;
    }
    longest_.watch();
  }

 private:
  void tell() {
    const std::scoped_lock lock(mutex_);
    fmt::print(stderr, "error: rank {}: {}, takes longer than {:g} s\n", processes_.rank(), part_,
               kParts * processes_.timeout().count());
  }

  run::Processes& processes_;
  std::mutex mutex_;
  std::string part_ = "no order";
  gpu::Watchdog longest_;  // ends first
};

// Rank 0 says how far the campaign is, every so many orders and at least every few seconds.
class AcrossProgress {
 public:
  AcrossProgress(std::uint64_t orders, bool tells) : orders_(orders), tells_(tells) {}

  void behind(const AcrossTally& tally) {
    constexpr std::uint64_t kEvery = 50;
    const auto now = std::chrono::steady_clock::now();
    const bool due = tally.orders % kEvery == 0 || now - told_ > std::chrono::seconds(5);
    if (!tells_ || !due) return;
    told_ = now;
    const std::chrono::duration<double> spent = now - begun_;
    fmt::print(stderr, "{} of {} orders, {} of them stuck, after {:.0f} s\n", tally.orders, orders_,
               tally.circles + tally.waiting, spent.count());
  }

 private:
  std::uint64_t orders_;
  bool tells_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = begun_;
};

int run_orders_over_nccl(const Request& request) {
  const auto over = OverDevices::start(request);
  if (!over) return fail(over.error());
  OverDevices& devices = **over;
  auto between = gpu::messages_of_nccl();
  if (!between) return fail(between.error());
  Part part(devices.processes());
  AcrossProgress progress(request.orders, devices.processes().rank() == 0);
  const AcrossDevices across{
      .engine = devices.engine(),
      .messages = [&](Communicators layout) -> run::MessageLibrary& {
        return devices.messages(layout);
      },
      .renew = [&](Communicators layout) { devices.messages(layout).renew(); },
      .patience = {.on_the_way = std::min(run::Patience{}.on_the_way, timeout_of(request))},
      .between = {.name = "nccl", .make = *std::move(between)},
      .at = [&](const std::string& text) { part.begin(text); },
      .progress = [&](const AcrossTally& tally) { progress.behind(tally); }};
  return end_across(devices.processes(),
                    run_across(devices.processes(), request.orders, request.seed, &across));
}
#else
int without_nccl() {
  return fail({.kind = ErrorKind::Environment,
               .message = "this capo-fuzz was built without NCCL",
               .help = ""});
}
int run_tables_over_nccl(const Request&) {
  return without_nccl();
}
int run_orders_over_nccl(const Request&) {
  return without_nccl();
}
#endif

int report(const Request& request) {
  std::ifstream in(request.report);
  std::ifstream about(request.about);
  if (!in || (!request.about.empty() && !about)) {
    return fail({.kind = ErrorKind::Unreadable,
                 .message = "cannot read " + (in ? request.about : request.report),
                 .help = ""});
  }
  const auto page = report_page(in, about);
  if (!page) return fail(page.error());
  fmt::print("{}", page->text);
  return page->disagreements == 0 ? 0 : kDisagreement;
}

// CLI11 takes a sign, and what is too large for the largest.
std::string not_a_count(const std::string& text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return whole ? "" : text + " is no whole number from 0 to 18446744073709551615";
}

int capo_fuzz(int argc, char** argv) {
  CLI::App app{"capo-fuzz: random orders, verdict against gradients", "capo-fuzz"};
  Request request;
  app.add_option("--orders", request.orders, "How many")
      ->check(CLI::Validator(not_a_count, "COUNT"))
      ->capture_default_str();
  app.add_option("--seed", request.seed, "Of all that is drawn")
      ->check(CLI::Validator(not_a_count, "COUNT"))
      ->capture_default_str();
  app.add_option("--jobs", request.jobs, "How many at a time; the lines are the same")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--device", request.device, "host or cuda")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  app.add_option("--float64", request.float64,
                 "Hold eager execution against float64 in every replay of an order, or its first")
      ->check(CLI::IsMember({"every", "first"}))
      ->capture_default_str();
  app.add_flag("--against-host", request.against_host,
               "Run each on the host engine as well: it has to come to the same");
  app.add_flag("--across", request.across,
               "Run each over processes, which mpirun starts: mpirun -n 4 capo-fuzz --across");
  app.add_option("--tables", request.tables,
                 "Run the tables of this JSON file over two processes, and compare what they do "
                 "with what they did and with the verdict");
  app.add_option("--transport", request.transport,
                 "What --tables and --across use: mpi (mpirun -n 2 capo-fuzz ...) or nccl (a CUDA "
                 "device a process)")
      ->check(CLI::IsMember({"mpi", "nccl"}))
      ->capture_default_str();
  app.add_option("--devices", request.devices,
                 "How many devices nccl uses; tables are of two ranks")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--message-mib", request.message_mib, "The size of every message over nccl")
      ->check(CLI::Range(0.001, 65536.0))
      ->capture_default_str();
  app.add_option(
         "--timeout", request.timeout,
         "Seconds that --tables and --across wait for a process, or for NCCL's communicators")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--lines", request.lines,
                 "Write a JSON line an order here; where there are some, go on behind them");
  app.add_option("--report", request.report,
                 "Run nothing: print the report of these lines, in Markdown");
  app.add_option("--about", request.about,
                 "Of the report: `key: value` lines on machine, commands and commit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  // One thread may not wait for the device while another one captures on it.
  if (request.device == "cuda" && request.jobs > 1) {
    fmt::print(stderr, "error: --jobs: one at a time on a device; run processes of other seeds\n");
    return kUsage;
  }
  if (request.across) {
    return request.transport == "nccl" ? run_orders_over_nccl(request) : run_orders_across(request);
  }
  if (!request.tables.empty()) {
    return request.transport == "nccl" ? run_tables_over_nccl(request)
                                       : run_tables_over_mpi(request);
  }
  return request.report.empty() ? run_orders(request) : report(request);
}

// Nobody is told where standard error takes nothing either.
int refused(const char* why, int code = kEnvironment) {
  std::fprintf(stderr, "error: %s\n", why);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = capo_fuzz(argc, argv);
    return std::fflush(stdout) == 0 ? code : refused("standard output takes no more");
  } catch (const std::bad_alloc&) {
    return refused("out of memory");
  } catch (const InternalError& error) {  // apart from the judging of an order
    return refused(error.what(), kDisagreement);
  } catch (const std::system_error& error) {  // a stream that takes nothing, for one
    return refused(error.what());
  }
}
