#include "lib/exec/choose/device_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>

#include "clnet/error.h"
#include "lib/cl/gpu_architecture.h"
#include "lib/cl/vector_rate.h"

namespace clnet::exec {

namespace {

// Parts of multiply-adds among the instructions of the compiled loops (bench/notebook/2026-11-gpu-kernels.md). Intel's compiler
// has 4 KiB of registers for 8 work-items, and 64 sums for each leave it too few: it spills.
constexpr std::array<double, gemm_tiles> by_instructions{0.83, 0.75, 0.69, 0.30, 0.25},
    by_few_registers{0.50, 0.75, 0.69, 0.30, 0.25};

constexpr std::int64_t kibi = 1024;

// Units' registers and memory: NVIDIA's programming guide ("compute capabilities"), AMD's ISA documents and LLVM's AMDGPUUsage,
// Intel's guide to optimizing for GPUs. Registers of the largest tile: tools/dev/offline_limits.txt, the most of matmul_gpu and
// conv2d_gpu; where no compiler was asked, those of the architecture that is closest.
constexpr DeviceClass nvidia(std::string_view name, std::string_view what, std::int64_t lanes, std::int64_t local_kib,
                             std::int64_t largest_tile) {
  // A unit reads 32 words of local memory in a cycle.
  return {.name = name,
          .what = what,
          .tiles = by_instructions,
          .words = 32.0 / static_cast<double>(lanes),
          .registers = 64 * kibi,
          .local_memory = local_kib * kibi,
          .largest_tile = largest_tile};
}

constexpr DeviceClass amd(std::string_view name, std::string_view what, std::int64_t registers_k, std::int64_t local_kib,
                          std::int64_t largest_tile) {
  return {.name = name,
          .what = what,
          .tiles = by_instructions,
          .words = 0.5,  // 32 for 64 lanes
          .registers = registers_k * kibi,
          .local_memory = local_kib * kibi,
          .largest_tile = largest_tile};
}

constexpr DeviceClass intel(std::string_view name, std::string_view what, int engines, std::int64_t threads, std::int64_t lanes,
                            double words, std::int64_t local_kib) {
  // Each thread of an engine has 128 registers of a vector, and as many work-items.
  return {.name = name,
          .what = what,
          .tiles = by_few_registers,
          .words = words,
          .registers = engines * threads * 128 * lanes,
          .local_memory = local_kib * kibi,
          .largest_tile = 128,
          .units = engines};
}

constexpr DeviceClass cpu(std::string_view name, std::string_view what, double lanes_8, double lanes_16) {
  // GPUs' tiles run here where they are asked for by name, and the size of the product is to decide then, too.
  return {.name = name, .what = what, .lanes_4 = 0.5, .lanes_8 = lanes_8, .lanes_16 = lanes_16, .tiles = by_instructions};
}

// Cores start two instructions on vectors in a cycle, or one that is as wide as both.
constexpr std::array classes{
    cpu("cpu-4", "CPUs with vectors of 4 floats: SSE, NEON", 0, 0),
    cpu("cpu-8", "CPUs with vectors of 8 floats: AVX2", 0.5, 0),
    cpu("cpu-16-half", "CPUs that run vectors of 16 floats in two halves: AVX-512 on Zen 4, or what the compiler splits", 0.5, 1),
    cpu("cpu-16-full", "CPUs that run vectors of 16 floats as fast as those of 8: AVX-512 on servers of Intel's, Zen 5", 0.5,
        0.5),
    nvidia("nvidia-sm50", "NVIDIA's GPUs before sm_70: Maxwell, Pascal", 128, 96, 133),
    nvidia("nvidia-sm70", "NVIDIA's sm_70 and sm_72: Volta", 64, 96, 133),
    nvidia("nvidia-sm75", "NVIDIA's sm_75: Turing", 64, 64, 133),
    nvidia("nvidia-sm80", "NVIDIA's sm_80: A100", 64, 164, 128),
    nvidia("nvidia-sm86", "NVIDIA's sm_86 to sm_89 and sm_120: Ampere, Ada and Blackwell for desktops", 128, 100, 128),
    nvidia("nvidia-sm90", "NVIDIA's sm_90 and sm_100: Hopper and Blackwell for servers", 128, 228, 128),
    amd("amd-gcn", "AMD's GPUs up to gfx9 for graphics: GCN, Vega", 64, 64, 136),
    amd("amd-cdna", "AMD's gfx908, gfx90a, gfx94x and gfx95x: CDNA", 128, 64, 220),
    amd("amd-rdna", "AMD's gfx10: RDNA 1 and 2", 128, 128, 132),
    amd("amd-rdna3", "AMD's gfx11 and gfx12: RDNA 3 and 4", 192, 128, 138),
    intel("intel-gen9", "Intel's GPUs before Xe: gen9, gen11", 8, 7, 8, 16.0 / 64, 64),
    intel("intel-xe-lp", "Intel's Xe-LP: integrated since gen12, DG1", 16, 7, 8, 32.0 / 128, 128),
    intel("intel-xe-hpg", "Intel's Xe-HPG and Xe-LPG, by vectors of 8: Arc A", 16, 8, 8, 32.0 / 128, 128),
    intel("intel-xe-hpc", "Intel's Xe-HPC, Xe2 and later, by vectors of 16: GPU Max, Arc B", 8, 8, 16, 32.0 / 128, 128),
    DeviceClass{
        .name = "other", .what = "everything else", .lanes_4 = 0.5, .lanes_8 = 0.5, .lanes_16 = 1, .tiles = by_instructions},
};

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::string_view name_of_nvidia(int capability) {
  if (capability < 70) return "nvidia-sm50";
  if (capability < 75) return "nvidia-sm70";
  if (capability < 80) return "nvidia-sm75";
  if (capability < 86) return "nvidia-sm80";
  return capability < 90 || capability >= 120 ? "nvidia-sm86" : "nvidia-sm90";
}

std::string_view name_of_amd(std::string_view architecture) {
  if (begins_with_any(architecture, {"gfx908", "gfx90a", "gfx94", "gfx95"})) return "amd-cdna";
  if (begins_with_any(architecture, {"gfx11", "gfx12"})) return "amd-rdna3";
  return architecture.starts_with("gfx10") ? "amd-rdna" : "amd-gcn";
}

/// An older driver tells no architecture, but which vectors its matrix units work on.
std::string_view name_of_intel(const DeviceInfo& device) {
  const std::string_view architecture = device.architecture;
  if (begins_with_any(architecture, {"xe-hpg", "xe-lpg"})) return "intel-xe-hpg";
  if (architecture == "xe-lp") return "intel-xe-lp";
  if (architecture.starts_with("xe")) return "intel-xe-hpc";
  if (architecture.empty() && device.matrix_units) return device.smallest_sub_group >= 16 ? "intel-xe-hpc" : "intel-xe-hpg";
  return "intel-gen9";
}

std::string_view name_of(const DeviceInfo& device) {
  if (device.prefers_vector_kernels) {
    if (device.native_float_width < 8) return "cpu-4";
    if (device.native_float_width < 16) return "cpu-8";
    return ocl::vector_rate(device) == ocl::VectorRate::full ? "cpu-16-full" : "cpu-16-half";
  }
  if (device.type == DeviceType::cpu) return "other";
  if (const int capability = ocl::compute_capability(device.architecture); capability > 0) return name_of_nvidia(capability);
  if (device.architecture.starts_with("gfx")) return name_of_amd(device.architecture);
  if (device.vendor.find("Intel") != std::string::npos) return name_of_intel(device);
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

std::int64_t units_of(const DeviceInfo& device) {
  // For a CPU the table may have to measure.
  return std::max(1, device.type == DeviceType::cpu ? device.compute_units : device.compute_units / device_class(device).units);
}

std::int64_t DeviceClass::groups_of_unit(std::int64_t items, std::int64_t item_registers, std::int64_t local_bytes) const {
  constexpr std::int64_t granule = 8;
  std::int64_t fit = std::numeric_limits<std::int64_t>::max();
  if (registers > 0 && item_registers > 0) fit = registers / (items * ((item_registers + granule - 1) / granule * granule));
  if (local_memory > 0 && local_bytes > 0) fit = std::min(fit, local_memory / local_bytes);
  return std::max<std::int64_t>(fit, 1);
}

}  // namespace clnet::exec
