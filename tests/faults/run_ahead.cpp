// A device that fails while the host waits for it to catch up.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "tests/faults/layer/faults.h"

using namespace clnet;

TEST_CASE("who waits for earlier kernels does not blame the latest") {
  if (std::getenv("NULL_OPENCL_DEVICE")) return;  // it is never behind
  Device device = Device::current();
  const auto context = device.context();
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
