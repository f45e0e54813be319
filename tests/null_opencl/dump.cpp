#include "tests/null_opencl/dump.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace null_opencl {

namespace {

namespace fs = std::filesystem;

/// Made where it is not there; empty: nobody wants anything.
fs::path folder() {
  const char* wanted = std::getenv("NULL_OPENCL_DUMP");
  fs::path path(wanted ? wanted : "");
  std::error_code error;
  if (!path.empty()) fs::create_directories(path, error);
  if (!error) return path;
  std::fprintf(stderr, "null_opencl: NULL_OPENCL_DUMP=%s: %s\n", wanted, error.message().c_str());
  return {};
}

/// FNV-1a, of 64 bits.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, hash);
  return digits;
}

std::string sizes(cl_uint dimensions, const std::size_t* size) {
  std::string text;
  for (cl_uint i = 0; i < 3; ++i) {
    if (i > 0) text += 'x';
    text += std::to_string(!size ? 0 : i < dimensions ? size[i] : 1);
  }
  return text;
}

}  // namespace

std::string dump_program(const std::string& source, const char* options) {
  const fs::path target = folder();
  if (target.empty()) return "";
  const std::string text = std::string("// ") + (options ? options : "") + '\n' + source;
  const std::string hash = hash_of(text);
  const fs::path path = target / (hash + ".cl");
  if (fs::exists(path)) return hash;
  // Threads and processes may build the same: a whole file replaces a whole file.
  static std::atomic<unsigned> count{0};
  const fs::path fresh = target / (hash + '.' + std::to_string(::getpid()) + '.' + std::to_string(++count));
  std::ofstream(fresh) << text;
  std::error_code error;
  fs::rename(fresh, path, error);
  if (error) std::fprintf(stderr, "null_opencl: %s: %s\n", path.c_str(), error.message().c_str());
  return hash;
}

void dump_launch(const _cl_kernel& kernel, cl_uint dimensions, const std::size_t* global, const std::size_t* local) {
  const std::string& program = kernel.program.get()->dumped;
  const fs::path target = folder();
  if (target.empty() || program.empty()) return;
  std::size_t local_bytes = 0;
  for (const auto& [index, bytes] : kernel.local_arguments) local_bytes += bytes;
  std::string numbers;
  for (const auto& [index, number] : kernel.numbers) numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
  // Appended by one write(), so that lines of several threads and processes stay whole.
  std::FILE* file = std::fopen((target / "launches").c_str(), "a");
  if (!file) return;
  std::fprintf(file, "%s %s %s %s %zu %s\n", program.c_str(), kernel.name.c_str(), sizes(dimensions, global).c_str(),
               sizes(dimensions, local).c_str(), local_bytes, numbers.empty() ? "-" : numbers.c_str());
  std::fclose(file);
}

}  // namespace null_opencl
