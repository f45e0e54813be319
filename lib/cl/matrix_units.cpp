#include "lib/cl/matrix_units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "lib/cl/capability_probe.h"
#include "lib/cl/check.h"
#include "lib/cl/gpu_architecture.h"
#include "lib/cl/program_cache.h"

namespace clnet::ocl {

namespace {

/// Those of Intel's extension have operands for sub-groups of 8 where there are such, and for 16 where these are the smallest.
constexpr std::array emulations{MatrixUnit{"emulated", 32}, MatrixUnit{"emulated_dpas8", 8}, MatrixUnit{"emulated_dpas16", 16}};
constexpr auto& emulated = emulations[0];
constexpr MatrixUnit dpas8{"dpas8", 8}, dpas16{"dpas16", 16}, mma_sm75{"mma_sm75", 32}, mma_sm80{"mma_sm80", 32},
    wmma{"wmma", 32}, mfma{"mfma", 64};

bool is_dpas(const MatrixUnit& unit) { return unit.name == dpas8.name || unit.name == dpas16.name; }

/// What is left to want of a unit that the device has.
std::string_view missing(const DeviceInfo& device, const MatrixUnit& unit, UnitElement element) {
  if (unit.name == mma_sm75.name && element != UnitElement::f16) return "before sm_80 they multiply no bf16 and tf32";
  if (unit.name == mfma.name && device.architecture == "gfx908" && element == UnitElement::bf16)
    return "before gfx90a they multiply too few bf16 at a time";
  if ((unit.name == wmma.name || unit.name == mfma.name) && element == UnitElement::tf32) return "AMD's multiply no tf32";
  if (is_dpas(unit) && element == UnitElement::tf32) return "of Intel's clnet knows no tf32";
  return {};
}

/// An odd number of sixteenths below 4, which all types hold exactly, as products and sums are in float.
float drawn(int seed, int index) {
  const auto mixed = static_cast<std::uint32_t>(index * 16 + seed) * 2654435761U;
  return (static_cast<float>(mixed >> 26) - 31.5F) / 8;
}

/// Bits of such a number as an element; sixteenths have few.
std::uint32_t bits_of(float value, UnitElement element) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (element == UnitElement::tf32) return bits;
  if (element == UnitElement::bf16) return bits >> 16;
  return (bits >> 16 & 0x8000U) | ((bits & 0x7fffffffU) - 0x38000000U) >> 13;
}

std::string probe_name(UnitElement element) { return fmt::format("matrix-units-{}", to_string(element)); }

}  // namespace

std::string_view to_string(UnitElement element) {
  switch (element) {
    case UnitElement::f16: return "f16";
    case UnitElement::bf16: return "bf16";
    default: return "tf32";
  }
}

std::optional<MatrixUnit> matrix_unit(const DeviceInfo& device) {
  // A simulator that checks accesses says that it is a GPU.
  if (device.type == DeviceType::cpu || !device.reuses_buffers) return emulated;
  const std::string_view architecture = device.architecture;
  const int capability = compute_capability(architecture);
  if (capability >= 80) return mma_sm80;
  if (capability >= 75) return mma_sm75;
  // Which items hold what depends on how many run together.
  if (architecture.starts_with("gfx11") && device.sub_group_size == 32) return wmma;
  for (const std::string_view prefix : {"gfx908", "gfx90a", "gfx94", "gfx95"})
    if (architecture.starts_with(prefix) && device.sub_group_size == 64) return mfma;
  // Which of the two ways Intel's extension offers follows from this.
  if (device.matrix_units && device.smallest_sub_group == 8) return dpas8;
  if (device.matrix_units && device.smallest_sub_group == 16) return dpas16;
  return std::nullopt;
}

std::span<const MatrixUnit> emulated_units() { return emulations; }

std::vector<std::string> defines_of(const MatrixUnit& unit, UnitElement element) {
  std::vector<std::string> names{fmt::format("MATRIX_UNIT_{}", unit.name), fmt::format("UNIT_{}", to_string(element))};
  // Sums and operands alone take more than half of the 128 registers that Intel's threads have otherwise.
  if (is_dpas(unit)) names.emplace_back(large_register_file);
  return names;
}

std::optional<std::string> matrix_units_file(const DeviceInfo& device, UnitElement element) {
  return probe_file(device, probe_name(element));
}

std::vector<std::pair<UnitElement, std::string>> matrix_unit_states(const DeviceInfo& device) {
  std::vector<std::pair<UnitElement, std::string>> result;
  const auto unit = matrix_unit(device);
  if (!unit || unit->name == emulated.name) return result;
  for (const auto element : {UnitElement::f16, UnitElement::bf16, UnitElement::tf32}) {
    std::string state(missing(device, *unit, element));
    if (state.empty()) {
      const auto fault = kept_capability_fault(device, probe_name(element));
      state = !fault ? "not tried yet" : fault->empty() ? "work" : *fault;
    }
    result.emplace_back(element, std::move(state));
  }
  return result;
}

std::optional<std::string> matrix_unit_refusal(const DeviceInfo& device, UnitElement element) {
  const auto unit = matrix_unit(device);
  if (!unit) return "the device has no matrix units that clnet knows";
  if (const auto reason = missing(device, *unit, element); !reason.empty())
    return fmt::format("the device's matrix units do not do: {}", reason);
  if (unit->name == emulated.name) return std::nullopt;
  const auto fault = capability_fault(device, {.what = "matrix units",
                                               .name = probe_name(element),
                                               .claim = fmt::format("{}, {}", unit->name, to_string(element)),
                                               .run = [&](const ::cl::Device& found, const DeviceInfo& info) {
                                                 return try_matrix_unit(found, info, *unit, element);
                                               }});
  if (fault.empty()) return std::nullopt;
  return fmt::format("the device's matrix units do not do: {}", fault);
}

std::string try_matrix_unit(const ::cl::Device& device, const DeviceInfo& info, const MatrixUnit& unit, UnitElement element) {
  const int depth = element == UnitElement::tf32 ? 8 : 16;
  const std::size_t bytes = element == UnitElement::tf32 ? 4 : 2, operand = 16 * static_cast<std::size_t>(depth) * bytes;
  std::array<std::vector<unsigned char>, 2> operands;
  for (int which = 0; which < 2; ++which) {
    auto& values = operands[static_cast<std::size_t>(which)];
    values.resize(operand);
    for (int i = 0; i < 16 * depth; ++i) {
      const auto bits = bits_of(drawn(which, i), element);
      std::memcpy(&values[static_cast<std::size_t>(i) * bytes], &bits, bytes);
    }
  }
  constexpr int ways = 4;
  std::vector<float> sums(ways * 256);
  return checked(fmt::format("trying the matrix units of {}", info.name), [&]() -> std::string {
    const ::cl::Context context(device);
    const ::cl::CommandQueue queue(context, device);
    std::array<::cl::Buffer, 2> inputs;
    for (std::size_t which = 0; which < 2; ++which) {
      inputs[which] = ::cl::Buffer(context, CL_MEM_READ_ONLY, operand);
      queue.enqueueWriteBuffer(inputs[which], true, 0, operand, operands[which].data());
    }
    const ::cl::Buffer result(context, CL_MEM_READ_WRITE, sums.size() * sizeof(float));
    ProgramCache programs(context, device, info);
    ProgramSource program{.name = "matrix_units_probe", .source = {}, .defines = {}};
    for (const auto& name : defines_of(unit, element)) program.defines[name] = "1";
    auto [kernel, refusal] = build_probe_kernel(programs, program);
    if (!refusal.empty()) return refusal;
    kernel.setArg(0, inputs[0]);
    kernel.setArg(1, inputs[1]);
    kernel.setArg(2, result);
    const auto wave = static_cast<std::size_t>(unit.wave);
    queue.enqueueNDRangeKernel(kernel, ::cl::NullRange, ::cl::NDRange(wave), ::cl::NDRange(wave));
    queue.enqueueReadBuffer(result, true, 0, sums.size() * sizeof(float), sums.data());
    for (int way = 0; way < ways; ++way)
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column) {
          auto expected = static_cast<float>(row);
          for (int k = 0; k < depth; ++k) expected += drawn(0, row * depth + k) * drawn(1, column * depth + k);
          const int at = way * 256 + row * 16 + column;
          const auto got = sums[static_cast<std::size_t>(at)];
          if (!(std::abs(got - expected) <= 1e-3F))
            return fmt::format("a product of two matrices is wrong: {} instead of {} in row {}, column {}{}", got, expected, row,
                               column, way == 0 ? "" : fmt::format(", operands lying in way {}", way));
        }
    return {};
  });
}

}  // namespace clnet::ocl
