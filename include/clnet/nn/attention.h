// Attention as a layer, and positional encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "clnet/export.h"
#include "clnet/nn/linear.h"
#include "clnet/nn/module.h"
#include "clnet/ops/attention.h"

namespace clnet::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< dropout probability of the weights, in training
  bool bias = true;
  bool add_bias_kv = false;         ///< adds a learned key and value, parameters bias_k and bias_v, for every query
  bool add_zero_attn = false;       ///< adds a key and value of zeros
  std::int64_t kdim = 0, vdim = 0;  ///< features of keys and values; 0: embed_dim
  bool batch_first = false;         ///< {batch, length, features} instead of {length, batch, features}
};
/// Masks as in PyTorch's layers: true in a bool mask excludes a key. (In scaled_dot_product_attention() true includes it.)
/// Floating masks are added to the scores.
struct AttentionMasks {
  Tensor attn_mask = {};         ///< {queries, keys} or {batch * heads, queries, keys}
  Tensor key_padding_mask = {};  ///< {batch, keys}; {keys} without a batch
  bool is_causal = false;        ///< query i attends to keys 0..i only
};
struct MultiheadAttentionResult {
  Tensor y, weights;
};
/// Keys and values of the positions so far, for MultiheadAttention::step(): {batch, heads, capacity, width}. Copies share them.
struct KVCache {
  Parameter k, v;
  std::int64_t length = 0;  ///< positions so far; 0 restarts
  std::int64_t capacity() const { return k.value().size(2); }
  /// Row i of the batch continues the former row rows[i], for `rows` {batch}, i32 or i64. Throws ShapeError and DtypeError for
  /// others. An exception changes nothing.
  CLNET_API void reorder(const Tensor& rows);
};
/// Keys and values of a memory, for MultiheadAttention::step(): {batch, heads, length, width}.
struct MemoryCache {
  Tensor k, v;
  Tensor mask = {};  ///< {batch, 1, 1, length}: true for keys that count, or added to the scores; undefined: all count
};
/// torch.nn.MultiheadAttention (Vaswani et al. 2017). Inputs are {length, batch, features} (see batch_first) or {length,
/// features}. Throws Error where embed_dim is no multiple of num_heads, ShapeError and DtypeError for inputs or masks that do not
/// fit.
///
/// Parameters in_proj_weight {3 embed_dim, embed_dim}, in_proj_bias {3 embed_dim}, bias_k and bias_v {1, 1, embed_dim} (see
/// add_bias_kv), out_proj.weight and out_proj.bias. Where kdim or vdim differ, q_proj_weight, k_proj_weight and v_proj_weight
/// replace in_proj_weight. A query without allowed keys gets the bias of out_proj alone; in PyTorch, NaN.
class CLNET_API MultiheadAttention : public Module {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
  /// Self-attention of x.
  Tensor forward(const Tensor& x) override { return forward(x, x, x); }
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {});
  /// Returns the weights, too, before dropout: {batch, queries, keys}, the mean over heads, or {batch, heads, queries, keys}. All
  /// weights are kept in memory. The keys of add_bias_kv and add_zero_attn are the last.
  MultiheadAttentionResult forward_with_weights(const Tensor& query, const Tensor& key, const Tensor& value,
                                                const AttentionMasks& masks = {}, bool average = true) const;
  using Module::operator();
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {}) const {
    return called(*this, [&](auto& self) { return self.forward(query, key, value, masks); });
  }
  /// An empty cache for `capacity` positions.
  KVCache cache(std::int64_t batch, std::int64_t capacity, Dtype dtype = Dtype::f32) const;
  /// Causal attention of x, the next positions, to those in the cache and to itself. The result is that of forward() with
  /// is_causal on the whole sequence. Evaluation of the result adds x's keys and values to the cache. One plan serves all
  /// positions. For inference: there is no dropout, even in training mode. Throws Error where the cache is full, and with
  /// add_bias_kv or add_zero_attn; ShapeError and DtypeError where x does not fit the cache.
  ///
  /// The call itself raises the cache's length. Where evaluation of the result fails, evaluate it again, or set the length back
  /// and call again. A call that throws leaves the length unchanged.
  Tensor step(const Tensor& x, KVCache& cache) const;
  /// Computes keys and values of a memory once, for the step() below. Throws Error for other masks than key_padding_mask, and
  /// what forward() throws.
  MemoryCache memory_cache(const Tensor& memory, const AttentionMasks& masks = {}) const {
    return memory_cache(memory, memory, masks);
  }
  MemoryCache memory_cache(const Tensor& key, const Tensor& value, const AttentionMasks& masks = {}) const;
  /// Attention of x to that memory, as forward(x, memory, memory, masks) in inference. The batch of x may be a multiple n of the
  /// memory's, as in beam search: its rows i n to i n + n - 1 attend to row i of the memory.
  Tensor step(const Tensor& x, const MemoryCache& memory) const;
  std::string kind() const override;

 private:
  KVCache room(std::int64_t batch, std::int64_t capacity, Dtype dtype) const;
  MemoryCache keys_and_values(const Tensor& key, const Tensor& value, const AttentionMasks& masks);
  Tensor look(const Tensor& x, const MemoryCache& memory);
  Tensor projected(const Tensor& x, int first, int last) const;
  std::pair<Tensor, Tensor> projected_keys(const Tensor& key, const Tensor& value) const;
  void add_keys(Tensor& k, Tensor& v, Tensor& mask) const;
  void require_features(const char* what, const Tensor& x, std::int64_t features, int rank) const;
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
/// Adds sinusoidal_positions() to x {batch, length, width}, then applies dropout, as in PyTorch's tutorials. The table is a
/// buffer `pe` outside of state_dict(). The call throws ShapeError for more than max_length positions.
class CLNET_API PositionalEncoding : public Module {
 public:
  explicit PositionalEncoding(std::int64_t width, const PositionalEncodingOptions& options = {});
  Tensor forward(const Tensor& x) override;
  /// For the positions offset, offset + 1, ..., as in steps with a cache. A new offset compiles no new plan.
  Tensor forward(const Tensor& x, std::int64_t offset);
  using Module::operator();
  Tensor operator()(const Tensor& x, std::int64_t offset) const {
    return called(*this, [&](auto& self) { return self.forward(x, offset); });
  }
  std::string kind() const override;

 private:
  void require_positions(const Tensor& x) const;
  Tensor added(const Tensor& x, const Tensor& rows) const;

  PositionalEncodingOptions options_;
  Parameter table_;
};

}  // namespace clnet::nn
