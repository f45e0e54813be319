// As many elements as a tensor may have: the last indices that an int holds.
#include <catch2/catch.hpp>
#include <limits>

#include "clnet/clnet.h"
#include "tests/ops/check.h"
#include "tests/support/skip.h"

using namespace clnet;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

/// The last elements of a value that is otherwise too large to look at.
std::vector<std::uint8_t> tail(const Tensor& tensor) {
  const auto flat = reshape(tensor, {tensor.numel()});
  return slice(flat, 0, tensor.numel() - 600, tensor.numel()).to_vector<std::uint8_t>();
}

bool has_room() {
  const auto device = Device::current();
  if (device.info().max_allocation < static_cast<std::size_t>(most) || device.info().global_memory < (std::size_t{6} << 30) ||
      device.memory().limit < (std::size_t{4} << 30)) {
    clnet::test::skip("it takes a buffer of 2 GiB on a device with 6");
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("elementwise kernels write the last of 2^31 - 1 elements") {
  if (!has_room()) return;
  CHECK(tail(expand(Tensor::scalar(7, Dtype::u8), {most})) == std::vector<std::uint8_t>(600, 7));
  Device::current().trim();
}

TEST_CASE("elementwise kernels write the last of many rows and of long ones") {
  if (!has_room()) return;
  std::vector<std::uint8_t> column(16), want(600);
  for (std::size_t i = 0; i < column.size(); ++i) column[i] = static_cast<std::uint8_t>(i + 1);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = column[(i + 8) % 16];  // 600 is 37 rows and a half
  CHECK(tail(expand(Tensor::from(column, {16}), {most / 16, 16})) == want);
  Device::current().trim();
  const Tensor rows = Tensor::from(std::vector<std::uint8_t>{3, 4}, {2, 1});
  CHECK(tail(expand(rows, {2, most / 2})) == std::vector<std::uint8_t>(600, 4));
  Device::current().trim();
}
