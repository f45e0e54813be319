// fit() over several devices of which one fails: its step is undone, and the others go on with the numbers of one device.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/failing.h"
#include "tests/support/captured.h"
#include "tests/support/second_device.h"

using namespace clnet;

namespace {

data::ArrayDataset samples() {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 44; ++i) {
    for (int k = 0; k < 4; ++k)
      values.push_back(static_cast<float>((k == i % 3 ? 2.0 : 0.0) + std::sin(i * 12.9898 + k * 78.233)));
    labels.push_back(i % 3);
  }
  return data::from_arrays(std::move(values), {4}, std::move(labels), 3);
}

/// A call that fails in the step after `after`.
struct Fault {
  const char* call;
  long number;
  std::int64_t after;
  long times = 1;
};

/// Makes it fail in time: losses are read later.
class Failing : public train::Hook {
 public:
  explicit Failing(const std::optional<Fault>& fault) : fault_(fault) {}
  std::string name() const override { return "failing"; }
  void after_step(train::Run& run) override {
    faults::disarm();
    if (!fault_ || run.step != fault_->after) return;
    for (const auto& call : faults::calls())
      if (std::string(call.name) == fault_->call) faults::arm(call.name, fault_->number, call.code, fault_->times);
  }

 private:
  std::optional<Fault> fault_;
};

/// The norm is beside the loss, so that unlike statistics change no step; or in front of it, where they are those of the whole
/// batch.
struct Net : nn::Module {
  nn::Linear first{4, 8}, last{8, 3};
  nn::Dropout dropout{0.25};
  nn::BatchNorm1d norm{4};
  bool in_front;
  explicit Net(bool norm_in_front) : in_front(norm_in_front) {
    add("first", first);
    add("last", last);
    add("dropout", dropout);
    add("norm", norm);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor normal = norm(x), result = last(dropout(relu(first(in_front ? normal : x))));
    return in_front ? result : result + 0.0 * sum(normal);
  }
};

struct Outcome {
  std::vector<double> losses;
  std::vector<float> weights, statistics;
  double accuracy = 0;
  std::int64_t steps = 0, batches = 0;  ///< batches: that the first device's statistics have seen
  std::optional<Device> device;         ///< that has the model in the end
  std::string lines, error;
};

Outcome trained(const std::vector<Device>& devices, const std::optional<Fault>& fault = std::nullopt, bool strict = false,
                bool sync = false) {
  const auto dataset = samples();
  manual_seed(4);
  Net model(sync);
  optim::Adam adam(model, {.learning_rate = 0.01});
  Outcome outcome;
  optim::EMA average(model);
  train::FitOptions options{.epochs = 2, .batch_size = 8, .optimizer = adam, .metrics = {metrics::Accuracy()}};
  options.hooks = {std::make_shared<Failing>(fault), train::ema(average)};  // the fault is for the next step alone
  options.devices = devices;
  options.strict_devices = strict;
  options.sync_batch_norm = sync;
  options.progress = false;
  options.interrupt = false;
  options.on_step = [&](std::int64_t, double loss) { outcome.losses.push_back(loss); };
  outcome.lines = test::written_on_stderr([&] {
    try {
      outcome.accuracy = train::fit(model, dataset, options).epochs.back().metrics[0].value;
    } catch (const DeviceError& error) {
      outcome.error = error.what();
    }
  });
  faults::disarm();
  for (const auto& [name, parameter] : model.parameters())
    for (const float value : parameter.value().to_vector<float>()) outcome.weights.push_back(value);
  outcome.statistics = model.parameter("norm.running_var").value().to_vector<float>();
  outcome.steps = adam.steps();
  outcome.device = model.parameter("first.weight").value().device();
  outcome.batches = model.parameter("norm.num_batches_tracked").value().item<std::int64_t>();
  return outcome;
}

}  // namespace

namespace {

void require_left_out(bool sync) {
  const auto first = Device::current(), second = test::second_device();
  const auto alone = trained({first}, std::nullopt, false, sync);
  REQUIRE(alone.losses.size() == 12);
  int left = 0, first_left = 0;
  for (const char* call : {"clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clCreateBuffer"})
    for (const long number : {1, 2, 5, 9, 14, 30}) {
      INFO(call << " number " << number);
      const auto got = trained({first, second}, Fault{call, number, 3}, false, sync);
      CHECK(got.error.empty());
      REQUIRE(got.losses.size() == alone.losses.size());
      left += got.lines.find("failed and is left out") != std::string::npos ? 1 : 0;
      first_left += got.device == first ? 0 : 1;
      CHECK(got.steps == 12);
      if (test::is_null_device()) continue;
      CHECK(got.batches == 12);
      for (std::size_t i = 0; i < alone.losses.size(); ++i) CHECK(got.losses[i] == Approx(alone.losses[i]).margin(1e-4));
      for (std::size_t i = 0; i < alone.weights.size(); ++i) CHECK(got.weights[i] == Approx(alone.weights[i]).margin(1e-4));
      for (std::size_t i = 0; sync && i < alone.statistics.size(); ++i)
        CHECK(got.statistics[i] == Approx(alone.statistics[i]).margin(1e-4));
      CHECK(got.accuracy == Approx(alone.accuracy));
    }
  // Which device makes a call first is the threads' affair.
  CHECK(left > 4);
  CHECK(first_left > 0);
  CHECK(first_left < left);
}

}  // namespace

TEST_CASE("a device that fails in a step is left out, and the others make the steps of one device") { require_left_out(false); }

TEST_CASE("a device that fails while others wait for its sums of batch norm is left out") { require_left_out(true); }

TEST_CASE("a device that fails ends a strict training, and so does the last one") {
  const auto first = Device::current(), second = test::second_device();
  const auto strict = trained({first, second}, Fault{"clEnqueueNDRangeKernel", 1, 3}, true);
  CHECK_THAT(strict.error, Catch::Contains("CL_OUT_OF_RESOURCES"));
  CHECK(strict.steps == 3);
  CHECK(strict.lines.find("left out") == std::string::npos);
  const auto all = trained({first, second}, Fault{"clEnqueueNDRangeKernel", 1, 3, 1'000'000});
  CHECK_THAT(all.error, Catch::Contains("CL_OUT_OF_RESOURCES"));
  CHECK(all.steps == 3);
  if (!test::is_null_device()) CHECK(all.batches == 3);
  CHECK_THAT(all.lines, Catch::Contains("left out"));
}
