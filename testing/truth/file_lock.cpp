#include "testing/truth/file_lock.h"

#include "core/base/error_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace capo::testing {

namespace {

constexpr mode_t kForAll = 0666;  // less what the umask takes

Error refusal(const std::string& path) {
  if (errno == EWOULDBLOCK) {
    return {.kind = ErrorKind::Environment,
            .message = path + ": another capo-fuzz adds lines to it",
            .help = "wait for it, or write to another file"};
  }
  return {.kind = ErrorKind::Environment,
          .message = fmt::format("cannot write {}: {}", path, error_text(errno)),
          .help = ""};
}

}  // namespace

Result<FileLock, Error> FileLock::take(const std::string& path) {
  FileLock lock;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
  if (lock.file_ < 0 || ::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) return refusal(path);
  return lock;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace capo::testing
