#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/opencl.h"
#include "lib/cl/context.h"
#include "lib/cl/uploader.h"
#include "tests/ops/values.h"
#include "tests/support/skip.h"

using namespace clnet;
using namespace clnet::ocl;
using testing::counting;

namespace {

const char* add_source = R"(
kernel void add(global float* x, float value, uint n) {
  const uint i = get_global_id(0);
  if (i < n) x[i] += value;
})";

void add(Context& context, const Buffer& buffer, float value, std::size_t n) {
  const auto guard = context.lock();
  cl::Kernel kernel = context.programs().kernel({"test_add", add_source, {}}, "add");
  kernel.setArg(0, buffer.memory());
  kernel.setArg(1, value);
  kernel.setArg(2, static_cast<cl_uint>(n));
  context.launch(kernel, cl::NDRange(n), cl::NullRange, {"add", "", static_cast<double>(8 * n), static_cast<double>(n)});
}

std::vector<float> values(Context& context, const Buffer& buffer, std::size_t n) {
  std::vector<float> result(n);
  context.read(buffer, 0, result.data(), n * sizeof(float));
  return result;
}

}  // namespace

TEST_CASE("a kernel runs, and its result can be read") {
  auto context = context_of(Device::current());
  const std::vector<float> data = counting(1000);
  const BufferPtr buffer = context->memory().allocate(4000, "test");
  context->write(*buffer, 0, data.data(), 4000);
  const auto before = context->launches();
  add(*context, *buffer, 0.5f, 1000);
  add(*context, *buffer, 2.f, 1000);
  CHECK(context->launches() == before + 2);
  const auto result = values(*context, *buffer, 1000);
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(result[i] == data[i] + 2.5f);
}

TEST_CASE("a zero-sized range launches nothing") {
  auto context = context_of(Device::current());
  const BufferPtr buffer = context->memory().allocate(4, "test");
  const auto before = context->launches();
  add(*context, *buffer, 1.f, 0);
  CHECK(context->launches() == before);
}

TEST_CASE("the same device is one context") {
  const Device device = Device::current();
  const auto& info = device.info();
  CHECK(Device::find(std::to_string(info.platform_index) + ":" + std::to_string(info.device_index)) == device);
  CHECK(Device::find(info.name).info().name == info.name);
}

TEST_CASE("writes of every size keep order with kernels, and the source may change at once") {
  auto context = context_of(Device::current());
  // A scalar goes by a fill, an odd size by a copy set aside, a large one by waiting.
  for (const std::size_t n : {1u, 2u, 3u, 32u, 1001u, 5u << 20}) {
    const BufferPtr buffer = context->memory().allocate(n * 4, "test");
    std::vector<float> data = counting(n);
    context->write(*buffer, 0, data.data(), n * 4);
    add(*context, *buffer, 1.f, n);
    std::vector<float> first = values(*context, *buffer, 1);
    CHECK(first[0] == 1.f);
    context->write(*buffer, 0, data.data(), n * 4);
    std::fill(data.begin(), data.end(), -7.f);
    add(*context, *buffer, 2.f, n);
    const auto result = values(*context, *buffer, n);
    std::vector<float> expected = counting(n);
    for (float& x : expected) x += 2.f;
    CHECK(result == expected);
  }
}

TEST_CASE("reads and writes at an offset, and fill") {
  auto context = context_of(Device::current());
  const BufferPtr buffer = context->memory().allocate(64, "test");
  context->fill(*buffer, 0, buffer->bytes(), 0xff);
  const std::uint32_t word = 0x01020304;
  context->write(*buffer, 8, &word, 4);
  const char three[3] = {1, 2, 3};
  context->write(*buffer, 17, three, 3);
  unsigned char got[64];
  context->read(*buffer, 0, got, 64);
  std::vector<unsigned char> expected(64, 0xff);
  std::memcpy(expected.data() + 8, &word, 4);
  std::memcpy(expected.data() + 17, three, 3);
  CHECK(std::vector<unsigned char>(got, got + 64) == expected);
  std::uint32_t back = 0;
  context->read(*buffer, 8, &back, 4);
  CHECK(back == word);
  // Several ranges at once, one of them empty.
  std::array<unsigned char, 8> ends{};
  const std::array<Context::Range, 3> ranges{
      {{buffer.get(), 6, ends.data(), 4}, {buffer.get(), 0, nullptr, 0}, {buffer.get(), 16, ends.data() + 4, 4}}};
  context->read(ranges);
  CHECK(ends == std::array<unsigned char, 8>{0xff, 0xff, expected[8], expected[9], 0xff, 1, 2, 3});
}

TEST_CASE("mapped ranges hold what earlier commands wrote, and later ones see what the host wrote") {
  auto context = context_of(Device::current());
  const BufferPtr from = context->memory().allocate(64, "test"), to = context->memory().allocate(64, "test");
  context->fill(*from, 0, 64, 0x11);
  context->fill(*from, 32, 32, 0x22);
  context->fill(*to, 0, 64, 0x33);
  const std::array<Context::MappedRange, 3> ranges{
      {{from.get(), 8, 4, false}, {from.get(), 40, 4, false}, {to.get(), 16, 8, true}}};
  auto mapping = context->map(ranges);
  std::memcpy(mapping->at(2), mapping->at(0), 4);
  std::memcpy(mapping->at(2) + 4, mapping->at(1), 4);
  mapping->end();
  mapping->end();
  std::vector<unsigned char> got(64), expected(64, 0x33);
  std::fill_n(expected.begin() + 16, 4, 0x11);
  std::fill_n(expected.begin() + 20, 4, 0x22);
  context->read(*to, 0, got.data(), 64);
  CHECK(got == expected);
  // One that nobody ends ends by itself.
  mapping = context->map(std::span(ranges).last(1));
  std::memset(mapping->at(0), 0x44, 8);
  mapping.reset();
  std::fill_n(expected.begin() + 16, 8, 0x44);
  context->read(*to, 0, got.data(), 64);
  CHECK(got == expected);
  CHECK_NOTHROW(context->map({})->end());
}

TEST_CASE("an error of OpenCL names the call, the kernel and the code") {
  auto context = context_of(Device::current());
  const auto guard = context->lock();
  // Arguments not set.
  cl::Kernel kernel(context->programs().kernel({"test_unset", "kernel void unset(global float* x) { x[0] = 1; }", {}}, "unset"));
  try {
    context->launch(kernel, cl::NDRange(4), cl::NDRange(1 << 30), {"unset", "detail", 0, 0});
    FAIL("expected an error");
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    CHECK(text.find("launch of unset detail over 4") != std::string::npos);
    CHECK(text.find("CL_INVALID") != std::string::npos);
  }
}

TEST_CASE("a caller's own objects are wrapped, retained and given back") {
  const Device device = Device::current();
  cl::Context context(context_of(device)->device());
  cl::CommandQueue queue(context, context_of(device)->device());
  const auto references = [&] { return context.getInfo<CL_CONTEXT_REFERENCE_COUNT>(); };
  cl::Buffer mine(context, CL_MEM_READ_WRITE, 40);
  const auto before = references();
  {
    const Device wrapped = opencl::wrap(context(), context_of(device)->device()(), queue());
    CHECK(references() > before);
    CHECK(opencl::context(wrapped) == context());
    CHECK(opencl::queue(wrapped) == queue());
    CHECK(wrapped.info().name == device.info().name);
    std::vector<float> data = counting(10);
    queue.enqueueWriteBuffer(mine, CL_TRUE, 0, 40, data.data());
    {
      const BufferPtr imported = context_of(wrapped)->memory().import(mine());
      CHECK(imported->bytes() == 40);
      CHECK(mine.getInfo<CL_MEM_REFERENCE_COUNT>() >= 2);
      add(*context_of(wrapped), *imported, 1.f, 10);
      CHECK(wrapped.memory().in_use == 0);
    }
    queue.enqueueReadBuffer(mine, CL_TRUE, 0, 40, data.data());
    CHECK(data[9] == 10.f);
  }
  queue.finish();
  // Some drivers let go of what a command used a little after it is done.
  for (int i = 0; i < 200 && (mine.getInfo<CL_MEM_REFERENCE_COUNT>() != 1 || references() != before); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(mine.getInfo<CL_MEM_REFERENCE_COUNT>() == 1);
  CHECK(references() == before);
}

TEST_CASE("wrapping refuses what does not belong together") {
  const Device device = Device::current();
  cl::Context context(context_of(device)->device());
  cl::CommandQueue foreign = context_of(device)->queue();
  CHECK_THROWS_WITH(opencl::wrap(context(), context_of(device)->device()(), foreign()), Catch::Contains("another context"));
  CHECK_THROWS_WITH(opencl::wrap(nullptr, nullptr, nullptr), Catch::Contains("null"));
}

TEST_CASE("uploaded data arrive before the work enqueued after, by either path") {
  auto context = context_of(Device::current());
  for (const UploadPath path : {UploadPath::mapped, UploadPath::pinned}) {
    const auto queue = std::make_shared<MainQueue>(context->queue());
    Uploader uploader(context->context(), context->device(), context->memory(), context->profiler(), queue, path);
    const std::size_t n = 10000;
    // More rounds than buffers that go round, so that reused ones are overwritten while kernels are still enqueued.
    std::vector<BufferPtr> results;
    for (int round = 0; round < 20; ++round) {
      const BufferPtr batch = uploader.upload(n * 4, "batch", [&](void* target) {
        auto* numbers = static_cast<float*>(target);
        for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(round) + static_cast<float>(i);
      });
      CHECK(batch->bytes() == n * 4);
      add(*context, *batch, 0.25f, n);
      BufferPtr result = context->memory().allocate(n * 4, "result");
      context->queue().enqueueCopyBuffer(batch->memory(), result->memory(), 0, 0, n * 4);
      results.push_back(result);
    }
    for (int round = 0; round < 20; ++round) {
      const auto got = values(*context, *results[static_cast<std::size_t>(round)], n);
      for (std::size_t i = 0; i < n; ++i) REQUIRE(got[i] == static_cast<float>(round) + static_cast<float>(i) + 0.25f);
    }
  }
}

TEST_CASE("a background thread uploads while another runs kernels") {
  auto context = context_of(Device::current());
  if (!context->info().thread_safe) return clnet::test::skip("the device takes one thread only");
  const std::size_t n = 5000;
  std::vector<BufferPtr> batches(30);
  std::atomic<int> ready{0};
  std::thread loader([&] {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      batches[i] = context->upload(n * 4, "batch",
                                   [&](void* target) { std::fill_n(static_cast<float*>(target), n, static_cast<float>(i)); });
      ready = static_cast<int>(i) + 1;
    }
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    while (ready <= static_cast<int>(i)) std::this_thread::yield();
    add(*context, *batches[i], 1.f, n);
    CHECK(values(*context, *batches[i], n) == std::vector<float>(n, static_cast<float>(i) + 1.f));
  }
  loader.join();
}

TEST_CASE("an exception while data are prepared reaches the caller and leaves the device usable") {
  auto context = context_of(Device::current());
  CHECK_THROWS_WITH(context->upload(100, "batch", [](void*) { throw FileError("damaged"); }), "damaged");
  const BufferPtr buffer = context->upload(4, "batch", [](void* target) { std::memset(target, 0, 4); });
  add(*context, *buffer, 3.f, 1);
  CHECK(values(*context, *buffer, 1)[0] == 3.f);
}

TEST_CASE("what is held back runs when the hold ends, or before anything is waited for") {
  auto context = context_of(Device::current());
  const std::vector<float> data = counting(100);
  const BufferPtr buffer = context->memory().allocate(400, "test");
  {
    const auto guard = context->lock();
    const Context::HoldBack hold(*context);
    context->write(*buffer, 0, data.data(), 400);
    add(*context, *buffer, 1.f, 100);
    add(*context, *buffer, 1.f, 100);
    CHECK(values(*context, *buffer, 100)[99] == 101.f);
    add(*context, *buffer, 1.f, 100);
    context->finish();
    const Context::HoldBack again(*context);
    add(*context, *buffer, 1.f, 100);
    const float one = 1.f;
    context->write(*buffer, 0, &one, sizeof one);
    // more than may be in flight without waiting
    for (int i = 0; i < 200; ++i) add(*context, *buffer, 1.f, 100);
  }
  std::vector<float> seen;
  std::thread([&] { seen = values(*context, *buffer, 100); }).join();
  CHECK(seen[0] == 201.f);
  CHECK(seen[99] == 99.f + 204.f);
}

TEST_CASE("another thread's commands wait behind what is held back") {
  auto context = context_of(Device::current());
  const std::vector<float> data = counting(10);
  const BufferPtr buffer = context->memory().allocate(40, "test");
  std::vector<float> seen;
  std::thread reader;
  {
    const Context::HoldBack hold(*context);
    context->write(*buffer, 0, data.data(), 40);
    std::atomic<bool> begun{false};
    reader = std::thread([&] {
      begun = true;
      seen = values(*context, *buffer, 10);
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  reader.join();
  CHECK(seen == data);
}

TEST_CASE("who waits for room lets go of what is held back, each time before it waits") {
  auto context = context_of(Device::current());
  InFlight in_flight;
  std::vector<cl::UserEvent> events;
  for (int i = 0; i < 3; ++i) {
    events.emplace_back(context->context());
    in_flight.hold(events.back(), std::make_shared<int>(i), 100);
  }
  std::size_t opened = 0;
  in_flight.make_room(100, 250, [&] { events.at(opened++).setStatus(CL_COMPLETE); });
  CHECK(opened == 2);
  CHECK(in_flight.bytes() == 100);
  events[2].setStatus(CL_COMPLETE);
}
