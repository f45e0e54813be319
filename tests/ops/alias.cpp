// Values that are ranges of other values: what is read through them, written over them and returned as them.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "clnet/clnet.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/graph/node.h"

using namespace clnet;

namespace {

Tensor values(const Shape& shape, float first, Dtype dtype = Dtype::f32) {
  std::vector<float> content(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = std::sin(first + 0.7F * static_cast<float>(i));
  return cast(Tensor::from(content, shape), dtype).detach();
}

/// Runs the test with fusion and without.
void both_ways(const std::function<void()>& test) {
  SECTION("fused") { test(); }
  SECTION("one kernel per operation") {
    const exec::NoFusion none;
    test();
  }
}

std::vector<float> minus_row(const std::vector<float>& y, std::size_t columns, std::size_t first) {
  std::vector<float> result(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) result[i] = y[i] - y[first + i % columns];
  return result;
}

}  // namespace

TEST_CASE("a result does not take the memory that its kernel also reads through a view") {
  both_ways([] {
    const Tensor x = values({6, 40}, 0), weights = values({40, 40}, 1), scale = values({40}, 2), shift = values({40}, 3);
    const std::vector<std::function<Tensor()>> makers{
        [&] { return softmax(x, 1); },
        [&] { return matmul(x, weights); },
        [&] { return layer_norm(x, 1, scale, shift); },
        [&] { return transpose(weights, 0, 1); },
    };
    for (const auto& make : makers) {
      const auto y = make().to_vector<float>();
      for (std::size_t row : {0U, 3U}) {
        const Tensor again = make();
        const auto start = static_cast<std::int64_t>(row);
        // Read once more, so that the difference is an intermediate that may take memory.
        const Tensor difference = again - slice(again, 0, start, start + 1);
        const auto got = (difference * 2.0).to_vector<float>();
        const auto want = minus_row(y, 40, 40 * row);
        for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == Approx(2 * want[i]).margin(1e-5));
        const auto alone = difference.to_vector<float>();
        for (std::size_t i = 0; i < alone.size(); ++i) REQUIRE(alone[i] == Approx(want[i]).margin(1e-5));
      }
    }
  });
}

TEST_CASE("a part that is as large as the whole in another dtype does not take its memory") {
  both_ways([] {
    const std::int64_t n = 4096;
    const Tensor x = values({n}, 1, Dtype::f16);
    const auto all = softmax(x, 0).to_vector<float>();
    const Tensor y = softmax(x, 0), half = cast(slice(y, 0, 0, n / 2), Dtype::f32),
                 rest = cast(slice(y, 0, n / 2, n), Dtype::f32);
    const auto got = softmax(half + rest, 0).to_vector<float>();
    std::vector<float> sums(n / 2);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = all[i] + all[i + n / 2];
    const auto want = softmax(Tensor::from(sums, {n / 2}), 0).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == Approx(want[i]));
    const Tensor first = softmax(cast(slice(softmax(x, 0), 0, 0, n / 2), Dtype::f32) * 8.0, 0);
    std::vector<float> scaled(all.begin(), all.begin() + n / 2);
    for (auto& value : scaled) value *= 8;
    const auto expected = softmax(Tensor::from(scaled, {n / 2}), 0).to_vector<float>();
    const auto found = first.to_vector<float>();
    for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == Approx(expected[i]));
  });
}

TEST_CASE("a returned view of what is made from leaves alone is its own in every run") {
  both_ways([] {
    const Tensor a = values({4}, 0), b = values({4}, 5);
    const auto run = [](const Tensor& left, const Tensor& right) {
      const Tensor part = slice(left + right, 0, 1, 3);
      part.eval();
      return part;
    };
    const auto check = [](const Tensor& got, const Tensor& left, const Tensor& right) {
      const auto l = left.to_vector<float>(), r = right.to_vector<float>();
      CHECK(got.to_vector<float>() == std::vector<float>{l[1] + r[1], l[2] + r[2]});
    };
    const Tensor first = run(a, b), other = run(b, b), again = run(a, b);
    const Tensor c = values({4}, 9);
    const Tensor last = run(a, c);
    check(first, a, b);
    check(other, b, b);
    check(again, a, b);
    check(last, a, c);
  });
}

TEST_CASE("views of views, reshaped and moved, are read at their places") {
  both_ways([] {
    const Tensor x = values({4, 6}, 2), y = exp(x);
    const auto want = y.to_vector<float>();
    const Tensor z = exp(x), rows = slice(z, 0, 1, 3), flat = reshape(rows, {12}), tail = slice(flat, 0, 4, 12);
    const Tensor turned = permute(reshape(tail, {8, 1}), {1, 0}), same = sum(turned, {0});
    const auto got = (same + 1.0).to_vector<float>(), bare = same.to_vector<float>();
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(got[i] == Approx(want[10 + i] + 1));
      CHECK(bare[i] == want[10 + i]);
    }
    // What a kernel makes is read as a part by the next, as a whole by its own.
    const Tensor w = sin(x), mixed = (w * 3.0) - slice(w, 0, 3, 4);
    const auto plain = sin(x).to_vector<float>(), found = mixed.to_vector<float>();
    for (std::size_t i = 0; i < 24; ++i) CHECK(found[i] == Approx(3 * plain[i] - plain[18 + i % 6]).margin(1e-6));
  });
}

TEST_CASE("a view of a view that covers as many elements as its reader makes is no part of the reader's kernel") {
  both_ways([] {
    const Tensor x = values({6}, 2), y = exp(x);
    const Tensor z = expand(reshape(slice(y, 0, 2, 4), {2, 1}), {2, 3}) * 2.0;  // six elements, too
    const auto all = exp(x).to_vector<float>(), got = z.to_vector<float>();
    for (std::size_t i = 0; i < 6; ++i) CHECK(got[i] == Approx(2 * all[2 + i / 3]));
  });
}

TEST_CASE("a small part is returned as a copy, so that it does not keep the whole") {
  const Tensor x = values({8, 64}, 0), y = softmax(x, 1), row = slice(y, 0, 2, 3), most = slice(y, 0, 2, 8);
  const Tensor leaf_row = slice(x, 0, 7, 8);
  eval({row, row, most, leaf_row});
  const auto bytes = [](const Tensor& tensor) {
    const auto value = node_of(tensor)->values[0].get();
    return dynamic_cast<const exec::DeviceValue&>(*value).buffer->bytes();
  };
  CHECK(bytes(row) < 8 * 64 * 4);
  CHECK(bytes(leaf_row) < 8 * 64 * 4);
  CHECK(bytes(most) >= 8 * 64 * 4);
  const auto all = softmax(x, 1).to_vector<float>(), leaf = x.to_vector<float>();
  CHECK(row.to_vector<float>() == std::vector<float>(all.begin() + 128, all.begin() + 192));
  CHECK(most.to_vector<float>() == std::vector<float>(all.begin() + 128, all.end()));
  CHECK(leaf_row.to_vector<float>() == std::vector<float>(leaf.begin() + 448, leaf.end()));
}

TEST_CASE("operations say which ranges their outputs are, and say nothing else") {
  const Tensor x = values({2, 3, 4}, 0);
  const auto range = [](const Tensor& tensor) {
    const auto root = root_of(tensor);
    return std::pair(node_of(root.tensor) == node_of(tensor) ? -1 : root.offset, node_of(source_of(tensor)) != node_of(tensor));
  };
  CHECK(range(reshape(x, {24})) == std::pair<std::int64_t, bool>(0, true));
  CHECK(range(slice(x, 0, 1, 2)) == std::pair<std::int64_t, bool>(12, false));
  CHECK(range(slice(slice(x, 0, 1, 2), 1, 2, 3)) == std::pair<std::int64_t, bool>(20, false));
  CHECK(range(slice(x, 1, 0, 1)) == std::pair<std::int64_t, bool>(-1, false));
  CHECK(range(slice(x, 0, 0, 2, -1)) == std::pair<std::int64_t, bool>(-1, false));
  CHECK(range(permute(reshape(x, {2, 1, 12}), {1, 0, 2})) == std::pair<std::int64_t, bool>(0, true));
  CHECK(range(permute(x, {1, 0, 2})) == std::pair<std::int64_t, bool>(-1, false));
  CHECK(range(mean(reshape(x, {24, 1}), {1})) == std::pair<std::int64_t, bool>(0, true));
  CHECK(range(sum(cast(reshape(x, {24, 1}), Dtype::u8), {1})) == std::pair<std::int64_t, bool>(-1, false));
}
