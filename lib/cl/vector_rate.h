// How fast a CPU runs vectors of 16 lanes, which some cores run as two halves: measured once for a device, then remembered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// What an instruction on 16 lanes costs: as much as one on 8, or as two. not_measured: the device has no such vectors, computes
/// nothing (the null driver), is not here, or is too slow to be measured (simulators); or nothing that was measured can be kept.
enum class VectorRate : std::uint8_t { not_measured, full, half };

/// Measured, in some milliseconds, when it is first asked for, and kept in the cache folder for this device and driver before
/// anything is made of it: noise changes no later run, nor one beside it. Several threads and processes may ask.
VectorRate vector_rate(const DeviceInfo& device);
/// Keeps what was measured, and says what is kept then: another process may have been first. not_measured: nothing is.
VectorRate kept_vector_rate(const DeviceInfo& device, VectorRate measured);
/// What was measured before.
std::optional<VectorRate> known_vector_rate(const DeviceInfo& device);
/// The file in which it is kept; nothing without a cache folder.
std::optional<std::string> vector_rate_file(const DeviceInfo& device);
/// By a kernel. Throws DeviceError where the device fails.
VectorRate measure_vector_rate(const ::cl::Device& device, const DeviceInfo& info);
/// By instructions of this process, in some milliseconds. not_measured: its cores have no such vectors.
VectorRate measure_own_vectors();

}  // namespace clnet::ocl
