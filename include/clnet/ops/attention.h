// Attention and positional encodings.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct AttentionOptions {
  /// Broadcasts to {..., heads, queries, keys}. bool: true where a query may attend to a key. Floating: added to the scores.
  Tensor mask = {};
  /// Query i attends to keys 0..i only, for any numbers of keys and queries. With a mask, both apply.
  bool causal = false;
  /// With `causal`: query i attends to keys 0..start + i, as in a step after a cache. One i32 or i64; undefined: 0. A host scalar
  /// (Tensor::scalar) may change without a new plan. Where rows are at most 256 wide, later keys are not read.
  Tensor start = {};
  std::optional<double> scale = {};  ///< scale of the products of queries and keys; std::nullopt: 1 / sqrt(width)
  double dropout = 0;                ///< probability of dropping a weight, as dropout(); also in inference
};
/// softmax(scale q k^T + mask) v (Vaswani et al. 2017), as torch's function, for q {..., heads, queries, width}, k {..., heads,
/// keys, width} and v {..., heads, keys, width of v}. The result is {..., heads, queries, width of v}; {length, width} is one
/// head.
///
/// The heads of q may be a multiple n of those of k and v: head h of q then attends to head h / n. Dimensions before the heads
/// broadcast, and so does one head of q; a mask adds none. A query without allowed keys gets 0, and no gradient comes from it.
/// All tensors have one floating dtype, a floating mask may be f32; arithmetic is in f32. Throws ShapeError or DtypeError where
/// they do not fit, Error for a scale or dropout out of range.
CLNET_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                              const AttentionOptions& options = {});

struct RotaryOptions {
  double base = 10000;       ///< pair i of `width` turns by position / base^(2 i / width)
  bool interleaved = false;  ///< pairs are elements 2 i and 2 i + 1, instead of i and i + width / 2
};
/// Rotary embedding (J. Su et al., "RoFormer", 2021): turns each pair of elements of x {..., length, width} by an angle that
/// grows with the position. Products of queries and keys then depend on the distance of their positions only. `positions` is i32
/// or i64 and broadcasts to {..., length}. Angles are f32: their error at position p is about p 2^-23. Throws ShapeError for an
/// odd width, DtypeError for other positions.
CLNET_API Tensor rotary_embedding(const Tensor& x, const Tensor& positions, const RotaryOptions& options = {});
/// For the positions offset, offset + 1, ...; a new offset compiles no new plan.
CLNET_API Tensor rotary_embedding(const Tensor& x, std::int64_t offset = 0, const RotaryOptions& options = {});
/// Sinusoidal encoding {length, width}: sin(p / 10000^(i / width)) for even i, cos(p / 10000^((i - 1) / width)) for odd i, at
/// position p. (A. Vaswani et al., "Attention is all you need", 2017.) The positions are offset, offset + 1, ...; a new offset
/// compiles no new plan. Throws DtypeError for a dtype that is not floating, Error for an offset below 0 or above 2^53.
CLNET_API Tensor sinusoidal_positions(std::int64_t length, std::int64_t width, Dtype dtype = Dtype::f32, std::int64_t offset = 0);

}  // namespace clnet
