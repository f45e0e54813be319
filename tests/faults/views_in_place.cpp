// A view of what was being written in place when an evaluation failed.
#include "tests/faults/failing.h"

using namespace clnet;

TEST_CASE("an evaluation that fails behind an update in place leaves what a view of its input shows") {
  std::vector<float> before(24);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i);
  const Tensor part = Tensor::from(std::vector<float>{100, 100, 100}, Shape{1, 1, 1, 3});
  const auto make = [&] {
    const Tensor x = Tensor::from(before, Shape{8, 3});
    (void)sum(x).item<float>();
    return unsqueeze(unsqueeze(x, 0), 0);
  };
  const auto evaluate = [&](const Tensor& grid) {
    const Tensor next = slice_update(grid, 2, 2, part), behind = softmax(next, 3);
    eval({next, behind});
  };
  const faults::Call call{"clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES};
  evaluate(make());
  const Tensor first = make();
  const long count = test::calls_of(call, [&] { evaluate(first); });
  for (long number = 1; number <= count; ++number) {
    const Tensor grid = make();
    const auto error = test::error_of(call, number, [&] { evaluate(grid); });
    CHECK(error);
    if (!test::is_null_device()) CHECK(test::same_bits(grid.to_vector<float>(), before));
  }
}
