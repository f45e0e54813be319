// Preloaded into clnet-info's self-test: kills a process that runs checks once it has told of END_AFTER of them, or with 0 before
// it tells that one begins. So may a driver's thread, at any time. With END_STAYS it falls silent instead, and no process is
// killed by another: as one that a driver keeps in the kernel.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace {

void end(int descriptor) {
  if (!std::getenv("END_STAYS")) ::raise(SIGKILL);
  ::close(descriptor);
  for (;;) ::pause();
}

}  // namespace

extern "C" int kill(pid_t process, int signal) noexcept {
  using Kill = int (*)(pid_t, int);
  static const auto next = reinterpret_cast<Kill>(::dlsym(RTLD_NEXT, "kill"));
  return std::getenv("END_STAYS") ? 0 : next(process, signal);
}

extern "C" ssize_t write(int descriptor, const void* data, std::size_t size) {
  using Write = ssize_t (*)(int, const void*, std::size_t);
  static const auto next = reinterpret_cast<Write>(::dlsym(RTLD_NEXT, "write"));
  static const char* const after = std::getenv("END_AFTER");
  static std::atomic<int> told{0};
  const std::string_view text(static_cast<const char*>(data), size);
  const int most = after ? std::atoi(after) : -1;
  if (most == 0 && text.starts_with("{\"begin\":")) end(descriptor);
  const auto written = next(descriptor, data, size);
  if (text.find("\"end\":") != std::string_view::npos && ++told == most) end(descriptor);
  return written;
}
