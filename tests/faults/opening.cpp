// Devices that cannot be listed or opened say what has failed.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "clnet/clnet.h"
#include "lib/cl/check.h"
#include "tests/faults/layer/faults.h"

using namespace clnet;

TEST_CASE("a fault while a device is looked for and opened") {
  for (const std::string name : {"clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
                                 "clCreateCommandQueue"}) {
    int seen = 0;
    for (const faults::Call& call : faults::calls()) {
      if (call.name != name) continue;
      for (long number = 1;; ++number) {
        INFO(name << " number " << number);
        faults::arm(call.name, number, call.code);
        std::optional<std::string> error;
        try {
          // Nobody else holds the device, so it is opened anew.
          (void)Device::find("");
        } catch (const DeviceError& thrown) {
          error = thrown.what();
        }
        const bool reached = faults::disarm() >= number;
        if (error) {
          ++seen;
          CHECK_THAT(*error, Catch::Contains(ocl::error_name(call.code)) && Catch::Contains(name));
        }
        if (!reached) break;
      }
    }
    // Where there is only one device, each fault shows.
    if (Device::list().size() == 1) CHECK(seen > 0);
  }
  const auto total = sum(Tensor::from({1.0F, 2.0F})).item<float>();
  CHECK((total == 3 || std::getenv("NULL_OPENCL_DEVICE")));
}
