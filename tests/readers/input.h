// What a fuzzer's input is to a reader: a file in memory, with a path. A reader is a fuzzer of its own under libFuzzer; elsewhere
// all of them are in one program, which reads the kept cases (replay.cpp).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

/// CLNET_READER(name) { ... }: the body reads `data` of `size` bytes, and gives 0. It aborts where the reader breaks a promise.
#ifdef CLNET_LIBFUZZER
#define CLNET_READER(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define CLNET_READER(name)                                                                             \
  static int read_##name(const std::uint8_t* data, std::size_t size);                                  \
  static const bool has_##name = clnet::test::readers().emplace(#name, read_##name).second; /*NOLINT*/ \
  static int read_##name([[maybe_unused]] const std::uint8_t* data, [[maybe_unused]] std::size_t size)
#endif

namespace clnet::test {

using Reader = int (*)(const std::uint8_t* data, std::size_t size);
/// By name, those of this program.
inline std::map<std::string, Reader>& readers() {
  static std::map<std::string, Reader> all;
  return all;
}

class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace clnet::test
