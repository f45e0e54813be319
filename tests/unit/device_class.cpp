#include "lib/exec/choose/device_class.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/cl/gpu_architecture.h"
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

DeviceInfo gpu(const char* vendor, const char* architecture, std::size_t together) {
  DeviceInfo info;
  info.name = "a GPU that is not here";
  info.type = DeviceType::gpu;
  info.vendor = vendor;
  info.architecture = architecture;
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
  for (const auto& [architecture, name] : {std::pair{"sm_52", "nvidia-sm50"},
                                           {"sm_72", "nvidia-sm70"},
                                           {"sm_75", "nvidia-sm75"},
                                           {"sm_80", "nvidia-sm80"},
                                           {"sm_87", "nvidia-sm86"},
                                           {"sm_89", "nvidia-sm86"},
                                           {"sm_90", "nvidia-sm90"},
                                           {"sm_103", "nvidia-sm90"},
                                           {"sm_121", "nvidia-sm86"}})
    CHECK(device_class(gpu("NVIDIA Corporation", architecture, 32)).name == name);
  for (const auto& [architecture, name] : {std::pair{"gfx803", "amd-gcn"},
                                           {"gfx906", "amd-gcn"},
                                           {"gfx90c", "amd-gcn"},
                                           {"gfx908", "amd-cdna"},
                                           {"gfx90a", "amd-cdna"},
                                           {"gfx950", "amd-cdna"},
                                           {"gfx1010", "amd-rdna"},
                                           {"gfx1103", "amd-rdna3"},
                                           {"gfx1200", "amd-rdna3"}})
    CHECK(device_class(gpu("Advanced Micro Devices, Inc.", architecture, 64)).name == name);
  for (const auto& [architecture, name] : {std::pair{"gen11", "intel-gen9"},
                                           {"xe-lp", "intel-xe-lp"},
                                           {"xe-lpg", "intel-xe-hpg"},
                                           {"xe-hpg", "intel-xe-hpg"},
                                           {"xe-hpc", "intel-xe-hpc"},
                                           {"xe3", "intel-xe-hpc"}})
    CHECK(device_class(gpu("Intel(R) Corporation", architecture, 32)).name == name);
  // A driver that tells no architecture.
  auto intel = gpu("Intel(R) Corporation", "", 32);
  CHECK(device_class(intel).name == "intel-gen9");
  intel.matrix_units = true;
  for (const std::size_t smallest : {std::size_t{8}, std::size_t{16}}) {
    intel.smallest_sub_group = smallest;
    CHECK(device_class(intel).name == (smallest == 8 ? "intel-xe-hpg" : "intel-xe-hpc"));
  }
  CHECK(device_class(gpu("ARM", "", 0)).name == "other");
  CHECK_THROWS_AS(device_class("cpu-32"), Error);
}

TEST_CASE("device classes: each has what the models ask for") {
  std::set<std::string_view> names;
  for (const auto& known : device_classes()) {
    INFO(known.name);
    CHECK(names.insert(known.name).second);
    CHECK(!known.what.empty());
    const bool vectors = known.name.starts_with("cpu") || known.name == "other";
    CHECK((known.lanes_4 > 0) == vectors);
    // One instruction on more lanes is never cheaper, and never dearer than those on fewer that do the same.
    if (known.lanes_8 > 0) CHECK((known.lanes_8 >= known.lanes_4 && known.lanes_8 <= 2 * known.lanes_4));
    if (known.lanes_16 > 0) CHECK((known.lanes_16 >= known.lanes_8 && known.lanes_16 <= 2 * known.lanes_8));
    for (const auto rate : known.tiles) CHECK((rate > 0 && rate < 1));
  }
  CHECK(device_class("cpu-16-full").instruction(16) == device_class("cpu-16-full").instruction(8));
  CHECK(device_class("cpu-16-half").instruction(16) == 2 * device_class("cpu-16-half").instruction(8));
  CHECK(device_class("cpu-8").instruction(4) == device_class("cpu-8").lanes_4);
}

TEST_CASE("device classes: GPUs have units, which hold some groups of the largest tile") {
  // As tools/dev/offline_limits.txt has its occupancy, in groups of 256 of which each takes 16.5 KiB of local memory.
  constexpr std::int64_t items = 256, local_bytes = 2 * 8 * (128 + 128 + 8) * 4;
  for (const auto& [name, held] : {std::pair{"nvidia-sm75", 1},
                                   {"nvidia-sm86", 2},
                                   {"nvidia-sm90", 2},
                                   {"amd-gcn", 1},
                                   {"amd-cdna", 2},
                                   {"amd-rdna", 3},
                                   {"amd-rdna3", 5}})
    CHECK(device_class(name).groups_of_unit(items, device_class(name).largest_tile, local_bytes) == held);
  CHECK(device_class("nvidia-sm86").groups_of_unit(items, 129, local_bytes) == 1);
  CHECK(device_class("nvidia-sm86").groups_of_unit(items, 32, 30 << 10) == 3);
  CHECK(device_class("amd-gcn").groups_of_unit(1024, 255, local_bytes) == 1);
  for (const auto& known : device_classes()) {
    INFO(known.name);
    const bool gpu = !known.name.starts_with("cpu") && known.name != "other";
    CHECK((known.words > 0) == gpu);
    CHECK((known.registers > 0 && known.local_memory > 0 && known.largest_tile > 0) == gpu);
    CHECK(known.units >= 1);
  }
}

TEST_CASE("device classes: a loop runs at its share of instructions, or as local memory allows") {
  CHECK(device_class("nvidia-sm75").rate(0.69, 2) == 0.69);
  CHECK(device_class("nvidia-sm86").rate(0.69, 2) == 0.5);
  CHECK(device_class("nvidia-sm86").rate(0.83, 4) == 0.83);
  CHECK(device_class("other").rate(0.69, 0.1) == 0.69);
}

TEST_CASE("device classes: units that hold groups are not always what the driver counts") {
  auto intel = gpu("Intel(R) Corporation", "xe-hpg", 32);
  intel.compute_units = 512;
  CHECK(units_of(intel) == 32);
  auto small = intel;
  small.compute_units = 1;
  CHECK(units_of(small) == 1);
  auto nvidia = gpu("NVIDIA Corporation", "sm_86", 32);
  nvidia.compute_units = 82;
  CHECK(units_of(nvidia) == 82);
  auto four = cpu(4);
  four.compute_units = 2;
  CHECK(units_of(four) == 2);
}

TEST_CASE("Intel's architectures by the version of their IP") {
  const auto ip = [](std::uint32_t architecture, std::uint32_t release, std::uint32_t revision) {
    return ocl::intel_architecture(architecture << 22 | release << 14 | revision);
  };
  CHECK(ocl::intel_architecture(0x02400009) == "gen9");
  CHECK(ocl::intel_architecture(0x030dc008) == "xe-hpg");
  CHECK(ip(11, 0, 0) == "gen11");
  CHECK(ip(12, 0, 0) == "xe-lp");
  CHECK(ip(12, 10, 0) == "xe-lp");
  CHECK(ip(12, 60, 7) == "xe-hpc");
  CHECK(ip(12, 71, 0) == "xe-lpg");
  CHECK(ip(20, 1, 4) == "xe2");
  CHECK(ip(30, 0, 0) == "xe3");
}
