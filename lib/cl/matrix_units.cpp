#include "lib/cl/matrix_units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/devices.h"
#include "lib/cl/program_cache.h"
#include "lib/cl/quirk_file.h"

namespace clnet::ocl {

namespace {

using nlohmann::json;

/// Those of Intel's extension have operands for sub-groups of 8 where there are such, and for 16 where these are the smallest.
constexpr std::array emulations{MatrixUnit{"emulated", 32}, MatrixUnit{"emulated_dpas8", 8}, MatrixUnit{"emulated_dpas16", 16}};
constexpr auto& emulated = emulations[0];
constexpr MatrixUnit dpas8{"dpas8", 8}, dpas16{"dpas16", 16}, mma_sm75{"mma_sm75", 32}, mma_sm80{"mma_sm80", 32},
    wmma{"wmma", 32}, mfma{"mfma", 64};

constexpr std::uint64_t largest_file = 1 << 20;
constexpr std::string_view begun = "begun";
/// For so long another process may be at it; then it has crashed.
constexpr auto longest_trial = std::chrono::minutes(1);

bool is_dpas(const MatrixUnit& unit) { return unit.name == dpas8.name || unit.name == dpas16.name; }

/// What is left to want of a unit that the device has.
std::string_view missing(const DeviceInfo& device, const MatrixUnit& unit, UnitElement element) {
  if (unit.name == mma_sm75.name && element != UnitElement::f16) return "before sm_80 they multiply no bf16 and tf32";
  if (unit.name == mfma.name && device.generation == "gfx908" && element == UnitElement::bf16)
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

/// What was written; nothing where there is no such file, or one of another driver or state of the kernels.
std::optional<std::string> read_outcome(const std::string& path, const DeviceInfo& device) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  try {
    const auto content = json::parse(file::read(path, largest_file));
    if (content.at("for").get<std::string>() != identity(device)) return std::nullopt;
    return content.at("fault").get<std::string>();
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "what is known of matrix units is ignored: {}", error.what());
  } catch (const json::exception&) {
    logging::print(logging::Level::plan, "what is known of matrix units is ignored: {}: is damaged", path);
  }
  return std::nullopt;
}

void write_outcome(const std::string& path, const DeviceInfo& device, std::string_view fault) {
  try {
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
    // Faults may quote what a compiler printed.
    file::replace(path,
                  json{{"for", identity(device)}, {"fault", fault}}.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "what is known of matrix units is not kept on disk: {}", error.what());
  }
}

/// Nothing where it has to be tried.
std::optional<std::string> known_fault(const std::string& path, const DeviceInfo& device) {
  auto outcome = read_outcome(path, device);
  if (outcome != begun) return outcome;
  std::error_code code;
  const auto written = std::filesystem::last_write_time(path, code);
  if (!code && std::filesystem::file_time_type::clock::now() - written < longest_trial) return std::nullopt;
  return fmt::format("a process that tried them ended there; removing {} tries them again", path);
}

/// Whether what is written to the device's memory is read again: the null driver drops it.
bool computes(const ::cl::Device& device) {
  const ::cl::Context context(device);
  const ::cl::CommandQueue queue(context, device);
  const ::cl::Buffer buffer(context, CL_MEM_READ_WRITE, sizeof(std::uint32_t));
  const std::uint32_t written = 0x12345678;
  std::uint32_t kept = 0;
  queue.enqueueWriteBuffer(buffer, true, 0, sizeof written, &written);
  queue.enqueueReadBuffer(buffer, true, 0, sizeof kept, &kept);
  return kept == written;
}

/// The fault, or empty.
std::string tried(const DeviceInfo& device, const MatrixUnit& unit, UnitElement element) {
  const auto path = matrix_units_file(device, element);
  if (path)
    if (auto known = known_fault(*path, device)) return *known;
  for (const auto& candidate : candidates()) {
    const auto& info = candidate.info;
    if (info.platform_index != device.platform_index || info.device_index != device.device_index || info.name != device.name ||
        info.generation != device.generation)
      continue;
    try {
      if (!checked("trying a device's memory", [&] { return computes(candidate.device); })) return {};
      // A compiler that crashes does so once.
      if (path) write_outcome(*path, device, begun);
      auto fault = try_matrix_unit(candidate.device, info, unit, element);
      if (path) write_outcome(*path, device, fault);
      return fault;
    } catch (const Error& error) {
      // It may be short of memory, which says nothing of the next process.
      std::error_code code;
      if (path) std::filesystem::remove(*path, code);
      return fmt::format("they could not be tried: {}", error.what());
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(UnitElement element) {
  switch (element) {
    case UnitElement::f16: return "f16";
    case UnitElement::bf16: return "bf16";
    default: return "tf32";
  }
}

std::optional<MatrixUnit> matrix_unit(const DeviceInfo& device) {
  if (device.type == DeviceType::cpu) return emulated;
  const std::string_view generation = device.generation;
  if (generation.starts_with("sm_")) {
    int capability = 0;
    std::from_chars(generation.data() + 3, generation.data() + generation.size(), capability);
    if (capability >= 80) return mma_sm80;
    if (capability >= 75) return mma_sm75;
  }
  // Which items hold what depends on how many run together.
  if (generation.starts_with("gfx11") && device.sub_group_size == 32) return wmma;
  for (const std::string_view prefix : {"gfx908", "gfx90a", "gfx94", "gfx95"})
    if (generation.starts_with(prefix) && device.sub_group_size == 64) return mfma;
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
  const auto folder = env::cache_folder();
  if (!folder) return std::nullopt;
  const auto name = Hash().add(device.name).add(device.driver_version).add(device.generation).hex();
  return (std::filesystem::path(*folder) / fmt::format("matrix-units-{}-{}.json", name, to_string(element))).string();
}

std::optional<std::string> matrix_unit_refusal(const DeviceInfo& device, UnitElement element) {
  const auto unit = matrix_unit(device);
  if (!unit) return "the device has no matrix units that clnet knows";
  if (const auto reason = missing(device, *unit, element); !reason.empty())
    return fmt::format("the device's matrix units do not do: {}", reason);
  if (unit->name == emulated.name) return std::nullopt;
  // Never destroyed: at exit another thread may still plan.
  static auto& mutex = *new std::mutex;
  static auto& faults = *new std::map<std::string, std::string>;
  const auto key = fmt::format("{}:{} {} {} {} {}", device.platform_index, device.device_index, device.name,
                               device.driver_version, device.generation, to_string(element));
  const std::lock_guard lock(mutex);
  auto found = faults.find(key);
  if (found == faults.end()) {
    found = faults.emplace(key, tried(device, *unit, element)).first;
    const auto& fault = found->second;
    logging::print(logging::Level::plan, "matrix units of {} ({}, {}): {}", device.name, unit->name, to_string(element),
                   fault.empty() ? "in order" : fault);
  }
  if (found->second.empty()) return std::nullopt;
  return fmt::format("the device's matrix units do not do: {}", found->second);
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
    ::cl::Kernel kernel;
    try {
      ProgramCache programs(context, device, info);
      ProgramSource program{.name = "matrix_units_probe", .source = {}, .defines = {}};
      for (const auto& name : defines_of(unit, element)) program.defines[name] = "1";
      kernel = programs.kernel(program, "matrix_units_probe");
    } catch (const BuildError& error) {
      // The compiler's words, without the source.
      const std::string_view text = error.what();
      const auto words = text.substr(0, text.find("\nThe source"));
      // A driver that is short of memory has refused neither the program nor how it is to be built.
      const auto refused = [&](std::string_view by) { return words.find(by) != words.npos; };
      if (!refused("CL_BUILD_PROGRAM_FAILURE") && !refused("CL_INVALID_BUILD_OPTIONS")) throw DeviceError(std::string(words));
      return std::string(words);
    }
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
