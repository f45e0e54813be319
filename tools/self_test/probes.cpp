// What a device says of its limits, tried out; and arithmetic that compilers got wrong.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clnet/clnet.h"
#include "tools/self_test/check.h"

namespace clnet::tools {

namespace {

Kernel::Outputs one_output(std::int64_t count, Dtype dtype) {
  return [=](const std::vector<Spec>&) { return std::vector{Spec{{count}, dtype}}; };
}

/// Every work-item of one group reads what its neighbour wrote before a barrier. The kernel asks for the size: NVIDIA allows 256
/// to others.
CheckResult work_group(std::int64_t size) {
  const Kernel kernel("neighbours", fmt::format(R"(
kernel __attribute__((reqd_work_group_size({0}, 1, 1))) void neighbours(OUT(y)) {{
  local int written[{0}];
  const int i = get_local_id(0);
  written[i] = 3 * i;
  barrier(CLK_LOCAL_MEM_FENCE);
  STORE(y, i, written[(i + 1) % {0}]);
}})",
                                                size));
  const auto y = kernel.outputs(one_output(size, Dtype::i32)).range({size}, {size}).all({}).at(0).to_vector<std::int32_t>();
  for (std::int64_t i = 0; i < size; ++i)
    if (y[static_cast<std::size_t>(i)] != 3 * ((i + 1) % size))
      return {Verdict::wrong, fmt::format("work-item {} does not see what its neighbour wrote", i)};
  return {};
}

/// A group fills local memory and reads it the other way round.
CheckResult local_memory(std::int64_t bytes) {
  constexpr std::int64_t items = 64;
  const Kernel kernel("fill_local", fmt::format(R"(
kernel void fill_local(OUT(y)) {{
  local uint cells[{0}];
  for (uint i = get_local_id(0); i < {0}; i += {1}) cells[i] = i * 2654435761u;
  barrier(CLK_LOCAL_MEM_FENCE);
  int wrong = 0;
  for (uint i = {1} - 1 - get_local_id(0); i < {0}; i += {1}) wrong += cells[i] != i * 2654435761u;
  STORE(y, get_local_id(0), wrong);
}})",
                                                bytes / 4, items));
  const auto wrong = kernel.outputs(one_output(items, Dtype::i32)).range({items}, {items}).all({}).at(0);
  if (const auto count = sum(wrong).item<std::int64_t>(); count != 0)
    return {Verdict::wrong, fmt::format("{} of {} words are lost", count, bytes / 4)};
  return {};
}

CheckResult loop(std::int64_t iterations) {
  const auto y = Kernel("long_loop", R"(
kernel void long_loop(OUT(y), const uint iterations) {
  uint state = 1;
  for (uint i = 0; i < iterations; ++i) state = state * 1664525u + 1013904223u;
  STORE(y, get_global_id(0), (int)state);
})")
                     .scalar("iterations", static_cast<double>(iterations))
                     .outputs(one_output(1, Dtype::i32))
                     .range({1})
                     .all({})
                     .at(0)
                     .item<std::int32_t>();
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < iterations; ++i) state = state * 1664525U + 1013904223U;
  if (static_cast<std::uint32_t>(y) != state) return {Verdict::wrong, "the loop ends early"};
  return {};
}

CheckResult large_buffer(std::int64_t bytes) {
  const auto count = bytes / 4;
  const auto numbers = arange(count, 0, 1, Dtype::i32);
  std::vector<std::int64_t> places{0, count - 1};
  for (std::int64_t i = 1; i < 1000; ++i) places.push_back(i * (count / 1000));
  eval({numbers});
  const auto got =
      index_select(numbers, 0, Tensor::from(places, {static_cast<std::int64_t>(places.size())})).to_vector<std::int32_t>();
  for (std::size_t i = 0; i < places.size(); ++i)
    if (got[i] != static_cast<std::int32_t>(places[i]))
      return {Verdict::wrong, fmt::format("element {} is {}", places[i], got[i])};
  return {};
}

CheckResult subnormals() {
  const auto half = Tensor::from<float>({1e-38F, 4e-39F}) * 0.5;
  const auto values = half.to_vector<float>();
  if (values[0] == 1e-38F * 0.5F && values[1] == 4e-39F * 0.5F) return {};
  return {Verdict::missing, "subnormal numbers: results below 1.2e-38 become 0"};
}

CheckResult long_comparisons() {
  const Kernel kernel("compare_longs", R"(
kernel void compare_longs(IN(x), OUT(y)) {
  const int i = get_global_id(0);
  const long value = LOAD(x, i), index = i;
  STORE(y, i, (value < index ? 1 : 0) + (value == index ? 2 : 0) + ((ulong)value > (ulong)index ? 4 : 0));
})");
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 64; ++i)
    values.push_back(i % 4 == 0 ? i : i % 4 == 1 ? i + (std::int64_t{1} << 40) : i % 4 == 2 ? -i : i - 1);
  const auto got = kernel(Tensor::from(values, {64})).to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < 64; ++i) {
    const auto value = values[static_cast<std::size_t>(i)];
    const auto want =
        (value < i ? 1 : 0) + (value == i ? 2 : 0) + (static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(i) ? 4 : 0);
    if (got[static_cast<std::size_t>(i)] != want)
      return {Verdict::wrong,
              fmt::format("{} and {} compare as {} instead of {}", value, i, got[static_cast<std::size_t>(i)], want)};
  }
  return {};
}

}  // namespace

std::vector<Check> make_probes(const DeviceInfo& device, Depth depth) {
  std::vector<Check> checks;
  const auto plain = [&](const std::string& name, std::function<CheckResult()> run) {
    checks.push_back({.name = name, .op = {}, .solver = {}, .limit = {}, .timed = {}, .run = std::move(run)});
  };
  // From small to large: a device that ends the process where it must not has told about the smaller ones by then.
  const auto limit = [&](const char* name, std::uint64_t value, CheckResult (*run)(std::int64_t)) {
    checks.push_back({.name = fmt::format("{} of {}", name, value),
                      .op = {},
                      .solver = {},
                      .limit = name,
                      .value = value,
                      .timed = {},
                      .run = [=] { return run(static_cast<std::int64_t>(value)); }});
  };
  // Each size is a program of its own to build.
  const auto parts = depth.full ? std::vector<std::size_t>{16, 4, 2, 1} : std::vector<std::size_t>{4, 1};
  for (const std::size_t part : parts)
    limit("max_work_group_size", std::max<std::size_t>(device.max_work_group_size / part, 1), work_group);
  if (device.local_memory > 0)
    for (const std::size_t part : parts) limit("local_memory", device.local_memory / part, local_memory);
  for (const std::uint64_t iterations : {1000U, 65535U, 65536U, 1U << 20, 1U << 24})
    if (depth.full || iterations <= 1 << 20) limit("loop_iterations", iterations, loop);
  const std::size_t most =
      depth.full ? std::min<std::size_t>(device.global_memory / 8, std::size_t{4} << 30) : std::size_t{64} << 20;
  const auto bytes = static_cast<std::int64_t>(std::min(device.max_allocation, most));
  plain(fmt::format("a buffer of {} MiB", bytes >> 20), [bytes] { return large_buffer(bytes); });
  plain("comparisons of 64-bit integers", long_comparisons);
  plain("subnormal numbers", subnormals);
  return checks;
}

}  // namespace clnet::tools
