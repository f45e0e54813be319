// OpenCL devices: listing, choice, properties and memory in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"

namespace clnet {

namespace detail {
struct access;
}
namespace ocl {
class Context;
}

/// The kind of device that OpenCL reports.
enum class DeviceType : std::uint8_t { gpu, accelerator, cpu, other };

/// Properties of a device, read from the driver and never guessed from a vendor id. Sizes are in bytes.
struct DeviceInfo {
  std::string name, vendor, platform, device_version, driver_version;
  DeviceType type = DeviceType::other;
  int platform_index = 0, device_index = 0;
  int compute_units = 1;
  int clock_mhz = 0;  ///< MHz; some drivers report a wrong number
  std::size_t max_work_group_size = 1;
  /// The work-group size should be a multiple of this number, for kernels in general. 0: unknown, as with drivers older than
  /// OpenCL 3.0, which report it per kernel only.
  std::size_t work_group_multiple = 0;
  std::size_t global_memory = 0, max_allocation = 0, local_memory = 0;
  std::size_t base_address_alignment = 1;
  std::size_t max_parameter_size = 1024;  ///< bytes of all arguments of a kernel
  /// The most work-groups in the second and third dimension of a launch. clnet enqueues a larger launch in pieces.
  std::size_t max_groups_across = std::numeric_limits<std::size_t>::max();
  int native_float_width = 1;      ///< lanes of the device's native float vector
  bool unified_memory = false;     ///< host and device share memory: mapping copies nothing
  std::string architecture;        ///< of a GPU, in compilers' terms ("sm_86", "gfx1100"); empty: unknown
  std::size_t sub_group_size = 0;  ///< work-items that run in lockstep; the largest size where the compiler chooses; 0: unknown
  std::size_t smallest_sub_group = 0;     ///< the smallest sub-group size that a kernel can request; 0: none, or unknown
  std::size_t cache = 0, cache_line = 0;  ///< bytes of the last-level cache and of its lines; 0: unknown
  bool matrix_units = false;              ///< has hardware units that multiply small matrices, as tensor cores
  bool fp16 = false, fp64 = false, subgroups = false, images = false;
  bool thread_safe = true;  ///< false: the driver crashes when two threads or an exit handler call it, against OpenCL's guarantee
  bool reuses_buffers = true;    ///< false: every buffer is new and of the exact size, for devices that check accesses
  bool runs_clblast = true;      ///< clnet may use CLBlast's kernels
  bool caches_programs = false;  ///< the driver has its own program cache on disk
  /// Vector kernels for CPUs (`*_cpu`) pay off: true on a CPU whose native float width is 4 or more.
  bool prefers_vector_kernels = false;
  std::vector<std::string> quirks;  ///< the known driver faults that clnet works around, by name
  /// Solvers ("matmul:cpu") that clnet-info --self-test found wrong on this device. clnet never chooses them.
  std::vector<std::string> broken_solvers;
};

/// Memory that clnet holds on one device, in bytes.
struct MemoryStats {
  std::size_t in_use = 0;         ///< used by live tensors
  std::size_t pooled = 0;         ///< free buffers, kept for reuse
  std::size_t high_water = 0;     ///< the largest value of in_use so far
  std::size_t limit = 0;          ///< in_use + pooled never exceeds it
  std::uint64_t allocations = 0;  ///< buffers created by the driver so far
};

/// A handle to one device with its context, queue, programs and memory. Copies refer to the same device.
class CLNET_API Device {
 public:
  /// All devices of all platforms; an empty list where there are none.
  static std::vector<DeviceInfo> list();
  /// The device for `gpu`, `cpu`, `accelerator`, `0:1` (platform:device) or a part of its name in any case. Two calls for one
  /// device share one context. Throws DeviceError, which lists all devices, where none fits.
  static Device find(std::string_view selector);
  /// The device of this thread's DeviceScope; else the device of set_default(); else the device of CLNET_DEVICE; else the best
  /// GPU, accelerator or CPU, in this order. Throws DeviceError where there is no device.
  static Device current();
  /// Sets the process's default device. Evaluations use it where their inputs live on no device yet.
  static void set_default(const Device& device);

  const DeviceInfo& info() const;
  MemoryStats memory() const;
  /// Limits in_use + pooled, in bytes. 0 sets the device's own limit.
  void set_memory_limit(std::size_t bytes);
  /// Returns pooled memory and values that clnet cached on its own account to the driver.
  void trim();
  /// Waits until the device has finished all enqueued work.
  void finish() const;
  /// Starts a Chrome trace (JSON, for Perfetto) of all kernels and transfers, as CLNET_TRACE does. Other threads may use the
  /// device meanwhile. Throws FileError where the file cannot be written, and Unsupported where the device is a caller's queue
  /// without profiling.
  void start_trace(const std::string& path);
  /// Waits for the device and completes the file of start_trace() or CLNET_TRACE. Throws FileError where it could not be written
  /// in full, as on a full disk.
  void stop_trace();

  bool operator==(const Device& other) const = default;

  // Copies only: a moved-from handle would refer to no device.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

 private:
  friend struct detail::access;
  explicit Device(std::shared_ptr<ocl::Context> context) : context_(std::move(context)) {}

  std::shared_ptr<ocl::Context> context_;
};

/// Makes `device` the current one of this thread while the scope lives. It affects only values that live on no device yet:
/// operations on a tensor run where the tensor is.
///
///   const DeviceScope scope(Device::find("gpu"));
///   const Tensor noise = randn({64, 100});
class CLNET_API DeviceScope {
 public:
  explicit DeviceScope(const Device& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  const Device& device() const { return device_; }

 private:
  Device device_;
  DeviceScope* outer_;
};

}  // namespace clnet
