// Losses as layers: their options reach the functions, weights are buffers. Numbers are those of torch 2.15's layers in f64.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

constexpr auto sum_of = Reduction::sum, each = Reduction::none;

Tensor scores() { return Tensor::from({0.5F, -1.0F, 2.0F, 0.1F, 0.7F, -0.3F}, {2, 3}); }
Tensor targets() { return Tensor::from({1.0F, 0.25F, 0.0F, 0.5F, 1.0F, 0.75F}, {2, 3}); }
Tensor signs() { return Tensor::from({1.0F, -1.0F, 1.0F, -1.0F, -1.0F, 1.0F}, {2, 3}); }
Tensor classes() { return Tensor::from<std::int64_t>({2, 0}); }
Tensor weight() { return Tensor::from({0.5F, 1.5F, 2.0F}); }

void same(const Tensor& loss, const std::vector<double>& wanted) {
  INFO(wanted[0]);
  const auto got = loss.to_vector<float>();
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(2e-6).margin(1e-6));
}

}  // namespace

TEST_CASE("layers of losses of classes are PyTorch's") {
  const Tensor x = scores(), c = classes(), log_p = log_softmax(x, 1);
  same(nn::CrossEntropyLoss()(x, c), {0.745955799});
  same(nn::CrossEntropyLoss({.weight = weight(), .ignore_index = 0, .label_smoothing = 0.1})(x, c), {0.320767587});
  same(nn::CrossEntropyLoss({.weight = weight(), .label_smoothing = 0.1, .reduction = each})(x, c), {0.641535174, 0.72618351});
  same(nn::NLLLoss()(log_p, c), {0.745955799});
  same(nn::NLLLoss({.weight = weight(), .ignore_index = 2, .reduction = sum_of})(log_p, c), {0.625300151});
  same(nn::MultiMarginLoss()(x, c), {0.366666667});
  same(nn::MultiMarginLoss({.p = 2, .margin = 0.7, .weight = weight(), .reduction = sum_of})(x, c), {0.296666667});
  const Tensor several = Tensor::from<std::int64_t>({2, -1, 0, 1, 0, -1}, {2, 3});
  same(nn::MultiLabelMarginLoss()(x, several), {0.1});
  same(nn::MultiLabelMarginLoss(each)(x, several), {0, 0.2});
}

TEST_CASE("layers of losses by element are PyTorch's") {
  const Tensor x = scores(), t = targets(), s = signs();
  const Tensor p = Tensor::from({0.2F, 0.9F, 0.4F, 0.6F, 0.3F, 0.8F}, {2, 3});
  same(nn::MSELoss()(x, t), {1.19416667});
  same(nn::MSELoss(sum_of)(x, t), {7.165});
  same(nn::L1Loss()(x, t), {0.916666667});
  same(nn::L1Loss(each)(x, t), {0.5, 1.25, 2, 0.4, 0.3, 1.05});
  same(nn::SmoothL1Loss()(x, t), {0.508333333});
  same(nn::SmoothL1Loss(sum_of, 0.6)(x, t), {3.81666667});
  same(nn::HuberLoss()(x, t), {0.508333333});
  same(nn::HuberLoss(sum_of, 0.6)(x, t), {2.29});
  same(nn::BCELoss()(p, t), {1.06013177});
  same(nn::BCELoss(sum_of, weight())(p, t), {7.75846121});
  same(nn::BCEWithLogitsLoss()(x, t), {0.840200773});
  same(nn::BCEWithLogitsLoss(sum_of, weight(), Tensor::from({2.0F, 1.0F, 3.0F}))(x, t), {10.8076783});
  const Tensor sides = cast(greater(t, 0.4), Dtype::f32);
  same(nn::FocalLoss()(x, sides), {0.23156255});
  same(nn::FocalLoss(sum_of, 0.6, 1.5)(x, sides), {1.1827411});
  same(nn::PoissonNLLLoss()(x, t), {2.08173311});
  same(nn::PoissonNLLLoss({.log_input = false, .full = true, .eps = 1e-3, .reduction = sum_of})(p, t * 4.0), {24.9390496});
  const Tensor var = Tensor::from({0.5F, 0.1F, 2.0F, 1.0F, 0.3F, 0.7F}, {2, 3});
  same(nn::GaussianNLLLoss()(x, t, var), {1.35806393});
  same(nn::GaussianNLLLoss({.full = true, .eps = 0.2, .reduction = sum_of})(x, t, var), {10.1023384});
  same(nn::SoftMarginLoss()(x, s), {0.602700773});
  same(nn::SoftMarginLoss(sum_of)(x, s), {3.61620464});
  same(nn::MultiLabelSoftMarginLoss()(x, t), {0.840200773});
  same(nn::MultiLabelSoftMarginLoss(sum_of, weight())(x, t), {2.61549165});
  same(nn::HingeEmbeddingLoss()(x, s), {0.9});
  same(nn::HingeEmbeddingLoss(0.4, sum_of)(x, s), {3.9});
}

TEST_CASE("layers of losses of distributions, sequences and several inputs are PyTorch's") {
  const Tensor x = scores(), log_p = log_softmax(x, 1), q = softmax(targets(), 1);
  same(nn::KLDivLoss()(log_p, q), {0.145953209});
  same(nn::KLDivLoss({.batch_mean = true, .log_target = true})(log_p, log(q)), {0.437859626});
  const Tensor y = Tensor::from({-0.5F, 0.3F, 1.0F, 0.2F, -0.6F, 0.4F}, {2, 3});
  const Tensor z = Tensor::from({0.0F, 1.0F, 1.5F, -0.2F, 0.1F, 0.9F}, {2, 3});
  same(nn::MarginRankingLoss()(x, y, signs()), {0.333333333});
  same(nn::MarginRankingLoss(0.5, sum_of)(x, y, signs()), {3.4});
  const Tensor alike = Tensor::from({1.0F, -1.0F});
  same(nn::CosineEmbeddingLoss()(x, y, alike), {0.226658259});
  same(nn::CosineEmbeddingLoss(-0.9, sum_of)(x, y, alike), {0.453316519});
  same(nn::TripletMarginLoss()(x, y, z), {0.952355235});
  same(nn::TripletMarginLoss({.margin = 2, .p = 1, .swap = true, .reduction = sum_of})(x, y, z), {6.100004});
  const Tensor frames =
      log_softmax(Tensor::from({0.5F, -1.0F, 2.0F, 0.1F, 0.7F, -0.3F, 1.0F, 0.2F, 0.4F, -0.5F, 0.3F, 0.6F}, {4, 1, 3}), 2);
  const auto numbers = [](std::vector<std::int64_t> values) { return Tensor::from(values); };
  const Tensor four = numbers({4}), two = numbers({2});
  same(nn::CTCLoss()(frames, numbers({1, 2}), four, two), {1.32305953});
  same(nn::CTCLoss({.blank = 2, .reduction = sum_of})(frames, numbers({1, 0}), four, two), {1.68100549});
  same(nn::CTCLoss({.zero_infinity = true})(frames, numbers({1, 1, 1, 1}), four, four), {0});
}

TEST_CASE("a layer's loss has the gradients of its function") {
  const Tensor x = scores(), c = classes();
  auto loss = nn::CrossEntropyLoss({.weight = weight()});
  CHECK(gradients(loss(x, c), {x})[0].to_vector<float>() ==
        gradients(cross_entropy(x, c, {.weight = weight()}), {x})[0].to_vector<float>());
}

TEST_CASE("weights of losses are buffers of the model that they are a part of") {
  struct Net : nn::Module {
    nn::Linear fc{3, 3};
    nn::Loss loss = nn::BCEWithLogitsLoss(Reduction::mean, weight(), Tensor::from({2.0F, 1.0F, 3.0F}));
    nn::Loss other = nn::CrossEntropyLoss();
    Net() {
      add("fc", fc);
      add("loss", loss);
      add("other", other);
    }
  };
  Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"fc.weight", "fc.bias", "loss.weight", "loss.pos_weight"});
  CHECK(net.parameters().size() == 2);

  // A copy has its own, and what is loaded counts.
  auto copy = nn::clone(net);
  auto state = net.state_dict();
  state[2].second = zeros({3});
  net.load_state_dict(state);
  const Tensor x = scores(), t = targets();
  same(net.loss(x, t), {0});
  same(copy.loss(x, t), {10.8076783 / 6});
  net.replace("loss", nn::MSELoss());
  same(net.loss(x, t), {1.19416667});
  net.replace("loss", nn::Linear(2, 2));
  CHECK_THROWS_WITH(net.loss(x, t), Contains("Linear"));
}

TEST_CASE("a loss of one's own, and errors that say in which loss") {
  auto hinge = nn::Loss{"Hinge", [](const Tensor& x, const Tensor& t) { return mean(relu(1.0 - t * x)); }};
  CHECK(hinge.kind() == "Hinge");
  same(hinge(scores(), signs()), {(0.5 + 0 + 0 + 1.1 + 1.7 + 1.3) / 6});
  const train::FitOptions options{.loss = nn::L1Loss()};
  same(options.loss(scores(), targets()), {0.916666667});
  struct Net : nn::Module {
    nn::Loss loss = nn::MSELoss();
    Net() { add("criterion", loss); }
  };
  CHECK_THROWS_WITH(Net().loss(zeros({2}), zeros({3})), Contains("in criterion: ") && Contains("mse_loss"));
  CHECK_THROWS_WITH(static_cast<nn::Module&>(hinge)(zeros({2})),
                    "Hinge: has no forward() of one tensor (Tensor forward(const Tensor& x) override)");
  CHECK(nn::MultiLabelSoftMarginLoss().kind() == "MultiLabelSoftMarginLoss");
}
