#include "lib/exec/choose/past_caches.h"

#include <cstddef>
#include <optional>

#include "lib/base/env.h"

namespace clnet::exec {

namespace {

std::optional<std::size_t> chosen_size() {
  static const auto from = env::bytes("CLNET_STREAM_FROM");
  return from;
}

}  // namespace

bool past_caches(const DeviceInfo& device, std::int64_t bytes) {
  if (!device.prefers_vector_kernels) return false;
  if (const auto from = chosen_size()) return static_cast<std::size_t>(bytes) >= *from;
  return device.cache > 0 && static_cast<std::size_t>(bytes) >= device.cache;
}

bool past_caches_in_place(const DeviceInfo& device, std::int64_t bytes) {
  // Measured on CPUs with AVX2 (Zen 3): Adam takes 1.08 to 1.1 times as long past the caches; with AVX-512 it does not.
  constexpr int avx2 = 8;
  return past_caches(device, bytes) && (chosen_size() || device.native_float_width != avx2);
}

}  // namespace clnet::exec
