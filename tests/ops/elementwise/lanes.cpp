// Generated kernels in which a work-item computes several elements that follow one another. Devices that prefer vectors have
// others: CLNET_VECTOR_WIDTH=1 runs these there. Small integers, so that every dtype holds them and sums of a few are exact.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/lower/lower.h"

using namespace clnet;

namespace {

/// Enough elements for work-items of eight.
std::int64_t enough() { return std::int64_t{64} * 8 * Device::current().info().compute_units; }

std::vector<float> numbers(std::int64_t count, int factor) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < result.size(); ++k)
    result[k] = static_cast<float>((static_cast<int>(k % 1009) * factor + 3) % 17 - 8);
  return result;
}
Tensor of(const Shape& shape, int factor, Dtype dtype = Dtype::f32) {
  return cast(Tensor::from(numbers(shape.numel(), factor), shape), dtype).detach();
}

/// Elements per work-item of the only kernel for this on a GPU of so many units as the device has; 1 where it is not said.
std::string lanes(const std::vector<Tensor>& wanted) {
  auto gpu = Device::current().info();
  gpu.type = DeviceType::gpu;
  gpu.prefers_vector_kernels = false;
  const auto recording = exec::lower(exec::Subgraph(exec::collect(wanted)), gpu).recording;
  REQUIRE(recording.commands().size() == 1);
  const auto& defines = std::get<exec::Launch>(recording.commands()[0]).program().defines;
  const auto found = defines.find("LANES");
  return found == defines.end() ? "1" : found->second;
}

using Expected = std::function<double(std::int64_t)>;
void check(const Tensor& y, const Expected& expected) {
  const auto values = y.to_vector<double>();
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < values.size(); ++k) wrong += values[k] != expected(static_cast<std::int64_t>(k));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("work-items of several elements: dtypes and ends") {
  for (const auto rest : {0, 1, 3, 4, 7}) {
    const auto n = enough() + rest;
    const auto a = numbers(n, 5), b = numbers(n, 7);
    const auto at = [](const auto& values, std::int64_t k) { return static_cast<double>(values[static_cast<std::size_t>(k)]); };
    for (const auto& [dtype, expected] : {std::pair{Dtype::f32, "4"},
                                          {Dtype::f16, "8"},
                                          {Dtype::bf16, "8"},
                                          {Dtype::i32, "4"},
                                          {Dtype::i8, "8"},
                                          {Dtype::i64, "1"}}) {
      CAPTURE(rest, to_string(dtype));
      const Tensor x = of({n}, 5, dtype), y = of({n}, 7, dtype);
      const auto sum = [&] { return x * y + y; };
      CHECK(lanes({sum()}) == expected);
      check(sum(), [&](auto k) { return at(a, k) * at(b, k) + at(b, k); });
      check(greater(x, y), [&](auto k) { return at(a, k) > at(b, k); });
      check(where(greater(x, y), x, y), [&](auto k) { return std::max(at(a, k), at(b, k)); });
    }
    // 0.5 is true, and so is what is no byte.
    const Tensor x = of({n}, 5);
    CHECK(lanes({cast(x * 0.5, Dtype::boolean)}) == "4");
    check(cast(x * 0.0625, Dtype::boolean), [&](auto k) { return at(a, k) != 0; });
    check(cast(x * 256.0, Dtype::boolean), [&](auto k) { return at(a, k) != 0; });
    check(cast(of({n}, 5, Dtype::f16), Dtype::f32) + x, [&](auto k) { return 2 * at(a, k); });
  }
}

TEST_CASE("work-items of several elements: rows, columns and windows") {
  const std::int64_t rows = enough() / 16;
  for (const std::int64_t length : {16, 20, 24, 18, 520}) {
    CAPTURE(length);
    const bool fours = length % 4 == 0;
    const auto a = numbers(rows * length, 5), b = numbers(length, 7), c = numbers(rows, 3);
    const Tensor x = of({rows, length}, 5), row = of({length}, 7), column = of({rows, 1}, 3);
    const auto all = [&] { return x * row + column; };
    CHECK(lanes({all()}) == (fours ? "4" : "1"));
    check(all(), [&](std::int64_t k) {
      return a[static_cast<std::size_t>(k)] * b[static_cast<std::size_t>(k % length)] + c[static_cast<std::size_t>(k / length)];
    });
    // Three loops, of which the last one's rows are short.
    const Tensor image = of({4, rows / 4, length}, 5), middle = of({rows / 4, 1}, 3);
    const auto biased = [&] { return image + middle + of({4, 1, length}, 7); };
    check(biased(), [&, d = numbers(rows / 4, 3), e = numbers(4 * length, 7)](std::int64_t k) {
      const auto i = k / length, j = k % length;
      return a[static_cast<std::size_t>(k)] + d[static_cast<std::size_t>(i % (rows / 4))] +
             e[static_cast<std::size_t>(i / (rows / 4) * length + j)];
    });
    // A window of columns, whose first is at a multiple of four or not.
    for (const std::int64_t first : {4, 3}) {
      CAPTURE(first);
      const auto width = length - 8;
      const Tensor y = of({rows * 4, length}, 5);
      const auto part = [&] { return relu(slice(y, 1, first, first + width)) * 2.0; };
      check(part(), [&, wide = numbers(rows * 4 * length, 5)](std::int64_t k) {
        return 2 * std::max(0.0f, wide[static_cast<std::size_t>(k / width * length + first + k % width)]);
      });
    }
  }
}

TEST_CASE("work-items of several elements: tensors that begin anywhere in their memory") {
  const auto n = enough();
  const auto a = numbers(n + 8, 5);
  const Tensor memory = of({n + 8}, 5);
  // One plan, whose argument lies at an even place in one run and at an odd one in the next.
  for (const std::int64_t first : {0, 4, 1, 8, 3}) {
    CAPTURE(first);
    const Tensor part = slice(memory, 0, first, first + n);
    part.eval();
    const Tensor leaf = part.detach();
    check(leaf + leaf * 2.0, [&](std::int64_t k) { return 3 * a[static_cast<std::size_t>(k + first)]; });
  }
  // Parts of one memory are written in place.
  check(concat({of({3}, 5), of({n}, 5) * 2.0, of({n + 1}, 7) * 3.0}, 0), [&, c = numbers(n + 1, 7)](std::int64_t k) {
    return k < 3       ? a[static_cast<std::size_t>(k)]
           : k < n + 3 ? 2 * a[static_cast<std::size_t>(k - 3)]
                       : 3 * c[static_cast<std::size_t>(k - n - 3)];
  });
}

TEST_CASE("work-items of several elements: several results, in place, and numbers by index") {
  const auto n = enough() + 2;
  const auto a = numbers(n, 5);
  const Tensor x = of({n}, 5);
  Tensor y = x + 1.0, z = y * 2.0, above = greater(y, 0.0);
  CHECK(lanes({y, z, above}) == "4");
  eval({y, z, above});
  check(y, [&](auto k) { return a[static_cast<std::size_t>(k)] + 1; });
  check(z, [&](auto k) { return 2 * (a[static_cast<std::size_t>(k)] + 1); });
  check(above, [&](auto k) { return a[static_cast<std::size_t>(k)] + 1 > 0; });
  // A sum keeps the steps apart, so that the last takes the memory of the one before.
  const Tensor before = x * 3.0;
  check(before - cast(sum(before) * 0.0, Dtype::f32) + x, [&](auto k) { return 4 * a[static_cast<std::size_t>(k)]; });
  // The first numbers of many are those of few, which single work-items draw.
  const auto drawn = [](std::int64_t count) {
    manual_seed(7);
    return (rand({count}) * 2.0).to_vector<float>();
  };
  const auto few = drawn(16), many = drawn(n);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  check(cast(arange(n), Dtype::f32) + x, [&](auto k) { return static_cast<double>(k) + a[static_cast<std::size_t>(k)]; });
}
