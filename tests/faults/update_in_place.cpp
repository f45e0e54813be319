// Launches that are refused again and again, in the middle of an update in place: what is lost says so, and can be set again.
#include "lib/exec/upload.h"
#include "tests/faults/failing.h"

using namespace clnet;

namespace {

/// More parameters than one launch updates.
struct Deep {
  nn::Sequential model;
  optim::Adam optimizer;

  Deep() : model(make()), optimizer(model, {.learning_rate = 1e-2}) {}

  static nn::Sequential make() {
    manual_seed(1);
    nn::Sequential layers;
    for (int i = 0; i < 20; ++i) layers.append(nn::Linear{3, 3});
    return layers;
  }
  Tensor step(int number) {
    std::vector<float> x(6);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(number) + static_cast<float>(i) / 6;
    return optimizer.step(mean(square(model(Tensor::from(x, Shape{2, 3})) - 1.0)));
  }
  test::State state() { return test::state_of(model, optimizer); }
};

io::StateDict copied(const io::StateDict& state) {
  io::StateDict result;
  for (const auto& [name, tensor] : state) result.emplace_back(name, exec::copy_now(tensor, Device::current()));
  return result;
}

}  // namespace

TEST_CASE("an update in place that fails for good loses what it was replacing, says so, and goes on with what is loaded") {
  Deep deep, reference;
  const faults::Call call{"clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES};
  int number = 0;
  for (; number < 2; ++number) {
    (void)deep.step(number);
    (void)reference.step(number);
  }
  const long count = test::calls_of(call, [&] { (void)deep.step(number).item<float>(); });
  (void)reference.step(number++);
  int lost = 0, intact = 0;
  for (long first = std::max(1L, count - 12); first <= count; ++first, ++number) {
    INFO("launches from number " << first << " on");
    const auto before = deep.state();
    const auto checkpoint = copied(deep.optimizer.state_dict());
    faults::arm(call.name, first, call.code, 1000);
    const auto error = test::error_of([&] { (void)deep.step(number).item<float>(); });
    faults::disarm();
    REQUIRE(error);
    CHECK_THAT(*error, Catch::Contains("CL_OUT_OF_RESOURCES"));
    if (const auto why = test::error_of([&] { (void)deep.state(); })) {
      ++lost;
      CHECK_THAT(*error, Catch::Contains("updated in place is lost"));
      CHECK_THAT(*why, Catch::Contains("is lost: an update in its place failed half-way"));
      // Nothing goes on with half of an update.
      CHECK(test::error_of([&] { (void)deep.step(number); }));
      deep.optimizer.load_state_dict(checkpoint);
    } else {
      ++intact;
    }
    CHECK((test::is_null_device() || test::same_bits(deep.state(), before)));
    const float loss = deep.step(number).item<float>(), expected = reference.step(number).item<float>();
    if (test::is_null_device()) continue;  // it computes nothing
    CHECK(loss == expected);
    CHECK(test::same_bits(deep.state(), reference.state()));
  }
  CHECK(intact > 0);
  if (Device::current().info().reuses_buffers) CHECK(lost > 0);
}

TEST_CASE("a launch in an update in place that is refused once is made at the next attempt") {
  Deep deep, reference;
  const faults::Call call{"clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES};
  for (int number = 0; number < 2; ++number) {
    (void)deep.step(number);
    (void)reference.step(number);
  }
  const long count = test::calls_of(call, [&] { (void)deep.step(2).item<float>(); });
  (void)reference.step(2);
  CHECK_FALSE(test::error_of(call, count, [&] { (void)deep.step(3).item<float>(); }));
  (void)reference.step(3);
  CHECK(test::same_bits(deep.state(), reference.state()));
}

namespace {

/// Keeps gradients in the row of a state that the gradient itself names.
struct Rows : optim::Rule {
  std::string name() const override { return "Rows"; }
  std::vector<State> states(const Shape&) const override { return {{"rows", 0, Shape{4, 3}}}; }
  Result update(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& states,
                const Step& step) const override {
    const Tensor rows = slice_update(states[0], 0, cast(argmax(gradient, 0), Dtype::i64), reshape(gradient, {1, 3}));
    return {parameter - reshape(matmul(reshape(softmax(sum(rows, {1}), 0), {1, 4}), rows), {3}) * step.rate, {rows}};
  }
};

}  // namespace

TEST_CASE("a state of which a step rewrites a part is as before when the step fails") {
  const faults::Call call{"clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES};
  nn::Parameter p(Tensor::from({1.0F, 2.0F, 3.0F}));
  optim::Optimizer optimizer(optim::Parameters(nn::NamedParameters{{"p", p}}), std::make_shared<Rows>(), 0.1);
  const auto step = [&](std::size_t largest) {
    std::vector<float> weights{0.1F, 0.2F, 0.3F};
    weights[largest] = 5;
    return optimizer.step(sum(p.value() * Tensor::from(weights))).item<float>();
  };
  const auto state = [&] { return copied(optimizer.state_dict()); };
  (void)step(0);
  const long count = test::calls_of(call, [&] { (void)step(0); });
  const auto before = state();
  for (long first = 1; first <= count; ++first) {
    INFO("launches from number " << first << " on");
    faults::arm(call.name, first, call.code, 1000);
    const auto error = test::error_of([&] { (void)step(2); });
    faults::disarm();
    REQUIRE(error);
    for (std::size_t i = 0; i < before.size(); ++i)
      CHECK(
          (test::is_null_device() || optimizer.state_dict()[i].second.to_vector<float>() == before[i].second.to_vector<float>()));
  }
}
