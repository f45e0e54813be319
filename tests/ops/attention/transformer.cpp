// Attention and transformers as layers.
#include "clnet/nn/transformer.h"

#include <catch2/catch.hpp>

#include "clnet/nn/attention.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"
#include "tests/reference/attention/transformer.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

/// Other numbers than the initial ones, of which many are 0 or 1.
reference::NamedArrays fill(nn::Module& module) {
  reference::NamedArrays arrays;
  std::uint64_t seed = 10;
  for (auto& [name, parameter] : module.parameters()) {
    auto values = make_values({parameter.value().shape(), -0.8, 0.9}, ++seed);
    parameter.set(to_tensor(values, Dtype::f32));
    arrays.emplace(name, values);
  }
  return arrays;
}

struct Operand {
  Array array;
  Tensor tensor;
  explicit Operand(const Shape& shape, std::uint64_t seed = 1)
      : array(make_values({shape}, seed)), tensor(to_tensor(array, Dtype::f32)) {}
};

std::vector<std::string> names(const nn::Module& module) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : module.parameters()) result.push_back(name);
  return result;
}

/// d loss / d every parameter against differences of `want`, at some elements of each.
void check_gradients(nn::Module& module, reference::NamedArrays arrays, const Tensor& y,
                     const std::function<Array(const reference::NamedArrays&)>& want) {
  auto weights = make_values({y.shape()}, 99);
  const auto loss = sum(y * to_tensor(weights, Dtype::f32));
  const auto value = [&] {
    const auto result = want(arrays);
    double total = 0;
    for (std::int64_t i = 0; i < result.numel(); ++i) total += result[i] * weights[i];
    return total;
  };
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : module.parameters()) parameters.push_back(parameter);
  const auto got = gradients(loss, parameters);
  std::size_t at = 0;
  for (const auto& [name, parameter] : module.parameters()) {
    const auto gradient = to_array(got[at++]);
    auto& array = arrays.at(name);
    for (std::int64_t i = 0; i < array.numel(); i += 1 + array.numel() / 5) {
      const double before = array[i];
      array[i] = before + 1e-5;
      const double above = value();
      array[i] = before - 1e-5;
      const double below = value();
      array[i] = before;
      INFO(name << '[' << i << ']');
      CHECK(gradient[i] == Approx((above - below) / 2e-5).margin(2e-4).epsilon(1e-4));
    }
  }
}

Tensor length_first(const Tensor& x) { return transpose(x, 0, 1); }

}  // namespace

TEST_CASE("MultiheadAttention of one input") {
  nn::MultiheadAttention layer(12, 3, {.batch_first = true});
  CHECK(names(layer) == std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  const auto parameters = fill(layer);
  const Operand x({2, 5, 12});
  const auto want = reference::multihead_attention(x.array, x.array, x.array, 3, parameters, "", nullptr).y;
  const auto y = layer(x.tensor);
  compare("batch first", to_array(y), want, 1e-5);
  check_gradients(layer, parameters, y,
                  [&](const auto& p) { return reference::multihead_attention(x.array, x.array, x.array, 3, p, "", nullptr).y; });

  nn::MultiheadAttention other(12, 3);
  other.load_state_dict(layer.state_dict());
  compare("length first", to_array(length_first(other(length_first(x.tensor)))), want, 1e-5);
  Array first({5, 12});
  std::copy_n(want.values.begin(), 60, first.values.begin());
  compare("no batch", to_array(other(squeeze(slice(x.tensor, 0, 0, 1), 0))), first, 1e-5);
  CHECK(layer.kind() == "MultiheadAttention(12, 3)");
}

TEST_CASE("layers of Transformers without biases") {
  nn::TransformerDecoderLayer bare(4, 2, {.dim_feedforward = 8, .bias = false}), full(4, 2, {.dim_feedforward = 8});
  CHECK(names(bare) == std::vector<std::string>{"self_attn.in_proj_weight", "self_attn.out_proj.weight",
                                                "multihead_attn.in_proj_weight", "multihead_attn.out_proj.weight",
                                                "linear1.weight", "linear2.weight", "norm1.weight", "norm2.weight",
                                                "norm3.weight"});
  full.load_state_dict(bare.state_dict(), {.strict = false});
  for (auto& [name, parameter] : full.parameters())
    if (name.ends_with("bias")) parameter.set(zeros(parameter.value().shape()));
  bare.inference();
  full.inference();
  const Operand x({3, 2, 4}, 1), memory({5, 2, 4}, 2);
  compare("without biases", to_array(bare(x.tensor, memory.tensor)), to_array(full(x.tensor, memory.tensor)), 1e-6);
  nn::TransformerEncoder encoder(4, 2, 1, {.dim_feedforward = 8, .bias = false}, true);
  CHECK(names(encoder).back() == "norm.weight");
  CHECK(names(encoder).size() == 7);
}

TEST_CASE("MultiheadAttention of several inputs, with masks and weights") {
  for (bool own_widths : {false, true}) {
    nn::MultiheadAttention layer(8, 2, {.kdim = own_widths ? 6 : 0, .vdim = own_widths ? 5 : 0, .batch_first = true});
    if (own_widths)
      CHECK(names(layer) == std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                                     "out_proj.weight", "out_proj.bias"});
    const auto parameters = fill(layer);
    const Operand q({2, 3, 8}, 1), k({2, 4, own_widths ? 6 : 8}, 2), v({2, 4, own_widths ? 5 : 8}, 3);
    // Key 3 of the second of the batch is padding; query 0 may not look at key 1.
    const std::vector<std::uint8_t> padding{0, 0, 0, 0, 0, 0, 0, 1}, hidden{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const auto mask_of = [](const std::vector<std::uint8_t>& bytes, const Shape& shape) {
      return Tensor::from_bytes(bytes.data(), bytes.size(), {shape, Dtype::boolean});
    };
    const auto key_padding_mask = mask_of(padding, {2, 4}), attn_mask = mask_of(hidden, {3, 4});
    Array added({2, 2, 3, 4});
    for (std::int64_t i = 0; i < added.numel(); ++i) {
      const auto j = i % 4, l = i / 4 % 3, n = i / 24;
      if (padding[static_cast<std::size_t>(n * 4 + j)] || hidden[static_cast<std::size_t>(l * 4 + j)]) added[i] = -INFINITY;
    }
    const auto want = reference::multihead_attention(q.array, k.array, v.array, 2, parameters, "", &added);
    const nn::AttentionMasks masks{.attn_mask = attn_mask, .key_padding_mask = key_padding_mask};
    const auto y = layer(q.tensor, k.tensor, v.tensor, masks);
    compare("y", to_array(y), want.y, 1e-5);
    check_gradients(layer, parameters, y,
                    [&](const auto& p) { return reference::multihead_attention(q.array, k.array, v.array, 2, p, "", &added).y; });
    const auto all = layer.forward_with_weights(q.tensor, k.tensor, v.tensor, masks, false);
    compare("y beside weights", to_array(all.y), want.y, 1e-5);
    compare("weights", to_array(all.weights), want.weights, 1e-5);
    Array average({2, 3, 4});
    for (std::int64_t i = 0; i < average.numel(); ++i)
      average[i] = (want.weights[i / 12 * 24 + i % 12] + want.weights[i / 12 * 24 + 12 + i % 12]) / 2;
    compare("mean of weights", to_array(layer.forward_with_weights(q.tensor, k.tensor, v.tensor, masks).weights), average, 1e-5);

    // The same masks as numbers, and one mask per head.
    auto per_head = added;
    per_head.shape = {4, 3, 4};
    for (auto& value : per_head.values) value = std::isinf(value) ? -1e30 : value;
    compare("added mask", to_array(layer(q.tensor, k.tensor, v.tensor, {.attn_mask = to_tensor(per_head, Dtype::f32)})), want.y,
            1e-5);
    Array numbers({3, 4});
    for (std::int64_t i = 0; i < 12; ++i) numbers[i] = hidden[static_cast<std::size_t>(i)] ? -INFINITY : 0;
    compare("bool and added mask",
            to_array(layer(q.tensor, k.tensor, v.tensor,
                           {.attn_mask = to_tensor(numbers, Dtype::f32), .key_padding_mask = key_padding_mask})),
            want.y, 1e-5);
    compare("causal", to_array(layer(q.tensor, k.tensor, v.tensor, {.is_causal = true})),
            reference::multihead_attention(q.array, k.array, v.array, 2, parameters, "", nullptr, true).y, 1e-5);
  }
}

TEST_CASE("MultiheadAttention with keys and values of its own and of zeros is PyTorch's") {
  nn::MultiheadAttention layer(4, 2, {.add_bias_kv = true, .add_zero_attn = true});
  CHECK(names(layer) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight", "out_proj.bias"});
  double number = 0;
  for (auto& [name, parameter] : layer.parameters()) {
    Array values(parameter.value().shape());
    for (std::int64_t i = 0; i < values.numel(); ++i) values[i] = 0.5 * std::sin(0.7 * static_cast<double>(i) + number);
    parameter.set(to_tensor(values, Dtype::f32));
    ++number;
  }
  Array cosines({3, 2, 4});
  for (std::int64_t i = 0; i < cosines.numel(); ++i) cosines[i] = std::cos(0.3 * static_cast<double>(i));
  const Tensor x = to_tensor(cosines, Dtype::f32);
  const std::vector<std::uint8_t> padded{0, 0, 1, 0, 0, 0}, later{0, 1, 1, 0, 0, 1, 0, 0, 0};
  const auto mask_of = [](const std::vector<std::uint8_t>& bytes, const Shape& shape) {
    return Tensor::from_bytes(bytes.data(), bytes.size(), {shape, Dtype::boolean});
  };
  const Tensor padding = mask_of(padded, {2, 3}), causal = mask_of(later, {3, 3});
  const Array want({3, 2, 4}, {-0.3801982, -0.3829801, 0.1618471,  0.2769452, -0.5319529, -0.2512711, 0.0654034,  0.326979,
                               -0.6747211, -0.0233808, -0.2212748, 0.6393182, -0.6615887, -0.1005088, -0.0890638, 0.4673015,
                               -0.7376152, -0.0431338, -0.1211574, 0.4704051, -0.6840426, -0.0811402, -0.1031089, 0.4744002});
  const Array slopes({3, 2, 4}, {0.1635419,  0.2080906,  0.1547705,  0.0286594,  -0.0315771, -0.0421757, -0.0329389, -0.0082102,
                                 -0.2938201, -0.395898,  -0.3117796, -0.0810262, -0.2214866, -0.176599,  -0.0486547, 0.1021728,
                                 -0.22948,   -0.0967119, 0.0815415,  0.2214445,  -0.1275305, -0.0673659, 0.0244819,  0.1048155});
  const Tensor floating = where(causal, -INFINITY, 0);
  for (const auto& masks : {nn::AttentionMasks{.attn_mask = causal, .key_padding_mask = padding},
                            nn::AttentionMasks{.key_padding_mask = padding, .is_causal = true},
                            nn::AttentionMasks{.attn_mask = floating, .key_padding_mask = padding}}) {
    const auto y = layer(x, x, x, masks);
    compare("with masks", to_array(y), want, 1e-5);
    compare("gradient", to_array(gradients(sum(square(y)), {x})[0]), slopes, 1e-5);
  }
  const auto both = layer.forward_with_weights(x, x, x, {.attn_mask = causal, .key_padding_mask = padding});
  compare("weights", to_array(both.weights),
          {{2, 3, 5}, {0.1849919, 0,         0, 0.4425969, 0.3724112, 0.4400734, 0.119763,  0,         0.2166779, 0.2234857,
                       0.0840539, 0.3915296, 0, 0.289445,  0.2349715, 0.3079223, 0,         0,         0.3515648, 0.3405129,
                       0.2390356, 0.229057,  0, 0.2745049, 0.2574025, 0.1314755, 0.3155746, 0.0867599, 0.255394,  0.210796}},
          1e-5);
  const auto plain = layer(x);
  compare("without masks", to_array(plain),
          {{3, 2, 4}, {-0.6627092, -0.0878505, -0.1117973, 0.4974832, -0.6498371, -0.0598479, -0.1774385, 0.5931781,
                       -0.6957616, 0.0230609,  -0.2877511, 0.7181475, -0.7239546, 0.0078356,  -0.2308669, 0.6261774,
                       -0.7768328, 0.0228331,  -0.2062507, 0.5647919, -0.6840426, -0.0811402, -0.1031089, 0.4744002}},
          1e-5);
  const auto g = gradients(sum(square(plain)), {layer.parameter("bias_k"), layer.parameter("bias_v")});
  compare("bias_k", to_array(g[0]), {{1, 1, 4}, {-0.2249608, -0.3059515, -0.4532439, 0.0224312}}, 1e-5);
  compare("bias_v", to_array(g[1]), {{1, 1, 4}, {0.6914252, 1.6773385, 1.4799879, 0.94345}}, 1e-5);
  auto cache = layer.cache(2, 4);
  CHECK_THROWS_WITH(layer.step(x, cache), Contains("step() is for attention without add_bias_kv and add_zero_attn"));
}

TEST_CASE("layers of transformers take any activation") {
  manual_seed(3);
  nn::TransformerEncoderLayer by_name(8, 2, {.dim_feedforward = 10, .activation = nn::TransformerActivation::gelu}),
      by_function(8, 2, {.dim_feedforward = 10, .activation_function = [](const Tensor&t) { return gelu(t); }}),
      other(8, 2, {.dim_feedforward = 10, .activation_function = [](const Tensor&t) { return silu(t); }});
  nn::TransformerDecoderLayer decoder(8, 2, {.dim_feedforward = 10, .activation = nn::TransformerActivation::gelu}),
      decoder_by_function(8, 2, {.dim_feedforward = 10, .activation_function = [](const Tensor&t) { return gelu(t); }});
  by_function.load_state_dict(by_name.state_dict());
  other.load_state_dict(by_name.state_dict());
  decoder_by_function.load_state_dict(decoder.state_dict());
  for (nn::Module* layer : std::initializer_list<nn::Module*>{&by_name, &by_function, &other, &decoder, &decoder_by_function})
    layer->inference();
  const Operand x({3, 2, 8});
  const auto want = to_array(by_name(x.tensor));
  compare("gelu", to_array(by_function(x.tensor)), want, 1e-6);
  CHECK(to_array(other(x.tensor)).values != want.values);
  compare("gelu of a decoder", to_array(decoder_by_function(x.tensor, x.tensor)), to_array(decoder(x.tensor, x.tensor)), 1e-6);
}

TEST_CASE("MultiheadAttention drops weights in training only") {
  nn::MultiheadAttention layer(8, 2, {.dropout = 0.5});
  const Operand x({6, 2, 8});
  CHECK(to_array(layer(x.tensor)).values != to_array(layer(x.tensor)).values);
  layer.inference();
  CHECK(to_array(layer(x.tensor)).values == to_array(layer(x.tensor)).values);
}

TEST_CASE("steps of MultiheadAttention with a cache are what it gives for the whole sequence, by one plan") {
  for (bool batch_first : {false, true}) {
    nn::MultiheadAttention layer(8, 2, {.dropout = 0.5, .batch_first = batch_first});
    fill(layer);
    layer.inference();
    const Operand x({2, 7, 8});
    const auto arranged = [&](const Tensor& t) { return batch_first ? t : length_first(t); };
    const auto all = arranged(x.tensor);
    const auto want = to_array(layer(all, all, all, {.is_causal = true}));
    auto cache = layer.cache(2, 9);
    CHECK(cache.capacity() == 9);
    std::vector<Tensor> pieces;
    const int dim = batch_first ? 1 : 0;
    const auto take = [&](std::int64_t from, std::int64_t to) {
      auto piece = slice(all, dim, from, to);
      eval({piece});
      pieces.push_back(layer.step(piece, cache).detach());
    };
    take(0, 2);  // a beginning of several positions, then one by one
    take(2, 3);
    take(3, 4);
    for (std::int64_t i = 4; i < 7; ++i) {
      const auto piece =
          Tensor::from(slice(all, dim, i, i + 1).to_vector<float>(), batch_first ? Shape{2, 1, 8} : Shape{1, 2, 8});
      const auto plans = exec::statistics().plans_made;
      pieces.push_back(layer.step(piece, cache).detach());
      CHECK(exec::statistics().plans_made == plans);
    }
    compare("steps", to_array(concat(pieces, dim)), want, 1e-5);
    CHECK(cache.length == 7);
    CHECK_THROWS_WITH(layer.step(all, cache), Contains("has 7 and no room for 7 more"));
    cache.length = 0;
    compare("anew", to_array(layer.step(all, cache)), want, 1e-5);
    CHECK_THROWS_AS(layer.step(ones({3, 1, 8}), cache), ShapeError);
    auto narrow_cache = layer.cache(2, 9, Dtype::f16);
    CHECK_THROWS_WITH(layer.step(all, narrow_cache), Contains("needs a cache of its dtype, this one is f16"));
    CHECK_THROWS_AS(layer.cache(0, 4), Error);
  }
}

TEST_CASE("MultiheadAttention refuses what does not fit") {
  CHECK_THROWS_WITH(nn::MultiheadAttention(10, 3), "MultiheadAttention: embed_dim 10 is no multiple of 3 heads");
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 0), Error);
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 2, {.dropout = 2}), Error);
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 2, {.kdim = -1}), Error);
  nn::MultiheadAttention layer(8, 2, {.batch_first = true});
  const auto x = ones({2, 3, 8});
  CHECK_THROWS_WITH(layer(ones({2, 3, 7})), Contains("query f32[2, 3, 7] must be {batch, length, 8} or {length, 8}"));
  CHECK_THROWS_AS(layer(x, ones({3, 8}), x), ShapeError);
  CHECK_THROWS_AS(layer(x, ones({1, 3, 8}), ones({1, 3, 8})), ShapeError);
  CHECK_THROWS_AS(layer(x, x, ones({2, 4, 8})), ShapeError);
  CHECK_THROWS_WITH(layer(x, x, x, {.attn_mask = ones({3, 4})}), Contains("attn_mask f32[3, 4] must be [3, 3]"));
  CHECK_THROWS_WITH(layer(x, x, x, {.key_padding_mask = ones({3}, Dtype::boolean)}), Contains("must be [2, 3]"));
  CHECK_THROWS_AS(layer(x, x, x, {.attn_mask = ones({3, 3}, Dtype::i32)}), DtypeError);
  CHECK_THROWS_WITH(layer(Tensor{}), "MultiheadAttention: argument 'query' is undefined");
}

TEST_CASE("layers of transformers") {
  for (bool norm_first : {false, true}) {
    const nn::TransformerLayerOptions options{
        .dim_feedforward = 10,
        .dropout = 0,
        .activation = norm_first ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
        .layer_norm_eps = 1e-3,
        .batch_first = true,
        .norm_first = norm_first};
    const Operand x({2, 5, 8}), memory({2, 3, 8}, 2);
    nn::TransformerEncoderLayer encoder(8, 2, options);
    CHECK(names(encoder) == std::vector<std::string>{"self_attn.in_proj_weight", "self_attn.in_proj_bias",
                                                     "self_attn.out_proj.weight", "self_attn.out_proj.bias", "linear1.weight",
                                                     "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight",
                                                     "norm1.bias", "norm2.weight", "norm2.bias"});
    auto parameters = fill(encoder);
    const auto encoded = [&](const auto& p) {
      return reference::transformer_layer(x.array, nullptr, 2, p, "", norm_first, norm_first, 1e-3, false);
    };
    compare("encoder", to_array(encoder(x.tensor)), encoded(parameters), 1e-5);
    check_gradients(encoder, parameters, encoder(x.tensor), encoded);
    compare("causal encoder", to_array(encoder(x.tensor, {.is_causal = true})),
            reference::transformer_layer(x.array, nullptr, 2, parameters, "", norm_first, norm_first, 1e-3, true), 1e-5);

    nn::TransformerDecoderLayer decoder(8, 2, options);
    parameters = fill(decoder);
    const auto decoded = [&](const auto& p) {
      return reference::transformer_layer(x.array, &memory.array, 2, p, "", norm_first, norm_first, 1e-3, true);
    };
    const auto y = decoder(x.tensor, memory.tensor, {.is_causal = true});
    compare("decoder", to_array(y), decoded(parameters), 1e-5);
    check_gradients(decoder, parameters, y, decoded);
    CHECK_THROWS_WITH(decoder(x.tensor), Contains("forward(x) has no memory"));
  }
}

TEST_CASE("a transformer is its layers, one after the other") {
  const nn::TransformerLayerOptions options{.dim_feedforward = 6, .dropout = 0, .batch_first = true};
  nn::Transformer model(4, 2, 2, 2, options);
  const auto all = names(model);
  CHECK(all.front() == "encoder.layers.0.self_attn.in_proj_weight");
  CHECK(std::count(all.begin(), all.end(), "encoder.norm.weight") == 1);
  CHECK(std::count(all.begin(), all.end(), "decoder.layers.1.multihead_attn.out_proj.bias") == 1);
  CHECK(all.size() == 2 * 12 + 2 + 2 * 18 + 2);
  const auto parameters = fill(model);
  const Operand source({2, 3, 4}, 1), target({2, 5, 4}, 2);
  auto memory = source.array, y = target.array;
  for (const char* layer : {"encoder.layers.0.", "encoder.layers.1."})
    memory = reference::transformer_layer(memory, nullptr, 2, parameters, layer, false, false, 1e-5, false);
  memory = reference::normalized(memory, parameters, "encoder.norm", 1e-5);
  for (const char* layer : {"decoder.layers.0.", "decoder.layers.1."})
    y = reference::transformer_layer(y, &memory, 2, parameters, layer, false, false, 1e-5, true);
  y = reference::normalized(y, parameters, "decoder.norm", 1e-5);
  compare("transformer", to_array(model(source.tensor, target.tensor, {.target = {.is_causal = true}})), y, 1e-4);
  CHECK_THROWS_AS(model(source.tensor), Error);
  CHECK_THROWS_AS(nn::TransformerEncoder(4, 2, 0), Error);
  CHECK_THROWS_WITH(nn::TransformerDecoder(4, 2, 1)(source.tensor), Contains("forward(x) has no memory"));
  // Without a norm at the end, and two encoders share nothing.
  nn::TransformerEncoder plain(4, 2, 1, options), second(4, 2, 1, options);
  CHECK(names(plain).size() == 12);
  CHECK(to_array(plain(source.tensor)).values != to_array(second(source.tensor)).values);
}

TEST_CASE("PositionalEncoding") {
  nn::PositionalEncoding layer(6, {.dropout = 0.5, .max_length = 10});
  CHECK(layer.parameters().empty());
  layer.inference();
  const Operand x({2, 4, 6});
  const auto y = to_array(layer(x.tensor));
  const auto table = to_array(sinusoidal_positions(10, 6));
  for (std::int64_t i = 0; i < y.numel(); ++i) CHECK(y[i] == Approx(x.array[i] + table[i % 24]).margin(1e-6));
  nn::PositionalEncoding other(6, {.dropout = 0, .max_length = 10, .batch_first = false});
  CHECK(to_array(length_first(other(length_first(x.tensor)))).values == y.values);
  CHECK_THROWS_AS(layer(ones({2, 11, 6})), ShapeError);
  CHECK_THROWS_AS(nn::PositionalEncoding(0), Error);
}
