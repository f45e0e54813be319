// A device that fails while the host waits for it to catch up.
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/cl/context.h"
#include "lib/exec/upload.h"
#include "tests/faults/failing.h"

using namespace clnet;
using test::is_null_device;

TEST_CASE("who waits for earlier kernels does not blame the latest") {
  if (is_null_device()) return;
  Device device = Device::current();
  const auto context = context_of(device);
  const Tensor x = ones({8}).detach();
  exp(x).eval();
  device.finish();
  cl::UserEvent gate(context->context());
  const std::vector<cl::Event> wait{gate};
  cl::Event marker;
  context->queue().enqueueMarkerWithWaitList(&wait, &marker);
  faults::arm("clWaitForEvents", 1, CL_OUT_OF_RESOURCES);
  std::string text;
  try {
    for (int i = 0; i < 2000; ++i) exp(x).eval();
  } catch (const DeviceError& error) {
    text = error.what();
  }
  faults::disarm();
  gate.setStatus(CL_COMPLETE);
  device.finish();
  CHECK_THAT(text, Catch::Contains("waiting for kernels launched earlier") && Catch::Contains("CL_OUT_OF_RESOURCES"));
  CHECK(exp(x).to_vector<float>()[7] == Approx(2.7182818F));
}

TEST_CASE("reads of several ranges are over when one of them fails") {
  const auto context = context_of(Device::current());
  const auto buffer = context->memory().allocate(64, "test");
  context->fill(*buffer, 0, 64, 0x11);
  std::array<unsigned char, 12> got{};
  std::array<ocl::Context::Range, 3> ranges;
  for (std::size_t i = 0; i < ranges.size(); ++i) ranges[i] = {buffer.get(), 16 * i, got.data() + 4 * i, 4};
  std::array<unsigned char, 12> all{};
  all.fill(is_null_device() ? 0 : 0x11);
  for (const char* call : {"clEnqueueReadBuffer", "clWaitForEvents"}) {
    CAPTURE(call);
    got.fill(0);
    faults::arm(call, call == std::string("clEnqueueReadBuffer") ? 2 : 1, CL_OUT_OF_RESOURCES);
    const auto error = test::error_of([&] { context->read(ranges); });
    // Where reads wait by themselves, nobody calls the other.
    CHECK(error.has_value() == (faults::disarm() > 0));
    const auto then = got;
    context->finish();
    CHECK(got == then);
    context->read(ranges);
    CHECK(got == all);
  }
}

TEST_CASE("a mapping that fails says so, and leaves nothing mapped") {
  const auto context = context_of(Device::current());
  const auto buffer = context->memory().allocate(64, "test");
  context->fill(*buffer, 0, 64, 0x11);
  const std::array<ocl::Context::MappedRange, 2> ranges{{{buffer.get(), 0, 4, false}, {buffer.get(), 16, 4, true}}};
  for (const auto& [call, nth] : {std::pair("clEnqueueMapBuffer", 2), std::pair("clWaitForEvents", 1)}) {
    CAPTURE(call);
    faults::arm(call, nth, CL_MAP_FAILURE);
    const auto error = test::error_of([&] { (void)context->map(ranges); });
    CHECK(error.has_value() == (faults::disarm() > 0));
    if (error) CHECK_THAT(*error, Catch::Contains("mapping of 2 ranges"));
  }
  auto mapping = context->map(ranges);
  faults::arm("clEnqueueUnmapMemObject", 1, CL_OUT_OF_RESOURCES);
  CHECK_THROWS_WITH(mapping->end(), Catch::Contains("unmapping of 2 ranges"));
  faults::disarm();
  // What nobody waits for is only noted.
  mapping = context->map(ranges);
  faults::arm("clEnqueueUnmapMemObject", 1, CL_OUT_OF_RESOURCES);
  CHECK_NOTHROW(mapping.reset());
  faults::disarm();
}

TEST_CASE("large pages that a driver does not give an address for are done without") {
  const auto context = context_of(Device::current());
  constexpr std::size_t bytes = std::size_t{8} << 20;
  context->trim();
  faults::arm("clEnqueueMapBuffer", 1, CL_MAP_FAILURE);
  const auto buffer = context->memory().allocate(bytes, "test");
  faults::disarm();
  context->fill(*buffer, bytes - 4, 4, 0x11);
  std::array<unsigned char, 4> got{};
  context->read(*buffer, bytes - 4, got.data(), 4);
  CHECK(got[3] == (is_null_device() ? 0 : 0x11));
}

TEST_CASE("a gate that drivers do not make holds nothing back, and one that they do not open is an error to who waits") {
  if (is_null_device()) return;
  const Tensor x = ones({8}).detach();
  const auto value = [&] { return exp(x).to_vector<float>()[7]; };
  CHECK(value() == Approx(2.7182818F));
  constexpr long ever = std::numeric_limits<long>::max();
  faults::arm("clCreateUserEvent", 1, CL_OUT_OF_HOST_MEMORY, ever);
  CHECK(value() == Approx(2.7182818F));
  if (faults::disarm() == 0) return;  // only some devices have gates

  faults::arm("clSetUserEventStatus", 1, CL_OUT_OF_RESOURCES, 2);
  CHECK(value() == Approx(2.7182818F));
  faults::disarm();

  Device device = Device::current();
  faults::arm("clSetUserEventStatus", 1, CL_OUT_OF_RESOURCES, ever);
  const Tensor y = exp(x), z = y * 2.0;
  y.eval();
  const auto throws = [&](const auto& wait) {
    CHECK_THROWS_WITH(wait(), Catch::Contains("CL_OUT_OF_RESOURCES") && Catch::Contains("clSetUserEventStatus"));
  };
  throws([&] { (void)y.to_vector<float>(); });
  throws([&] { (void)y.read_async(); });
  throws([&] { device.finish(); });
  z.eval();
  std::thread([&] { throws([&] { (void)z.to_vector<float>(); }); }).join();
  throws([&] {
    for (int i = 0; i < 200; ++i) exp(x).eval();
  });
  faults::disarm();
  CHECK(z.to_vector<float>()[7] == Approx(5.4365637F));
  CHECK(value() == Approx(2.7182818F));
}

TEST_CASE("a context whose commands never begin ends without waiting for them") {
  const Device before = Device::current();
  {
    const auto underlying = context_of(before)->device();
    const cl::Context context(underlying);
    const cl::CommandQueue queue(context, underlying);
    Device::set_default(opencl::wrap(context(), underlying(), queue()));
    const Tensor x = exec::copy_now(ones({8}), Device::current());
    Device::current().finish();
    faults::arm("clSetUserEventStatus", 1, CL_OUT_OF_RESOURCES, std::numeric_limits<long>::max());
    exp(x).eval();
    Device::set_default(before);
  }
  faults::disarm();
  const auto values = exp(ones({8})).to_vector<float>();
  CHECK((is_null_device() || values[7] == Approx(2.7182818F)));
}
