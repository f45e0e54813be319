#include "lib/exec/choose/nontemporal_stores.h"

#include <cstddef>

#include "lib/base/env.h"
#include "lib/exec/choose/device_class.h"

namespace clnet::exec {

bool nontemporal_stores(const DeviceInfo& device, std::int64_t bytes) {
  if (!device.prefers_vector_kernels) return false;
  static const auto from = env::bytes("CLNET_NONTEMPORAL_STORES_FROM");
  if (from) return static_cast<std::size_t>(bytes) >= *from;
  return device.cache > 0 && static_cast<std::size_t>(bytes) >= device.cache;
}

bool nontemporal_stores_in_place(const DeviceInfo& device, std::int64_t bytes) {
  // Adam takes 1.3 times as long on a Zen 3, and 1.16 times on a Zen 4, when its state is stored past the caches, too. Where
  // vectors of 16 run at full rate it does not.
  return nontemporal_stores(device, bytes) && device_class(device).name == "cpu-16-full";
}

}  // namespace clnet::exec
