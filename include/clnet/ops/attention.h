// Attention, and positions for it.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct AttentionOptions {
  /// Broadcast to {..., heads, queries, keys}: bool, true where a query may look at a key, or floating, added to the scores.
  Tensor mask = {};
  /// Query i looks at keys 0..i only, also where there are more keys than queries or fewer. With a mask, both hold.
  bool causal = false;
  /// With causal: query i looks at keys 0..start + i, as those of a step that follows what is in a cache. One i32 or i64; a
  /// scalar of the host (Tensor::scalar) may change without a new plan. Keys behind are not read where rows are at most 256 wide.
  /// Not given: 0.
  Tensor start = {};
  std::optional<double> scale = {};  ///< of the products of queries and keys; 1 / sqrt(width) where it is not given
  double dropout = 0;                ///< the probability with which a weight is dropped, as dropout() does; also in inference
};
/// softmax(scale q k^T + mask) v for q {..., heads, queries, width}, k {..., heads, keys, width}, v {..., heads, keys, width of
/// v}: {..., heads, queries, width of v}. {length, width} is one head. k and v may have fewer heads, of which q's number is a
/// multiple: head h of q then looks at head h / (heads of q / heads of k). What is before the heads broadcasts, and so does one
/// head of q; no mask makes more of them. A query that may look at nothing gets 0, and no gradient comes from it. All in one
/// floating dtype, a floating mask also in f32; computed in f32. Throws ShapeError or DtypeError where they do not fit.
CLNET_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                              const AttentionOptions& options = {});

struct RotaryOptions {
  double base = 10000;       ///< pair i of `width` turns by position / base^(2 i / width)
  bool interleaved = false;  ///< elements 2 i and 2 i + 1 are a pair, instead of i and i + width / 2
};
/// Turns each pair of elements of x {..., length, width} by an angle that grows with the position: products of queries and keys
/// then depend on the distance of their positions only. `positions` is i32 or i64 and broadcasts to {..., length}. Angles are
/// f32: at position p they lose some p 2^-23. (J. Su et al., "RoFormer", 2021.)
CLNET_API Tensor rotary_embedding(const Tensor& x, const Tensor& positions, const RotaryOptions& options = {});
/// At the positions offset, offset + 1, ...; another offset makes no other plan.
CLNET_API Tensor rotary_embedding(const Tensor& x, std::int64_t offset = 0, const RotaryOptions& options = {});
/// {length, width}: sin(p / 10000^(i / width)) for even i, cos(p / 10000^((i - 1) / width)) for odd i, at position p. (A. Vaswani
/// et al., "Attention is all you need", 2017.)
CLNET_API Tensor sinusoidal_positions(std::int64_t length, std::int64_t width, Dtype dtype = Dtype::f32);

}  // namespace clnet
