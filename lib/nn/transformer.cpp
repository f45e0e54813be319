#include "clnet/nn/transformer.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

Tensor activated(const Tensor& x, const TransformerLayerOptions& options) {
  if (options.activation_function) return options.activation_function(x);
  return options.activation == TransformerActivation::relu ? relu(x) : gelu(x);
}

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first};
}

/// x + block(x), normalised before the block or behind the sum.
template <class Block>
Tensor residual(const Tensor& x, LayerNorm& norm, bool norm_first, const Block& block) {
  return norm_first ? x + block(norm(x)) : norm(x + block(x));
}

/// Layers as children of a module of their own, whose names are their numbers.
template <class Layer>
Sequential numbered(const std::vector<Layer>& layers) {
  Sequential list;
  for (const auto& layer : layers) list.append(layer);
  return list;
}

template <class Layer>
std::vector<Layer> make_layers(const char* kind, std::int64_t d_model, std::int64_t heads, std::int64_t count,
                               const TransformerLayerOptions& options) {
  require_positive(kind, "the number of layers", count);
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < count; ++i) layers.emplace_back(d_model, heads, options);
  return layers;
}

[[noreturn]] void fail_without_memory(const char* kind) {
  throw Error(fmt::format("{}: forward(x) has no memory to look at; call forward(x, memory)", kind));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t heads, const TransformerLayerOptions& options)
    : options_(options),
      self_attn_(d_model, heads, attention_options(options)),
      linear1_(d_model, options.dim_feedforward, {.bias = options.bias}),
      linear2_(options.dim_feedforward, d_model, {.bias = options.bias}),
      norm1_(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm2_(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}) {
  add("self_attn", self_attn_);
  add("linear1", linear1_);
  add("linear2", linear2_);
  add("norm1", norm1_);
  add("norm2", norm2_);
}

template <class Attention>
Tensor TransformerEncoderLayer::run(const Tensor& x, const Attention& attention) {
  require_defined("TransformerEncoderLayer", {{"x", x}});
  const auto drop = [&](const Tensor& t) { return training() ? dropout(t, options_.dropout) : t; };
  const auto y = residual(x, norm1_, options_.norm_first, [&](const Tensor& t) { return drop(attention(t)); });
  return residual(y, norm2_, options_.norm_first,
                  [&](const Tensor& t) { return drop(linear2_(drop(activated(linear1_(t), options_)))); });
}

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMasks& masks) {
  return run(x, [&](const Tensor& t) { return self_attn_(t, t, t, masks); });
}

Tensor TransformerEncoderLayer::next(const Tensor& x, KVCache& cache) {
  // A copy shares keys and values: the length stays as it was where something throws.
  auto stepped = cache;
  const auto y = run(x, [&](const Tensor& t) { return self_attn_.step(t, stepped); });
  cache.length = stepped.length;
  return y;
}

std::string TransformerEncoderLayer::kind() const { return fmt::format("TransformerEncoderLayer({})", self_attn_.kind()); }

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t heads, const TransformerLayerOptions& options)
    : options_(options),
      self_attn_(d_model, heads, attention_options(options)),
      multihead_attn_(d_model, heads, attention_options(options)),
      linear1_(d_model, options.dim_feedforward, {.bias = options.bias}),
      linear2_(options.dim_feedforward, d_model, {.bias = options.bias}),
      norm1_(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm2_(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm3_(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}) {
  add("self_attn", self_attn_);
  add("multihead_attn", multihead_attn_);
  add("linear1", linear1_);
  add("linear2", linear2_);
  add("norm1", norm1_);
  add("norm2", norm2_);
  add("norm3", norm3_);
}

Tensor TransformerDecoderLayer::forward(const Tensor&) { fail_without_memory("TransformerDecoderLayer"); }

template <class Attention, class MemoryAttention>
Tensor TransformerDecoderLayer::run(const Tensor& x, const Attention& attention, const MemoryAttention& memory_attention) {
  const auto drop = [&](const Tensor& t) { return training() ? dropout(t, options_.dropout) : t; };
  const auto y = residual(x, norm1_, options_.norm_first, [&](const Tensor& t) { return drop(attention(t)); });
  const auto z = residual(y, norm2_, options_.norm_first, [&](const Tensor& t) { return drop(memory_attention(t)); });
  return residual(z, norm3_, options_.norm_first,
                  [&](const Tensor& t) { return drop(linear2_(drop(activated(linear1_(t), options_)))); });
}

Tensor TransformerDecoderLayer::forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                        const AttentionMasks& memory_masks) {
  require_defined("TransformerDecoderLayer", {{"x", x}, {"memory", memory}});
  return run(
      x, [&](const Tensor& t) { return self_attn_(t, t, t, masks); },
      [&](const Tensor& t) { return multihead_attn_(t, memory, memory, memory_masks); });
}

Tensor TransformerDecoderLayer::next(const Tensor& x, DecoderCache& cache) {
  require_defined("TransformerDecoderLayer", {{"x", x}});
  // A copy shares keys and values: the length stays as it was where something throws.
  auto stepped = cache.target;
  const auto y = run(
      x, [&](const Tensor& t) { return self_attn_.step(t, stepped); },
      [&](const Tensor& t) { return multihead_attn_.step(t, cache.memory); });
  cache.target.length = stepped.length;
  return y;
}

DecoderCache TransformerDecoderLayer::room(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks,
                                           std::int64_t beams) const {
  require_positive("TransformerDecoderLayer", "the cache's beams", beams);
  const auto keys = multihead_attn_.memory_cache(memory, memory_masks);
  return {self_attn_.cache(keys.k.size(0) * beams, capacity, memory.dtype()), keys};
}

std::string TransformerDecoderLayer::kind() const { return fmt::format("TransformerDecoderLayer({})", self_attn_.kind()); }

TransformerEncoder::TransformerEncoder(std::int64_t d_model, std::int64_t heads, std::int64_t count,
                                       const TransformerLayerOptions& options, bool final_norm)
    : layers_(make_layers<TransformerEncoderLayer>("TransformerEncoder", d_model, heads, count, options)) {
  add("layers", numbered(layers_));
  if (!final_norm) return;
  norm_.emplace(d_model, LayerNormOptions{.eps = options.layer_norm_eps, .bias = options.bias});
  add("norm", *norm_);
}

template <class Layer>
Tensor TransformerEncoder::run(const Tensor& x, const Layer& layer) {
  auto y = x;
  {
    const NamedScope scope("layers");
    for (std::size_t i = 0; i < layers_.size(); ++i) y = layer(i, y);
  }
  return norm_ ? (*norm_)(y) : y;
}

Tensor TransformerEncoder::forward(const Tensor& x, const AttentionMasks& masks) {
  return run(x, [&](std::size_t i, const Tensor& y) { return layers_[i](y, masks); });
}

Tensor TransformerEncoder::next(const Tensor& x, std::vector<KVCache>& caches) {
  if (caches.size() != layers_.size())
    throw Error(fmt::format("TransformerEncoder: {} layers cannot step with {} caches", layers_.size(), caches.size()));
  // All lengths change, or, where something throws, none.
  auto stepped = caches;
  const auto result = run(x, [&](std::size_t i, const Tensor& y) { return layers_[i].step(y, stepped[i]); });
  for (std::size_t i = 0; i < caches.size(); ++i) caches[i].length = stepped[i].length;
  return result;
}

std::vector<KVCache> TransformerEncoder::room(std::int64_t batch, std::int64_t capacity) const {
  std::vector<KVCache> all;
  for (const auto& layer : layers_) all.push_back(layer.cache(batch, capacity));
  return all;
}

TransformerDecoder::TransformerDecoder(std::int64_t d_model, std::int64_t heads, std::int64_t count,
                                       const TransformerLayerOptions& options, bool final_norm)
    : layers_(make_layers<TransformerDecoderLayer>("TransformerDecoder", d_model, heads, count, options)) {
  add("layers", numbered(layers_));
  if (!final_norm) return;
  norm_.emplace(d_model, LayerNormOptions{.eps = options.layer_norm_eps, .bias = options.bias});
  add("norm", *norm_);
}

Tensor TransformerDecoder::forward(const Tensor&) { fail_without_memory("TransformerDecoder"); }

template <class Layer>
Tensor TransformerDecoder::run(const Tensor& x, const Layer& layer) {
  auto y = x;
  {
    const NamedScope scope("layers");
    for (std::size_t i = 0; i < layers_.size(); ++i) y = layer(i, y);
  }
  return norm_ ? (*norm_)(y) : y;
}

Tensor TransformerDecoder::forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                   const AttentionMasks& memory_masks) {
  return run(x, [&](std::size_t i, const Tensor& y) { return layers_[i](y, memory, masks, memory_masks); });
}

Tensor TransformerDecoder::next(const Tensor& x, std::vector<DecoderCache>& caches) {
  if (caches.size() != layers_.size())
    throw Error(fmt::format("TransformerDecoder: {} layers cannot step with {} caches", layers_.size(), caches.size()));
  // All lengths change, or, where something throws, none.
  auto stepped = caches;
  const auto result = run(x, [&](std::size_t i, const Tensor& y) { return layers_[i].step(y, stepped[i]); });
  for (std::size_t i = 0; i < caches.size(); ++i) caches[i].target.length = stepped[i].target.length;
  return result;
}

std::vector<DecoderCache> TransformerDecoder::room(const Tensor& memory, std::int64_t capacity,
                                                   const AttentionMasks& memory_masks, std::int64_t beams) const {
  std::vector<DecoderCache> all;
  for (const auto& layer : layers_) all.push_back(layer.cache(memory, capacity, memory_masks, beams));
  return all;
}

void reorder(std::vector<DecoderCache>& caches, const Tensor& rows) {
  std::vector<KVCache> targets;
  for (const auto& cache : caches) targets.push_back(cache.target);
  reorder(targets, rows);
}

Transformer::Transformer(std::int64_t d_model, std::int64_t heads, std::int64_t encoder_layers, std::int64_t decoder_layers,
                         const TransformerLayerOptions& options)
    : encoder_(d_model, heads, encoder_layers, options, true), decoder_(d_model, heads, decoder_layers, options, true) {
  add("encoder", encoder_);
  add("decoder", decoder_);
  for (auto& [name, parameter] : parameters())
    if (const auto shape = parameter.value().shape(); shape.rank() > 1) parameter.set(init::xavier_uniform(shape));
}

Tensor Transformer::forward(const Tensor&) { throw Error("Transformer: forward(x) has no target; call forward(source, target)"); }

Tensor Transformer::forward(const Tensor& source, const Tensor& target, const TransformerMasks& masks) {
  require_defined("Transformer", {{"source", source}, {"target", target}});
  return decoder_(target, encoder_(source, masks.source), masks.target, masks.memory);
}

}  // namespace clnet::nn
