#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/cl/context.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;
using nlohmann::json;

namespace {

void launch_one(Context& context, std::string_view name) {
  const BufferPtr buffer = context.memory().allocate(4096, "x");
  const auto guard = context.lock();
  cl::Kernel kernel =
      context.programs().kernel({"profiled", "kernel void one(global float* x) { x[get_global_id(0)] = 1; }", {}}, "one");
  kernel.setArg(0, buffer->memory());
  context.launch(kernel, cl::NDRange(1024), cl::NullRange, {name, "some \"detail\"", 4096, 1024});
}

std::vector<json> kernels(const std::string& path, const std::string& name) {
  std::vector<json> found;
  const json trace = json::parse(file::read(path, 1 << 24));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("name") == name) found.push_back(event);
  }
  return found;
}

/// Runs the hidden test below in a process of its own, so that the environment counts; returns what it writes.
std::string run_hidden(const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format("{} '{}' [.profiled-process] 2>&1", environment, self);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), n);
  CHECK(::pclose(pipe) == 0);
  return output;
}

}  // namespace

TEST_CASE("a process that launches a kernel and ends without waiting", "[.profiled-process]") {
  launch_one(*context_of(Device::current()), "hidden_kernel");
}

TEST_CASE("a trace holds the kernels between its start and its end") {
  const clnet::test::Folder folder;
  const Device device = Device::current();
  Context& context = *context_of(device);
  launch_one(context, "before");
  Device(device).start_trace(folder / "trace.json");
  launch_one(context, "during");
  launch_one(context, "during");
  Device(device).stop_trace();
  launch_one(context, "after");
  context.finish();

  CHECK(kernels(folder / "trace.json", "before").empty());
  CHECK(kernels(folder / "trace.json", "after").empty());
  const auto during = kernels(folder / "trace.json", "during");
  REQUIRE(during.size() == 2);
  CHECK(during[0].at("args").at("bytes") == 4096);
  CHECK(during[0].at("args").at("flops") == 1024);
  CHECK(during[0].at("args").at("detail") == "some \"detail\"");
  CHECK(during[0].at("dur") >= 0);
  // In-order: the second starts when the first has ended.
  CHECK(during[1].at("ts").get<double>() >= during[0].at("ts").get<double>() + during[0].at("dur").get<double>() - 1e-3);
}

TEST_CASE("commands carry no event unless somebody profiles") {
  Context& context = *context_of(Device::current());
  CHECK_FALSE(context.profiler().enabled());
}

TEST_CASE("a trace that cannot be written is an error and stops nothing") {
  Device device = Device::current();
  CHECK_THROWS_AS(device.start_trace("/nonexistent/folder/trace.json"), FileError);
  CHECK_FALSE(context_of(device)->profiler().enabled());
}

TEST_CASE("a caller's queue that measures no times cannot be traced") {
  const auto context = context_of(Device::current());
  const cl::CommandQueue plain(context->context(), context->device());
  const auto wrapped = Context::wrap(context->context()(), context->device()(), plain());
  CHECK_THROWS_AS(wrapped->start_trace("/nonexistent/never-opened"), Unsupported);
  CHECK(wrapped->queue()() == plain());

  const clnet::test::Folder folder;
  const cl::CommandQueue timed(context->context(), context->device(), cl::QueueProperties::Profiling);
  const auto measured = Context::wrap(context->context()(), context->device()(), timed());
  measured->start_trace(folder / "trace.json");
  launch_one(*measured, "wrapped");
  measured->stop_trace();
  CHECK(kernels(folder / "trace.json", "wrapped").size() == 1);
}

TEST_CASE("the environment asks for lines and for a trace, which are complete at exit") {
  const clnet::test::Folder folder;
  const std::string output = run_hidden(fmt::format("CLNET_DEBUG=2 CLNET_TRACE='{}'", (folder / "trace.json").string()));
  INFO(output);
  CHECK(output.find("clnet: device ") != std::string::npos);
  CHECK(output.find("GFLOP/s  hidden_kernel some \"detail\"") != std::string::npos);
  CHECK(kernels(folder / "trace.json", "hidden_kernel").size() == 1);

  const std::string quiet = run_hidden("CLNET_DEBUG= CLNET_TRACE=");
  CHECK(quiet.find("hidden_kernel") == std::string::npos);
}
