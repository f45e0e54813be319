// Preloaded into clnet-info's self-test: kills a process that runs checks once it has told of END_AFTER of them, or with 0 before
// it tells that one begins. So may a driver's thread, at any time.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

extern "C" ssize_t write(int descriptor, const void* data, std::size_t size) {
  using Write = ssize_t (*)(int, const void*, std::size_t);
  static const auto next = reinterpret_cast<Write>(::dlsym(RTLD_NEXT, "write"));
  static const char* const after = std::getenv("END_AFTER");
  static std::atomic<int> told{0};
  const std::string_view text(static_cast<const char*>(data), size);
  const int most = after ? std::atoi(after) : -1;
  if (most == 0 && text.starts_with("{\"begin\":")) ::raise(SIGKILL);
  const auto written = next(descriptor, data, size);
  if (text.find("\"end\":") != std::string_view::npos && ++told == most) ::raise(SIGKILL);
  return written;
}
