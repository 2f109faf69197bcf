// Preloaded into capo or capo-fuzz by failing_world.cpp: a world in which the n-th allocation
// throws, or the n-th call for a file fails, is short, or is the last thing that the process does.
//
// Calls for files are those through which capo's bytes go: open, mkstemp, fstat, stat, lstat, read,
// write, fsync, fchmod, rename and unlink; and those of capo-fuzz's lines besides: fopen64, flock,
// writev and truncate. Calls that the C library makes of itself are not seen; capo has no files but
// these, and capo-fuzz none but what it prints. Allocations are those by operator new, in whatever
// library; what failed is the n-th since the program began, static objects included. Nothing here
// may allocate.

#include "tests/failing/ledger.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

using capo::failing::FailingLedger;
using capo::failing::Failure;

constexpr unsigned kSecondsOfARun = 120;  // then it hangs

FailingLedger* ledger = nullptr;

// Returns in each child that is to run; the process that forks them ends with the orders.
void serve() {
  char order = 0;
  while (::syscall(SYS_read, capo::failing::kOrdersDescriptor, &order, 1) == 1) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(capo::failing::kOrdersDescriptor);
      ::close(capo::failing::kStatusDescriptor);
      ::alarm(kSecondsOfARun);
      return;
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    ::syscall(SYS_write, capo::failing::kStatusDescriptor, &status, sizeof status);
  }
  ::_exit(0);
}

__attribute__((constructor)) void enter_failing_world() {
  void* page = ::mmap(nullptr, sizeof(FailingLedger), PROT_READ | PROT_WRITE, MAP_SHARED,
                      capo::failing::kLedgerDescriptor, 0);
  if (page == MAP_FAILED) return;  // not started by a test
  ledger = static_cast<FailingLedger*>(page);
  serve();
}

bool allocation_fails(std::size_t size, const void* caller) {
  if (ledger == nullptr) return false;
  const std::uint64_t number = ++ledger->allocations;
  if (number <= FailingLedger::kSites) {
    const auto place = reinterpret_cast<std::uintptr_t>(caller) & 0xFFF;
    ledger->sites[number - 1] = static_cast<std::uint32_t>((size << 12) | place);
  }
  return ledger->order.failure == Failure::NoMemory && ledger->order.at == number;
}

void* allocated(void* memory) {
  if (memory != nullptr && ledger != nullptr) ++ledger->live;
  return memory;
}

void* allocate(std::size_t size, const void* caller) {
  return allocation_fails(size, caller) ? nullptr : allocated(std::malloc(size == 0 ? 1 : size));
}

void* allocate(std::size_t size, std::align_val_t alignment, const void* caller) {
  const auto to = static_cast<std::size_t>(alignment);
  if (allocation_fails(size, caller)) return nullptr;
  return allocated(std::aligned_alloc(to, (size + to) / to * to));
}

// Asks the installed handler first, as the library's own operator does.
void* or_throw(void* memory) {
  if (memory != nullptr) return memory;
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

void give_back(void* memory) {
  if (memory != nullptr && ledger != nullptr) --ledger->live;
  std::free(memory);
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

[[noreturn]] void die() {
  ::raise(SIGKILL);
  ::_exit(0);
}

// Makes the call, unless it is the one that is to fail. `call` takes the most bytes to move.
template <typename Call>
auto counted(const char* name, Call call) -> decltype(call(std::size_t{})) {
  constexpr auto kAll = static_cast<std::size_t>(-1);
  if (ledger == nullptr) return call(kAll);
  const auto& order = ledger->order;
  const bool of_files = order.failure != Failure::None && order.failure != Failure::NoMemory;
  if (++ledger->file_calls != order.at || !of_files) return call(kAll);
  std::strncpy(ledger->call, name, sizeof ledger->call - 1);
  switch (order.failure) {
    case Failure::Error:
      errno = order.error;
      return -1;
    case Failure::Short:
      return call(1);
    case Failure::Interrupt:
      ::raise(SIGINT);
      return call(kAll);
    case Failure::KilledBefore:
      die();
    case Failure::KilledAfter:
      call(kAll);
      die();
    default:
      return call(kAll);
  }
}

}  // namespace

// The sized forms forward to these in libstdc++, the array forms do not everywhere.
// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new(std::size_t size) {
  return or_throw(allocate(size, __builtin_return_address(0)));
}
void* operator new[](std::size_t size) {
  return or_throw(allocate(size, __builtin_return_address(0)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, __builtin_return_address(0));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t to) {
  return or_throw(allocate(size, to, __builtin_return_address(0)));
}
void* operator new[](std::size_t size, std::align_val_t to) {
  return or_throw(allocate(size, to, __builtin_return_address(0)));
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
// NOLINTEND(misc-new-delete-overloads)

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return counted("open", [&](std::size_t) {
    return real<int(const char*, int, mode_t)>("open")(path, flags, mode);
  });
}
int mkstemp(char* pattern) {
  return counted("mkstemp", [&](std::size_t) { return real<int(char*)>("mkstemp")(pattern); });
}
int fstat(int file, struct stat* info) noexcept {
  return counted("fstat",
                 [&](std::size_t) { return real<int(int, struct stat*)>("fstat")(file, info); });
}
int stat(const char* path, struct stat* info) noexcept {
  return counted("stat", [&](std::size_t) {
    return real<int(const char*, struct stat*)>("stat")(path, info);
  });
}
int lstat(const char* path, struct stat* info) noexcept {
  return counted("lstat", [&](std::size_t) {
    return real<int(const char*, struct stat*)>("lstat")(path, info);
  });
}
// The C++ library's streams open files by this call.
FILE* fopen64(const char* path, const char* mode) {
  FILE* file = nullptr;
  counted("fopen", [&](std::size_t) {
    file = real<FILE*(const char*, const char*)>("fopen64")(path, mode);
    return file == nullptr ? -1 : 0;
  });
  return file;
}
int flock(int file, int operation) noexcept {
  return counted("flock",
                 [&](std::size_t) { return real<int(int, int)>("flock")(file, operation); });
}
int truncate(const char* path, off_t size) noexcept {
  return counted("truncate", [&](std::size_t) {
    return real<int(const char*, off_t)>("truncate")(path, size);
  });
}
ssize_t read(int file, void* to, std::size_t size) {
  return counted("read", [&](std::size_t most) {
    return real<ssize_t(int, void*, std::size_t)>("read")(file, to, size < most ? size : most);
  });
}
ssize_t write(int file, const void* from, std::size_t size) {
  return counted("write", [&](std::size_t most) {
    return real<ssize_t(int, const void*, std::size_t)>("write")(file, from,
                                                                 size < most ? size : most);
  });
}
// The C++ library's streams write long texts by this call; a short write moves a byte.
ssize_t writev(int file, const struct iovec* parts, int count) {
  return counted("writev", [&](std::size_t most) {
    iovec one = parts[0];
    if (most < one.iov_len) one.iov_len = most;
    const bool whole = most == static_cast<std::size_t>(-1);
    return real<ssize_t(int, const struct iovec*, int)>("writev")(file, whole ? parts : &one,
                                                                  whole ? count : 1);
  });
}
int fsync(int file) {
  return counted("fsync", [&](std::size_t) { return real<int(int)>("fsync")(file); });
}
int fchmod(int file, mode_t mode) noexcept {
  return counted("fchmod",
                 [&](std::size_t) { return real<int(int, mode_t)>("fchmod")(file, mode); });
}
int rename(const char* from, const char* to) noexcept {
  return counted("rename", [&](std::size_t) {
    return real<int(const char*, const char*)>("rename")(from, to);
  });
}
// Time stands still, so that runs can be compared to the byte.
int clock_gettime(clockid_t /*clock*/, timespec* now) noexcept {
  *now = {.tv_sec = 1'000'000, .tv_nsec = 0};
  return 0;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*),
                   void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  const int code = counted("pthread_create", [&](std::size_t) {
    return real<Create>("pthread_create")(thread, attributes, begin, argument);
  });
  return code == -1 ? EAGAIN : code;  // it has no errno
}
void _Exit(int code) noexcept {
  if (ledger != nullptr) ledger->left_at_once = true;
  ::_exit(code);
}
int unlink(const char* path) noexcept {
  return counted("unlink", [&](std::size_t) { return real<int(const char*)>("unlink")(path); });
}

}  // extern "C"
