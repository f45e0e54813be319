#include "lib/exec/choose/device_class.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/cl/vector_rate.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::exec;

namespace {

DeviceInfo cpu(int lanes) {
  DeviceInfo info;
  info.name = "a CPU that is not here";
  info.type = DeviceType::cpu;
  info.native_float_width = lanes;
  info.prefers_vector_kernels = lanes >= 4;
  return info;
}

DeviceInfo gpu(const char* vendor, const char* generation, std::size_t together) {
  DeviceInfo info;
  info.name = "a GPU that is not here";
  info.type = DeviceType::gpu;
  info.vendor = vendor;
  info.generation = generation;
  info.sub_group_size = together;
  return info;
}

}  // namespace

TEST_CASE("device classes: by what a device can do") {
  CHECK(device_class(cpu(4)).name == "cpu-4");
  CHECK(device_class(cpu(8)).name == "cpu-8");
  // As it was measured.
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  for (const std::string rate : {"half", "full"}) {
    auto wide = cpu(16);
    wide.name += ", at " + rate + " rate";
    file::replace(ocl::vector_rate_file(wide).value(), R"({"for": ")" + wide.name + R"( | ", "16 lanes": ")" + rate + "\"}");
    CHECK(device_class(wide).name == "cpu-16-" + rate);
  }
  CHECK(device_class(cpu(1)).name == "other");
  CHECK(device_class(gpu("NVIDIA Corporation", "sm_86", 32)).name == "nvidia");
  CHECK(device_class(gpu("Advanced Micro Devices, Inc.", "gfx1100", 32)).name == "amd-wave32");
  CHECK(device_class(gpu("Advanced Micro Devices, Inc.", "gfx90a", 64)).name == "amd-wave64");
  CHECK(device_class(gpu("Intel(R) Corporation", "", 32)).name == "intel");
  CHECK(device_class(gpu("ARM", "", 0)).name == "other");
  CHECK_THROWS_AS(device_class("cpu-32"), Error);
}

TEST_CASE("device classes: each has what the models ask for") {
  std::set<std::string_view> names;
  for (const auto& known : device_classes()) {
    INFO(known.name);
    CHECK(names.insert(known.name).second);
    CHECK(!known.what.empty());
    const bool vectors = known.name.starts_with("cpu") || known.name == "other", tiles = !known.name.starts_with("cpu");
    CHECK((known.lanes_4 > 0) == vectors);
    // One instruction on more lanes is never cheaper, and never dearer than those on fewer that do the same.
    if (known.lanes_8 > 0) CHECK((known.lanes_8 >= known.lanes_4 && known.lanes_8 <= 2 * known.lanes_4));
    if (known.lanes_16 > 0) CHECK((known.lanes_16 >= known.lanes_8 && known.lanes_16 <= 2 * known.lanes_8));
    for (const auto rate : known.tiles) CHECK((tiles ? rate > 0 && rate < 1 : rate == 0));
  }
  CHECK(device_class("cpu-16-full").instruction(16) == device_class("cpu-16-full").instruction(8));
  CHECK(device_class("cpu-16-half").instruction(16) == 2 * device_class("cpu-16-half").instruction(8));
  CHECK(device_class("cpu-8").instruction(4) == device_class("cpu-8").lanes_4);
}
