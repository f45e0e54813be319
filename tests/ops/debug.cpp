#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Contains;

namespace {

Tensor numbers(std::initializer_list<float> values) { return Tensor::from(values); }

struct WithLog : nn::Module {
  nn::Linear first{4, 8}, second{8, 2};
  WithLog() {
    add("first", first);
    add("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(log(first(x))); }
};

std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("detect_anomaly names the operation that made the first NaN, and its scope") {
  const auto x = numbers({1, -1, 4});
  CHECK(std::isnan(sum(sqrt(x)).item()));
  const DetectAnomaly looking;
  const auto text = thrown([&] {
    const NamedScope outer("model"), inner("distance");
    eval({sum(sqrt(x) * 2 + 1)});
  });
  CHECK_THAT(text, Contains("sqrt made the first nan, in model.distance: 1 of 3 elements of output 0, the first at 1"));
  CHECK_THAT(text, Contains("f32[3]"));
  CHECK(sum(sqrt(abs(x))).item() == 4);
  // What was given as NaN was made by nobody here.
  CHECK_THAT(thrown([] { exp(numbers({0, NAN})).eval(); }), Contains("exp was given 1 of 2 elements as nan in input 0"));
}

TEST_CASE("detect_anomaly looks at inputs as they were, whoever holds them") {
  for (const bool held : {false, true}) {
    Tensor rows = zeros({4, 3}).detach();
    rows.eval();
    const Tensor also = held ? rows : Tensor();
    const auto changed = slice_update(rows, 0, 1, Tensor::from({1.0F, NAN, 3.0F}, Shape{1, 3}));
    rows = {};
    const DetectAnomaly looking;
    CHECK_THAT(thrown([&] { changed.eval(); }), Contains("1 of 3 elements as nan in input 1"));
  }
}

TEST_CASE("detect_anomaly sees gradients, and infinities where it is asked to") {
  const auto x = numbers({0, 4});
  const auto gradient = [&] {
    const NamedScope scope("loss");
    return gradients(sum(sqrt(x) * numbers({0, 1})), {x})[0];
  };
  {
    const DetectAnomaly looking;
    CHECK_THAT(thrown([&] { gradient().eval(); }), Contains("in loss (gradient of sqrt)"));
    CHECK(std::isinf(log(numbers({0})).item()));
  }
  const DetectAnomaly looking({.infinities = true});
  CHECK_THAT(thrown([&] { log(numbers({0})).eval(); }), Contains("log made the first -inf"));
  {
    const DetectAnomaly inner;
    CHECK(std::isinf(log(numbers({0})).item()));
  }
  CHECK_THAT(thrown([&] { log(numbers({0})).eval(); }), Contains("log made the first -inf"));
  std::thread([] { CHECK(std::isinf(log(numbers({0})).item())); }).join();
}

TEST_CASE("detect_anomaly names the layer, and a training step is as without it where there is none") {
  manual_seed(1);
  WithLog model;
  const auto x = Tensor::from(std::vector<float>{1, -2, 3, -4}, {1, 4});
  optim::SGD optimizer(model, {.learning_rate = 0.1});
  const auto before = model.first.parameter("weight").value().to_vector<float>();
  {
    const DetectAnomaly looking;
    CHECK_THAT(thrown([&] { optimizer.step(sum(model(x))); }), Contains("log made the first nan"));
  }
  CHECK(model.first.parameter("weight").value().to_vector<float>() == before);
  nn::Sequential whole{nn::BatchNorm1d(4), nn::Linear(4, 2)};
  const auto twin = nn::clone(whole);
  const auto batch = reshape(arange(32, 0, 1, Dtype::f32), {8, 4});
  const auto train = [&](nn::Sequential net) { optim::SGD(net, {.learning_rate = 0.1}).step(sum(square(net(batch)))); };
  train(twin);
  {
    const DetectAnomaly looking;
    train(whole);
  }
  const auto have = whole.state_dict(), want = twin.state_dict();
  for (std::size_t i = 0; i < have.size(); ++i) {
    INFO(have[i].first);
    const auto a = have[i].second.to_vector<float>(), b = want[i].second.to_vector<float>();
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == Approx(b[k]).epsilon(1e-5));
  }
}

TEST_CASE("detect_anomaly leaves running statistics to the evaluation, which changes them once or throws") {
  manual_seed(1);
  nn::Sequential net{nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Linear(4, 1)};
  auto twin = nn::clone(net);
  optim::SGD optimizer(net, {.learning_rate = 0.1}), plain(twin, {.learning_rate = 0.1});
  const auto x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto state = [](nn::Sequential& of) {
    std::vector<std::vector<float>> values;
    for (const auto& [name, tensor] : of.state_dict()) values.push_back(tensor.to_vector<float>());
    return values;
  };
  const auto good = [&](nn::Sequential& of) { return mean(square(of(x))); };
  const auto before = state(net);
  const auto wrong = log(-good(net));
  {
    const DetectAnomaly looking;
    CHECK_THAT(thrown([&] { optimizer.step(wrong); }), Contains("log made the first nan"));
    CHECK_THAT(thrown([&] { wrong.eval(); }), Contains("log made the first nan"));
    CHECK(state(net) == before);
    optimizer.step(good(net)).eval();
    // What is read after it was computed is not computed, or counted, again.
    const auto loss = good(net);
    loss.eval();
    optimizer.step(loss).eval();
  }
  for (int i = 0; i < 2; ++i) plain.step(good(twin)).eval();
  const auto have = state(net), want = state(twin);
  REQUIRE(have.size() == want.size());
  for (std::size_t i = 0; i < have.size(); ++i)
    for (std::size_t k = 0; k < have[i].size(); ++k) CHECK(have[i][k] == Approx(want[i][k]).epsilon(1e-4));
}

TEST_CASE("errors name scopes and the layers within them") {
  WithLog model;
  CHECK_THAT(thrown([&] {
               const NamedScope scope("student");
               model(zeros({1, 5}));
             }),
             Contains("in student.first: linear"));
  CHECK_THAT(thrown([] {
               const NamedScope scope("mixing");
               (void)(zeros({2}) + zeros({3}));
             }),
             Contains("in mixing: add"));
  nn::TransformerEncoder encoder(8, 2, 2);
  CHECK_THAT(thrown([&] { encoder(zeros({1, 3, 7})); }), Contains("in layers.0.self_attn: MultiheadAttention"));
}

TEST_CASE("a trace says the scopes of modules and their gradients") {
  const test::Folder folder;
  const auto path = folder.path() / "trace.json";
  manual_seed(1);
  WithLog model;
  auto device = Device::current();
  device.start_trace(path.string());
  const auto loss = sum(square(model(ones({3, 4}))));
  auto wanted = gradients(loss, {model.first.parameter("weight").value()});
  wanted.push_back(loss);
  eval(wanted);
  device.stop_trace();
  std::vector<std::string> scopes;
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  for (const auto& event : trace.at("traceEvents"))
    if (event.contains("args") && event["args"].contains("scope")) scopes.push_back(event["args"]["scope"]);
  const auto has = [&](const std::string& scope) { return std::find(scopes.begin(), scopes.end(), scope) != scopes.end(); };
  CHECK(has("first"));
  CHECK(has("second"));
  CHECK(std::any_of(scopes.begin(), scopes.end(), [](const auto& scope) { return scope.starts_with("second (gradient of"); }));
}

TEST_CASE("check_gradients tells right gradients from wrong ones") {
  const auto x = Tensor::from(std::vector<float>{0.5F, -1, 2, 1.5F}, {2, 2}),
             w = Tensor::from(std::vector<float>{1, 2, -1, 0.5F}, {2, 2});
  const auto right = check_gradients([](const auto& in) { return tanh(matmul(in[0], in[1])); }, {x, w});
  INFO(right.worst);
  CHECK(right.passed);
  CHECK(right.largest_error < 1e-3);
  CHECK_THAT(right.worst, Contains("input "));
  // detach() hides a way from its gradient.
  const auto wrong = check_gradients([](const auto& in) { return in[0] * in[0].detach(); }, {x});
  CHECK_FALSE(wrong.passed);
  CHECK_THAT(wrong.worst, Contains("input 0, element 1: the gradient is"));
  const auto several = check_gradients(
      [](const std::vector<Tensor>& in) {
        return std::vector{sum(in[0]), index_select(in[0], 0, in[1])};
      },
      {x, Tensor::from({1, 0})}, {.elements = 2});
  CHECK(several.passed);
  const auto nan = check_gradients([](const auto& in) { return sqrt(in[0] - 1000); }, {x});
  CHECK_FALSE(nan.passed);
  CHECK_THAT(thrown([&] { (void)check_gradients([](const auto& in) { return argmax(in[0], 0); }, {x}); }),
             Contains("check_gradients: the function gives no floating result"));
  CHECK_THAT(thrown([&] { (void)check_gradients([](const auto&) { return Tensor(); }, {x}); }),
             Contains("result 0 is undefined"));
  CHECK_THAT(thrown([&] { (void)check_gradients([](const auto& in) { return in[0] * in[0]; }, {x * 1e6F}); }),
             Contains("a step of 0.01 is lost in the digits of input 0, element 0, which is 500000"));
}

TEST_CASE("memory_report tells where intermediates are") {
  manual_seed(1);
  nn::Sequential model{nn::Linear(64, 256), relu, nn::Linear(256, 10)};
  const auto loss = cross_entropy(model(zeros({512, 64})), zeros({512}, Dtype::i64));
  auto wanted = gradients(loss, model.parameters());
  wanted.push_back(loss);
  const auto launches = exec::statistics().kernels;
  const auto text = memory_report(wanted);
  INFO(text);
  CHECK(exec::statistics().kernels == launches);
  CHECK_THAT(text, Contains("leaves: parameters, inputs, states") && Contains("results") && Contains("at once at most"));
  CHECK_THAT(text, Contains("f32[512, 256]"));
  CHECK_THAT(thrown([] { (void)memory_report({Tensor()}); }), Contains("memory_report: a result is undefined"));
}

TEST_CASE("values are read while the caller goes on") {
  const auto x = arange(1000, 0, 1, Dtype::f32);
  const auto reading = (x * 2).read_async();
  const auto scalar = sum(x).read_async<double>();
  const auto whole = cast(x, Dtype::i32).read_async<std::int64_t>();
  CHECK(scalar.item() == 499500);
  CHECK(scalar.ready());
  const auto values = reading.get();
  REQUIRE(values.size() == 1000);
  CHECK(values[999] == 1998);
  CHECK(reading.get() == values);
  CHECK(whole.get().at(7) == 7);
  CHECK(Tensor::from({1.5F, 0.0F}).read_async<bool>().get() == std::vector<bool>{true, false});
  CHECK(zeros({0, 3}).read_async().get().empty());
  CHECK(thrown([] { (void)zeros({0, 3}).read_async().item(); }) == "item: needs one element, the tensor is f32[0, 3]");
  CHECK_THROWS_AS(ones({2}).read_async<int>().item(), ShapeError);
  // Left before it is there.
  (void)(arange(1 << 20, 0, 1, Dtype::f32) + 1).read_async();
}
