// Functions and networks that tests write as ONNX files: operations by family, and all of clnet::models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/models.h"
#include "clnet/onnx.h"
#include "tests/onnx/save_checks.h"

namespace clnet::test {

struct SaveCase {
  std::string name;
  onnx::Function function;
  std::vector<Tensor> examples;
  /// Operators of ONNX compute each operation as it is, so that load() gives the same bits.
  bool exact = true;
  int opset = 18;
  bool follows_batch = true;
};

inline onnx::Function of_one(Tensor (*f)(const Tensor&)) {
  return [f](const std::vector<Tensor>& inputs) -> std::vector<Tensor> { return {f(inputs[0])}; };
}

/// All with a batch of 3 as extent 0.
inline std::vector<SaveCase> save_cases() {
  using In = const std::vector<Tensor>&;
  using Out = std::vector<Tensor>;
  manual_seed(5);
  const Tensor rows = eval_of(randn({3, 4})), positive = eval_of(rand({3, 4}) + 0.25), inside = eval_of(rand({3, 4}) - 0.5);
  const Tensor image = eval_of(randn({3, 4, 9, 8})), line = eval_of(randn({3, 4, 11})), volume = eval_of(randn({3, 2, 5, 6, 7}));
  const Tensor words = Tensor::from({0, 2, 1, 4, 3, 1}, {3, 2}), sequence = eval_of(randn({3, 6, 4}));
  const Tensor weight = eval_of(randn({6, 4, 3, 3})), grouped = eval_of(randn({4, 2, 3, 3})), bias = eval_of(randn({6}));
  const Tensor line_weight = eval_of(randn({6, 4, 3})), volume_weight = eval_of(randn({3, 2, 2, 2, 2}));
  const Tensor up_weight = eval_of(randn({4, 5, 3, 3})), up_bias = eval_of(randn({5})), channels = eval_of(rand({4}) + 0.5);
  const Tensor matrix = eval_of(randn({4, 5})), other = eval_of(randn({3, 4})), truth = greater(rows, 0.0);

  std::vector<SaveCase> all;
  const auto add = [&](std::string name, onnx::Function f, std::vector<Tensor> examples, bool exact = true, int opset = 18,
                       bool follows = true) {
    all.push_back({std::move(name), std::move(f), std::move(examples), exact, opset, follows});
  };
  // One operator each.
  for (const auto& [name, f] : std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{
           {"abs", abs},           {"sign", sign},     {"exp", exp},     {"sin", sin},      {"cos", cos},
           {"erf", erf},           {"floor", floor},   {"ceil", ceil},   {"round", round},  {"tanh", tanh},
           {"sigmoid", sigmoid},   {"relu", relu},     {"selu", selu},   {"mish", mish},    {"hardswish", hardswish},
           {"softsign", softsign}, {"tan", tan},       {"atan", atan},   {"sinh", sinh},    {"cosh", cosh},
           {"asinh", asinh},       {"square", square}, {"relu6", relu6}, {"is_nan", is_nan}})
    add(name, of_one(f), {rows});
  for (const auto& [name, f] : std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{
           {"log", log}, {"sqrt", sqrt}, {"rsqrt", rsqrt}, {"reciprocal", reciprocal}})
    add(name, of_one(f), {positive});
  for (const auto& [name, f] :
       std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{{"asin", asin}, {"acos", acos}, {"atanh", atanh}})
    add(name, of_one(f), {inside});
  // Several operators each.
  for (const auto& [name, f] : std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{{"silu", silu},
                                                                                              {"hardsigmoid", hardsigmoid},
                                                                                              {"log1p", log1p},
                                                                                              {"expm1", expm1},
                                                                                              {"exp2", exp2},
                                                                                              {"trunc", trunc},
                                                                                              {"erfc", erfc},
                                                                                              {"deg2rad", deg2rad},
                                                                                              {"sinc", sinc},
                                                                                              {"log_sigmoid", log_sigmoid},
                                                                                              {"is_finite", is_finite},
                                                                                              {"tanhshrink", tanhshrink}})
    add(name, of_one(f), {f == static_cast<Tensor (*)(const Tensor&)>(log1p) ? positive : rows}, false);
  add(
      "gelu", [](In in) -> Out { return {gelu(in[0])}; }, {rows}, false);
  add(
      "gelu_20",
      [](In in) -> Out {
        return {gelu(in[0]), gelu(in[0], Gelu::tanh)};
      },
      {rows}, true, 20);
  add(
      "gelu_tanh", [](In in) -> Out { return {gelu(in[0], Gelu::tanh)}; }, {rows}, false);
  add("activations",
      [](In in) -> Out {
        return {leaky_relu(in[0], 0.125), elu(in[0], 0.5), celu(in[0], 2), hardtanh(in[0], -0.5, 0.75), clamp(in[0], 0, 1)};
      },
      {rows});
  add(
      "softplus",
      [](In in) -> Out {
        return {softplus(in[0]), softplus(in[0], 2)};
      },
      {rows}, false);
  add("numbers",
      [](In in) -> Out {
        return {in[0] * 2.5, 1.0 - in[0], in[0] / 3, 2.0 / in[1], -in[0], pow(in[1], 1.75), maximum(in[0], 0.25)};
      },
      {rows, positive});
  add(
      "powers",
      [](In in) -> Out {
        return {pow(in[0], 3), pow(in[0], 4), pow(in[0], -2), pow(in[0], 0.5), pow(in[0], -0.5), pow(in[0], 1.5)};
      },
      {positive}, false);
  add("arithmetic",
      [](In in) -> Out {
        return {in[0] + in[1], in[0] - in[1], in[0] * in[1], in[0] / in[1], maximum(in[0], in[1]), minimum(in[0], in[1])};
      },
      {rows, other});
  add("comparisons",
      [](In in) -> Out {
        return {eq(in[0], in[1]),       not_equal(in[0], in[1]), less(in[0], in[1]),
                less_equal(in[0], 0.5), greater(in[0], in[1]),   greater_equal(in[0], in[1])};
      },
      {rows, other});
  add("logic",
      [](In in) -> Out {
        return {logical_and(in[0], in[1]), logical_or(in[0], in[1]), logical_not(in[0]), logical_xor(in[0], in[1]),
                where(in[0], 1.0, 2.0)};
      },
      {eval_of(truth), eval_of(greater(other, 0.0))});
  add(
      "remainders",
      [](In in) -> Out {
        return {fmod(in[0], in[1]), remainder(in[0], in[1]), floor_divide(in[0], in[1])};
      },
      {rows, positive}, false);
  add(
      "two_operands",
      [](In in) -> Out {
        return {hypot(in[0], in[1]), logaddexp(in[0], in[1]), atan2(in[0], in[1]), xlogy(in[1], in[1]), fmax(in[0], in[1])};
      },
      {rows, positive}, false);
  add("integers",
      [](In in) -> Out {
        return {in[0] + 2, in[0] * in[0], in[0] / 2, less(in[0], 2), cast(in[0], Dtype::f32) * 0.5, in[0] * 0.5};
      },
      {words});
  add("casts",
      [](In in) -> Out {
        return {cast(in[0], Dtype::i32), cast(in[0], Dtype::i64), cast(in[0], Dtype::f16),
                cast(cast(in[0], Dtype::bf16), Dtype::f32)};
      },
      {rows});
  add("halves",
      [](In in) -> Out {
        return {relu(in[0] + in[1]) * 2, in[0] * 0.1};
      },
      {eval_of(cast(rows, Dtype::f16)), eval_of(cast(other, Dtype::f16))});
  const Tensor half = eval_of(cast(rows, Dtype::f16)), half_positive = eval_of(cast(positive, Dtype::f16));
  add(
      "half_formulas",
      [](In in) -> Out {
        return {is_inf(in[0]),     is_finite(in[0]),  nan_to_num(in[0]), expm1(in[0]),
                atan2(1.0, in[0]), hypot(3.0, in[0]), xlogy(2.0, in[1]), logaddexp(in[0], 1.0)};
      },
      {half, half_positive}, false);
  add(
      "half_formulas_20",
      [](In in) -> Out {
        return {is_inf(in[0]), is_finite(in[0]), nan_to_num(in[0])};
      },
      {half}, true, 20);
  add(
      "bf16_formulas",
      [](In in) -> Out {
        const Tensor x = cast(in[0], Dtype::bf16);
        const auto f32 = [](const Tensor& y) { return cast(y, Dtype::f32); };
        return {f32(sin(x)), f32(round(x)), f32(mish(x)), f32(elu(x)), f32(hardsigmoid(x)), argsort(x, 1)};
      },
      {rows}, false);
  add("bytes", [](In in) -> Out { return {-in[0]}; }, {eval_of(cast(words, Dtype::u8))});
  add("truths", [](In in) -> Out { return {argmax(in[0], 1, false), argsort(in[0], 1)}; }, {eval_of(truth)});
  // Shapes.
  add("shapes",
      [](In in) -> Out {
        return {flatten(in[0]), permute(in[0], {0, 2, 3, 1}), reshape(in[0], {in[0].size(0) * 4, 72}), unsqueeze(in[0], 1)};
      },
      {image});
  add("slices",
      [](In in) -> Out {
        return {slice(in[0], 2, 1, 7, 2), flip(in[0], {3}), slice(in[0], 1, -2), concat({in[0], in[0] * 2}, 1),
                roll(in[0], {1}, {2})};
      },
      {image});
  add("pads",
      [](In in) -> Out {
        return {pad(in[0], {0, 0, 1, 2}, {0, 0, 2, 0}), pad(in[0], {0, 0, 0, 1}, {0, 0, 1, 0}, 0.5)};
      },
      {image});
  add("batch_of_zeros",
      [](In in) -> Out {
        return {concat({in[0], zeros_like(in[0])}, 1), expand(arange(4), {in[0].size(0), 4}),
                cast(arange(in[0].size(0)), Dtype::f32)};
      },
      {rows});
  add("batch_mean", [](In in) -> Out { return {sum(in[0], {0}) / static_cast<double>(in[0].size(0))}; }, {rows});
  add(
      "stacked",
      [](In in) -> Out {
        return {stack({in[0], in[1]}, 1), repeat_interleave(in[0], 2, 1), diagonal(in[1], 0, 0, 1)};
      },
      {rows, other}, true, 18, false);
  // Reductions and products.
  add("reductions",
      [](In in) -> Out {
        return {sum(in[0], {1}),  mean(in[0], {2, 3}, true), max(in[0], {1}, true),  min(in[0], {3}),
                prod(in[0], {2}), argmax(in[0], 1, false),   argmin(in[0], 2, true), cumsum(in[0], 2)};
      },
      {image});
  add("sum_of_all", [](In in) -> Out { return {sum(in[0]), mean(in[0])}; }, {image});
  add("softmaxes", [](In in) -> Out { return {softmax(in[0], 1), log_softmax(in[0], -1)}; }, {image});
  add("products", [matrix](In in) -> Out { return {matmul(in[0], matrix), linear(in[0], transpose(matrix, 0, 1))}; }, {rows});
  add("batched_products", [](In in) -> Out { return {matmul(in[0], in[1])}; }, {sequence, eval_of(randn({3, 4, 2}))});
  add(
      "transposed_products", [](In in) -> Out { return {matmul(in[0], in[0], {.transpose_b = true})}; }, {sequence}, false);
  // Layers.
  add("conv2d",
      [weight, bias, grouped](In in) -> Out {
        return {conv2d(in[0], weight, bias, {.stride = 2, .padding = {1, 0, 0, 1}}),
                conv2d(in[0], grouped, {}, {.padding = 2, .dilation = 2, .groups = 2})};
      },
      {image});
  add("conv1d", [line_weight, bias](In in) -> Out { return {conv1d(in[0], line_weight, bias, {.stride = 2, .padding = 1})}; },
      {line});
  add("conv3d", [volume_weight](In in) -> Out { return {conv3d(in[0], volume_weight, {}, {.stride = {1, 2, 1}})}; }, {volume});
  add(
      "conv_transpose2d",
      [up_weight, up_bias](In in) -> Out {
        return {conv_transpose2d(in[0], up_weight, up_bias, {.stride = 2, .padding = 1, .output_padding = 1})};
      },
      {image}, false);
  add("pools",
      [](In in) -> Out {
        return {max_pool2d(in[0], 3, {.stride = 2, .padding = 1}), avg_pool2d(in[0], {2, 3}),
                max_pool2d(in[0], 2, {.ceil_mode = true}),
                avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false})};
      },
      {image});
  const Tensor small_weight = eval_of(randn({2, 4, 3, 3}));
  add(
      "bf16_layers",
      [small_weight](In in) -> Out {
        const Tensor x = cast(in[0], Dtype::bf16);
        const auto f32 = [](const Tensor& y) { return cast(y, Dtype::f32); };
        return {f32(conv2d(x, cast(small_weight, Dtype::bf16))), f32(max_pool2d(x, 2)), f32(avg_pool2d(x, 2)),
                f32(global_avg_pool2d(x))};
      },
      {image}, false);
  add(
      "pool_divisors",
      [](In in) -> Out {
        return {avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = 5}),
                avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .divisor_override = 5})};
      },
      {image}, false);
  add("pool_places",
      [](In in) -> Out {
        const auto both = max_pool2d_with_indices(in[0], 2);
        return {both.y, both.indices};
      },
      {image});
  add("other_pools",
      [](In in) -> Out {
        return {max_pool1d(in[0], 2), avg_pool1d(in[0], 3), adaptive_avg_pool1d(in[0], 1)};
      },
      {line});
  add("volume_pools", [](In in) -> Out { return {max_pool3d(in[0], 2), avg_pool3d(in[0], 2)}; }, {volume});
  add(
      "adaptive_pools",
      [](In in) -> Out {
        return {adaptive_avg_pool2d(in[0], {3, 4}), adaptive_avg_pool2d(in[0], {4, 3}), adaptive_max_pool2d(in[0], {2, 5})};
      },
      {image}, false);
  // Normalizations.
  add("batch_norm",
      [channels](In in) -> Out {
        return {batch_norm_inference(in[0], channels - 1.0, channels, channels * 2, -channels),
                batch_norm_inference(in[0], channels, channels, {}, {})};
      },
      {image});
  add("layer_norm",
      [channels](In in) -> Out {
        return {layer_norm(in[0], 1, channels, -channels), layer_norm(in[0], 2, {}, {})};
      },
      {sequence});
  add("group_norm",
      [channels](In in) -> Out {
        return {group_norm(in[0], 2, channels, -channels), group_norm(in[0], 4, {}, {})};
      },
      {image});
  add(
      "group_norm_21", [channels](In in) -> Out { return {group_norm(in[0], 2, channels, -channels)}; }, {image}, true, 21);
  add("instance_norm", [channels](In in) -> Out { return {instance_norm(in[0], channels, -channels)}; }, {image});
  add("rms_norm", [channels](In in) -> Out { return {rms_norm(in[0], 1, channels)}; }, {sequence});
  add(
      "rms_norm_23", [channels](In in) -> Out { return {rms_norm(in[0], 1, channels)}; }, {sequence}, true, 23);
  add("local_response_norm", [](In in) -> Out { return {local_response_norm(in[0], 3)}; }, {image});
  // Indices.
  add("gathers",
      [matrix](In in) -> Out {
        return {embedding(in[0], concat({matrix, matrix}, 0)), index_select(matrix, 1, in[0]), one_hot(in[0], 5)};
      },
      {words});
  add("picks",
      [](In in) -> Out {
        const auto both = topk(in[0], 2, 1);
        return {gather(in[0], 1, remainder(cast(in[1], Dtype::i64), 4.0)), both.values, both.indices, argsort(in[0], 1),
                sort(in[0], 1, true).values};
      },
      {rows, words});
  add("scatters",
      [](In in) -> Out {
        const Tensor at = remainder(cast(in[1], Dtype::i64), 4.0);
        return {scatter(in[0], 1, at, slice(in[2], 1, 0, 2)), scatter_add(in[0], 1, at, in[2])};
      },
      {rows, words, other});
  add(
      "copies",
      [](In in) -> Out {
        return {index_copy(in[0], 1, Tensor::from({2, 0}), slice(in[1], 1, 0, 2))};
      },
      {rows, other}, false);
  // Recurrent layers, with states and both directions.
  const auto recurrent = [&](const char* name, auto layer) {
    add(name, [layer](In in) -> Out { return {layer(in[0])}; }, {sequence});
  };
  recurrent("lstm", nn::LSTM(4, 5, 2, {.batch_first = true, .bidirectional = true}));
  recurrent("gru", nn::GRU(4, 5, 1, {.batch_first = true}));
  recurrent("rnn", nn::RNN(4, 5, 1, {.batch_first = true}));
  add("lengths", [layer = nn::GRU(4, 5, 1, {.batch_first = true})](In in) -> Out { return {layer(in[0], {}, in[1]).output}; },
      {sequence, Tensor::from({6, 2, 4})});
  // Images.
  add(
      "resizes",
      [](In in) -> Out {
        return {interpolate(in[0], {.scale_factor = {2}}), interpolate(in[0], {.size = {5, 6}}),
                interpolate(in[0], {.size = {12, 11}, .mode = Interpolation::bilinear}),
                interpolate(in[0], {.size = {12, 11}, .mode = Interpolation::bilinear, .align_corners = true}),
                interpolate(in[0], {.size = {12, 11}, .mode = Interpolation::bicubic})};
      },
      {image}, false);
  add(
      "smooth_resizes",
      [](In in) -> Out {
        return {interpolate(in[0], {.size = {3, 4}, .mode = Interpolation::bicubic, .antialias = true}),
                interpolate(in[0], {.size = {3, 4}, .mode = Interpolation::bilinear, .antialias = true})};
      },
      {image}, false);
  add(
      "grid_sample", [](In in) -> Out { return {grid_sample(in[0], in[1])}; }, {image, eval_of(rand({3, 5, 4, 2}) * 2 - 1.0)},
      false);
  add(
      "roi_align",
      [](In in) -> Out {
        const Tensor boxes = concat({zeros({in[1].size(0), 1}), in[1]}, 1);
        return {roi_align(in[0], boxes, {2, 3}, {.sampling_ratio = 2})};
      },
      {image, Tensor::from({1.0F, 2, 5, 6, 0, 1, 7.5F, 8, 1, 1, 2, 2}, {3, 4})}, false);
  // Attention.
  const Tensor heads = eval_of(randn({3, 2, 5, 4}));
  add(
      "attention",
      [](In in) -> Out {
        return {scaled_dot_product_attention(in[0], in[0], in[0]),
                scaled_dot_product_attention(in[0], in[0], in[0], {.causal = true})};
      },
      {heads}, false);
  add(
      "attention_23", [](In in) -> Out { return {scaled_dot_product_attention(in[0], in[0], in[0], {.causal = true})}; }, {heads},
      false, 23);
  const Tensor mask_line = eval_of(randn({5}));
  add(
      "attention_mask_line_23",
      [mask_line](In in) -> Out { return {scaled_dot_product_attention(in[0], in[0], in[0], {.mask = mask_line})}; }, {heads},
      false, 23);
  return all;
}

struct NetworkCase {
  std::string name;
  std::shared_ptr<nn::Module> module;
  Tensor example;
  bool exact = true;
};

/// Networks of clnet::models by name, with statistics that are not those of the start.
inline NetworkCase network_case(const std::string& name) {
  manual_seed(7);
  const bool language = models::is_language_model(name);
  const bool large = name == "resnet18" || name == "resnet50" || name == "vgg16" || name == "mobilenetv2";
  const Shape sample = language ? Shape{12} : large ? Shape{3, 64, 64} : name == "resnet20" ? Shape{3, 32, 32} : Shape{1, 28, 28};
  NetworkCase result{name, models::make(name, sample, 10), {}, !language || name == "char-lstm"};
  for (auto& [buffer, value] : result.module->buffers())
    if (is_floating(value.dtype())) value.set(rand(value.value().shape()) + 0.5);
  std::vector<std::int64_t> extents{2};
  extents.insert(extents.end(), sample.begin(), sample.end());
  result.example = eval_of(language ? randint(0, 10, Shape(extents)) : randn(Shape(extents)));
  return result;
}

}  // namespace clnet::test
