#include <capo/cli/files.h>

#include <capo/cli/exit_code.h>

#include <capo/core/text/printable.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
  return std::strerror(errno);
}

Error unreadable(const std::string& name, const std::string& why, std::string help = {}) {
  return {.kind = ErrorKind::Unreadable,
          .message = fmt::format("cannot read {}: {}", name, why),
          .help = std::move(help)};
}

Result<Source> read_all(const Descriptor& file, std::string name, std::uint64_t max_bytes) {
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) return unreadable(name, system_words());
  if (S_ISDIR(info.st_mode)) return unreadable(name, "it is a directory", "name a file in it");
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > max_bytes) {
    return Error{ErrorKind::Limit, fmt::format("{} has more than {} bytes", name, max_bytes),
                 "raise the limit with --max-bytes"};
  }
  Source source{.name = std::move(name)};
  if (S_ISREG(info.st_mode)) source.text.reserve(static_cast<std::size_t>(info.st_size) + 1);
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
    if (count == 0) return source;
    if (count > 0) {
      source.text.append(buffer.data(), static_cast<std::size_t>(count));
      if (source.text.size() > max_bytes) {
        return Error{ErrorKind::Limit,
                     fmt::format("{} has more than {} bytes", source.name, max_bytes),
                     "raise the limit with --max-bytes"};
      }
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return unreadable(source.name, system_words());
    pollfd waiting{.fd = file.number(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
  }
}

// Writes everything or says why not.
std::optional<std::string> write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd waiting{.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
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
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) return unwritable(path, system_words());
  if (const auto why = write_all(file.number(), text)) return unwritable(path, *why);
  return std::nullopt;
}

// mkstemp makes files for the owner alone; what a user asked for gets what the umask allows.
mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Result<Source> read_source(const std::string& path, std::uint64_t max_bytes) {
  if (path == "-") return read_all(Descriptor(STDIN_FILENO), "<stdin>", max_bytes);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0) return unreadable(path, system_words());
  return read_all(file, path, max_bytes);
}

std::optional<Error> write_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  // Through a link the file it names is written, and what is no file (a FIFO, /dev/null) as it is.
  const std::filesystem::path link(path);
  const std::filesystem::path target = std::filesystem::is_symlink(link, ignored)
                                           ? std::filesystem::weakly_canonical(link, ignored)
                                           : link;
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return unwritable(path, "it is a directory");
  if (exists && !S_ISREG(info.st_mode)) return write_special(path, text);

  std::string name = (target.parent_path() / ".capo.XXXXXX").string();
  std::optional<std::string> why;
  {
    const Descriptor file(::mkstemp(name.data()));
    if (file.number() < 0) return unwritable(path, system_words());
    why = write_all(file.number(), text);
    if (!why && ::fchmod(file.number(), exists ? info.st_mode & 07777 : default_mode()) != 0)
      why = system_words();
    if (!why && ::fsync(file.number()) != 0) why = system_words();
  }
  if (!why && ::rename(name.c_str(), target.c_str()) != 0) why = system_words();
  if (!why) return std::nullopt;
  ::unlink(name.c_str());
  return unwritable(path, *why);
}

std::optional<Error> write_stdout(std::string_view text) {
  if (const auto why = write_all(STDOUT_FILENO, text)) return unwritable("standard output", *why);
  return std::nullopt;
}

std::optional<Error> write_output(const std::string& path, std::string_view text) {
  return path == "-" ? write_stdout(text) : write_file(path, text);
}

void print_stderr(std::string_view text) {
  // Where standard error takes nothing there is nobody left to tell.
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

}  // namespace capo::cli
