#include "tests/failing/failing_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

namespace capo::failing {

namespace {

namespace fs = std::filesystem;

int checked(int number, const char* what) {
  if (number < 0) throw std::system_error(errno, std::generic_category(), what);
  return number;
}

int memory_file(const char* name) {
  return checked(::memfd_create(name, MFD_CLOEXEC), name);
}

std::string all_of(int file) {
  std::string text;
  std::array<char, 1 << 14> buffer;
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file, buffer.data(), buffer.size(), at);
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    at += count;
  }
}

// Both streams are written at their end, where a run begins with them empty.
void empty(int file) {
  checked(::ftruncate(file, 0), "ftruncate");
  checked(static_cast<int>(::lseek(file, 0, SEEK_SET)), "lseek");
}

}  // namespace

FailingWorld::FailingWorld(const std::vector<std::string>& arguments,
                           std::map<std::string, std::string> files, const char* program)
    : files_(std::move(files)) {
  const int ledger = memory_file("ledger");
  checked(::ftruncate(ledger, sizeof(FailingLedger)), "ftruncate");
  void* page =
      ::mmap(nullptr, sizeof(FailingLedger), PROT_READ | PROT_WRITE, MAP_SHARED, ledger, 0);
  if (page == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  ledger_ = new (page) FailingLedger();
  out_ = memory_file("out");
  err_ = memory_file("err");
  std::array<int, 2> orders{};
  std::array<int, 2> statuses{};
  checked(::pipe2(orders.data(), O_CLOEXEC), "pipe");
  checked(::pipe2(statuses.data(), O_CLOEXEC), "pipe");

  std::vector<char*> argv{const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  server_ = checked(::fork(), "fork");
  if (server_ == 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    ::dup2(ledger, kLedgerDescriptor);
    ::dup2(orders[0], kOrdersDescriptor);
    ::dup2(statuses[1], kStatusDescriptor);
    ::setenv("LD_PRELOAD", CAPO_FAILING_PRELOAD, 1);
    if (::chdir(scratch_.path().c_str()) != 0) ::_exit(126);
    ::execv(program, argv.data());
    ::_exit(127);
  }
  ::close(ledger);
  ::close(orders[0]);
  ::close(statuses[1]);
  orders_ = orders[1];
  statuses_ = statuses[0];
}

FailingWorld::~FailingWorld() {
  ::close(orders_);  // which ends the server
  ::waitpid(server_, nullptr, 0);
  for (const int file : {statuses_, out_, err_}) ::close(file);
  ::munmap(ledger_, sizeof(FailingLedger));
}

void FailingWorld::lay_out() const {
  for (const auto& entry : fs::directory_iterator(scratch_.path())) {
    if (!files_.contains(entry.path().filename().string())) fs::remove_all(entry.path());
  }
  for (const auto& [name, text] : files_) {
    if (scratch_.read(name) != text) scratch_.write(name, text);
  }
}

FailedRun FailingWorld::run(const FailingOrder& order) {
  lay_out();
  empty(out_);
  empty(err_);
  ledger_->order = order;
  ledger_->allocations = 0;
  ledger_->live = 0;
  ledger_->left_at_once = false;
  ledger_->file_calls = 0;
  std::memset(ledger_->call, 0, sizeof ledger_->call);

  const char begin = 'r';
  int status = 0;
  if (::write(orders_, &begin, 1) != 1 ||
      ::read(statuses_, &status, sizeof status) != sizeof status)
    throw std::runtime_error("the preloaded server has gone");

  FailedRun run;
  run.outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.outcome.out = all_of(out_);
  run.outcome.err = all_of(err_);
  for (const auto& entry : fs::directory_iterator(scratch_.path())) {
    const std::string name = entry.path().filename().string();
    run.files[name] = scratch_.read(name);
  }
  run.allocations = ledger_->allocations;
  run.live = ledger_->live;
  run.left_at_once = ledger_->left_at_once;
  run.file_calls = ledger_->file_calls;
  run.call = ledger_->call;
  const auto known = std::min<std::uint64_t>(run.allocations, FailingLedger::kSites);
  run.sites.assign(ledger_->sites, ledger_->sites + known);
  return run;
}

}  // namespace capo::failing
