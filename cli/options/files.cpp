#include "cli/options/files.h"

#include "cli/options/exit_code.h"
#include "core/base/index.h"

#include "core/base/error.h"
#include "core/text/printable.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace capo::cli {

namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;  // two owners would close twice
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ > STDERR_FILENO) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::string system_words() {
  return error_text(errno);
}

// Makes a call until no signal comes in between.
template <typename Call>
auto uninterrupted(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

int opened(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags); });
}

Error unreadable(const std::string& name, const std::string& why, std::string help = {}) {
  return {.kind = ErrorKind::Unreadable,
          .message = fmt::format("cannot read {}: {}", name, why),
          .help = std::move(help)};
}

Result<Source> read_all(const Descriptor& file, std::string name, std::uint64_t max_bytes) {
  struct stat info {};
  if (uninterrupted([&] { return ::fstat(file.number(), &info); }) != 0)
    return unreadable(name, system_words());
  if (S_ISDIR(info.st_mode)) return unreadable(name, "it is a directory", "name a file in it");
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > max_bytes) {
    return Error{ErrorKind::Limit, fmt::format("{} has more than {} bytes", name, max_bytes),
                 "raise the limit with --max-bytes"};
  }
  Source source{.name = std::move(name)};
  if (S_ISREG(info.st_mode)) source.text.reserve(static_cast<std::size_t>(info.st_size) + 1);
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count =
        uninterrupted([&] { return ::read(file.number(), buffer.data(), buffer.size()); });
    if (count == 0) return source;
    if (count > 0) {
      source.text.append(buffer.data(), as_index(count));
      if (source.text.size() > max_bytes) {
        return Error{ErrorKind::Limit,
                     fmt::format("{} has more than {} bytes", source.name, max_bytes),
                     "raise the limit with --max-bytes"};
      }
      continue;
    }
    if (errno != EAGAIN) return unreadable(source.name, system_words());
    pollfd waiting{.fd = file.number(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
  }
}

// Writes everything or says why not.
std::optional<std::string> write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = uninterrupted([&] { return ::write(file, text.data(), text.size()); });
    if (count >= 0) {
      text.remove_prefix(as_index(count));
    } else if (errno == EAGAIN) {
      pollfd waiting{.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&waiting, 1, -1);
    } else {
      return system_words();
    }
  }
  return std::nullopt;
}

Error unwritable(const std::string& name, const std::string& why) {
  return {.kind = ErrorKind::Environment,
          .message = fmt::format("cannot write {}: {}", name, why),
          .help = {}};
}

std::optional<Error> write_special(const std::string& path, std::string_view text) {
  const Descriptor file(opened(path, O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) return unwritable(path, system_words());
  if (const auto why = write_all(file.number(), text)) return unwritable(path, *why);
  return std::nullopt;
}

// The mask is only read by setting it, so it is read before main(), when no other thread can create
// a file in between.
const mode_t kMask = [] {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}();

// mkstemp makes files for the owner alone; a file that a user asked for gets what the umask allows.
mode_t default_mode() {
  return 0666 & ~kMask;
}

// While an object of it lives, signals that would end the process wait, so that no unfinished file
// is left behind.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_BLOCK, &ends, &before_);
  }
  Undisturbed(const Undisturbed&) = delete;  // two would restore in the wrong order
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// A file under a name of capo's own, beside the one that it becomes. It is removed if it does not
// come to that. Each step returns why it failed.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path target) : target_(std::move(target)) {}
  Unfinished(const Unfinished&) = delete;  // two owners would remove twice
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  std::optional<std::string> write(std::string_view text, mode_t mode) {
    const Descriptor file(uninterrupted([&] { return make(); }));
    if (file.number() < 0) {
      name_.clear();
      return system_words();
    }
    if (auto why = write_all(file.number(), text)) return why;
    if (uninterrupted([&] { return ::fchmod(file.number(), mode); }) != 0) return system_words();
    if (uninterrupted([&] { return ::fsync(file.number()); }) != 0) return system_words();
    return std::nullopt;
  }
  std::optional<std::string> put_in_place() {
    if (uninterrupted([&] { return ::rename(name_.c_str(), target_.c_str()); }) != 0)
      return system_words();
    name_.clear();
    return std::nullopt;
  }

 private:
  int make() {
    name_ = (target_.parent_path() / ".capo.XXXXXX").string();
    return ::mkstemp(name_.data());
  }

  std::filesystem::path target_;
  std::string name_;  ///< empty: there is no file of that kind
};

// The file that a path leads to; of a link, the file that the link names.
Result<std::filesystem::path> target_of(const std::string& path) {
  struct stat info {};
  if (uninterrupted([&] { return ::lstat(path.c_str(), &info); }) != 0 && errno != ENOENT)
    return unwritable(path, system_words());
  if (!S_ISLNK(info.st_mode)) return std::filesystem::path(path);
  std::error_code why;
  auto target = std::filesystem::weakly_canonical(path, why);
  if (why) return unwritable(path, error_text(why.value()));
  return target;
}

}  // namespace

Result<Source> read_source(const std::string& path, std::uint64_t max_bytes) {
  if (path == "-") return read_all(Descriptor(STDIN_FILENO), "<stdin>", max_bytes);
  const Descriptor file(opened(path, O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return unreadable(path, system_words());
  return read_all(file, path, max_bytes);
}

std::optional<Error> write_file(const std::string& path, std::string_view text) {
  const auto target = target_of(path);
  if (!target) return target.error();
  struct stat info {};
  const bool exists = uninterrupted([&] { return ::stat(target->c_str(), &info); }) == 0;
  // A thing that cannot be asked about may be a device, which no file may replace.
  if (!exists && errno != ENOENT) return unwritable(path, system_words());
  if (exists && S_ISDIR(info.st_mode)) return unwritable(path, "it is a directory");
  if (exists && !S_ISREG(info.st_mode)) return write_special(path, text);

  const Undisturbed undisturbed;
  Unfinished unfinished(*target);
  auto why = unfinished.write(text, exists ? info.st_mode & 07777 : default_mode());
  if (!why) why = unfinished.put_in_place();
  if (why) return unwritable(path, *why);
  return std::nullopt;
}

std::optional<Error> write_stdout(std::string_view text) {
  if (const auto why = write_all(STDOUT_FILENO, text)) return unwritable("standard output", *why);
  return std::nullopt;
}

std::optional<Error> write_output(const std::string& path, std::string_view text) {
  return path == "-" ? write_stdout(text) : write_file(path, text);
}

std::string ending_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  std::string ending(dot == std::string_view::npos ? "" : path.substr(dot + 1));
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return ending;
}

void print_stderr(std::string_view text) {
  // If standard error takes nothing, there is nobody left to tell.
  (void)write_all(STDERR_FILENO, text);
}

void print_error(const Error& error) {
  std::string text = "error: " + printable(error.message) + "\n";
  if (!error.help.empty()) text += "  help: " + printable(error.help) + "\n";
  print_stderr(text);
}

int fail(const Error& error) {
  print_error(error);
  return exit_code_of(error.kind);
}

int exit_code_after(const std::optional<Error>& failed, int code) {
  return failed ? fail(*failed) : code;
}

}  // namespace capo::cli
