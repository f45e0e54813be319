// Launches that find no memory: NVIDIA's driver takes some when a kernel first runs.
#include "tests/faults/failing.h"

using namespace clnet;

TEST_CASE("a launch that finds no memory is tried again, whichever it is, and told where it finds none four times") {
  const Tensor x = rand({3, 5}).detach();
  const auto attempt = [&] { return sum(softmax(x * 2.0, 1) + 1.0).to_vector<float>(); };
  const auto expected = attempt();
  const faults::Call call{"clEnqueueNDRangeKernel", CL_MEM_OBJECT_ALLOCATION_FAILURE};
  const long count = test::calls_of(call, [&] { (void)attempt(); });
  REQUIRE(count > 0);
  for (long number = 1; number <= count; ++number) {
    const auto error = test::error_of(call, number, [&] { CHECK(attempt() == expected); });
    CHECK_FALSE(error);
  }
  faults::arm("clEnqueueNDRangeKernel", 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, std::numeric_limits<long>::max());
  const auto error = test::error_of([&] { (void)attempt(); });
  faults::disarm();
  REQUIRE(error);
  CHECK_THAT(*error, Catch::Contains("CL_MEM_OBJECT_ALLOCATION_FAILURE"));
  CHECK(attempt() == expected);
}
