// Random calls of attention and positions.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

bool add_attention(Generator& g) {
  // Long enough that attention is one operation.
  const bool streams = g.choose().chance(0.25);
  const auto q = streams ? g.leaf({2, 150, 4}, g.float_dtype()) : g.floating(4, 2);
  const auto& shape = g.shape_of(q);
  const auto dtype = g.dtype_of(q);
  const auto heads = shape.rank() < 3 ? 1 : shape[-3];
  auto keys = shape.with(-2, streams ? 110 : g.choose().chance(0.4) ? shape[-2] : g.extent());
  if (shape.rank() >= 3 && heads % 2 == 0 && g.choose().chance(0.5)) keys = keys.with(-3, heads / 2);
  const auto values = keys.with(-1, g.choose().chance(0.6) ? keys[-1] : g.extent()), scores = shape.with(-1, keys[-2]);
  if (!g.fits(keys.numel()) || !g.fits(values.numel()) || !g.fits(shape.with(-1, values[-1]).numel())) return false;
  if (!streams && !g.fits(scores.numel())) return false;
  const bool causal = g.choose().chance(0.4), masked = g.choose().chance(0.5), added = g.choose().chance(0.5);
  const double p = g.choose().chance(0.2) ? 0.25 : 0;
  std::vector<Ref> inputs{q, g.of_shape(keys, dtype), g.of_shape(values, dtype)};
  if (masked) {
    Shape mask{scores[-2], scores[-1]};
    if (g.choose().chance(0.3)) mask = Shape{scores[-1]};
    inputs.push_back(added ? g.of_shape(mask, dtype) : g.leaf(mask, Dtype::boolean, {0, 1}, Fill::integers));
  }
  const double most = g.range(inputs[2]).size() / (1 - p);
  const bool started = causal && g.choose().chance(0.4);
  const auto start = g.sizes().integer(-2, 5);
  g.add("scaled_dot_product_attention",
        fmt::format("scaled_dot_product_attention($0, $1, $2, {{.mask = {}, .causal = {}, .start = {}, .dropout = {}}})",
                    masked ? "$3" : "{}", causal, started ? fmt::format("Tensor::scalar({}, Dtype::i64)", start) : "{}", p),
        inputs,
        [=](const Tensors& in) {
          return scaled_dot_product_attention(
              in[0], in[1], in[2],
              {.mask = masked ? in[3] : Tensor{},
               .causal = causal,
               .start = started ? Tensor::scalar(static_cast<double>(start), Dtype::i64) : Tensor{},
               .dropout = p});
        },
        {-most, most});
  return true;
}

bool add_rotary_embedding(Generator& g) {
  auto x = g.floating(8, 2);
  if (g.shape_of(x)[-1] % 2 != 0) x = g.leaf(g.shape_of(x).with(-1, g.choose().of<std::int64_t>({2, 4})), g.dtype_of(x));
  const bool interleaved = g.choose().chance(0.5);
  const auto most = 1.5 * g.range(x).size();
  if (g.choose().chance(0.4)) {
    const auto positions = g.leaf({g.shape_of(x)[-2]}, Dtype::i64, {0, 20}, Fill::integers);
    g.add("rotary_embedding", fmt::format("rotary_embedding($0, $1, {{.base = 100, .interleaved = {}}})", interleaved),
          {x, positions},
          [=](const Tensors& in) { return rotary_embedding(in[0], in[1], {.base = 100, .interleaved = interleaved}); },
          {-most, most});
    return true;
  }
  const auto offset = g.sizes().integer(0, 9);
  g.add("rotary_embedding", fmt::format("rotary_embedding($0, {}, {{.base = 100, .interleaved = {}}})", offset, interleaved), {x},
        [=](const Tensors& in) { return rotary_embedding(in[0], offset, {.base = 100, .interleaved = interleaved}); },
        {-most, most});
  return true;
}

bool add_sinusoidal_positions(Generator& g) {
  const auto length = g.extent(), width = g.extent();
  const auto dtype = g.float_dtype();
  g.add("sinusoidal_positions", fmt::format("sinusoidal_positions({}, {}, Dtype::{})", length, width, to_string(dtype)), {},
        [=](const Tensors&) { return sinusoidal_positions(length, width, dtype); }, {-1, 1});
  return true;
}

}  // namespace

std::vector<Entry> attention_entries() {
  return {{"scaled_dot_product_attention", 2, add_attention},
          {"rotary_embedding", 0.7, add_rotary_embedding},
          {"sinusoidal_positions", 0.3, add_sinusoidal_positions}};
}

}  // namespace clnet::fuzz
