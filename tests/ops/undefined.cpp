// An operation that is given no tensor says which operation and which argument it was.
#include <catch2/catch.hpp>
#include <functional>
#include <regex>
#include <set>

#include "clnet/clnet.h"
#include "tests/paths.h"
#include "tests/support/declarations.h"

using namespace clnet;

namespace {

using Inputs = std::vector<Tensor>;
struct Call {
  std::string op;                      ///< as the message names it
  std::vector<std::string> arguments;  ///< those that must be given
  std::function<void(const Inputs&)> run;
  std::string function = {};  ///< in ops.h, where it is called otherwise
};

#define UNARY(name)                                    \
  Call {                                               \
#name, {"x" }, [](const Inputs& t) { name(t[0]); } \
  }
#define BINARY(name)                                                       \
  Call{#name, {"a", "b"}, [](const Inputs& t) { name(t[0], t[1]); }},      \
      Call{#name, {"a"}, [](const Inputs& t) { name(t[0], 2.0); }}, Call { \
#name, {"b" }, [](const Inputs& t) { name(2.0, t[0]); }                \
  }
#define OPERATOR(name, sign)                                                                       \
  Call{#name, {"a", "b"}, [](const Inputs& t) { (void)(t[0] sign t[1]); }, "operator" #sign},      \
      Call{#name, {"a"}, [](const Inputs& t) { (void)(t[0] sign 2.0); }, "operator" #sign}, Call { \
#name, {"b" }, [](const Inputs& t) { (void)(2.0 sign t[0]); }, "operator" #sign                \
  }

std::vector<Call> calls() {
  return {
      UNARY(zeros_like),
      UNARY(ones_like),
      BINARY(hypot),
      BINARY(logaddexp),
      BINARY(xlogy),
      UNARY(trunc),
      UNARY(frac),
      UNARY(nan_to_num),
      UNARY(any),
      UNARY(all),
      UNARY(abs),
      UNARY(sign),
      UNARY(exp),
      UNARY(log),
      UNARY(log1p),
      UNARY(log2),
      UNARY(expm1),
      UNARY(stop_gradient),
      UNARY(hardshrink),
      UNARY(softshrink),
      UNARY(tanhshrink),
      UNARY(glu),
      UNARY(stddev),
      UNARY(logsumexp),
      UNARY(norm),
      UNARY(tril),
      UNARY(triu),
      {"threshold", {"x"}, [](const Inputs& t) { threshold(t[0], 0, 0); }},
      {"prelu", {"x", "weight"}, [](const Inputs& t) { prelu(t[0], t[1]); }},
      {"lerp", {"a", "b"}, [](const Inputs& t) { lerp(t[0], t[1], 0.5); }},
      {"lerp", {"a", "b", "weight"}, [](const Inputs& t) { lerp(t[0], t[1], t[2]); }},
      {"masked_fill", {"x", "mask"}, [](const Inputs& t) { masked_fill(t[0], t[1], 0); }},
      {"fmod", {"a", "b"}, [](const Inputs& t) { fmod(t[0], t[1]); }},
      {"atan2", {"a", "b"}, [](const Inputs& t) { atan2(t[0], t[1]); }},
      {"addcmul", {"x", "a", "b"}, [](const Inputs& t) { addcmul(t[0], t[1], t[2]); }},
      {"addcdiv", {"x", "a", "b"}, [](const Inputs& t) { addcdiv(t[0], t[1], t[2]); }},
      {"addmm", {"x", "a", "b"}, [](const Inputs& t) { addmm(t[0], t[1], t[2]); }},
      {"cumprod", {"x"}, [](const Inputs& t) { cumprod(t[0], 0); }},
      {"unfold", {"x"}, [](const Inputs& t) { unfold(t[0], 2); }},
      {"fold", {"columns"}, [](const Inputs& t) { fold(t[0], 2, 1); }},
      {"outer", {"a", "b"}, [](const Inputs& t) { outer(t[0], t[1]); }},
      {"flip", {"x"}, [](const Inputs& t) { flip(t[0], {0}); }},
      {"roll", {"x"}, [](const Inputs& t) { roll(t[0], {1}, {0}); }},
      {"tile", {"x"}, [](const Inputs& t) { tile(t[0], {2}); }},
      {"pixel_shuffle", {"x"}, [](const Inputs& t) { pixel_shuffle(t[0], 2); }},
      {"pixel_unshuffle", {"x"}, [](const Inputs& t) { pixel_unshuffle(t[0], 2); }},
      {"rnn_layer",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         rnn_layer(t[0], {}, {t[1], t[2]});
       }},
      {"lstm_layer",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         lstm_layer(t[0], {}, {}, {t[1], t[2]});
       }},
      {"gru_layer",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         gru_layer(t[0], {}, {t[1], t[2]});
       }},
      {"rnn_cell",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         rnn_cell(t[0], {}, {t[1], t[2]});
       }},
      {"lstm_cell",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         lstm_cell(t[0], {}, {t[1], t[2]});
       }},
      {"gru_cell",
       {"x", "weight_ih", "weight_hh"},
       [](const Inputs& t) {
         gru_cell(t[0], {}, {t[1], t[2]});
       }},
      {"group_norm", {"x"}, [](const Inputs& t) { group_norm(t[0], 1, {}, {}); }},
      {"instance_norm", {"x"}, [](const Inputs& t) { instance_norm(t[0], {}, {}); }},
      {"rms_norm", {"x"}, [](const Inputs& t) { rms_norm(t[0], 1, {}); }},
      {"local_response_norm", {"x"}, [](const Inputs& t) { local_response_norm(t[0], 2); }},
      UNARY(sqrt),
      UNARY(rsqrt),
      UNARY(square),
      UNARY(reciprocal),
      UNARY(sin),
      UNARY(cos),
      UNARY(erf),
      UNARY(floor),
      UNARY(ceil),
      UNARY(round),
      UNARY(tanh),
      UNARY(sigmoid),
      UNARY(log_sigmoid),
      UNARY(relu),
      UNARY(relu6),
      UNARY(leaky_relu),
      UNARY(elu),
      UNARY(celu),
      UNARY(selu),
      UNARY(gelu),
      UNARY(silu),
      UNARY(mish),
      UNARY(hardswish),
      UNARY(hardsigmoid),
      UNARY(hardtanh),
      UNARY(softplus),
      UNARY(softsign),
      UNARY(is_nan),
      UNARY(logical_not),
      UNARY(sum),
      UNARY(mean),
      UNARY(prod),
      UNARY(max),
      UNARY(min),
      UNARY(var),
      UNARY(global_avg_pool1d),
      UNARY(global_avg_pool2d),
      UNARY(global_avg_pool3d),
      UNARY(global_max_pool1d),
      UNARY(global_max_pool2d),
      UNARY(global_max_pool3d),
      UNARY(flatten),
      OPERATOR(add, +),
      OPERATOR(sub, -),
      OPERATOR(mul, *),
      OPERATOR(div, /),
      {"neg", {"x"}, [](const Inputs& t) { (void)-t[0]; }, "operator-"},
      BINARY(pow),
      BINARY(maximum),
      BINARY(minimum),
      BINARY(eq),
      Call{"equal", {"a", "b"}, [](const Inputs& t) { (void)equal(t[0], t[1]); }},
      BINARY(not_equal),
      BINARY(less),
      BINARY(less_equal),
      BINARY(greater),
      BINARY(greater_equal),
      {"logical_and", {"a", "b"}, [](const Inputs& t) { logical_and(t[0], t[1]); }},
      {"logical_or", {"a", "b"}, [](const Inputs& t) { logical_or(t[0], t[1]); }},
      {"where", {"condition", "a", "b"}, [](const Inputs& t) { where(t[0], t[1], t[2]); }},
      {"cast", {"x"}, [](const Inputs& t) { cast(t[0], Dtype::f16); }},
      {"clamp", {"x"}, [](const Inputs& t) { clamp(t[0], 0, 1); }},
      {"argmax", {"x"}, [](const Inputs& t) { argmax(t[0], 0); }},
      {"argmin", {"x"}, [](const Inputs& t) { argmin(t[0], 0); }},
      {"sum_to", {"x"}, [](const Inputs& t) { sum_to(t[0], {1}); }},
      {"reshape", {"x"}, [](const Inputs& t) { reshape(t[0], Shape{4}); }},
      {"reshape",
       {"x"},
       [](const Inputs& t) {
         reshape(t[0], {2, -1});
       }},
      {"squeeze", {"x"}, [](const Inputs& t) { squeeze(t[0], 0); }},
      {"unsqueeze", {"x"}, [](const Inputs& t) { unsqueeze(t[0], 0); }},
      {"transpose", {"x"}, [](const Inputs& t) { transpose(t[0], 0, 1); }},
      {"permute",
       {"x"},
       [](const Inputs& t) {
         permute(t[0], {1, 0});
       }},
      {"expand",
       {"x"},
       [](const Inputs& t) {
         expand(t[0], {2, 2});
       }},
      {"concat", {"tensors[0]", "tensors[1]"}, [](const Inputs& t) { concat(t, 0); }},
      {"stack", {"tensors[0]", "tensors[1]"}, [](const Inputs& t) { stack(t); }},
      {"split",
       {"x"},
       [](const Inputs& t) {
         split(t[0], {1, 1}, 0);
       }},
      {"slice", {"x"}, [](const Inputs& t) { slice(t[0], 0, 0, 1); }},
      {"slice_update", {"x", "value"}, [](const Inputs& t) { slice_update(t[0], 0, 0, t[1]); }},
      {"slice_update",
       {"x", "start", "value"},
       [](const Inputs& t) { slice_update(t[0], 0, t[1].defined() ? Tensor::scalar(0, Dtype::i64) : t[1], t[2]); }},
      {"narrow", {"x"}, [](const Inputs& t) { narrow(t[0], 0, 0, 1); }},
      {"narrow",
       {"x", "start"},
       [](const Inputs& t) { narrow(t[0], 0, t[1].defined() ? Tensor::scalar(0, Dtype::i64) : t[1], 1); }},
      {"pad",
       {"x"},
       [](const Inputs& t) {
         pad(t[0], {1, 1}, {0, 0});
       }},
      {"index_select", {"x", "indices"}, [](const Inputs& t) { index_select(t[0], 0, t[1]); }},
      {"gather", {"x", "indices"}, [](const Inputs& t) { gather(t[0], 0, t[1]); }},
      {"embedding", {"indices", "weight"}, [](const Inputs& t) { embedding(t[0], t[1]); }},
      {"one_hot", {"indices"}, [](const Inputs& t) { one_hot(t[0], 3); }},
      {"matmul", {"a", "b"}, [](const Inputs& t) { matmul(t[0], t[1]); }},
      {"linear", {"x", "weight"}, [](const Inputs& t) { linear(t[0], t[1]); }},
      {"conv2d", {"x", "weight"}, [](const Inputs& t) { conv2d(t[0], t[1]); }},
      {"conv_transpose2d", {"x", "weight"}, [](const Inputs& t) { conv_transpose2d(t[0], t[1]); }},
      {"max_pool2d", {"x"}, [](const Inputs& t) { max_pool2d(t[0], 2); }},
      {"avg_pool2d", {"x"}, [](const Inputs& t) { avg_pool2d(t[0], 2); }},
      {"adaptive_avg_pool2d", {"x"}, [](const Inputs& t) { adaptive_avg_pool2d(t[0], 2); }},
      {"adaptive_max_pool2d", {"x"}, [](const Inputs& t) { adaptive_max_pool2d(t[0], 2); }},
      {"conv1d", {"x", "weight"}, [](const Inputs& t) { conv1d(t[0], t[1]); }},
      {"conv_transpose1d", {"x", "weight"}, [](const Inputs& t) { conv_transpose1d(t[0], t[1]); }},
      {"conv3d", {"x", "weight"}, [](const Inputs& t) { conv3d(t[0], t[1]); }},
      {"conv_transpose3d", {"x", "weight"}, [](const Inputs& t) { conv_transpose3d(t[0], t[1]); }},
      {"max_pool1d", {"x"}, [](const Inputs& t) { max_pool1d(t[0], 2); }},
      {"avg_pool1d", {"x"}, [](const Inputs& t) { avg_pool1d(t[0], 2); }},
      {"adaptive_avg_pool1d", {"x"}, [](const Inputs& t) { adaptive_avg_pool1d(t[0], 2); }},
      {"adaptive_max_pool1d", {"x"}, [](const Inputs& t) { adaptive_max_pool1d(t[0], 2); }},
      {"max_pool1d_with_indices", {"x"}, [](const Inputs& t) { max_pool1d_with_indices(t[0], 2); }},
      {"adaptive_max_pool1d_with_indices", {"x"}, [](const Inputs& t) { adaptive_max_pool1d_with_indices(t[0], 2); }},
      {"lp_pool1d", {"x"}, [](const Inputs& t) { lp_pool1d(t[0], 2, 2); }},
      {"max_unpool1d", {"x", "indices"}, [](const Inputs& t) { max_unpool1d(t[0], t[1], 2); }},
      {"max_pool2d_with_indices", {"x"}, [](const Inputs& t) { max_pool2d_with_indices(t[0], 2); }},
      {"adaptive_max_pool2d_with_indices", {"x"}, [](const Inputs& t) { adaptive_max_pool2d_with_indices(t[0], 2); }},
      {"lp_pool2d", {"x"}, [](const Inputs& t) { lp_pool2d(t[0], 2, 2); }},
      {"max_unpool2d", {"x", "indices"}, [](const Inputs& t) { max_unpool2d(t[0], t[1], 2); }},
      {"max_pool3d", {"x"}, [](const Inputs& t) { max_pool3d(t[0], 2); }},
      {"avg_pool3d", {"x"}, [](const Inputs& t) { avg_pool3d(t[0], 2); }},
      {"adaptive_avg_pool3d", {"x"}, [](const Inputs& t) { adaptive_avg_pool3d(t[0], 2); }},
      {"adaptive_max_pool3d", {"x"}, [](const Inputs& t) { adaptive_max_pool3d(t[0], 2); }},
      {"max_pool3d_with_indices", {"x"}, [](const Inputs& t) { max_pool3d_with_indices(t[0], 2); }},
      {"adaptive_max_pool3d_with_indices", {"x"}, [](const Inputs& t) { adaptive_max_pool3d_with_indices(t[0], 2); }},
      {"lp_pool3d", {"x"}, [](const Inputs& t) { lp_pool3d(t[0], 2, 2); }},
      {"max_unpool3d", {"x", "indices"}, [](const Inputs& t) { max_unpool3d(t[0], t[1], 2); }},
      {"batch_norm_training", {"x"}, [](const Inputs& t) { batch_norm_training(t[0], {}, {}); }},
      {"batch_norm_inference", {"x", "mean", "var"}, [](const Inputs& t) { batch_norm_inference(t[0], t[1], t[2], {}, {}); }},
      {"layer_norm", {"x"}, [](const Inputs& t) { layer_norm(t[0], 1, {}, {}); }},
      {"softmax", {"x"}, [](const Inputs& t) { softmax(t[0], 0); }},
      {"log_softmax", {"x"}, [](const Inputs& t) { log_softmax(t[0], 0); }},
      {"dropout", {"x"}, [](const Inputs& t) { dropout(t[0], 0.5); }},
      {"cross_entropy", {"logits", "targets"}, [](const Inputs& t) { cross_entropy(t[0], t[1]); }},
      {"mse_loss", {"input", "target"}, [](const Inputs& t) { mse_loss(t[0], t[1]); }},
      {"l1_loss", {"input", "target"}, [](const Inputs& t) { l1_loss(t[0], t[1]); }},
      {"nll_loss", {"log_probabilities", "targets"}, [](const Inputs& t) { nll_loss(t[0], t[1]); }},
      {"smooth_l1_loss", {"input", "target"}, [](const Inputs& t) { smooth_l1_loss(t[0], t[1]); }},
      {"huber_loss", {"input", "target"}, [](const Inputs& t) { huber_loss(t[0], t[1]); }},
      {"binary_cross_entropy", {"input", "target"}, [](const Inputs& t) { binary_cross_entropy(t[0], t[1]); }},
      {"sigmoid_focal_loss", {"logits", "target"}, [](const Inputs& t) { sigmoid_focal_loss(t[0], t[1]); }},
      {"kl_div", {"input", "target"}, [](const Inputs& t) { kl_div(t[0], t[1]); }},
      {"poisson_nll_loss", {"input", "target"}, [](const Inputs& t) { poisson_nll_loss(t[0], t[1]); }},
      {"gaussian_nll_loss", {"input", "target", "var"}, [](const Inputs& t) { gaussian_nll_loss(t[0], t[1], t[2]); }},
      {"hinge_embedding_loss", {"input", "target"}, [](const Inputs& t) { hinge_embedding_loss(t[0], t[1]); }},
      {"margin_ranking_loss", {"a", "b", "target"}, [](const Inputs& t) { margin_ranking_loss(t[0], t[1], t[2]); }},
      {"cosine_embedding_loss", {"a", "b", "target"}, [](const Inputs& t) { cosine_embedding_loss(t[0], t[1], t[2]); }},
      {"triplet_margin_loss", {"anchor", "positive", "negative"}, [](const Inputs& t) { triplet_margin_loss(t[0], t[1], t[2]); }},
      {"binary_cross_entropy_with_logits",
       {"logits", "target"},
       [](const Inputs& t) { binary_cross_entropy_with_logits(t[0], t[1]); }},
      {"scaled_dot_product_attention", {"q", "k", "v"}, [](const Inputs& t) { scaled_dot_product_attention(t[0], t[1], t[2]); }},
      {"rotary_embedding", {"x"}, [](const Inputs& t) { rotary_embedding(t[0]); }},
      {"rotary_embedding",
       {"x", "positions"},
       [](const Inputs& t) { rotary_embedding(t[0], t[1].defined() ? cast(t[1], Dtype::i32) : t[1]); }},
      {"einsum", {"operands[0]", "operands[1]"}, [](const Inputs& t) { einsum("ij,jk", t); }},
      {"interpolate", {"x"}, [](const Inputs& t) { interpolate(t[0], {.size = {2}}); }},
      {"cumsum", {"x"}, [](const Inputs& t) { cumsum(t[0], 0); }},
      {"scatter", {"x", "indices", "source"}, [](const Inputs& t) { scatter(t[0], 0, t[1], t[2]); }},
      {"scatter_add", {"x", "indices", "source"}, [](const Inputs& t) { scatter_add(t[0], 0, t[1], t[2]); }},
      {"scatter_reduce",
       {"x", "indices", "source"},
       [](const Inputs& t) { scatter_reduce(t[0], 0, t[1], t[2], ScatterReduction::amax); }},
      {"index_add", {"x", "indices", "source"}, [](const Inputs& t) { index_add(t[0], 0, t[1], t[2]); }},
      UNARY(sort),
      UNARY(argsort),
      {"topk", {"x"}, [](const Inputs& t) { topk(t[0], 1); }},
      {"repeat",
       {"x"},
       [](const Inputs& t) {
         repeat(t[0], {2, 2});
       }},
      {"repeat_interleave", {"x"}, [](const Inputs& t) { repeat_interleave(t[0], 2, 0); }},
      UNARY(diagonal),
      UNARY(diag),
      UNARY(trace),
      {"bernoulli", {"probabilities"}, [](const Inputs& t) { bernoulli(t[0]); }},
      {"multinomial", {"weights"}, [](const Inputs& t) { multinomial(t[0], 1); }},
      {"dropout1d", {"x"}, [](const Inputs& t) { dropout1d(t[0], 0.5); }},
      {"dropout2d", {"x"}, [](const Inputs& t) { dropout2d(t[0], 0.5); }},
      {"dropout3d", {"x"}, [](const Inputs& t) { dropout3d(t[0], 0.5); }},
      {"alpha_dropout", {"x"}, [](const Inputs& t) { alpha_dropout(t[0], 0.5); }},
      {"feature_alpha_dropout", {"x"}, [](const Inputs& t) { feature_alpha_dropout(t[0], 0.5); }},
      UNARY(rrelu),
      {"gumbel_softmax", {"logits"}, [](const Inputs& t) { gumbel_softmax(t[0]); }},
      {"softmin", {"x"}, [](const Inputs& t) { softmin(t[0], 0); }},
      {"ctc_loss",
       {"log_probs", "targets", "input_lengths", "target_lengths"},
       [](const Inputs& t) { ctc_loss(t[0], t[1], t[2], t[3]); }},
      {"multi_margin_loss", {"input", "target"}, [](const Inputs& t) { multi_margin_loss(t[0], t[1]); }},
      {"multilabel_margin_loss", {"input", "target"}, [](const Inputs& t) { multilabel_margin_loss(t[0], t[1]); }},
      {"soft_margin_loss", {"input", "target"}, [](const Inputs& t) { soft_margin_loss(t[0], t[1]); }},
      {"multilabel_soft_margin_loss", {"input", "target"}, [](const Inputs& t) { multilabel_soft_margin_loss(t[0], t[1]); }},
      {"global_norm", {"tensors[0]", "tensors[1]"}, [](const Inputs& t) { global_norm(t); }},
  };
}

/// The functions of ops.h that take tensors.
std::set<std::string> declared() {
  const std::string content =
      std::regex_replace(clnet::test::declarations(CLNET_SOURCE_DIR), std::regex("//[^\n]*|#define(?:[^\n]*\\\\\n)*[^\n]*"), "");
  std::set<std::string> names;
  const auto collect = [&](const std::regex& pattern) {
    for (std::sregex_iterator match(content.begin(), content.end(), pattern), end; match != end; ++match)
      names.insert((*match)[1]);
  };
  collect(std::regex("CLNET_API [^;(]*?(\\w+|operator.)\\((?:const std::vector<Tensor>|const Tensor)&[^;]*\\);"));
  collect(std::regex("\nCLNET_BINARY\\(([^)]*)\\)"));
  return names;
}

}  // namespace

TEST_CASE("an undefined tensor is reported with the operation's and the argument's name") {
  for (const auto& call : calls()) {
    for (std::size_t missing = 0; missing < call.arguments.size(); ++missing) {
      Inputs inputs(call.arguments.size(), ones({2, 2}));
      inputs[missing] = {};
      INFO(call.op << ", argument " << call.arguments[missing]);
      CHECK_THROWS_WITH(call.run(inputs), call.op + ": argument '" + call.arguments[missing] + "' is undefined");
    }
  }
}

TEST_CASE("every operation on tensors is among those that are tried with none") {
  auto names = declared();
  CHECK(names.size() > 90);
  for (const auto& call : calls()) names.erase(call.function.empty() ? call.op : call.function);
  for (const auto& name : names) {
    INFO(name);
    CHECK(false);
  }
}

TEST_CASE("undefined tensors elsewhere") {
  const Tensor x = ones({2, 2}), none;
  CHECK_THROWS_WITH(gradients(none, {x}), "gradients: the loss is undefined");
  CHECK_THROWS_WITH(gradients(sum(x), {x, none}), "gradients: input 1 is undefined");
  CHECK_THROWS_WITH(checkpoint([] { return Tensor{}; }), "checkpoint: the function's result 0 is undefined");
  CHECK_THROWS_WITH(checkpoint([&] { return std::vector{x, none}; }), "checkpoint: the function's result 1 is undefined");
  CHECK_THROWS_WITH(nn::Parameter(none), Catch::Contains("undefined"));
  CHECK_THROWS_WITH(nn::Parameter(x).set(none), Catch::Contains("undefined"));
  CHECK_THROWS_WITH(nn::assign({{nn::Parameter(x), none}}), Catch::Contains("undefined"));
}
