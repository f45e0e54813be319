// OpenCL devices: listing, choosing, asking what they can do and what memory is in use.
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

enum class DeviceType : std::uint8_t { gpu, accelerator, cpu, other };

/// What a device says of itself. Sizes are in bytes. Asked of the driver, never guessed from a vendor id.
struct DeviceInfo {
  std::string name, vendor, platform, device_version, driver_version;
  DeviceType type = DeviceType::other;
  int platform_index = 0, device_index = 0;
  int compute_units = 1;
  int clock_mhz = 0;  ///< as the driver says; some say nonsense
  std::size_t max_work_group_size = 1;
  /// What the size of a work-group had better be a multiple of, for kernels in general; 0: the driver does not tell, as those
  /// older than OpenCL 3.0, which can only be asked about a kernel.
  std::size_t work_group_multiple = 0;
  std::size_t global_memory = 0, max_allocation = 0, local_memory = 0;
  std::size_t base_address_alignment = 1;
  std::size_t max_parameter_size = 1024;  ///< bytes of a kernel's arguments
  /// Work-groups of a launch's second and third dimension; a launch of more is enqueued in pieces.
  std::size_t max_groups_across = std::numeric_limits<std::size_t>::max();
  int native_float_width = 1;   ///< lanes of the device's native float vector
  bool unified_memory = false;  ///< host and device share memory: mapping copies nothing
  std::string generation;       ///< of a GPU, as compilers call it ("sm_86", "gfx1100"); empty where the driver does not tell
  std::size_t sub_group_size =
      0;  ///< work-items that run together, the most where a compiler chooses; 0: the driver does not tell
  std::size_t smallest_sub_group = 0;     ///< the fewest that a kernel can ask for; 0: it cannot, or the driver does not tell
  std::size_t cache = 0, cache_line = 0;  ///< bytes of the last cache before global memory; 0: the driver does not tell
  bool matrix_units = false;              ///< its generation multiplies small matrices in units of their own
  bool fp16 = false, fp64 = false, subgroups = false, images = false;
  bool thread_safe =
      true;  ///< false: the driver crashes when two threads or an exit handler call it, though OpenCL promises otherwise
  bool reuses_buffers = true;    ///< false: every buffer is made anew, of the exact size, for a device that checks accesses
  bool runs_clblast = true;      ///< CLBlast's kernels may be used
  bool caches_programs = false;  ///< the driver keeps built programs on disk itself
  /// Vector kernels for CPUs (`*_cpu`) pay off: a CPU whose native float width is 4 or more.
  bool prefers_vector_kernels = false;
  std::vector<std::string> quirks;  ///< names of the known driver faults that clnet works around
  /// Solvers ("matmul:cpu") that clnet-info --self-test found wrong on this device: not chosen.
  std::vector<std::string> broken_solvers;
};

/// Memory held by clnet on one device, in bytes.
struct MemoryStats {
  std::size_t in_use = 0;         ///< in live tensors
  std::size_t pooled = 0;         ///< kept for reuse
  std::size_t high_water = 0;     ///< the most that was in use at once
  std::size_t limit = 0;          ///< in_use + pooled never exceeds it
  std::uint64_t allocations = 0;  ///< buffers created by the driver so far
};

/// A handle to one device with its context, queue, programs and memory. Copies refer to the same device.
class CLNET_API Device {
 public:
  /// All devices of all platforms. Finding none is not an error: the list is empty.
  static std::vector<DeviceInfo> list();
  /// `gpu`, `cpu`, `accelerator`, `0:1` (platform:device) or a part of a name, upper and lower case alike.
  /// Asking for the same device twice gives the same context. Throws DeviceError, listing what there is, when none fits.
  static Device find(std::string_view selector);
  /// That of this thread's DeviceScope; else what set_default() chose; else CLNET_DEVICE; else the best GPU, accelerator or CPU,
  /// in this order.
  static Device current();
  /// The device that evaluations use when their inputs live on none yet.
  static void set_default(const Device& device);

  const DeviceInfo& info() const;
  MemoryStats memory() const;
  /// 0: what the device says.
  void set_memory_limit(std::size_t bytes);
  /// Gives pooled memory back to the driver, and what is kept without having been asked for.
  void trim();
  /// Waits until all work given to the device is done.
  void finish() const;
  /// Records every kernel and transfer from now on into a Chrome trace (JSON, for Perfetto), as CLNET_TRACE does. Other threads
  /// may use the device meanwhile. Throws FileError when the file cannot be written, Unsupported when the device is a caller's
  /// queue that does not measure times.
  void start_trace(const std::string& path);
  /// Waits for the device and completes the file, also one of CLNET_TRACE. Throws FileError when it could not be written in full,
  /// as on a full disk.
  void stop_trace();

  bool operator==(const Device& other) const = default;

  // Copies only: what was moved from would be the handle of nothing.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

 private:
  friend struct detail::access;
  explicit Device(std::shared_ptr<ocl::Context> context) : context_(std::move(context)) {}

  std::shared_ptr<ocl::Context> context_;
};

/// Makes another device the current one of this thread in its lifetime. It is for what lives on no device yet: a tensor that is
/// on one is computed with there.
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
