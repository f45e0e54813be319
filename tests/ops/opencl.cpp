#include "clnet/opencl.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "clnet/clnet.h"
#include "lib/cl/context.h"

using namespace clnet;

TEST_CASE("a caller's buffer is a tensor, and a tensor's memory is a buffer, on the caller's own queue") {
  const auto library = context_of(Device::current());
  const cl::Context context(library->device());
  const cl::CommandQueue queue(context, library->device());
  const Device device = opencl::wrap(context(), library->device()(), queue());
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.f);
  const cl::Buffer mine(context, CL_MEM_READ_WRITE, 48);
  queue.enqueueWriteBuffer(mine, CL_TRUE, 0, 48, values.data());

  const Tensor x = opencl::from_buffer(device, mine(), {{2, 4}, Dtype::f32}, 16);
  CHECK(x.to_vector<float>() == std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11});
  const auto placed = opencl::buffer(x);
  CHECK(placed.memory == mine());
  CHECK(placed.offset == 16);

  const auto result = opencl::buffer(x + x);
  std::vector<float> doubled(8);
  REQUIRE(clEnqueueReadBuffer(queue(), result.memory, CL_TRUE, result.offset, 32, doubled.data(), 0, nullptr, nullptr) ==
          CL_SUCCESS);
  CHECK(doubled == std::vector<float>{8, 10, 12, 14, 16, 18, 20, 22});
}

TEST_CASE("a buffer that a tensor does not fit in is refused") {
  const Device device = Device::current();
  const cl::Context other(context_of(device)->device());
  const cl::Buffer mine(context_of(device)->context(), CL_MEM_READ_WRITE, 48), foreign(other, CL_MEM_READ_WRITE, 48);
  const auto make = [&](cl_mem memory, const Shape& shape, std::size_t offset) {
    return opencl::from_buffer(device, memory, {shape, Dtype::f32}, offset);
  };
  CHECK_NOTHROW(make(mine(), {12}, 0));
  CHECK_THROWS_WITH(make(mine(), {13}, 0), Catch::Contains("needs 52 bytes from offset 0, the buffer has 48"));
  CHECK_THROWS_WITH(make(mine(), {1}, 48), Catch::Contains("needs 4 bytes from offset 48"));
  CHECK_THROWS_WITH(make(mine(), {1}, 6), Catch::Contains("offset 6 is not a multiple of 4 bytes"));
  CHECK_THROWS_WITH(make(foreign(), {12}, 0), Catch::Contains("another context"));
  CHECK_THROWS_WITH(make(nullptr, {12}, 0), Catch::Contains("null"));
}

TEST_CASE("values in host memory are copied to the device for their buffer") {
  const auto device = Device::current();
  const auto placed = opencl::buffer(Tensor::from({1.f, 2.f, 3.f}));
  std::vector<float> values(3);
  REQUIRE(clEnqueueReadBuffer(opencl::queue(device), placed.memory, CL_TRUE, placed.offset, 12, values.data(), 0, nullptr,
                              nullptr) == CL_SUCCESS);
  CHECK(values == std::vector<float>{1, 2, 3});
}
