// Scopes of Autocast: which dtype each operation computes with, what is cast how often, and that gradients are the parameters'.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/graph/node.h"
#include "tests/ops/values.h"

using namespace clnet;
using testing::ramp;

namespace {

/// How many nodes of an operation the tensor's graph has.
int count(const Tensor& tensor, std::string_view op) {
  int found = 0;
  std::set<const Node*> seen;
  std::vector<std::shared_ptr<Node>> open{node_of(tensor)};
  while (!open.empty()) {
    const auto node = open.back();
    open.pop_back();
    if (!seen.insert(node.get()).second) continue;
    found += node->op && node->op->name() == op ? 1 : 0;
    for (const auto& input : node->inputs) open.push_back(node_of(input));
  }
  return found;
}

void require_close(const Tensor& got, const Tensor& wanted, double tolerance) {
  REQUIRE(got.shape() == wanted.shape());
  const auto a = got.to_vector<float>(), b = wanted.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}

}  // namespace

TEST_CASE("Autocast: scopes") {
  CHECK(Autocast::dtype() == Dtype::f32);
  {
    const Autocast outer(Dtype::f16);
    CHECK(Autocast::dtype() == Dtype::f16);
    {
      const Autocast inner(Dtype::bf16);
      CHECK(Autocast::dtype() == Dtype::bf16);
    }
    {
      const Autocast off(Dtype::f32);
      CHECK(Autocast::dtype() == Dtype::f32);
      CHECK(matmul(ramp({2, 3}), ramp({3, 2})).dtype() == Dtype::f32);
      CHECK_THROWS_AS(ramp({2}) + cast(ramp({2}), Dtype::f16), DtypeError);
    }
    CHECK(Autocast::dtype() == Dtype::f16);
    auto elsewhere = Dtype::bf16;
    std::thread([&] { elsewhere = Autocast::dtype(); }).join();
    CHECK(elsewhere == Dtype::f32);
  }
  CHECK(Autocast::dtype() == Dtype::f32);
  CHECK_THROWS_AS(Autocast(Dtype::i32), DtypeError);
}

TEST_CASE("Autocast: products") {
  for (auto dtype : {Dtype::f16, Dtype::bf16}) {
    const Tensor x = ramp({2, 3}), image = ramp({1, 2, 6, 6}), line = ramp({1, 2, 8}), volume = ramp({1, 2, 4, 4, 4});
    const Autocast scope(dtype);
    CHECK(linear(x, ramp({4, 3}), ramp({4})).dtype() == dtype);
    CHECK(matmul(x, cast(ramp({3, 2}), Dtype::f16)).dtype() == dtype);
    CHECK(conv1d(line, ramp({3, 2, 3}), ramp({3})).dtype() == dtype);
    CHECK(conv2d(image, ramp({3, 2, 3, 3}), ramp({3})).dtype() == dtype);
    CHECK(conv3d(volume, ramp({3, 2, 3, 3, 3}), ramp({3})).dtype() == dtype);
    CHECK(conv_transpose1d(line, ramp({2, 3, 3})).dtype() == dtype);
    CHECK(conv_transpose2d(image, ramp({2, 3, 3, 3})).dtype() == dtype);
    CHECK(conv_transpose3d(volume, ramp({2, 3, 3, 3, 3})).dtype() == dtype);
    const Tensor q = ramp({1, 2, 5, 4});
    CHECK(scaled_dot_product_attention(q, cast(q, dtype), q, {.causal = true}).dtype() == dtype);
    const Tensor h0;
    const RecurrentWeights weights{.weight_ih = ramp({4, 3}), .weight_hh = ramp({4, 4}), .bias_ih = ramp({4})};
    const Tensor steps = ramp({5, 2, 3});
    const auto recurrent = rnn_layer(steps, h0, weights).output;
    CHECK(recurrent.dtype() == Dtype::f32);
    eval({recurrent});
    const auto narrow = rnn_layer(cast(steps, dtype), h0, weights).output;
    CHECK(narrow.dtype() == dtype);
    const Autocast off(Dtype::f32);
    require_close(recurrent, rnn_layer(steps, h0, weights).output, dtype == Dtype::f16 ? 2e-3 : 2e-2);
  }
}

TEST_CASE("Autocast: what needs range or digits is f32") {
  const Tensor x = cast(ramp({3, 4}, 1), Dtype::f16), other = ramp({3, 4}, 2);
  const Autocast scope(Dtype::f16);
  const Tensor targets = Tensor::from(std::vector<std::int32_t>{0, 3, 1});
  for (const auto& result : {softmax(x, 1),
                             log_softmax(x, 1),
                             exp(x),
                             log(x),
                             pow(x, 2.0),
                             square(x),
                             rsqrt(x),
                             softplus(x),
                             sum(x),
                             mean(x),
                             prod(x),
                             cumsum(x, 1),
                             var(x),
                             stddev(x),
                             norm(x),
                             logsumexp(x, {1}),
                             layer_norm(x, 1, {}, {}),
                             layer_norm(x, 1, ramp({4}), ramp({4})),
                             group_norm(x, 2, ramp({4}), ramp({4})),
                             rms_norm(x, 1, ramp({4})),
                             cross_entropy(x, targets),
                             mse_loss(x, other),
                             l1_loss(x, x),
                             binary_cross_entropy_with_logits(x, other),
                             nll_loss(x, targets),
                             kl_div(x, other),
                             smooth_l1_loss(x, other)}) {
    CHECK(result.dtype() == Dtype::f32);
    CHECK_NOTHROW(eval({result}));
  }
  // 300 of 300 would be infinite in f16.
  CHECK(sum(cast(Tensor::from(std::vector<float>(300, 300)), Dtype::f16)).item<float>() == 90000);
  CHECK(mean(square(cast(full({2}, 300), Dtype::f16))).item<float>() == 90000);
}

TEST_CASE("Autocast: others compute with what comes, the widest where dtypes differ") {
  const Tensor wide = ramp({1, 2, 4, 4}), narrow = cast(wide, Dtype::f16), mask = greater(wide, 0.0);
  const Autocast scope(Dtype::f16);
  for (const auto& result :
       {relu(narrow), gelu(narrow), narrow + narrow, narrow * 2.0, 1.0 - narrow, max(narrow, {1}), max_pool2d(narrow, 2),
        avg_pool2d(narrow, 2), concat({narrow, narrow}, 1), reshape(narrow, {32}), dropout(narrow, 0.5),
        where(mask, narrow, narrow), masked_fill(narrow, mask, 0), clamp(narrow, -1, 1)})
    CHECK(result.dtype() == Dtype::f16);
  for (const auto& result :
       {wide + narrow, narrow * wide, maximum(narrow, wide), concat({narrow, wide}, 1), where(mask, narrow, wide),
        lerp(wide, narrow, 0.3), relu(wide), prelu(narrow, ramp({2})), stack({wide, narrow})})
    CHECK(result.dtype() == Dtype::f32);
  CHECK(eq(narrow, wide).dtype() == Dtype::boolean);
  CHECK_THROWS_AS(narrow + cast(wide, Dtype::i32), DtypeError);
  // Batch normalisation keeps the activations' dtype and its statistics in f32.
  nn::BatchNorm2d norm(2);
  CHECK(norm(narrow).dtype() == Dtype::f16);
  eval({norm(narrow)});
  for (const auto& [name, buffer] : norm.buffers())
    if (name != "num_batches_tracked") CHECK(buffer.value().dtype() == Dtype::f32);
  norm.inference();
  CHECK(norm(narrow).dtype() == Dtype::f16);
}

TEST_CASE("Autocast: one cast serves all readers and is not kept") {
  const Tensor weight = ramp({3, 3}), x = ramp({2, 3});
  const Autocast scope(Dtype::f16);
  CHECK(count(linear(linear(x, weight, {}), weight, {}), "cast") == 2);
  const auto before = Node::alive();
  for (int i = 0; i < 5000; ++i) matmul(ramp({1, 1}), ramp({1, 1}));
  CHECK(Node::alive() == before);
  // Widened only to be narrowed again: nothing.
  const Tensor half = matmul(x, weight);
  CHECK(count(matmul(cast(half, Dtype::f32), weight), "cast") == 2);
}

TEST_CASE("Autocast: gradients are the parameters' dtype, close to those of f32, and as written outside of the scope, too") {
  nn::Conv2d conv{2, 3, 3, {.padding = 1}};
  nn::BatchNorm2d norm(3);
  nn::Linear head(3 * 16, 5);
  const Tensor x = ramp({2, 2, 4, 4}, 1), targets = Tensor::from(std::vector<std::int32_t>{1, 4});
  const auto loss_of = [&] { return cross_entropy(head(flatten(relu(norm(conv(x))), 1)), targets); };
  std::vector<Tensor> parameters;
  for (const auto* module : {static_cast<nn::Module*>(&conv), static_cast<nn::Module*>(&norm), static_cast<nn::Module*>(&head)})
    for (const auto& [name, parameter] : module->parameters()) parameters.push_back(parameter.value());
  const auto exact = gradients(loss_of(), parameters);
  for (auto dtype : {Dtype::f16, Dtype::bf16}) {
    Tensor loss;
    std::vector<Tensor> within;
    {
      const Autocast scope(dtype);
      loss = loss_of();
      within = gradients(loss, parameters);
    }
    CHECK(loss.dtype() == Dtype::f32);
    const auto outside = gradients(loss, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      CHECK(within[i].dtype() == Dtype::f32);
      CHECK(within[i].to_vector<float>() == outside[i].to_vector<float>());
      require_close(within[i], exact[i], dtype == Dtype::f16 ? 5e-3 : 5e-2);
    }
  }
}

TEST_CASE("Autocast: checkpoint() computes again in the dtypes of the forward pass") {
  const Tensor x = ramp({4, 6}), first = ramp({8, 6}), second = ramp({6, 8});
  const auto block = [&] { return linear(gelu(linear(x, first, {})), second, {}); };
  Tensor plain, again;
  {
    const Autocast scope(Dtype::f16);
    plain = mean(square(block()));
    again = mean(square(checkpoint(std::function<Tensor()>(block))));
  }
  const auto wanted = gradients(plain, {x, first, second}), got = gradients(again, {x, first, second});
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].to_vector<float>() == wanted[i].to_vector<float>());
}

TEST_CASE("Autocast: models of all kinds take a step") {
  const Tensor tokens = Tensor::from(std::vector<std::int32_t>{1, 2, 3, 0, 2, 1}, {2, 3});
  struct Recurrent : nn::Module {
    nn::Embedding words{4, 8};
    nn::LSTM lstm{8, 8};
    nn::GRU gru{8, 8};
    nn::MultiheadAttention attention{8, 2};
    nn::LayerNorm norm{8};
    Recurrent() {
      add("words", words);
      add("lstm", lstm);
      add("gru", gru);
      add("attention", attention);
      add("norm", norm);
    }
    Tensor forward(const Tensor& x) override {
      Tensor y = transpose(words(x), 0, 1);
      y = y + lstm(y);
      y = gru(y);
      return norm(y + attention(y, y, y));
    }
  } model;
  optim::Adam adam(model);
  for (auto dtype : {Dtype::f16, Dtype::bf16}) {
    Tensor loss;
    {
      const Autocast scope(dtype);
      loss = mean(square(model(tokens)));
      // A step within the scope is one outside of it.
      if (dtype == Dtype::bf16) loss = adam.step(loss);
    }
    if (dtype == Dtype::f16) loss = adam.step(loss);
    CHECK(std::isfinite(loss.item<float>()));
    for (const auto& [name, parameter] : model.parameters()) CHECK(parameter.value().dtype() == Dtype::f32);
  }
}
