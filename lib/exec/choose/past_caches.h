// Which results kernels for CPUs store past the caches.
#pragma once

#include <cstdint>

#include "clnet/device.h"

namespace clnet::exec {

/// Whether a launch's results of so many bytes together are better stored past the caches (the define STREAM of
/// kernels/vector.clh): they are as large as those or larger, so that a reader would find little there, and their lines need not
/// be fetched before they are written. CLNET_STREAM_FROM says from how many bytes on instead. Never where kernels are not those
/// for CPUs.
bool past_caches(const DeviceInfo& device, std::int64_t bytes);
/// The same of results that replace what the launch has read, whose lines are in the caches already.
bool past_caches_in_place(const DeviceInfo& device, std::int64_t bytes);

}  // namespace clnet::exec
