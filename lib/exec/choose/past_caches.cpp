#include "lib/exec/choose/past_caches.h"

#include <cstddef>

#include "lib/base/env.h"

namespace clnet::exec {

bool past_caches(const DeviceInfo& device, std::int64_t bytes) {
  if (!device.prefers_vector_kernels) return false;
  static const auto from = env::bytes("CLNET_STREAM_FROM");
  if (from) return static_cast<std::size_t>(bytes) >= *from;
  return device.cache > 0 && static_cast<std::size_t>(bytes) >= device.cache;
}

bool past_caches_in_place(const DeviceInfo& device, std::int64_t bytes) {
  // Measured with AVX2 (Zen 3): Adam takes 1.3 times as long when its state is stored past the caches, too. With AVX-512 it does
  // not.
  constexpr int avx2 = 8;
  return device.native_float_width != avx2 && past_caches(device, bytes);
}

}  // namespace clnet::exec
