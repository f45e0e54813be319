// Short calls that follow one another at once, for which a driver's other threads may rest (lib/pocl/spinning_thread.h).
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "lib/cl/quirks.h"
#include "lib/pocl/submission.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

using Clock = std::chrono::steady_clock;

/// Null where the driver's threads are left alone.
const pocl::SpinningThread* spinning() {
  const Device device = Device::current();
  const auto* gated = dynamic_cast<const pocl::GatedSubmission*>(&context_of(device)->submission());
  return gated ? gated->spinning() : nullptr;
}

/// One call: twice the sum of what x's 16 elements are larger than `least`.
float call(const std::vector<float>& x, float least) {
  const Tensor t = Tensor::from(x, {16});
  return 2 * sum(relu(t - least)).item<float>();
}

/// Calls until others rest, or it is clear that this is no gain here.
bool make_others_rest() {
  const std::vector<float> x(16, 1.0F);
  const auto end = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < end) {
    REQUIRE(call(x, 0.5F) == 16);
    if (spinning()->active()) return true;
  }
  return false;
}

bool not_here() {
  if (spinning()) return false;
  test::skip("the driver's threads are left alone");
  return true;
}

}  // namespace

TEST_CASE("calls that follow one another at once, in pauses, and from two threads give what they should") {
  // Where no threads rest, calls may be slow.
  const int count = spinning() ? 3000 : 100;
  const auto calls = [count](float shift) {
    std::vector<float> x(16);
    for (int i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k) + shift;
      const int larger = 16 - i % 16;
      REQUIRE(call(x, static_cast<float>(i % 16) - 0.5F + shift) == static_cast<float>(larger * larger));
      if (i % 500 == 499) std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    }
  };
  calls(0);
  float bad = 0;
  std::thread other([&] {
    for (int i = 0; i < count; ++i)
      if (call(std::vector<float>(16, 3.0F), 1) != 64) ++bad;
  });
  calls(100);
  other.join();
  CHECK(bad == 0);
}

TEST_CASE("what is long gets all threads while others rest") {
  if (not_here()) return;
  if (!make_others_rest()) return test::skip("one thread is no faster than all");
  // Many kernels, none of which is read.
  Tensor y = ones({64, 64});
  for (int i = 0; i < 40; ++i) y = matmul(y, full({64, 64}, 1.0 / 64)) + 0.0;
  Device::current().finish();
  CHECK_FALSE(spinning()->active());
  CHECK(y.to_vector<float>()[5] == Approx(1));
  // One that is long.
  if (!make_others_rest()) return test::skip("one thread is no faster than all, now");
  CHECK(sum(full({1 << 22}, 0.25)).item<float>() == float{1 << 20});
}

TEST_CASE("another context of the device works while threads rest") {
  if (not_here()) return;
  if (!make_others_rest()) return test::skip("one thread is no faster than all");
  const Device device = Device::current();
  const auto& context = context_of(device);
  const ::cl::Context other(context->device());
  const ::cl::CommandQueue queue(other, context->device());
  const ::cl::Buffer buffer(other, CL_MEM_READ_WRITE, 1024);
  for (int i = 0; i < 20; ++i) {
    std::vector<int> values(256);
    queue.enqueueFillBuffer(buffer, i, 0, 1024);
    queue.enqueueReadBuffer(buffer, true, 0, 1024, values.data());
    REQUIRE(values == std::vector<int>(256, i));
    REQUIRE(call(std::vector<float>(16, 1.0F), 0.5F) == 16);
  }
  device.finish();
}

TEST_CASE("commands are submitted as the driver's habits ask for, or to the plain queue") {
  const Device device = Device::current();
  const auto& context = *context_of(device);
  const auto made = [&](const char* habits, bool own_queue) {
    const test::Variable door("CLNET_DRIVER_HABITS", habits), awake("CLNET_AWAKE", nullptr);
    return ocl::submission_for(context.context(), context.device(), context.info(), own_queue);
  };
  const auto plain = made("0", true), open = made("1", true), wrapped = made(nullptr, false);
  const auto gated = [](const auto& submission) { return dynamic_cast<const pocl::GatedSubmission*>(submission.get()); };
  CHECK_FALSE(gated(plain));
  const bool wakes = ocl::has_quirk(context.info(), "pocl-wakes");
  CHECK((gated(open) != nullptr) == wakes);
  CHECK((gated(wrapped) != nullptr) == wakes);
  if (wakes) CHECK_FALSE(gated(wrapped)->spinning());
}
