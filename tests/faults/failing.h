// What tests of failing calls have in common: a training whose steps fail once each, and are made again.
//
// A Training has step(number), which is the same whenever it is made in the same state, state(), inference(), which goes by a
// plan of its own, and `phases`, the number of kinds of steps that take turns. Each step changes all of the state, or nothing.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/cl/check.h"
#include "lib/cl/context.h"
#include "tests/faults/layer/faults.h"

namespace clnet::test {

using State = std::map<std::string, std::vector<float>>;

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
inline bool same_bits(const State& a, const State& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && same_bits(x.second, y.second);
         });
}

inline State state_of(const nn::Module& model, const optim::Optimizer& optimizer) {
  State result;
  for (const auto& [name, tensor] : model.state_dict()) result["model." + name] = tensor.to_vector<float>();
  for (const auto& [name, tensor] : optimizer.state_dict()) result["optimizer." + name] = tensor.to_vector<float>();
  return result;
}

/// What an attempt threw; anything but clnet::Error leaves the test.
template <class Attempt>
std::optional<std::string> error_of(Attempt&& attempt) {
  try {
    attempt();
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

/// The same while a call fails.
template <class Attempt>
std::optional<std::string> error_of(const faults::Call& call, long number, Attempt&& attempt) {
  faults::arm(call.name, number, call.code);
  auto error = error_of(attempt);
  faults::disarm();
  if (error) CHECK_THAT(*error, Catch::Contains(ocl::error_name(call.code)));
  return error;
}

/// How many calls of the name an attempt makes.
template <class Attempt>
long calls_of(const faults::Call& call, Attempt&& attempt) {
  faults::arm(call.name, std::numeric_limits<long>::max(), CL_SUCCESS);
  attempt();
  return faults::disarm();
}

/// One step with a fault in it, and again without; `reference` makes it undisturbed.
template <class Training>
void fail_once(const faults::Call& call, long number, int step, Training& training, Training& reference) {
  INFO(call.name << " number " << number);
  const State before = training.state();
  Tensor loss;
  (void)error_of(call, number, [&] {
    loss = training.step(step);
    (void)loss.template item<float>();
  });
  if (!loss.defined()) {
    CHECK(same_bits(training.state(), before));
    loss = training.step(step);
  }
  CHECK(loss.template item<float>() == reference.step(step).template item<float>());
  CHECK(same_bits(training.state(), reference.state()));
  CHECK(training.inference() == reference.inference());
}

/// `most`: of the calls of one name in a step so many fail at most. Returns how many failed.
template <class Training>
int fail_in_known_steps(long most = std::numeric_limits<long>::max()) {
  Training training, reference;
  int step = 0, faults_made = 0;
  const auto undisturbed = [&](int steps) {
    for (; steps > 0; --steps, ++step)
      CHECK(training.step(step).template item<float>() == reference.step(step).template item<float>());
  };
  undisturbed(2 * Training::phases);
  CHECK(training.inference() == reference.inference());
  const auto memory = Device::current().memory().in_use;
  for (int phase = 0; phase < Training::phases; ++phase) {
    for (const faults::Call& call : faults::calls()) {
      const long count = calls_of(call, [&] { (void)training.step(step).template item<float>(); });
      (void)reference.step(step++);
      undisturbed(Training::phases - 1);
      const long stride = std::max(1L, count / most);
      for (long number = 1; number <= count; number += stride, ++faults_made) {
        fail_once(call, number, step++, training, reference);
        undisturbed(Training::phases - 1);
      }
    }
    undisturbed(1);
  }
  Device::current().finish();
  CHECK(Device::current().memory().in_use <= memory + 4096);
  return faults_made;
}

/// The same device with a context of its own, so that programs and plans are made anew.
class FreshDevice {
 public:
  FreshDevice() : before_(Device::current()) {
    const cl::Context context(context_of(before_)->device());
    const cl::CommandQueue queue(context, context_of(before_)->device());
    Device::set_default(opencl::wrap(context(), context_of(before_)->device()(), queue()));
  }
  ~FreshDevice() { Device::set_default(before_); }
  FreshDevice(const FreshDevice&) = delete;
  FreshDevice& operator=(const FreshDevice&) = delete;

 private:
  Device before_;
};

/// It computes nothing, is never behind and needs no gates.
inline bool is_null_device() { return std::getenv("NULL_OPENCL_DEVICE") != nullptr; }

/// Whether the call makes programs, which no step makes whose plan is known.
inline bool builds(const faults::Call& call) {
  const std::string_view name = call.name;
  return name == "clBuildProgram" || name == "clCreateKernel" || name == "clCreateProgramWithSource" ||
         name == "clGetKernelWorkGroupInfo";
}

/// Of first steps, which make plans and programs.
template <class Training>
void fail_in_first_steps(
    long most, const std::function<bool(const faults::Call&)>& wanted = [](const auto&) { return true; }) {
  std::map<std::string, long> counts;
  for (const faults::Call& call : faults::calls()) {
    if (!wanted(call)) continue;
    const FreshDevice device;
    Training cold;
    counts[call.name] = calls_of(call, [&] { (void)cold.step(0).template item<float>(); });
  }
  for (const faults::Call& call : faults::calls()) {
    const long count = counts[call.name], stride = std::max(1L, count / most);
    for (long number = 1; number <= count; number += stride) {
      const FreshDevice device;
      Training training, reference;
      (void)training.inference();
      fail_once(call, number, 0, training, reference);
    }
  }
}

}  // namespace clnet::test
