// What of lib/pocl needs no device, and its door.
#include <catch2/catch.hpp>

#include "lib/cl/quirks.h"
#include "lib/pocl/cache_folder.h"
#include "lib/pocl/prebuilder.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;
using clnet::test::Variable;

namespace {

DeviceInfo described(const char* platform, const char* driver) {
  DeviceInfo info;
  info.platform = platform;
  info.driver_version = driver;
  info.type = DeviceType::cpu;
  info.name = "pthread";
  apply_quirks(info);
  return info;
}

}  // namespace

TEST_CASE("PoCL keeps what it compiled where its variables say, or not at all") {
  const Variable own("POCL_CACHE_DIR", "/own");
  {
    const Variable kept("POCL_KERNEL_CACHE", nullptr);
    CHECK(pocl::cache_folder() == "/own");
  }
  {
    const Variable kept("POCL_KERNEL_CACHE", "1");
    CHECK(pocl::cache_folder() == "/own");
  }
  for (const char* off : {"0", "no", "on", ""}) {
    const Variable kept("POCL_KERNEL_CACHE", off);
    CHECK_FALSE(pocl::cache_folder());
  }
}

TEST_CASE("what is built ahead is the driver's habit, and what is compiled apart is none") {
  using Takes = Prebuilder::Takes;
  const test::Folder folder;
  const Variable cache("POCL_CACHE_DIR", folder.path().c_str()), kept("POCL_KERNEL_CACHE", nullptr),
      processes("CLNET_BUILD_PROCESSES", "2");
  const auto old = described("Portable Computing Language", "3.1"), aborts = described("Portable Computing Language", "6.0"),
             other = described("Another", "1.0");
  const auto taken = [](const DeviceInfo& device, const char* habits, const char* apart) {
    const Variable door("CLNET_DRIVER_HABITS", habits), by_hand("CLNET_COMPILE_APART", apart);
    return prebuilder_for(device)->takes();
  };
  if (pocl::build_processes(old).program.empty()) return;
  for (const char* open : {static_cast<const char*>(nullptr), "1"}) {
    CHECK(taken(old, open, nullptr) == Takes::some);
    CHECK(taken(aborts, open, nullptr) == Takes::all);
    CHECK(taken(aborts, open, "0") == Takes::some);
  }
  CHECK(taken(old, "0", nullptr) == Takes::nothing);
  CHECK(taken(old, "0", "1") == Takes::all);
  CHECK(taken(aborts, "0", nullptr) == Takes::all);
  CHECK(taken(aborts, "0", "0") == Takes::nothing);
  const Variable own("CLNET_CACHE_DIR", folder.path().c_str());
  CHECK(taken(other, nullptr, nullptr) == Takes::nothing);
  CHECK(taken(other, nullptr, "1") == Takes::all);
}

TEST_CASE("a plain prebuilder builds nothing and knows nothing") {
  const Prebuilder plain;
  const std::vector<KernelToBuild> kernels{{{"relu", "", {}}, "relu", {1}, {}}};
  CHECK(plain.takes() == Prebuilder::Takes::nothing);
  CHECK(plain.build(kernels, {}, {}) == 0);
  CHECK(plain.noted(kernels) == std::vector{Noted::nothing});
  CHECK_FALSE(plain.has_built(kernels));
  for (const auto haste : {Prebuilder::Haste::soon, Prebuilder::Haste::when_idle}) {
    CHECK_FALSE(plain.builds_beside(haste));
    CHECK_FALSE(plain.build_beside(kernels, haste));
  }
}
