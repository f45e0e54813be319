// What the GPUs of the null driver's table tell of themselves, and which class of devices each is taken for.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <string>

#include "clnet/clnet.h"
#include "lib/cl/matrix_units.h"
#include "lib/cl/sub_groups.h"
#include "lib/exec/choose/device_class.h"

using namespace clnet;

namespace {

struct Known {
  std::string_view device, architecture, kind;
  std::size_t sub_group, smallest;
  bool matrix_units;          ///< as the architecture says
  std::string_view unit;      ///< what clnet would try, empty: none
  std::string_view together;  ///< how sub-groups exchange values
  std::int64_t units;         ///< that hold work-groups
};

constexpr std::array table{
    Known{"gtx1080", "sm_61", "nvidia-sm50", 32, 0, false, "", "", 20},
    Known{"v100", "sm_70", "nvidia-sm70", 32, 0, true, "", "shfl", 80},
    Known{"rtx2080", "sm_75", "nvidia-sm75", 32, 0, false, "mma_sm75", "shfl", 46},
    Known{"a100", "sm_80", "nvidia-sm80", 32, 0, true, "mma_sm80", "shfl", 108},
    Known{"rtx3090", "sm_86", "nvidia-sm86", 32, 0, true, "mma_sm80", "shfl", 82},
    Known{"rtx4090", "sm_89", "nvidia-sm86", 32, 0, true, "mma_sm80", "shfl", 128},
    Known{"h100", "sm_90", "nvidia-sm90", 32, 0, true, "mma_sm80", "shfl", 114},
    Known{"h200", "sm_90", "nvidia-sm90", 32, 0, true, "mma_sm80", "shfl", 132},
    Known{"rtx5090", "sm_120", "nvidia-sm86", 32, 0, true, "mma_sm80", "shfl", 170},
    Known{"mi50", "gfx906", "amd-gcn", 64, 0, false, "", "bpermute64", 60},
    Known{"mi210", "gfx90a", "amd-cdna", 64, 0, true, "mfma", "bpermute64", 104},
    Known{"mi300x", "gfx942", "amd-cdna", 64, 0, true, "mfma", "bpermute64", 304},
    Known{"rx6900xt", "gfx1030", "amd-rdna", 32, 0, false, "", "bpermute32", 40},
    Known{"rx7900xtx", "gfx1100", "amd-rdna3", 32, 0, true, "wmma", "bpermute32", 48},
    Known{"rx9070xt", "gfx1201", "amd-rdna3", 32, 0, true, "", "bpermute32", 32},
    Known{"uhd630", "", "intel-gen9", 32, 8, false, "", "intel", 3},
    Known{"irisxe", "xe-lp", "intel-xe-lp", 32, 8, false, "", "intel", 6},
    Known{"a770", "xe-hpg", "intel-xe-hpg", 32, 8, true, "dpas8", "intel", 32},
    Known{"max1100", "xe-hpc", "intel-xe-hpc", 32, 16, true, "dpas16", "intel", 56},
    Known{"b580", "xe2", "intel-xe-hpc", 32, 16, true, "dpas16", "intel", 20},
};

}  // namespace

TEST_CASE("a device tells its architecture, by which its class is found") {
  const std::string device = std::getenv("NULL_OPENCL_DEVICE");
  const auto info = Device::current().info();
  // Older drivers than OpenCL 3.0 do not tell.
  CHECK(info.work_group_multiple == (info.device_version.starts_with("OpenCL 3") ? 32 : 0));
  CHECK(info.cache == 1 << 20);
  CHECK(info.cache_line == 64);
  if (device.starts_with("cpu")) {
    CHECK(info.architecture.empty());
    CHECK(info.sub_group_size == 0);
    CHECK(info.smallest_sub_group == 0);
    CHECK_FALSE(info.matrix_units);
    CHECK(exec::device_class(info).name.starts_with("cpu-"));
    return;
  }
  const auto known = std::find_if(table.begin(), table.end(), [&](const Known& each) { return each.device == device; });
  REQUIRE(known != table.end());
  CHECK(info.architecture == known->architecture);
  CHECK(exec::device_class(info).name == known->kind);
  CHECK(info.sub_group_size == known->sub_group);
  CHECK(info.smallest_sub_group == known->smallest);
  CHECK(info.matrix_units == known->matrix_units);
  const auto unit = ocl::matrix_unit(info);
  CHECK((unit ? unit->name : "") == known->unit);
  CHECK(ocl::claimed_sub_groups(info).value_or("") == known->together);
  CHECK(exec::units_of(info) == known->units);
}

TEST_CASE("the null driver has a GPU of every class") {
  std::set<std::string_view> covered;
  for (const auto& known : table) covered.insert(known.kind);
  for (const auto& kind : exec::device_classes()) {
    INFO(kind.name);
    CHECK(covered.contains(kind.name) == !(kind.name.starts_with("cpu-") || kind.name == "other"));
  }
}
