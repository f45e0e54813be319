// Random calls of normalisation and dropout, and the norm of gradients.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

bool add_batch_norm_training(Generator& g) {
  const auto x = with_channels(g);
  const Shape channels{g.shape_of(x)[1]};
  const bool weighted = g.choose().chance(0.7), biased = g.choose().chance(0.7);
  const auto dtype = g.choose().chance(0.7) ? Generator::wide(g.dtype_of(x)) : g.dtype_of(x);
  std::vector<Ref> inputs{x};
  if (weighted) inputs.push_back(g.of_shape(channels, dtype));
  if (biased) inputs.push_back(g.of_shape(channels, dtype));
  g.add_all(
      "batch_norm_training",
      fmt::format(
          "[](BatchNormResult r) {{ return std::vector{{r.y, r.mean, r.var}}; }}(batch_norm_training($0, {}, {}, 0.0078125))",
          weighted ? "$1" : "{}", biased ? (weighted ? "$2" : "$1") : "{}"),
      inputs,
      [=](const Tensors& in) {
        const auto r = batch_norm_training(in[0], weighted ? in[1] : Tensor{}, biased ? in.back() : Tensor{}, 0.0078125);
        return Tensors{r.y, r.mean, r.var};
      },
      {-30, 30});
  return true;
}

bool add_batch_norm_inference(Generator& g) {
  const auto x = with_channels(g);
  const Shape channels{g.shape_of(x)[1]};
  const auto dtype = Generator::wide(g.dtype_of(x));
  const auto mean = g.of_shape(channels, dtype), var = g.leaf(channels, dtype, {0.25, 2}), weight = g.of_shape(channels, dtype),
             bias = g.of_shape(channels, dtype);
  g.add("batch_norm_inference", "batch_norm_inference($0, $1, $2, $3, $4)", {x, mean, var, weight, bias},
        [](const Tensors& in) { return batch_norm_inference(in[0], in[1], in[2], in[3], in[4]); }, {-200, 200});
  return true;
}

bool add_layer_norm(Generator& g) {
  const auto x = g.floating(8, 1);
  const auto& shape = g.shape_of(x);
  const int dims = static_cast<int>(g.choose().integer(1, std::min(2, shape.rank())));
  const Shape normalized(std::vector<std::int64_t>(shape.end() - dims, shape.end()));
  if (normalized.numel() == 0) return false;
  const bool weighted = g.choose().chance(0.6), biased = weighted && g.choose().chance(0.7);
  std::vector<Ref> inputs{x};
  if (weighted) inputs.push_back(g.of_shape(normalized, g.dtype_of(x)));
  if (biased) inputs.push_back(g.of_shape(normalized, g.dtype_of(x)));
  g.add("layer_norm", fmt::format("layer_norm($0, {}, {}, {}, 0.0078125)", dims, weighted ? "$1" : "{}", biased ? "$2" : "{}"),
        inputs,
        [=](const Tensors& in) {
          return layer_norm(in[0], dims, weighted ? in[1] : Tensor{}, biased ? in[2] : Tensor{}, 0.0078125);
        },
        {-30, 30});
  return true;
}

bool add_group_norm(Generator& g, bool instance) {
  const auto x = with_channels(g);
  const auto channels = g.shape_of(x)[1];
  if (instance && g.shape_of(x).rank() < 3) return false;
  const std::int64_t groups = channels % 2 == 0 ? 2 : 1;
  const bool weighted = g.choose().chance(0.6);
  std::vector<Ref> inputs{x};
  if (weighted) inputs.push_back(g.leaf({channels}, g.dtype_of(x), {0.5, 2}));
  const std::string weight = weighted ? "$1" : "{}";
  g.add(instance ? "instance_norm" : "group_norm",
        instance ? fmt::format("instance_norm($0, {}, {{}}, 0.0078125)", weight)
                 : fmt::format("group_norm($0, {}, {}, {{}}, 0.0078125)", groups, weight),
        inputs,
        [=](const Tensors& in) {
          const Tensor w = weighted ? in[1] : Tensor{};
          return instance ? instance_norm(in[0], w, {}, 0.0078125) : group_norm(in[0], groups, w, {}, 0.0078125);
        },
        {-30, 30});
  return true;
}

bool add_rms_norm(Generator& g) {
  const auto x = g.floating(8, 1);
  g.add("rms_norm", "rms_norm($0, 1, {}, 0.0078125)", {x}, [](const Tensors& in) { return rms_norm(in[0], 1, {}, 0.0078125); },
        {-30, 30});
  return true;
}

bool add_local_response_norm(Generator& g) {
  const auto x = with_channels(g);
  const auto size = g.choose().integer(1, 4);
  g.add(
      "local_response_norm", fmt::format("local_response_norm($0, {}, 0.5, 0.75, 1)", size), {x},
      [=](const Tensors& in) { return local_response_norm(in[0], size, 0.5, 0.75, 1); }, g.range(x));
  return true;
}

bool add_dropout(Generator& g) {
  const auto x = g.floating();
  const double p = g.choose().of({0.5, 0.25}), most = g.range(x).size() / (1 - p);
  g.add("dropout", fmt::format("dropout($0, {})", p), {x}, [p](const Tensors& in) { return dropout(in[0], p); }, {-most, most});
  return true;
}

bool add_global_norm(Generator& g) {
  std::vector<Ref> inputs{g.floating()};
  if (g.choose().chance(0.7)) inputs.push_back(g.floating());
  g.add("global_norm", inputs.size() == 2 ? "global_norm({$0, $1})" : "global_norm({$0})", inputs,
        [](const Tensors& in) { return global_norm(in); }, {0, 1000});
  return true;
}

}  // namespace

std::vector<Entry> normalize_entries() {
  return {{"batch_norm_training", 2, add_batch_norm_training},
          {"batch_norm_inference", 1, add_batch_norm_inference},
          {"layer_norm", 3, add_layer_norm},
          {"dropout", 1.5, add_dropout},
          {"group_norm", 1, [](Generator& g) { return add_group_norm(g, false); }},
          {"instance_norm", 0.7, [](Generator& g) { return add_group_norm(g, true); }},
          {"rms_norm", 1, add_rms_norm},
          {"local_response_norm", 0.7, add_local_response_norm},
          {"global_norm", 1, add_global_norm}};
}

}  // namespace clnet::fuzz
