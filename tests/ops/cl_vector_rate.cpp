#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "lib/base/file.h"
#include "lib/cl/context.h"
#include "lib/cl/vector_rate.h"
#include "lib/exec/choose/device_class.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;

TEST_CASE("vector rate: what is measured is what a file keeps") {
  const auto context = context_of(Device::current());
  auto info = context->info();
  if (!info.prefers_vector_kernels || info.native_float_width < 16) {
    CHECK(vector_rate(info) == VectorRate::not_measured);
    return test::skip("vectors of 16 lanes");
  }
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const test::Variable optimised("POCL_EXTRA_BUILD_FLAGS", nullptr);
  CHECK(!known_vector_rate(info));
  const auto measured = measure_vector_rate(context->device(), info);
  // A process asks once.
  if (vector_rate(info) != VectorRate::not_measured && measured != VectorRate::not_measured) CHECK(vector_rate(info) == measured);
  if (context->info().runs_clblast) CHECK(measured != VectorRate::not_measured);
}

TEST_CASE("vector rate: the process's own instructions and a kernel tell the same") {
  const auto context = context_of(Device::current());
  const auto& info = context->info();
  if (measure_own_vectors() == VectorRate::not_measured || info.type != DeviceType::cpu || info.native_float_width < 16)
    return test::skip("vectors of 16 lanes");
  const test::Variable optimised("POCL_EXTRA_BUILD_FLAGS", nullptr);
  // A thread that loses its core in all rounds measures that, beside other tests more than once.
  int agreed = 0;
  for (int trial = 0; trial < 10 && agreed == 0; ++trial)
    agreed += measure_own_vectors() == measure_vector_rate(context->device(), info);
  CHECK(agreed == 1);
}

TEST_CASE("vector rate: the file decides, if it is whole and of this driver") {
  auto info = Device::current().info();
  info.prefers_vector_kernels = true;
  info.native_float_width = 16;
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto path = vector_rate_file(info).value();
  const auto write = [&](const std::string& rate) {
    file::replace(path, R"({"for": ")" + info.name + " | " + info.driver_version + R"(", "16 lanes": ")" + rate + "\"}");
  };
  write("half");
  CHECK(known_vector_rate(info) == VectorRate::half);
  write("full");
  CHECK(known_vector_rate(info) == VectorRate::full);
  write("quick");
  CHECK(!known_vector_rate(info));
  for (const char* text :
       {"", "{", "[]", R"({"16 lanes": "full"})", R"({"for": "another", "16 lanes": "full"})", R"({"16 lanes": 1})"}) {
    INFO(text);
    file::replace(path, text);
    CHECK(!known_vector_rate(info));
  }
  // Asked for the first time in this process, under a name that no device has.
  info.name = "known from a file only";
  const auto other = vector_rate_file(info).value();
  file::replace(other, R"({"for": ")" + info.name + " | " + info.driver_version + R"(", "16 lanes": "full"})");
  CHECK(vector_rate(info) == VectorRate::full);
  std::filesystem::remove(other);
  CHECK(vector_rate(info) == VectorRate::full);
}

TEST_CASE("vector rate: what cannot be measured is taken for the slower") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  DeviceInfo info;
  info.name = "a CPU that is not here";
  info.type = DeviceType::cpu;
  info.native_float_width = 16;
  info.prefers_vector_kernels = true;
  CHECK(exec::device_class(info).name == "cpu-16-half");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("vector rate: of what several processes measure the first counts, and what is kept nowhere does not") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", (folder.path() / "deeper").c_str());
  auto info = Device::current().info();
  info.name = "measured by two";
  CHECK(kept_vector_rate(info, VectorRate::not_measured) == VectorRate::not_measured);
  CHECK(!std::filesystem::exists(vector_rate_file(info).value()));
  CHECK(kept_vector_rate(info, VectorRate::half) == VectorRate::half);
  CHECK(kept_vector_rate(info, VectorRate::full) == VectorRate::half);
  CHECK(known_vector_rate(info) == VectorRate::half);
  file::replace(vector_rate_file(info).value(), "{");
  CHECK(kept_vector_rate(info, VectorRate::full) == VectorRate::full);
  CHECK(known_vector_rate(info) == VectorRate::full);
  file::replace(folder.path() / "file", "");
  const test::Variable nowhere("CLNET_CACHE_DIR", (folder.path() / "file/cache").c_str());
  CHECK(kept_vector_rate(info, VectorRate::full) == VectorRate::not_measured);
}
