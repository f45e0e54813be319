// Attention as a layer, and positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/linear.h"
#include "clnet/nn/module.h"
#include "clnet/ops/attention.h"

namespace clnet::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the weights, in training
  bool bias = true;
  bool add_bias_kv = false;         ///< a key and a value more, parameters bias_k and bias_v, which every query may look at
  bool add_zero_attn = false;       ///< and one of zeros
  std::int64_t kdim = 0, vdim = 0;  ///< features of keys and values; 0: embed_dim
  bool batch_first = false;         ///< {batch, length, features} instead of {length, batch, features}
};
/// What may not be looked at, as in PyTorch's layers: where a bool mask is true (in scaled_dot_product_attention() it is the
/// other way round). Floating masks are added to the scores.
struct AttentionMasks {
  Tensor attn_mask = {};         ///< {queries, keys} or {batch * heads, queries, keys}
  Tensor key_padding_mask = {};  ///< {batch, keys}; {keys} without a batch
  bool is_causal = false;        ///< query i looks at keys 0..i only
};
struct MultiheadAttentionResult {
  Tensor y, weights;
};
/// Keys and values of the positions that MultiheadAttention::step() has seen, {batch, heads, capacity, width}. Copies share them.
struct KVCache {
  Parameter k, v;
  std::int64_t length = 0;  ///< positions so far; 0 begins anew
  std::int64_t capacity() const { return k.value().size(2); }
};
/// Parameters in_proj_weight {3 embed_dim, embed_dim} (q_proj_weight, k_proj_weight and v_proj_weight where kdim or vdim differ),
/// in_proj_bias {3 embed_dim}, bias_k and bias_v {1, 1, embed_dim} (see add_bias_kv), out_proj.weight and out_proj.bias. Inputs
/// are {length, batch, features} (see batch_first) or {length, features}. A query that may look at nothing gets the bias of
/// out_proj alone; in PyTorch, NaN.
class CLNET_API MultiheadAttention : public Module {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
  /// x looks at itself.
  Tensor forward(const Tensor& x) override { return forward(x, x, x); }
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {});
  /// The weights, too, before any is dropped: {batch, queries, keys}, the mean over heads, or {batch, heads, queries, keys}. It
  /// keeps all of them in memory. The keys of add_bias_kv and add_zero_attn are the last.
  MultiheadAttentionResult forward_with_weights(const Tensor& query, const Tensor& key, const Tensor& value,
                                                const AttentionMasks& masks = {}, bool average = true) const;
  using Module::operator();
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {}) const {
    return called(*this, [&](auto& self) { return self.forward(query, key, value, masks); });
  }
  /// Room for so many positions.
  KVCache cache(std::int64_t batch, std::int64_t capacity, Dtype dtype = Dtype::f32) const;
  /// Causal attention of x, the positions that follow those in the cache, to these and to itself: what forward() with is_causal
  /// gives at these positions for all of the sequence. They join the cache when the result is computed. One plan serves all
  /// positions. Not with add_bias_kv or add_zero_attn. For inference: nothing is dropped, in training mode either. Throws Error
  /// when the cache is full. The cache's length is the new one when the call returns: where evaluating the result fails, evaluate
  /// it again, or set the length back and make the step again. A call that throws leaves the length as it was.
  Tensor step(const Tensor& x, KVCache& cache) const;
  std::string kind() const override;

 private:
  KVCache room(std::int64_t batch, std::int64_t capacity, Dtype dtype) const;
  MultiheadAttentionResult run(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks,
                               bool weights);
  Tensor next(const Tensor& x, KVCache& cache);
  Tensor heads_of(const Tensor& x, std::int64_t count) const;
  Tensor merged(const Tensor& y) const;
  Tensor with_more_keys(const Tensor& x, const std::optional<Parameter>& bias) const;
  Tensor mask(const AttentionMasks& masks, const Shape& scores) const;

  std::int64_t embed_dim_, heads_;
  MultiheadAttentionOptions options_;
  std::optional<Parameter> in_weight_, q_weight_, k_weight_, v_weight_, in_bias_, bias_k_, bias_v_;
  Linear out_;
};

struct PositionalEncodingOptions {
  double dropout = 0.1;
  std::int64_t max_length = 5000;
  bool batch_first = true;
};
/// Adds sinusoidal_positions() to x {batch, length, width}, then drops. (As in PyTorch's tutorials.) The table is a buffer `pe`
/// that state_dict() does not list.
class CLNET_API PositionalEncoding : public Module {
 public:
  explicit PositionalEncoding(std::int64_t width, const PositionalEncodingOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  PositionalEncodingOptions options_;
  Parameter table_;
};

}  // namespace clnet::nn
