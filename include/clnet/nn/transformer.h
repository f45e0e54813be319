// Transformers (Vaswani et al. 2017), with PyTorch's layers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/attention.h"
#include "clnet/nn/linear.h"
#include "clnet/nn/module.h"
#include "clnet/nn/norm.h"

namespace clnet::nn {

enum class TransformerActivation : std::uint8_t { relu, gelu };
/// Options of encoder and decoder layers.
struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  /// Any other activation, in place of `activation`.
  std::function<Tensor(const Tensor&)> activation_function = nullptr;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< {batch, length, d_model} instead of {length, batch, d_model}
  bool norm_first = false;   ///< normalise the inputs of attention and perceptron, instead of the sums after them
  bool bias = true;          ///< biases of attention, perceptron and norms
};

/// x + attention, then x + perceptron; shapes as MultiheadAttention. Parameters self_attn.*, linear1.*, linear2.*, norm1.*,
/// norm2.*.
class CLNET_API TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t heads, const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& x) override { return forward(x, AttentionMasks{}); }
  Tensor forward(const Tensor& x, const AttentionMasks& masks);
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionMasks& masks) const {
    return called(*this, [&](auto& self) { return self.forward(x, masks); });
  }
  /// forward() with is_causal for x, the next positions after those in the cache: see MultiheadAttention::step().
  Tensor step(const Tensor& x, KVCache& cache) const {
    return called(*this, [&](auto& self) { return self.next(x, cache); });
  }
  KVCache cache(std::int64_t batch, std::int64_t capacity) const {
    return called(*this, [&](auto& self) { return self.self_attn_.cache(batch, capacity); });
  }
  std::string kind() const override;

 private:
  template <class Attention>
  Tensor run(const Tensor& x, const Attention& attention);
  Tensor next(const Tensor& x, KVCache& cache);

  TransformerLayerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_;
};

/// The state of a decoder layer between steps.
struct DecoderCache {
  KVCache target;      ///< of the positions so far
  MemoryCache memory;  ///< computed once
  /// KVCache::reorder() of the positions so far. The memory stays, so a row continues another one of the same memory.
  void reorder(const Tensor& rows) { target.reorder(rows); }
};
/// reorder() of the caches of all layers, as beam search needs it. An exception changes none.
CLNET_API void reorder(std::vector<KVCache>& caches, const Tensor& rows);
CLNET_API void reorder(std::vector<DecoderCache>& caches, const Tensor& rows);

/// x + attention, x + attention to `memory`, x + perceptron. Parameters self_attn.*, multihead_attn.*, linear1.*, linear2.*,
/// norm1.*, norm2.*, norm3.*.
class CLNET_API TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(std::int64_t d_model, std::int64_t heads, const TransformerLayerOptions& options = {});
  /// Throws Error: it needs a memory.
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                 const AttentionMasks& memory_masks = {});
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                    const AttentionMasks& memory_masks = {}) const {
    return called(*this, [&](auto& self) { return self.forward(x, memory, masks, memory_masks); });
  }
  /// forward() with is_causal for x, the next positions after those in the cache: see MultiheadAttention::step().
  Tensor step(const Tensor& x, DecoderCache& cache) const {
    return called(*this, [&](auto& self) { return self.next(x, cache); });
  }
  /// The memory's keys and values, and room for `capacity` positions. Each row of the memory serves `beams` rows of x, which
  /// follow each other. Throws Error for other masks than key_padding_mask.
  DecoderCache cache(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks = {},
                     std::int64_t beams = 1) const {
    return called(*this, [&](auto& self) { return self.room(memory, capacity, memory_masks, beams); });
  }
  std::string kind() const override;

 private:
  template <class Attention, class MemoryAttention>
  Tensor run(const Tensor& x, const Attention& attention, const MemoryAttention& memory_attention);
  Tensor next(const Tensor& x, DecoderCache& cache);
  DecoderCache room(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks, std::int64_t beams) const;

  TransformerLayerOptions options_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_, norm3_;
};

/// `count` layers with separate initial values, then a LayerNorm where `final_norm`. Parameters layers.0.*, layers.1.*, ...,
/// norm.*.
class CLNET_API TransformerEncoder : public Module {
 public:
  TransformerEncoder(std::int64_t d_model, std::int64_t heads, std::int64_t count, const TransformerLayerOptions& options = {},
                     bool final_norm = false);
  Tensor forward(const Tensor& x) override { return forward(x, AttentionMasks{}); }
  Tensor forward(const Tensor& x, const AttentionMasks& masks);
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionMasks& masks) const {
    return called(*this, [&](auto& self) { return self.forward(x, masks); });
  }
  /// TransformerEncoderLayer::step() with one cache per layer. Throws Error for another number of caches.
  Tensor step(const Tensor& x, std::vector<KVCache>& caches) const {
    return called(*this, [&](auto& self) { return self.next(x, caches); });
  }
  std::vector<KVCache> caches(std::int64_t batch, std::int64_t capacity) const {
    return called(*this, [&](auto& self) { return self.room(batch, capacity); });
  }
  std::string kind() const override { return "TransformerEncoder"; }

 private:
  /// Applies layer(i, y) for all layers in order, then the norm.
  template <class Layer>
  Tensor run(const Tensor& x, const Layer& layer);
  Tensor next(const Tensor& x, std::vector<KVCache>& caches);
  std::vector<KVCache> room(std::int64_t batch, std::int64_t capacity) const;

  std::vector<TransformerEncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

/// `count` decoder layers with separate initial values, then a LayerNorm where `final_norm`. Parameters as TransformerEncoder.
class CLNET_API TransformerDecoder : public Module {
 public:
  TransformerDecoder(std::int64_t d_model, std::int64_t heads, std::int64_t count, const TransformerLayerOptions& options = {},
                     bool final_norm = false);
  /// Throws Error: it needs a memory.
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                 const AttentionMasks& memory_masks = {});
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                    const AttentionMasks& memory_masks = {}) const {
    return called(*this, [&](auto& self) { return self.forward(x, memory, masks, memory_masks); });
  }
  /// TransformerDecoderLayer::step() with one cache per layer. Throws Error for another number of caches.
  Tensor step(const Tensor& x, std::vector<DecoderCache>& caches) const {
    return called(*this, [&](auto& self) { return self.next(x, caches); });
  }
  /// TransformerDecoderLayer::cache() of each layer.
  std::vector<DecoderCache> caches(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks = {},
                                   std::int64_t beams = 1) const {
    return called(*this, [&](auto& self) { return self.room(memory, capacity, memory_masks, beams); });
  }
  std::string kind() const override { return "TransformerDecoder"; }

 private:
  /// Applies layer(i, y) for all layers in order, then the norm.
  template <class Layer>
  Tensor run(const Tensor& x, const Layer& layer);
  Tensor next(const Tensor& x, std::vector<DecoderCache>& caches);
  std::vector<DecoderCache> room(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks,
                                 std::int64_t beams) const;

  std::vector<TransformerDecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

struct TransformerMasks {
  AttentionMasks source = {}, target = {}, memory = {};
};
/// Encoder and decoder with final norms; all matrices start as xavier_uniform. Parameters encoder.*, decoder.*.
class CLNET_API Transformer : public Module {
 public:
  explicit Transformer(std::int64_t d_model = 512, std::int64_t heads = 8, std::int64_t encoder_layers = 6,
                       std::int64_t decoder_layers = 6, const TransformerLayerOptions& options = {});
  /// Throws Error: a transformer needs a source and a target.
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& source, const Tensor& target, const TransformerMasks& masks = {});
  using Module::operator();
  Tensor operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks = {}) const {
    return called(*this, [&](auto& self) { return self.forward(source, target, masks); });
  }
  /// The memory: what the encoder makes of a source.
  Tensor encode(const Tensor& source, const AttentionMasks& masks = {}) const {
    return called(*this, [&](auto& self) { return self.encoder_(source, masks); });
  }
  /// What the decoder makes of a target and a memory: model(source, target, masks) is model.decode(target, model.encode(source,
  /// masks.source), masks.target, masks.memory).
  Tensor decode(const Tensor& target, const Tensor& memory, const AttentionMasks& masks = {},
                const AttentionMasks& memory_masks = {}) const {
    return called(*this, [&](auto& self) { return self.decoder_(target, memory, masks, memory_masks); });
  }
  /// decode() with is_causal for the next positions after those in the caches: TransformerDecoder::step().
  ///
  ///   auto caches = model.caches(model.encode(source), longest);
  ///   const auto y = model.step(words(token), caches);  // {batch, 1, d_model} with batch_first, as words(token)
  Tensor step(const Tensor& target, std::vector<DecoderCache>& caches) const {
    return called(*this, [&](auto& self) { return self.decoder_.step(target, caches); });
  }
  /// TransformerDecoder::caches().
  std::vector<DecoderCache> caches(const Tensor& memory, std::int64_t capacity, const AttentionMasks& memory_masks = {},
                                   std::int64_t beams = 1) const {
    return called(*this, [&](auto& self) { return self.decoder_.caches(memory, capacity, memory_masks, beams); });
  }
  std::string kind() const override { return "Transformer"; }

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
};

}  // namespace clnet::nn
