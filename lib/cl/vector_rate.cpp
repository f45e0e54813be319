#include "lib/cl/vector_rate.h"

#include <fmt/format.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/json_format.h"
#include "lib/base/log.h"
#include "lib/base/once_per_key.h"
#include "lib/cl/check.h"
#include "lib/cl/devices.h"
#include "lib/cl/program_cache.h"
#include "lib/cl/quirks.h"

namespace clnet::ocl {

namespace {

using nlohmann::json;

constexpr std::string_view rate_format = "clnet vector rate 1";
constexpr std::uint64_t largest_rate_file = 1 << 16;

std::string name_of(const DeviceInfo& device) { return fmt::format("{} | {}", device.name, device.driver_version); }

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// `seconds` runs as many steps on vectors of 8 or of 16 as hide how long a call takes.
VectorRate by_best_times(const std::function<double(std::size_t which)>& seconds) {
  std::array<double, 2> best{1e9, 1e9};
  for (int round = 0; round < 5; ++round)
    for (std::size_t which = 0; which < 2; ++which) best[which] = std::min(best[which], seconds(which));
  logging::print(logging::Level::plan, "vectors of 16 lanes take {:.2f} times as long as vectors of 8", best[1] / best[0]);
  return best[1] < 1.4 * best[0] ? VectorRate::full : VectorRate::half;
}

constexpr int many_steps = 1 << 18;

#ifdef __x86_64__
// kernels/vector_rate_probe.cl says why ten chains.
#define MULTIPLY(name, target_of_it, lanes, filled, fma, add, store)                                               \
  __attribute__((target(target_of_it))) float name(float factor, int steps) {                                      \
    const lanes by = filled(factor);                                                                               \
    lanes a = filled(1), b = filled(2), c = filled(3), d = filled(4), e = filled(5), f = filled(6), g = filled(7), \
          h = filled(8), i = filled(9), j = filled(10);                                                            \
    for (int k = 0; k < steps; ++k) {                                                                              \
      a = fma(a, by, by), b = fma(b, by, by), c = fma(c, by, by), d = fma(d, by, by), e = fma(e, by, by);          \
      f = fma(f, by, by), g = fma(g, by, by), h = fma(h, by, by), i = fma(i, by, by), j = fma(j, by, by);          \
    }                                                                                                              \
    const lanes sum = add(add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h))), add(i, j));                   \
    std::array<float, 16> values{};                                                                                \
    store(values.data(), sum);                                                                                     \
    return values[0];                                                                                              \
  }

MULTIPLY(multiply_8, "avx,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps)
MULTIPLY(multiply_16, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_storeu_ps)
#undef MULTIPLY
#endif

VectorRate measured(const DeviceInfo& device) {
  for (const auto& candidate : candidates()) {
    const auto& info = candidate.info;
    if (info.platform_index != device.platform_index || info.device_index != device.device_index || info.name != device.name)
      continue;
    try {
      // Its own instructions tell as much, and there is no kernel to compile.
      if (runs_in_process(info))
        if (const auto own = measure_own_vectors(); own != VectorRate::not_measured) return own;
      return measure_vector_rate(candidate.device, info);
    } catch (const Error& error) {
      logging::print(logging::Level::plan, "how fast vectors are could not be measured: {}", error.what());
    }
  }
  return VectorRate::not_measured;
}

}  // namespace

std::optional<std::string> vector_rate_file(const DeviceInfo& device) {
  const auto folder = env::cache_folder();
  if (!folder) return std::nullopt;
  const auto name = Hash().add(device.name).add(device.driver_version).hex();
  return (std::filesystem::path(*folder) / fmt::format("vector-rate-{}.json", name)).string();
}

std::optional<VectorRate> known_vector_rate(const DeviceInfo& device) {
  const auto path = vector_rate_file(device);
  std::error_code code;
  if (!path || !std::filesystem::exists(*path, code)) return std::nullopt;
  try {
    const auto content = json::parse(file::read(*path, largest_rate_file));
    require_format(*path, content, rate_format);
    const auto rate = content.at("16 lanes").get<std::string>();
    if (content.at("for").get<std::string>() != name_of(device)) return std::nullopt;
    if (rate == "full") return VectorRate::full;
    if (rate == "half") return VectorRate::half;
    logging::print(logging::Level::plan, "what is known of vectors is ignored: {} says '{}'", *path, rate);
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "what is known of vectors is ignored: {}", error.what());
  } catch (const json::exception&) {
    logging::print(logging::Level::plan, "what is known of vectors is ignored: {} is damaged", *path);
  }
  return std::nullopt;
}

VectorRate kept_vector_rate(const DeviceInfo& device, VectorRate measured) {
  const auto path = vector_rate_file(device);
  if (!path || measured == VectorRate::not_measured) return VectorRate::not_measured;
  const auto content =
      json{{format_field, rate_format}, {"for", name_of(device)}, {"16 lanes", measured == VectorRate::full ? "full" : "half"}}
          .dump(1, ' ', false, json::error_handler_t::replace) +
      "\n";
  try {
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(*path).parent_path(), code);
    if (file::create(*path, content)) return measured;
    if (const auto first = known_vector_rate(device)) return *first;
    file::replace(*path, content);  // it is damaged
    return measured;
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "how fast vectors are cannot be kept on disk, and is not used: {}", error.what());
    return VectorRate::not_measured;
  }
}

VectorRate vector_rate(const DeviceInfo& device) {
  if (!device.prefers_vector_kernels || device.native_float_width < 16) return VectorRate::not_measured;
  // Never destroyed: at exit another thread may still plan.
  static auto& rates = *new OncePerKey<VectorRate>;
  const auto key = fmt::format("{}:{} {}", device.platform_index, device.device_index, name_of(device));
  return rates.get(key, [&] {
    if (const auto known = known_vector_rate(device)) return *known;
    return vector_rate_file(device) ? kept_vector_rate(device, measured(device)) : VectorRate::not_measured;
  });
}

VectorRate measure_own_vectors() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx512f")) return VectorRate::not_measured;
  float computed = 0;
  const auto rate = by_best_times([&](std::size_t which) {
    // Not known to the compiler, which would leave the loop out.
    volatile float factor = 0.5F;
    const auto start = Clock::now();
    computed += which == 0 ? multiply_8(factor, many_steps) : multiply_16(factor, many_steps);
    return seconds_since(start);
  });
  return std::isnormal(computed) ? rate : VectorRate::not_measured;
#else
  return VectorRate::not_measured;
#endif
}

VectorRate measure_vector_rate(const ::cl::Device& device, const DeviceInfo& info) {
  return checked(fmt::format("measuring the vectors of {}", info.name), [&] {
    const ::cl::Context context(device);
    const ::cl::CommandQueue queue(context, device);
    const ::cl::Buffer sum(context, CL_MEM_READ_WRITE, sizeof(float));
    ProgramCache programs(context, device, info);
    std::array<::cl::Kernel, 2> kernels;
    for (std::size_t which = 0; which < 2; ++which) {
      kernels[which] =
          programs.kernel({.name = "vector_rate_probe", .source = {}, .defines = {}}, which == 0 ? "multiply_8" : "multiply_16");
      kernels[which].setArg(0, sum);
      kernels[which].setArg(1, 0.5F);
    }
    const auto seconds = [&](::cl::Kernel& kernel, int steps) {
      kernel.setArg(2, steps);
      const auto start = Clock::now();
      queue.enqueueNDRangeKernel(kernel, ::cl::NullRange, ::cl::NDRange(1), ::cl::NDRange(1));
      queue.finish();
      return seconds_since(start);
    };
    float zero = 0, computed = 0;
    queue.enqueueWriteBuffer(sum, true, 0, sizeof zero, &zero);
    // The first run may compile; a simulator would not end with as many steps as a core does in a millisecond.
    constexpr int few = 256;
    for (auto& kernel : kernels) seconds(kernel, 1);
    double short_run = 1e9;
    for (int attempt = 0; attempt < 5 && short_run > 1e-3; ++attempt) short_run = std::min(short_run, seconds(kernels[0], few));
    if (short_run > 1e-3) return VectorRate::not_measured;
    const auto rate = by_best_times([&](std::size_t which) { return seconds(kernels[which], many_steps); });
    queue.enqueueReadBuffer(sum, true, 0, sizeof computed, &computed);
    return computed == 0 ? VectorRate::not_measured : rate;
  });
}

}  // namespace clnet::ocl
