// Shapes, dtypes and the graph's bookkeeping: nothing here needs a device.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "clnet/clnet.h"
#include "lib/graph/node.h"

using namespace clnet;
using Catch::Matchers::Contains;

TEST_CASE("shapes count, index and broadcast") {
  const Shape shape{2, 3, 4};
  CHECK(shape.numel() == 24);
  CHECK(shape[-1] == 4);
  CHECK(to_string(shape) == "[2, 3, 4]");
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{3, 0, 5}.numel() == 0);
  CHECK_THROWS_WITH(shape[3], Contains("out of range") && Contains("[2, 3, 4]"));
  CHECK_THROWS_AS((Shape{2, -1}), ShapeError);
  CHECK(broadcast({2, 1, 4}, {3, 1}, "test") == Shape{2, 3, 4});
  CHECK_THROWS_WITH(broadcast({2}, {3}, "test"), Contains("test") && Contains("[2]") && Contains("[3]"));
}

TEST_CASE("a shape too large to index is refused without overflow") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS((Shape{huge, huge}), ShapeError);
  CHECK_THROWS_AS((Shape{1 << 16, 1 << 16}), ShapeError);
  CHECK(Shape{huge, 0}.numel() == 0);
}

TEST_CASE("halves and bfloat16 round to nearest even and keep what is special") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half), brain = bfloat16_to_float(half);
    if (std::isnan(value))
      CHECK(std::isnan(half_to_float(float_to_half(value))));
    else if (float_to_half(value) != half)
      FAIL("half " << bits);
    if (std::isnan(brain))
      CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(brain))));
    else if (float_to_bfloat16(brain) != half)
      FAIL("bfloat16 " << bits);
  }
  CHECK(half_to_float(float_to_half(65520.0F)) == std::numeric_limits<float>::infinity());
  CHECK(half_to_float(float_to_half(65519.0F)) == 65504.0F);
  CHECK(half_to_float(float_to_half(2049.0F)) == 2048.0F);
  CHECK(half_to_float(float_to_half(2051.0F)) == 2052.0F);
  CHECK(half_to_float(float_to_half(0x1p-25F)) == 0.0F);
  CHECK(half_to_float(float_to_half(0x1.8p-25F)) == 0x1p-24F);
  CHECK(bfloat16_to_float(float_to_bfloat16(1.00390625F)) == 1.0F);
}

TEST_CASE("schedules follow PyTorch's curves") {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=0.4, total_steps=10), by its formula.
  const auto cycle = optim::one_cycle(0.4, 10);
  CHECK(cycle(0) == Approx(0.016));
  CHECK(cycle(1) == Approx(0.208));
  CHECK(cycle(2) == Approx(0.4));
  CHECK(cycle(9) == Approx(0.016 / 1e4));
  const auto cosine = optim::cosine(1.0, 10, 0.2);
  CHECK(cosine(0) == 1.0);
  CHECK(cosine(5) == Approx(0.6));
  CHECK(cosine(20) == Approx(0.2));
  CHECK(optim::step_decay(1.0, 3, 0.5)(7) == 0.25);
  const auto warm = optim::warm_up(4, optim::constant(2.0));
  CHECK(warm(0) == 0.5);
  CHECK(warm(3) == 2.0);
  CHECK(warm(9) == 2.0);
  CHECK_THROWS_AS(optim::cosine(1.0, 0), Error);
}

namespace {

struct Residual : nn::Module {
  nn::Linear first{3, 3}, second{3, 3, {.bias = false}};
  Residual() {
    add("first", first);
    add("second", second);
  }
  Tensor forward(const Tensor& x) override { return x + second(relu(first(x))); }
};

std::vector<std::string> names(const nn::NamedParameters& parameters) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : parameters) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE("modules name their parameters as PyTorch does") {
  auto model = nn::Sequential{nn::Linear{2, 3}, relu, Residual{}, nn::BatchNorm1d{3}};
  CHECK(names(model.parameters()) == std::vector<std::string>{"0.weight", "0.bias", "2.first.weight", "2.first.bias",
                                                              "2.second.weight", "3.weight", "3.bias"});
  CHECK(names(model.buffers()) == std::vector<std::string>{"3.running_mean", "3.running_var", "3.num_batches_tracked"});
  CHECK(model.state_dict().size() == 10);
  CHECK(model.parameter_count() == 6 + 3 + 9 + 3 + 9 + 6);
  const auto resnet = models::make("resnet18", {3, 224, 224}, 1000);
  CHECK(resnet->parameter_count() == 11689512);
  CHECK(resnet->state_dict().size() == 122);
  CHECK(names(resnet->parameters())[3] == "layer1.0.conv1.weight");
  const auto bottlenecks = models::make("resnet50", {3, 224, 224}, 1000);
  CHECK(bottlenecks->parameter_count() == 25557032);
  CHECK(bottlenecks->state_dict().size() == 320);
  CHECK(names(bottlenecks->parameters())[12] == "layer1.0.downsample.0.weight");
}

TEST_CASE("vgg16 has torchvision's parameters") {
  const auto vgg = models::make("vgg16", {3, 224, 224}, 1000);
  CHECK(vgg->parameter_count() == 138357544);
  CHECK(names(vgg->parameters())[24] == "features.28.weight");
  CHECK(names(vgg->parameters()).back() == "classifier.6.bias");
}

TEST_CASE("weights that do not fit are listed and nothing is changed") {
  manual_seed(3);
  auto model = nn::Sequential{nn::Linear{2, 3}};
  const auto before = model.state_dict();
  const io::StateDict wrong{{"0.weight", Tensor::from({1.0F})}, {"extra", Tensor::from({1.0F})}};
  CHECK_THROWS_WITH(model.load_state_dict(wrong),
                    Contains("0.weight is f32[1]") && Contains("0.bias is missing") && Contains("extra"));
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(model.state_dict()[i].second.same(before[i].second));
  model.load_state_dict(before);
}

TEST_CASE("training mode reaches every child") {
  auto model = nn::Sequential{nn::Sequential{nn::Dropout{0.5}, relu}, relu};
  CHECK(model.training());
  model.inference();
  const Tensor x = Tensor::from({1.0F});
  CHECK(!model.training());
  model.train();
  CHECK(model.training());
}

TEST_CASE("a summary has a line per layer and computes nothing") {
  auto model = models::make("cnn", {1, 28, 28}, 10);
  const auto text = model->summary({1, 28, 28});
  CHECK_THAT(text, Contains("Conv2d(1, 32, kernel_size=(3, 3), padding=(1, 1))") && Contains("[1, 64, 7, 7]") &&
                       Contains("421642 parameters"));
}

TEST_CASE("unknown models and unfit images are refused by name") {
  CHECK_THROWS_WITH(models::make("alexnet", {1, 28, 28}, 10), Contains("alexnet") && Contains("lenet5"));
  CHECK_THROWS_WITH(models::make("lenet5", {1, 4, 4}, 10), Contains("lenet5") && Contains("[1, 4, 4]"));
  CHECK_THROWS_WITH(models::make("vgg16", {3, 8, 8}, 10), Contains("vgg16") && Contains("[3, 8, 8]"));
}

TEST_CASE("the same seed draws the same initial values") {
  manual_seed(42);
  const auto first = nn::init::normal({1000}).to_vector<float>();
  manual_seed(42);
  CHECK(nn::init::normal({1000}).to_vector<float>() == first);
  CHECK(nn::init::normal({1000}).to_vector<float>() != first);
  double mean = 0, square = 0;
  for (float value : first) {
    mean += value / 1000.0;
    square += double{value} * value / 1000.0;
  }
  CHECK(std::abs(mean) < 0.1);
  CHECK(square == Approx(1).margin(0.15));
  const auto weights = nn::init::kaiming_uniform({10, 25}).to_vector<float>();
  for (float w : weights) CHECK(std::abs(w) <= 0.2F);
}

TEST_CASE("optimizers refuse options without sense") {
  auto model = nn::Sequential{nn::Linear{2, 3}};
  CHECK_THROWS_WITH((optim::SGD{model, {.learning_rate = -1}}), Contains("learning_rate"));
  CHECK_THROWS_WITH((optim::SGD{model, {.nesterov = true}}), Contains("nesterov"));
  CHECK_THROWS_WITH((optim::Adam{model, {.beta2 = 1}}), Contains("beta2"));
  CHECK_THROWS_AS(optim::Optimizer{}.step(Tensor::scalar(1)), Error);
}

TEST_CASE("an operation has only outputs that are ranges of inputs, or none") {
  class Half : public Op {
   public:
    explicit Half(std::size_t ranges) : ranges_(ranges) {}
    std::string_view name() const override { return "half_a_view"; }
    Specs infer(const Specs& inputs) const override { return {inputs[0], inputs[0]}; }
    std::optional<Alias> alias(const Specs&, std::size_t output) const override {
      return output < ranges_ ? std::optional(Alias{}) : std::nullopt;
    }

   private:
    std::size_t ranges_;
  };
  const Tensor x = Tensor::from({1.0F, 2.0F});
  const auto alive = Node::alive();
  CHECK_THROWS_WITH(apply_all(std::make_shared<Half>(1), {x}), Contains("half_a_view: 1 of its 2 outputs are ranges of inputs"));
  CHECK(Node::alive() == alive);
  CHECK_FALSE(node_of(apply_all(std::make_shared<Half>(0), {x})[0])->is_view());
  CHECK(node_of(apply_all(std::make_shared<Half>(2), {x})[0])->is_view());
}
