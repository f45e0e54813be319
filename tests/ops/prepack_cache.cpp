// Values made of leaves only, kept while those live; plans that fail midway; and the verifier of runs where a plan is broken.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/cl/context.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/plan/cache.h"
#include "lib/graph/op.h"
#include "tests/ops/launches.h"
#include "tests/support/memory_limit.h"
#include "tests/support/skip.h"

namespace clnet::exec {
/// Breaks a plan from within.
struct PlanBreaker {
  static void move_arguments(Plan& plan) {
    for (auto& prepared : plan.prepared_)
      for (auto& bound : prepared.fixed) ++bound.memory;
  }
  static void expect_change(Plan& plan, ValueId leaf) { plan.recording_.expect_change({leaf, 0}); }
};
}  // namespace clnet::exec

using namespace clnet;
using Catch::Matchers::Contains;
using testing::launches_of;

namespace {

using Floats = std::vector<float>;

/// The call of a Twice that throws: the first or the second, or none.
int failing_call = 0;

/// y = 2 x through a prepacked copy of x, with a call of the host before and after it.
class Twice : public Op {
 public:
  std::string_view name() const override { return "twice"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  void lower(exec::Recorder& recorder) const override {
    const auto x = recorder.input(0), prepacked = recorder.prepack(recorder.spec(x), x);
    const auto middle = recorder.temporary(recorder.spec(x));
    const auto count = recorder.spec(x).shape.numel();
    const char* source =
        "#include \"clnet.clh\"\n"
        "kernel void add(IN(a), IN(b), OUT(y)) { const int i = (int)get_global_id(0); STORE(y, i, LOAD(a, i) + LOAD(b, i)); }\n"
        "kernel void copy(IN(a), OUT(y)) { const int i = (int)get_global_id(0); STORE(y, i, LOAD(a, i)); }\n";
    recorder.generated("twice", source, "copy").in("a", x).out("y", prepacked).range({count}).define("TYPE_b", "f32");
    const auto call = [](int number) {
      return exec::HostCall{"call",
                            {},
                            {},
                            [number](exec::HostContext&) {
                              if (failing_call == number) throw DeviceError("this call fails");
                            },
                            0};
    };
    recorder.host(call(1));
    recorder.generated("twice", source, "copy").in("a", x).out("y", middle).range({count}).define("TYPE_b", "f32");
    recorder.host(call(2));
    recorder.generated("twice", source, "add").in("a", prepacked).in("b", middle).out("y", recorder.output()).range({count});
  }
};

Tensor twice(const Tensor& x) { return apply(std::make_shared<Twice>(), {x}); }
Floats run(const Tensor& x) { return twice(x).to_vector<float>(); }

exec::PrepackCache& prepacks() { return exec::PlanCache::of(*context_of(Device::current())).prepacks(); }

/// While it lives, a call of each Twice throws.
struct Failing {
  explicit Failing(int call) { failing_call = call; }
  ~Failing() { failing_call = 0; }
};

}  // namespace

TEST_CASE("what is made of a leaf is kept while that lives, for every plan that reads it") {
  Device::current().trim();
  const Tensor x = Tensor::from({1.0F, 2.0F});
  {
    const Tensor other = Tensor::from({5.0F, 6.0F});
    CHECK(launches_of([&] { CHECK(run(x) == Floats{2, 4}); }) == 3);
    CHECK(launches_of([&] { CHECK(run(x) == Floats{2, 4}); }) == 2);
    CHECK(launches_of([&] { CHECK(run(other) == Floats{10, 12}); }) == 3);
    CHECK(launches_of([&] { CHECK(run(x) == Floats{2, 4}); }) == 2);
    CHECK(launches_of([&] { CHECK(run(other) == Floats{10, 12}); }) == 2);
    // Another plan.
    CHECK(launches_of([&] { CHECK(sum(softmax(twice(x), 0)).item<float>() == Approx(1)); }) == 4);
    CHECK(prepacks().count() == 2);
  }
  CHECK(prepacks().count() == 1);
  Device::current().trim();
  CHECK(prepacks().count() == 0);
  CHECK(launches_of([&] { CHECK(run(x) == Floats{2, 4}); }) == 3);
}

TEST_CASE("prepacked values count as memory in use, and go first when it is short") {
  auto device = Device::current();
  device.trim();
  constexpr std::int64_t count = 1 << 18;  // 1 MiB
  const Tensor x = Tensor::from(Floats(count, 1.0F), {count});
  eval({twice(x)});
  CHECK(prepacks().bytes() >= 4 * count);
  {
    const test::MemoryLimit limit(device.memory().in_use + (1 << 20));
    const Tensor big = ones({count + count / 2});
    CHECK_NOTHROW(big.eval());
    CHECK(prepacks().count() == 0);
  }
  CHECK(run(x)[5] == 2);
}

TEST_CASE("a small value of leaves is made twice, and kept from then on") {
  Device::current().trim();
  const Tensor x = Tensor::from({1.0F, 2.0F, 4.0F}), rows = Tensor::from(Floats(3, 1.0F), {1, 3});
  const auto run_once = [&] { return launches_of([&] { matmul(rows, reshape(exp(x * 0.5), {3, 1})).eval(); }); };
  const auto before = prepacks().count();
  const auto first = run_once();
  CHECK(prepacks().count() == before);
  CHECK(run_once() == first);
  CHECK(prepacks().count() == before + 1);
  CHECK(run_once() == first - 1);
}

TEST_CASE("a data set of small tensors is not held twice") {
  Device::current().trim();
  constexpr std::int64_t elements = 1 << 15;
  constexpr std::size_t images = 200;
  std::vector<Tensor> data;
  for (std::size_t i = 0; i < images; ++i) data.push_back(full({elements}, static_cast<double>(i)).detach());
  const auto weights = ones({1, elements}).detach();
  const auto epoch = [&] {
    for (const auto& image : data) matmul(weights, reshape(exp(image * 1e-3), {elements, 1})).eval();
  };
  const auto count = prepacks().count(), bytes = prepacks().bytes();
  epoch();
  CHECK(prepacks().count() == count);
  for (int i = 0; i < 2; ++i) epoch();
  CHECK(prepacks().count() > count);
  CHECK(prepacks().bytes() <= bytes + exec::PrepackCache::most_small);
  CHECK(exec::PrepackCache::most_small < images * elements * sizeof(float));
}

TEST_CASE("nothing that is made with random numbers is kept") {
  const Tensor x = Tensor::from({1.0F, 2.0F, 4.0F}), rows = Tensor::from(Floats(3, 1.0F), {1, 3});
  const auto before = prepacks().count();
  for (int i = 0; i < 5; ++i) {
    matmul(rows, reshape(exp(dropout(x, 0.5)), {3, 1})).eval();
    CHECK(prepacks().count() == before);
  }
}

TEST_CASE("scalars that change leave one value") {
  const Tensor x = Tensor::from({1.0F, 2.0F, 4.0F}), rows = Tensor::from(Floats(6, 1.0F), {2, 3});
  const auto before = prepacks().count();
  for (const double scale : {1.0, 2.0, 3.0}) {
    const Tensor y = matmul(rows, reshape(exp(x * scale), {3, 1}));
    CHECK(y.to_vector<float>()[0] == Approx(std::exp(scale) + std::exp(2 * scale) + std::exp(4 * scale)));
    CHECK(prepacks().count() <= before + 1);
  }
}

TEST_CASE("two values that share a plan are right after one of them failed midway") {
  const Tensor x = Tensor::from({1.0F, 2.0F}), y = Tensor::from({5.0F, 6.0F}), z = Tensor::from({7.0F, 8.0F});
  for (const int call : {1, 2}) {
    for (const bool cold : {true, false}) {
      if (cold) Device::current().trim();
      CHECK(run(x) == Floats{2, 4});
      {
        const Failing failing(call);
        CHECK_THROWS_AS(run(y), DeviceError);
        CHECK_THROWS_AS(run(x), DeviceError);
      }
      CHECK(run(x) == Floats{2, 4});
      CHECK(run(y) == Floats{10, 12});
      {
        const Failing failing(call);
        CHECK_THROWS_AS(run(z), DeviceError);
      }
      CHECK(run(z) == Floats{14, 16});
      CHECK(run(x) == Floats{2, 4});
    }
  }
}

TEST_CASE("a plan that failed after the arena moved sets its arguments again") {
  const Tensor x = Tensor::from({1.0F, 2.0F});
  const auto move_arena = [] {
    Device::current().trim();
    const Tensor big = ones({1 << 16});
    eval({softmax(sin(softmax(big, 0)), 0)});
  };
  const auto fail_once = [&] {
    move_arena();
    const Failing failing(1);
    CHECK_THROWS_AS(run(x), DeviceError);
  };
  CHECK(run(x) == Floats{2, 4});
  fail_once();
  CHECK(run(x) == Floats{2, 4});
}

TEST_CASE("each run is verified: where its arguments point, and what it keeps") {
  const Tensor x = Tensor::from({1.0F, 2.0F}), y = twice(x);
  CHECK(run(x) == Floats{2, 4});
  auto& context = *context_of(Device::current());
  auto& cache = exec::PlanCache::of(context);
  const auto work = exec::collect(std::span(&y, 1));
  bool made = false;
  const auto plan = cache.plan(work, context, exec::Options::now(), {}, made);
  REQUIRE_FALSE(made);
  SECTION("arguments") {
    exec::PlanBreaker::move_arguments(*plan);
    CHECK_THROWS_WITH(run(x), Contains("plan verifier: argument"));
  }
  SECTION("a leaf that changes") {
    exec::PlanBreaker::expect_change(*plan, 0);
    CHECK_THROWS_WITH(run(x), Contains("which changes"));
  }
  // In the place of the one that is broken.
  cache.plan(work, context, exec::Options::now(), {}, made, plan.get());
  CHECK(made);
  CHECK(run(x) == Floats{2, 4});
}

TEST_CASE("nothing is kept of memory that a caller may write to") {
  auto device = Device::current();
  const Floats first{1, 2}, second{3, 4};
  ::cl::Buffer memory(context_of(device)->context(), CL_MEM_READ_WRITE, 8);
  const auto write = [&](const Floats& values) {
    context_of(device)->queue().enqueueWriteBuffer(memory, CL_TRUE, 0, 8, values.data());
  };
  write(first);
  const Tensor x = opencl::from_buffer(device, memory(), {Shape{2}, Dtype::f32});
  CHECK(run(x) == Floats{2, 4});
  write(second);
  CHECK(run(x) == Floats{6, 8});
}

TEST_CASE("a prepacked value is that of the weights at hand") {
  const Tensor x = Tensor::from(Floats(32, 0.5F), {4, 8}), other = Tensor::from(Floats(32, 0.25F), {4, 8});
  CHECK(run(x)[0] == 1);
  CHECK(run(other)[0] == 0.5F);
  CHECK(run(x)[0] == 1);
}

TEST_CASE("a small value of leaves is itself when a part of it is returned") {
  const Tensor a = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}), b = Tensor::from(Floats(4, 1.0F), {4});
  for (int i = 0; i < 3; ++i) CHECK(slice(a + b, 0, 1, 3).to_vector<float>() == Floats{3, 4});
}

TEST_CASE("parameters that a plan updates are not prepacked for later runs") {
  manual_seed(1);
  auto model = nn::Sequential{nn::Conv2d{3, 8, 3, {.padding = 1}}, nn::Flatten{}, nn::Linear{8 * 36, 3}};
  auto sgd = optim::SGD{model, {.learning_rate = 0.1}};
  const Tensor images = ones({2, 3, 6, 6}), labels = Tensor::from({0, 1});
  const auto before = prepacks().count();
  for (int step = 0; step < 3; ++step) sgd.step(cross_entropy(model(images), labels));
  CHECK(prepacks().count() <= before + 1);  // at most of the images
}

TEST_CASE("with a buffer for each value, nothing in place and nothing prepacked, results are the same to the bit") {
  const auto results = [] {
    manual_seed(5);
    Tensors all;
    auto model = nn::Sequential{
        nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::BatchNorm2d{4}, relu, nn::MaxPool2d{2}, nn::Flatten{}, nn::Linear{4 * 3 * 3, 3}};
    auto adam = optim::Adam{model, {.learning_rate = 1e-2}};
    Floats values(5 * 36);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
    const Tensor images = Tensor::from(values, {5, 1, 6, 6}), labels = Tensor::from({0, 1, 2, 1, 0});
    for (int step = 0; step < 3; ++step) all.push_back(adam.step(cross_entropy(model(images), labels)));
    for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter.value());
    const Tensor x = reshape(slice(images, 0, 0, 4), {4, 36}), q = matmul(x, transpose(x, 0, 1));
    const Tensor y = layer_norm(softmax(q, 1) - slice(q, 0, 0, 1), 1, ones({4}), ones({4}));
    all.push_back(concat({y, slice(gelu(q), 0, 1, 3)}, 0));
    const Tensor w = Tensor::from(Floats(16, 0.3F), {4, 4});
    for (const auto& g : gradients(sum(tanh(matmul(w, y))), {w})) all.push_back(g);
    all.push_back(cast(slice(cast(y, Dtype::f16), 0, 0, 2), Dtype::f32) + 1.0);
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& tensor : all) {
      bytes.emplace_back(static_cast<std::size_t>(tensor.spec().bytes()));
      tensor.to_bytes(bytes.back().data(), bytes.back().size());
    }
    return bytes;
  };
  const auto normal = results(), again = results();
  const exec::NoMemorySharing apart;
  const auto kept = prepacks().count();
  CHECK(results() == normal);
  CHECK(prepacks().count() == kept);
  CHECK(again == normal);
}

TEST_CASE("a plan that makes one prepacked value of one leaf twice finds it once") {
  const auto twice = [](const Tensor& x) { return apply(std::make_shared<Twice>(), {x}); };
  const Tensor x = Tensor::from({1.0F, 2.0F});
  eval({twice(x)});
  // Two nodes of one operation, as checkpoint() makes of a convolution.
  const Tensor a = twice(x), b = twice(x);
  eval({a, b});
  CHECK(a.to_vector<float>() == Floats{2, 4});
  CHECK(b.to_vector<float>() == Floats{2, 4});
}

namespace {

/// Values that tell places apart.
Tensor counted(const Shape& shape, float step) {
  Floats values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) * step - 0.5F;
  return Tensor::from(values, shape);
}

bool packs() { return Device::current().info().prefers_vector_kernels; }

}  // namespace

TEST_CASE("what many products of a plan share is packed once") {
  if (!packs()) return test::skip("products that read their factors where they lie");
  for (const bool leaf : {true, false}) {
    Device::current().trim();
    const Tensor weight = leaf ? counted({48, 40}, 0.1F) : relu(counted({48, 40}, 0.1F));
    std::vector<Tensor> rows;
    for (int i = 0; i < 6; ++i) rows.push_back(counted({16, 40}, 0.01F * static_cast<float>(i + 1)));
    const auto products = [&] {
      std::vector<Tensor> result;
      for (const auto& x : rows) result.push_back(matmul(x, weight, {.transpose_b = true}));
      return result;
    };
    const auto found = products();
    CHECK(launches_of([&] { eval(found); }) == (leaf ? 7 : 8));
    const exec::ForceSolver direct("matmul", "direct");
    const auto wanted = products();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto a = found[i].to_vector<float>(), b = wanted[i].to_vector<float>();
      for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == Approx(b[k]).epsilon(1e-5).margin(1e-5));
    }
  }
}

TEST_CASE("a layer's weight is packed once for inference, and anew when it was trained") {
  if (!packs()) return test::skip("products that read their factors where they lie");
  Device::current().trim();
  nn::Linear layer{40, 48};
  optim::SGD sgd{layer, {.learning_rate = 0.1}};
  const Tensor x = counted({16, 40}, 0.1F);
  const auto infer = [&] { return layer(x).to_vector<float>(); };
  for (int round = 0; round < 2; ++round) {
    const auto first = infer();
    CHECK(prepacks().count() == 1);
    CHECK(launches_of([&] { CHECK(infer() == first); }) == 1);
    {
      const exec::ForceSolver direct("matmul", "direct");
      const auto wanted = infer();
      for (std::size_t k = 0; k < first.size(); ++k) CHECK(first[k] == Approx(wanted[k]).epsilon(1e-5).margin(1e-5));
    }
    // A step packs nothing that would be kept.
    sgd.step(sum(layer(x)));
    CHECK(prepacks().count() == 0);
  }
}

TEST_CASE(
    "a convolution's weight is brought into the order of the tiles once for inference, and in each step while it is trained") {
  Device::current().trim();
  nn::Conv2d layer{5, 7, 3, {.padding = 1}};
  optim::SGD sgd{layer, {.learning_rate = 0.1}};
  const Tensor x = counted({2, 5, 6, 4}, 0.1F);
  const auto infer = [&] { return layer(x).to_vector<float>(); };
  const exec::ForceSolver packed("conv2d", "packed_gpu{m=16,n=16}");
  for (int round = 0; round < 2; ++round) {
    const auto first = infer();
    CHECK(prepacks().count() == 1);
    CHECK(launches_of([&] { CHECK(infer() == first); }) == 1);
    {
      const exec::ForceSolver direct("conv2d", "direct");
      const auto wanted = infer();
      for (std::size_t k = 0; k < first.size(); ++k) CHECK(first[k] == Approx(wanted[k]).epsilon(1e-5).margin(1e-5));
    }
    sgd.step(sum(layer(x)));
    CHECK(prepacks().count() == 0);
  }
}

TEST_CASE("packed weights are those of the parameter as it is, whatever has changed it and whoever reads it") {
  Device::current().trim();
  nn::Conv2d layer{5, 7, 3, {.padding = 1}};
  optim::SGD sgd{layer, {.learning_rate = 0.1}};
  const Tensor x = counted({2, 5, 6, 4}, 0.1F);
  auto compiled = compile([&](const Tensor& input) { return layer(input); });
  auto compiled_gradients =
      compile([&](const Tensor& input) { return gradients(sum(layer(input) * layer(input)), layer.parameters()); });
  const Tensor spread = counted({7, 5, 3, 3}, 0.02F);
  // The weight by two operations of two kinds, and twice by one.
  const auto by_hand = [&] {
    const Tensor weight = layer.parameters().at(0).second.value();
    const Tensor y = conv2d(x, weight, {}, {.padding = 1});
    return concat({flatten(y, 0), flatten(conv2d(x * 2.0, weight, {}, {.padding = 1}), 0), flatten(conv2d(x, weight), 0),
                   flatten(conv_transpose2d(y, weight), 0)},
                  0);
  };
  const auto check_all = [&] {
    const auto all = [&](const exec::ForceSolver&, const exec::ForceSolver&) {
      std::vector<Floats> result;
      for (int round = 0; round < 2; ++round)
        for (const Tensor& y : {layer(x), compiled(x), by_hand()}) result.push_back(y.to_vector<float>());
      return result;
    };
    const auto got = all({"conv2d", "packed_gpu{m=16,n=16}"}, {"conv2d_backward_data", "packed_gpu{m=16,n=16}"});
    const auto wanted = all({"conv2d", "direct"}, {"conv2d_backward_data", "direct"});
    for (std::size_t i = 0; i < got.size(); ++i)
      for (std::size_t k = 0; k < got[i].size(); ++k) REQUIRE(got[i][k] == Approx(wanted[i][k]).epsilon(1e-4).margin(1e-4));
  };
  const exec::ForceSolver packed("conv2d", "packed_gpu{m=16,n=16}"), back("conv2d_backward_data", "packed_gpu{m=16,n=16}");
  check_all();
  for (int step = 0; step < 2; ++step) {
    sgd.step(sum(layer(x) * layer(x)));
    check_all();
    sgd.apply(compiled_gradients(x));
    check_all();
  }
  const auto before = layer.state_dict();
  nn::Conv2d other{5, 7, 3, {.padding = 1}};
  layer.load_state_dict(other.state_dict());
  check_all();
  layer.load_state_dict(before);
  check_all();
  layer.parameters().at(0).second.set(spread);
  check_all();
  layer.parameters().at(0).second.set(layer.parameters().at(0).second.value() * 2.0);
  check_all();
}
