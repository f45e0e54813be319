// Non-temporal stores in kernels for CPUs.
#pragma once

#include <cstdint>

#include "clnet/device.h"

namespace clnet::exec {

/// Whether a launch should store results of this many bytes past the caches (the define NONTEMPORAL_STORES of
/// kernels/vector.clh). True where they are at least as large as the caches: a reader would find little there, and the stores
/// save fetching the lines. CLNET_NONTEMPORAL_STORES_FROM sets another limit in bytes. Never for kernels that are not for CPUs.
bool nontemporal_stores(const DeviceInfo& device, std::int64_t bytes);
/// The same for results that replace the launch's inputs, whose lines are in the caches already.
bool nontemporal_stores_in_place(const DeviceInfo& device, std::int64_t bytes);

}  // namespace clnet::exec
