// Multi-head attention and the layers of transformers in double precision, of batch-first inputs.
#pragma once

#include <map>
#include <string>

#include "tests/reference/attention/attention.h"

namespace clnet::testing::reference {

using NamedArrays = std::map<std::string, Array>;

/// x {..., in} by rows first.. of weight {out, in}, `count` of them.
inline Array project(const Array& x, const Array& weight, const Array* bias, std::int64_t first, std::int64_t count) {
  const auto in = x.size(-1);
  Array y(x.shape.with(-1, count));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto row = i / count, column = first + i % count;
    y[i] = bias ? (*bias)[column] : 0;
    for (std::int64_t d = 0; d < in; ++d) y[i] += x[row * in + d] * weight[column * in + d];
  }
  return y;
}

/// {batch, length, features} as {batch, heads, length, features / heads}, or back.
inline Array by_heads(const Array& x, std::int64_t heads) {
  const auto width = x.size(2) / heads;
  Array y({x.size(0), heads, x.size(1), width});
  for (std::int64_t n = 0; n < x.size(0); ++n)
    for (std::int64_t l = 0; l < x.size(1); ++l)
      for (std::int64_t f = 0; f < x.size(2); ++f) y.at({n, f / width, l, f % width}) = x.at({n, l, f});
  return y;
}
inline Array from_heads(const Array& x) {
  Array y({x.size(0), x.size(2), x.size(1) * x.size(3)});
  for (std::int64_t n = 0; n < y.size(0); ++n)
    for (std::int64_t l = 0; l < y.size(1); ++l)
      for (std::int64_t f = 0; f < y.size(2); ++f) y.at({n, l, f}) = x.at({n, f / x.size(3), l, f % x.size(3)});
  return y;
}

struct MultiheadResult {
  Array y, weights;  ///< weights {batch, heads, queries, keys}
};
/// `added` {batch, heads, queries, keys} or nothing: what is added to the scores.
inline MultiheadResult multihead_attention(const Array& query, const Array& key, const Array& value, std::int64_t heads,
                                           const NamedArrays& parameters, const std::string& prefix, const Array* added,
                                           bool causal = false) {
  const auto find = [&](const char* name) {
    const auto found = parameters.find(prefix + name);
    return found == parameters.end() ? nullptr : &found->second;
  };
  const auto width = query.size(2);
  const auto *all = find("in_proj_weight"), *bias = find("in_proj_bias");
  const auto projected = [&](const Array& x, const char* name, std::int64_t part) {
    if (all) return by_heads(project(x, *all, bias, part * width, width), heads);
    Array own({width});
    for (std::int64_t i = 0; bias && i < width; ++i) own[i] = (*bias)[part * width + i];
    return by_heads(project(x, *find(name), &own, 0, width), heads);
  };
  const auto q = projected(query, "q_proj_weight", 0), k = projected(key, "k_proj_weight", 1),
             v = projected(value, "v_proj_weight", 2);
  const AttentionTerms terms{.causal = causal, .scale = 1 / std::sqrt(static_cast<double>(width / heads)), .mask = added};
  return {project(from_heads(attention(q, k, v, terms)), *find("out_proj.weight"), find("out_proj.bias"), 0, width),
          attention_weights(q, k, terms)};
}

inline Array normalized(const Array& x, const NamedArrays& parameters, const std::string& name, double eps) {
  const auto width = x.size(-1);
  Array y = x;
  for (std::int64_t row = 0; row < x.numel() / width; ++row) {
    double mean = 0, var = 0;
    for (std::int64_t i = 0; i < width; ++i) mean += x[row * width + i] / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i) var += std::pow(x[row * width + i] - mean, 2) / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i)
      y[row * width + i] = (x[row * width + i] - mean) / std::sqrt(var + eps) * parameters.at(name + ".weight")[i] +
                           parameters.at(name + ".bias")[i];
  }
  return y;
}

/// The layer of an encoder, or with a memory of a decoder; self attention causal or not. The activation is gelu or relu.
inline Array transformer_layer(const Array& x, const Array* memory, std::int64_t heads, const NamedArrays& parameters,
                               const std::string& prefix, bool norm_first, bool gelu, double eps, bool causal) {
  const auto add = [](Array a, const Array& b) {
    for (std::int64_t i = 0; i < a.numel(); ++i) a[i] += b[i];
    return a;
  };
  int norm = 0;
  const auto residual = [&](const Array& h, const auto& block) {
    const auto name = prefix + "norm" + std::to_string(++norm);
    return norm_first ? add(h, block(normalized(h, parameters, name, eps))) : normalized(add(h, block(h)), parameters, name, eps);
  };
  auto y = residual(x, [&](const Array& h) {
    return multihead_attention(h, h, h, heads, parameters, prefix + "self_attn.", nullptr, causal).y;
  });
  if (memory)
    y = residual(y, [&](const Array& h) {
      return multihead_attention(h, *memory, *memory, heads, parameters, prefix + "multihead_attn.", nullptr).y;
    });
  return residual(y, [&](const Array& h) {
    const auto &w1 = parameters.at(prefix + "linear1.weight"), &w2 = parameters.at(prefix + "linear2.weight");
    auto inner = project(h, w1, &parameters.at(prefix + "linear1.bias"), 0, w1.size(0));
    for (auto& value : inner.values) value = gelu ? value * std::erfc(-value / std::sqrt(2.0)) / 2 : std::max(value, 0.0);
    return project(inner, w2, &parameters.at(prefix + "linear2.bias"), 0, w2.size(0));
  });
}

}  // namespace clnet::testing::reference
