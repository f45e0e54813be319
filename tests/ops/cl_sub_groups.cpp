// Sums of groups by exchange within sub-groups: on devices that have them, by what a GPU claims, and by the local memory in
// between.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "lib/cl/context.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/sub_groups.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/lower/lower.h"
#include "tests/support/gpu_info.h"
#include "tests/support/leaf.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Matchers::Contains;

using clnet::test::gpu_info;
using clnet::test::leaf;

namespace {

std::string claimed(const DeviceInfo& device) { return std::string(ocl::claimed_sub_groups(device).value_or("none")); }

/// The kernels that it takes on the device, and the way in which each exchanges values.
std::string ways(const Tensor& output, const DeviceInfo& device) {
  const std::vector<Tensor> wanted{output};
  const auto recording = exec::lower(exec::Subgraph(exec::collect(wanted)), device).recording;
  std::string result;
  for (const auto& command : recording.commands()) {
    const auto& launch = std::get<exec::Launch>(command);
    result += (result.empty() ? "" : ", ") + launch.function();
    for (const auto& [name, value] : launch.program().defines)
      if (name.starts_with("SUB_GROUPS_")) result += " " + name.substr(11);
  }
  return result;
}

/// What is wrong when kernels/sub_groups.clh is this text.
std::string fault_with(const std::string& text) {
  const test::Folder kernels;
  kernels.write("sub_groups.clh", text);
  const test::Variable folder("CLNET_KERNEL_DIR", kernels.path().c_str());
  const auto& context = *context_of(Device::current());
  return ocl::try_sub_groups(context.device(), context.info(), "of_the_test");
}

}  // namespace

TEST_CASE("GPUs exchange values by their architecture or extension") {
  CHECK(claimed(gpu_info("sm_70")) == "shfl");
  CHECK(claimed(gpu_info("sm_86")) == "shfl");
  CHECK(claimed(gpu_info("sm_61")) == "none");
  CHECK(claimed(gpu_info("gfx906", 64)) == "bpermute64");
  CHECK(claimed(gpu_info("gfx90a", 64)) == "bpermute64");
  CHECK(claimed(gpu_info("gfx1030")) == "bpermute32");
  CHECK(claimed(gpu_info("gfx1201")) == "bpermute32");
  CHECK(claimed(gpu_info("gfx1100", 64)) == "none");
  CHECK(claimed(gpu_info("")) == "none");
  auto intel = gpu_info("");
  intel.smallest_sub_group = 8;
  CHECK(claimed(intel) == "none");
  intel.subgroups = true;
  CHECK(claimed(intel) == "intel");
  // Groups that are smaller than its sub-groups, say.
  auto small = gpu_info("sm_86");
  small.max_work_group_size = 128;
  CHECK(claimed(small) == "none");
}

TEST_CASE("kernels whose groups reduce floats are told of sub-groups") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto x = leaf({64, 100});
  for (const auto& [device, way] :
       {std::pair{gpu_info("sm_86"), std::string(" shfl")}, {gpu_info("gfx1100"), " bpermute32"}, {gpu_info(""), ""}}) {
    CHECK(ways(sum(x, {1}), device) == "reduce_rows_gpu" + way);
    CHECK(ways(sum(leaf({64, 100}, Dtype::i32), {1}), device) == "reduce_rows_gpu");
    CHECK(ways(softmax(x, 1), device) == "softmax_gpu" + way);
    CHECK(ways(layer_norm(x, 1, leaf({100}), leaf({100})), device) == "layer_norm_rows" + way);
    CHECK(ways(relu(x), device) == "relu_elementwise");
    const exec::ForceSolver tree("softmax", "gpu{sub_groups=0}");
    CHECK(ways(softmax(x, 1), device) == "softmax_gpu");
  }
  const exec::ForceSolver exchange("softmax", "gpu{sub_groups=1}");
  CHECK(ways(softmax(x, 1), gpu_info("sm_86")) == "softmax_gpu shfl");
  CHECK_THROWS_WITH(ways(softmax(x, 1), gpu_info("")), Contains("it has no configuration {sub_groups=1} here"));
}

TEST_CASE("one program shows whether a device's sub-groups exchange values") {
  const auto& context = *context_of(Device::current());
  if (const auto way = ocl::claimed_sub_groups(context.info())) {
    CHECK(ocl::try_sub_groups(context.device(), context.info(), *way).empty());
    CHECK(ocl::sub_groups(context.info()) == way);
  } else {
    test::skip("the device has no sub-groups that clnet knows");
  }
  if (context.info().type != DeviceType::cpu) return;
  // No other way's program compiles here, and that is no more than a reason.
  for (const char* way : {"shfl", "bpermute32", "bpermute64"})
    CHECK_THAT(ocl::try_sub_groups(context.device(), context.info(), way), Contains("does not compile"));
}

TEST_CASE("sums of sub-groups meet in local memory, and wrong ones are found out") {
  if (Device::current().info().max_work_group_size < 256) return test::skip("the device takes no groups of 256");
  const std::string none = "\nstatic inline float clnet_shuffle_xor(const float value, const int mask) { return value; }\n";
  CHECK(fault_with("#define SUB_GROUP 1" + none).empty());
  CHECK_THAT(fault_with("#define SUB_GROUP 32" + none), Contains("2 neighbours make the sum 0 ") && Contains("item 0"));
}

TEST_CASE("what came of trying sub-groups is kept") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  auto device = gpu_info("sm_86");
  const auto with = [&](const char* name, const std::string& fault) {
    device.name = name;
    const nlohmann::json content{{"for", ocl::identity(device)}, {"fault", fault}};
    file::replace(ocl::sub_groups_file(device).value(), content.dump());
    return ocl::sub_groups(device).value_or("none");
  };
  CHECK(with("sums in order", "") == "shfl");
  CHECK(with("wrong sums", "item 3 has item 5's value") == "none");
  CHECK(ways(sum(leaf({64, 100}), {1}), device) == "reduce_rows_gpu");
}
