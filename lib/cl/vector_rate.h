// The speed of a CPU's vectors of 16 lanes, which some cores run as two halves: measured once per device and kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

/// The rate of an instruction on 16 lanes: `full` costs as much as on 8 lanes, `half` as two of those. `not_measured`: there are
/// no such vectors, the device is the null driver, absent or too slow (simulators), or the result cannot be kept.
enum class VectorRate : std::uint8_t { not_measured, full, half };

/// The rate. The first call measures it, in some milliseconds. The cache folder keeps it for this device and driver before any
/// use, so noise changes neither later nor parallel runs. Several threads and processes may call it.
VectorRate vector_rate(const DeviceInfo& device);
/// Keeps a measurement and returns the kept one: another process may have been first. not_measured: none is kept.
VectorRate kept_vector_rate(const DeviceInfo& device, VectorRate measured);
/// The kept measurement, if any.
std::optional<VectorRate> known_vector_rate(const DeviceInfo& device);
/// The file of the measurement; nothing without a cache folder.
std::optional<std::string> vector_rate_file(const DeviceInfo& device);
/// Measures with a kernel. Throws DeviceError where the device fails.
VectorRate measure_vector_rate(const ::cl::Device& device, const DeviceInfo& info);
/// Measures with instructions of this process, in some milliseconds. not_measured: its cores have no such vectors.
VectorRate measure_own_vectors();

}  // namespace clnet::ocl
