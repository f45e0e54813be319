// Attention in all its parts, for the library's own floors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "clnet/ops/attention.h"
#include "lib/graph/op.h"
#include "lib/ops/random/random.h"

namespace clnet::ops {

/// What scaled_dot_product_attention() takes, once it is known to fit.
struct Attention {
  Tensor q, k, v;    ///< {..., heads, length, width}
  Tensor mask = {};  ///< undefined: none
  bool causal = false;
  Tensor start = {};  ///< a scalar: where among the keys the first of causal queries is; undefined: 0
  double scale = 1;
  double dropout = 0;
  RandomSource random = {};  ///< of the dropped weights

  std::int64_t queries() const { return q.size(-2); }
  std::int64_t keys() const { return k.size(-2); }
};

/// What tells one attention from others besides values.
struct AttentionKind {
  Spec q, k, v;
  std::optional<Spec> mask = {};
  bool causal = false;
  double scale = 1, dropout = 0;
  bool has_first = false;  ///< the dropped weights are part of a larger tensor

  std::vector<std::int64_t> lengths() const { return {q.shape[-2], k.shape[-2]}; }
  /// It, or its gradients, over stand-ins where sequences of length `from` are as long as `to`.
  Tensors at_length(std::int64_t from, std::int64_t to, bool gradients) const;
};

/// Checks the arguments, and draws the dropped weights' random source where there are any.
Attention checked_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);
/// The weights with which values count, {..., heads, queries, keys}, none dropped; in f32.
Tensor attention_weights(const Attention& attention);
/// Attention made up of other operations.
Tensor composed_attention(const Attention& attention);
/// The same as one operation, whose memory does not grow with queries times keys. There must be queries, and the probability of
/// dropping be less than 1.
Tensor streaming_attention(const Attention& attention);

}  // namespace clnet::ops
