// Plans made for devices that are not here: the tests of this folder run on the null driver, once for each device that ctest
// names.
#include <CL/cl_ext.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "lib/cl/matrix_units.h"
#include "lib/cl/opencl.h"
#include "lib/cl/quirk_file.h"
#include "lib/cl/sub_groups.h"
#include "lib/exec/statistics.h"
#include "tests/null_opencl/counts.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

null_opencl::Counts counted() {
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  auto* address = clGetExtensionFunctionAddressForPlatform(platforms.at(0)(), "nullOpenclCounts");
  REQUIRE(address);
  return reinterpret_cast<null_opencl::GetCounts>(address)();
}

}  // namespace

TEST_CASE("a training step is planned for the device that the driver claims to be") {
  for (const std::string name : {"mlp", "cnn"}) {
    const auto model = models::make(name, {1, 28, 28}, 10);
    optim::Adam optimizer{*model, {.learning_rate = 1e-3}};
    const auto before = exec::statistics();
    const auto launched = counted().launches;
    for (int step = 0; step < 3; ++step) {
      const Tensor x = rand({32, 1, 28, 28}).detach();
      const Tensor targets = Tensor::from(std::vector<std::int32_t>(32, 3), Shape{32});
      CHECK(optimizer.step(cross_entropy((*model)(x), targets)).item<float>() == 0.0F);
    }
    const auto after = exec::statistics();
    CHECK(after.plans_reused >= before.plans_reused + 2);
    // What the executor says that it launched reached the driver; CLBlast's launches come on top.
    CHECK(counted().launches - launched >= after.kernels - before.kernels);
  }
}

TEST_CASE("a training step of ResNet-18 on an RTX 3090 is at most 220 commands") {
  if (std::string_view(std::getenv("NULL_OPENCL_DEVICE")) != "rtx3090") return;
  const auto model = models::make("resnet18", {3, 224, 224}, 1000);
  optim::SGD optimizer{*model, {.learning_rate = 1e-3, .momentum = 0.9, .weight_decay = 1e-4}};
  const Tensor targets = Tensor::from(std::vector<std::int32_t>(16, 3), Shape{16});
  std::uint64_t commands = 0, arguments = 0, repeated = 0;
  for (int step = 0; step < 3; ++step) {
    const auto before = counted();
    optimizer.step(cross_entropy((*model)(zeros({16, 3, 224, 224})), targets)).eval();
    const auto after = counted();
    commands = after.launches - before.launches + after.writes - before.writes;
    arguments = after.arguments - before.arguments;
    repeated = after.repeated_arguments - before.repeated_arguments;
  }
  INFO(commands << " commands, " << arguments << " arguments set, " << repeated << " of them again");
  CHECK(commands > 100);
  CHECK(commands <= 220);
  // Those that changed: where parameters and their gradients lie.
  CHECK(arguments > 0);
  CHECK(repeated == 0);
}

TEST_CASE("where nothing is computed a device has the matrix units that it claims, and that is not kept") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto& info = Device::current().info();
  const auto builds = counted().builds;
  const auto refusal = ocl::matrix_unit_refusal(info, ocl::UnitElement::f16);
  CHECK(refusal.has_value() == !ocl::matrix_unit(info).has_value());
  const bool claims = info.architecture == "sm_86" || (info.smallest_sub_group > 0 && info.matrix_units);
  if (claims) CHECK_FALSE(refusal.has_value());
  CHECK(counted().builds == builds);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("where nothing is computed a device has the sub-groups that it claims, and that is not kept") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const std::string device = std::getenv("NULL_OPENCL_DEVICE");
  const auto builds = counted().builds;
  const auto way = ocl::sub_groups(Device::current().info()).value_or("none");
  CHECK(way == (device.starts_with("rtx") ? "shfl"
                : device == "mi210"       ? "bpermute64"
                : device == "rx7900xtx"   ? "bpermute32"
                : device == "a770"        ? "intel"
                                          : "none"));
  CHECK(counted().builds == builds);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("what is kept of matrix units and sub-groups is told without trying") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto& info = Device::current().info();
  const auto builds = counted().builds;
  const auto units = [&] {
    std::map<ocl::UnitElement, std::string> states;
    for (const auto& [element, state] : ocl::matrix_unit_states(info)) states[element] = state;
    return states;
  };
  const auto keep = [&](const std::string& path, const char* fault) {
    file::replace(path, R"({"for": ")" + ocl::identity(info) + R"(", "fault": ")" + fault + "\"}");
  };
  const bool known = info.type == DeviceType::gpu && ocl::matrix_unit(info);
  CHECK(units().empty() == !known);
  if (known) {
    const auto f16 = ocl::UnitElement::f16;
    CHECK(units()[f16] == "not tried yet");
    keep(ocl::matrix_units_file(info, f16).value(), "");
    CHECK(units()[f16] == "work");
    keep(ocl::matrix_units_file(info, f16).value(), "a product is wrong");
    CHECK(units()[f16] == "a product is wrong");
    // Only NVIDIA's from sm_80 on multiply it.
    CHECK((units()[ocl::UnitElement::tf32] == "not tried yet") == (info.architecture == "sm_86"));
  }
  const bool together = ocl::claimed_sub_groups(info).has_value();
  CHECK(ocl::sub_groups_state(info) == (together ? "not tried yet" : ""));
  if (together) {
    keep(ocl::sub_groups_file(info).value(), "");
    CHECK(ocl::sub_groups_state(info) == "work");
  }
  CHECK(counted().builds == builds);
}

TEST_CASE("memory is counted by the driver as by the library") {
  auto device = Device::current();
  device.trim();
  const auto before = counted();
  {
    const Tensor x = zeros({1000, 1000});
    x.eval();
    CHECK(counted().bytes >= before.bytes + 4000000);
  }
  device.trim();
  CHECK(counted().bytes <= before.bytes);
}

TEST_CASE("plans of ever new structure are made without compiling") {
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F});
  const auto before = exec::statistics();
  constexpr int plans = 500;
  for (int i = 0; i < plans; ++i) {
    Tensor y = x;
    for (int bit = 0; bit < 9; ++bit) y = (i >> bit & 1) ? exp(y) : sin(y);
    y.eval();
  }
  CHECK(exec::statistics().plans_made - before.plans_made >= plans - 12);
}

TEST_CASE("work-groups are as small as the built kernel wants them, or the kernel is named") {
  setenv("NULL_OPENCL_KERNEL_GROUP", "32", 1);
  const auto launched = counted().launches;
  // 64 and 256 work-items otherwise.
  matmul(zeros({70, 3}, Dtype::bf16), zeros({3, 70}, Dtype::bf16)).eval();
  sin(zeros({1000, 3})).eval();
  CHECK(counted().launches > launched);
  setenv("NULL_OPENCL_KERNEL_GROUP", "3", 1);
  const Tensor odd = softmax(zeros({1000, 512}), 1);
  if (!Device::current().info().prefers_vector_kernels) CHECK_THROWS_WITH(odd.eval(), Catch::Contains("softmax_gpu"));
  unsetenv("NULL_OPENCL_KERNEL_GROUP");
  odd.eval();
}
