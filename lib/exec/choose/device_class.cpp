#include "lib/exec/choose/device_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "lib/cl/vector_rate.h"

namespace clnet::exec {

namespace {

// Parts of multiply-adds among the instructions of the compiled loops (docs/performance.md, "Kernels for GPUs"). Intel's compiler
// has 4 KiB of registers for 8 work-items, and 64 sums for each leave it too few: it spills.
constexpr std::array<double, gemm_tiles> by_instructions{0.83, 0.75, 0.69, 0.30, 0.25},
    by_few_registers{0.50, 0.75, 0.69, 0.30, 0.25};

// Cores start two instructions on vectors in a cycle, or one that is as wide as both.
constexpr std::array classes{
    DeviceClass{.name = "cpu-4", .what = "CPUs with vectors of 4 floats: SSE, NEON", .lanes_4 = 0.5},
    DeviceClass{.name = "cpu-8", .what = "CPUs with vectors of 8 floats: AVX2", .lanes_4 = 0.5, .lanes_8 = 0.5},
    DeviceClass{.name = "cpu-16-half",
                .what = "CPUs that run vectors of 16 floats in two halves: AVX-512 on Zen 4, or what the compiler splits",
                .lanes_4 = 0.5,
                .lanes_8 = 0.5,
                .lanes_16 = 1},
    DeviceClass{.name = "cpu-16-full",
                .what = "CPUs that run vectors of 16 floats as fast as those of 8: AVX-512 on servers of Intel's, Zen 5",
                .lanes_4 = 0.5,
                .lanes_8 = 0.5,
                .lanes_16 = 0.5},
    DeviceClass{.name = "nvidia", .what = "NVIDIA's GPUs", .tiles = by_instructions},
    DeviceClass{.name = "amd-wave32", .what = "AMD's GPUs of RDNA, work-items by 32", .tiles = by_instructions},
    DeviceClass{.name = "amd-wave64", .what = "AMD's GPUs of GCN and CDNA, work-items by 64", .tiles = by_instructions},
    DeviceClass{.name = "intel", .what = "Intel's GPUs", .tiles = by_few_registers},
    DeviceClass{
        .name = "other", .what = "everything else", .lanes_4 = 0.5, .lanes_8 = 0.5, .lanes_16 = 1, .tiles = by_instructions},
};

std::string_view name_of(const DeviceInfo& device) {
  if (device.prefers_vector_kernels) {
    if (device.native_float_width < 8) return "cpu-4";
    if (device.native_float_width < 16) return "cpu-8";
    return ocl::vector_rate(device) == ocl::VectorRate::full ? "cpu-16-full" : "cpu-16-half";
  }
  if (device.type == DeviceType::cpu) return "other";
  if (device.generation.starts_with("sm_")) return "nvidia";
  if (device.generation.starts_with("gfx")) return device.sub_group_size == 64 ? "amd-wave64" : "amd-wave32";
  if (device.vendor.find("Intel") != std::string::npos) return "intel";
  return "other";
}

}  // namespace

std::span<const DeviceClass> device_classes() { return classes; }

const DeviceClass& device_class(const DeviceInfo& device) { return device_class(name_of(device)); }

const DeviceClass& device_class(std::string_view name) {
  const auto found = std::find_if(classes.begin(), classes.end(), [&](const DeviceClass& known) { return known.name == name; });
  if (found == classes.end()) throw Error(fmt::format("there is no class of devices named '{}'", name));
  return *found;
}

}  // namespace clnet::exec
