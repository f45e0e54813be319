#include "lib/cl/devices.h"

#include <catch2/catch.hpp>

#include "lib/cl/check.h"
#include "lib/cl/quirks.h"

using namespace clnet;
using namespace clnet::ocl;

namespace {

DeviceInfo device(int platform, int index, DeviceType type, const char* name, int units, bool unified = false) {
  DeviceInfo info;
  info.platform_index = platform;
  info.device_index = index;
  info.type = type;
  info.name = name;
  info.platform = platform == 0 ? "First Platform" : "Second";
  info.vendor = "Some Vendor";
  info.compute_units = units;
  info.clock_mhz = 1000;
  info.unified_memory = unified;
  return info;
}

const std::vector<DeviceInfo> devices{
    device(0, 0, DeviceType::cpu, "Slow CPU", 2, true),
    device(0, 1, DeviceType::gpu, "Integrated Graphics", 96, true),
    device(1, 0, DeviceType::gpu, "Small GPU", 20),
    device(1, 1, DeviceType::gpu, "Large GPU", 80),
    device(1, 2, DeviceType::accelerator, "Special Device", 500),
};

}  // namespace

TEST_CASE("devices are chosen by type, number and name") {
  CHECK(choose(devices, "gpu") == 3);
  CHECK(choose(devices, "GPU") == 3);
  CHECK(choose(devices, "cpu") == 0);
  CHECK(choose(devices, "accelerator") == 4);
  CHECK(choose(devices, "1:0") == 2);
  CHECK(choose(devices, "0:1") == 1);
  CHECK(choose(devices, "small") == 2);
  CHECK(choose(devices, "graphics") == 1);
  CHECK(choose(devices, "first platform") == 1);
  for (const char* none : {"0:2", "2:0", "1:", ":1", "1:0x", "-1:0", "tpu"}) CHECK(choose(devices, none) == -1);
}

TEST_CASE("the default is the best GPU, and a discrete one is better") {
  CHECK(choose(devices, "") == 3);
  CHECK(choose({devices[0], devices[4]}, "") == 1);
  CHECK(choose({devices[0]}, "") == 0);
  CHECK(choose({}, "") == -1);
  CHECK(choose({}, "gpu") == -1);
}

TEST_CASE("a CPU with vectors is better than one without") {
  DeviceInfo scalar = device(0, 0, DeviceType::cpu, "llvmpipe", 64, true),
             vector = device(1, 0, DeviceType::cpu, "pthread", 4, true);
  vector.prefers_vector_kernels = true;
  CHECK(choose({scalar, vector}, "cpu") == 1);
}

TEST_CASE("quirks are recognised by what a device says, and are noted") {
  DeviceInfo pocl = device(0, 0, DeviceType::cpu, "pthread", 4);
  pocl.platform = "Portable Computing Language";
  pocl.local_memory = 32 << 20;
  apply_quirks(pocl);
  CHECK(pocl.local_memory == 1 << 20);
  CHECK(pocl.caches_programs);
  CHECK(pocl.quirks.size() == 7);

  // PoCL's compiler and its header have their versions.
  struct Version {
    const char* driver;
    bool aborts, declarations;
  };
  for (const auto& version : {Version{"3.1+debian", false, true}, Version{"5.0", true, false}, Version{"6.0+debian", true, true},
                              Version{"10.1", true, false}, Version{"", false, false}}) {
    DeviceInfo other = device(0, 0, DeviceType::cpu, "cpu-haswell", 4);
    other.platform = "Portable Computing Language";
    other.driver_version = version.driver;
    apply_quirks(other);
    CHECK(has_quirk(other, "compiler-aborts") == version.aborts);
    CHECK(has_quirk(other, "pocl-declarations") == version.declarations);
  }

  DeviceInfo llvmpipe = device(0, 0, DeviceType::cpu, "llvmpipe (LLVM 15.0.6, 256 bits)", 8);
  llvmpipe.native_float_width = 8;
  llvmpipe.prefers_vector_kernels = true;
  apply_quirks(llvmpipe);
  CHECK_FALSE(llvmpipe.prefers_vector_kernels);
  CHECK_FALSE(llvmpipe.caches_programs);

  DeviceInfo plain = devices[3];
  apply_quirks(plain);
  CHECK(plain.quirks.empty());
}

TEST_CASE("error codes have names") {
  CHECK(error_name(CL_INVALID_KERNEL_ARGS) == "CL_INVALID_KERNEL_ARGS");
  CHECK(error_name(-9999) == "OpenCL error -9999");
}
