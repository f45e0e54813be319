#include "lib/exec/choose/past_caches.h"

#include "lib/base/env.h"

namespace clnet::exec {

bool past_caches(const DeviceInfo& device, std::int64_t bytes) {
  if (!device.prefers_vector_kernels) return false;
  static const auto from = env::bytes("CLNET_STREAM_FROM");
  if (from) return static_cast<std::size_t>(bytes) >= *from;
  return device.cache > 0 && static_cast<std::size_t>(bytes) >= device.cache;
}

}  // namespace clnet::exec
