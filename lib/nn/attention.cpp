#include "clnet/nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/ops.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/graph/require.h"
#include "lib/nn/layer.h"
#include "lib/nn/parameter.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/index/scatter.h"

namespace clnet::nn {

namespace {

constexpr auto attention_name = "MultiheadAttention";

void require_probability(const char* where, double p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("{}: dropout must be from 0 to 1, not {}", where, p));
}

/// A mask that says where not to look as one that is added.
Tensor added(const Tensor& mask, Dtype dtype) {
  if (mask.dtype() != Dtype::boolean) return mask;
  return where(mask, Tensor::scalar(-std::numeric_limits<double>::infinity(), dtype), Tensor::scalar(0, dtype));
}

/// Both masks, either may be undefined.
Tensor joined(const Tensor& a, const Tensor& b, Dtype dtype) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  if (a.dtype() == Dtype::boolean && b.dtype() == Dtype::boolean) return logical_or(a, b);
  return added(a, dtype) + added(b, dtype);
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options)
    : embed_dim_(embed_dim), heads_(num_heads), options_(options), out_([&] {
        require_positive(attention_name, "embed_dim", embed_dim);
        require_positive(attention_name, "num_heads", num_heads);
        if (embed_dim % num_heads != 0)
          throw Error(fmt::format("{}: embed_dim {} is no multiple of {} heads", attention_name, embed_dim, num_heads));
        if (options.kdim < 0 || options.vdim < 0)
          throw Error(fmt::format("{}: kdim {} and vdim {} must not be negative", attention_name, options.kdim, options.vdim));
        require_probability(attention_name, options.dropout);
        return Linear(embed_dim, embed_dim, {.bias = options.bias});
      }()) {
  if (options_.kdim == 0) options_.kdim = embed_dim;
  if (options_.vdim == 0) options_.vdim = embed_dim;
  if (options_.kdim == embed_dim && options_.vdim == embed_dim) {
    in_weight_ = add_parameter("in_proj_weight", init::xavier_uniform({3 * embed_dim, embed_dim}));
  } else {
    q_weight_ = add_parameter("q_proj_weight", init::xavier_uniform({embed_dim, embed_dim}));
    k_weight_ = add_parameter("k_proj_weight", init::xavier_uniform({embed_dim, options_.kdim}));
    v_weight_ = add_parameter("v_proj_weight", init::xavier_uniform({embed_dim, options_.vdim}));
  }
  const auto zero_row = [](std::int64_t count) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(count), 0.0F), {count});
  };
  if (options_.bias) {
    in_bias_ = add_parameter("in_proj_bias", zero_row(3 * embed_dim));
    for (auto& [name, parameter] : out_.parameters())
      if (name == "bias") parameter.set(zero_row(embed_dim));
  }
  if (options_.add_bias_kv) {
    // PyTorch's xavier_normal_ of {1, 1, embed_dim}.
    const auto row = [&] { return init::normal({1, 1, embed_dim}, 0, std::sqrt(2.0 / static_cast<double>(2 * embed_dim))); };
    bias_k_ = add_parameter("bias_k", row());
    bias_v_ = add_parameter("bias_v", row());
  }
  add("out_proj", out_);
}

/// Keys or values {batch, heads, length, width} with those that every query may look at behind them.
Tensor MultiheadAttention::with_more_keys(const Tensor& x, const std::optional<Parameter>& bias) const {
  std::vector<Tensor> parts{x};
  const Shape one = x.shape().with(2, 1);
  if (bias) parts.push_back(expand(cast(reshape(bias->value(), {1, heads_, 1, x.size(3)}), x.dtype()), one));
  if (options_.add_zero_attn) parts.push_back(zeros(one, x.dtype()));
  return concat(parts, 2);
}

/// {batch, length, count * embed_dim} (see batch_first) as {count, batch, heads, length, width}.
Tensor MultiheadAttention::heads_of(const Tensor& x, std::int64_t count) const {
  const auto split = reshape(x, {x.size(0), x.size(1), count, heads_, embed_dim_ / heads_});
  return permute(split, options_.batch_first ? std::vector<int>{2, 0, 3, 1, 4} : std::vector<int>{2, 1, 3, 0, 4});
}

/// {batch, heads, length, width} as {batch, length, embed_dim} (see batch_first).
Tensor MultiheadAttention::merged(const Tensor& y) const {
  const auto turned = permute(y, options_.batch_first ? std::vector<int>{0, 2, 1, 3} : std::vector<int>{2, 0, 1, 3});
  return reshape(turned, {turned.size(0), turned.size(1), embed_dim_});
}

/// For {batch, heads, queries, keys}: bool where one may look, or floating.
Tensor MultiheadAttention::mask(const AttentionMasks& masks, const Shape& scores) const {
  const auto batch = scores[0], queries = scores[2], keys = scores[3];
  Tensor padding = masks.key_padding_mask, attention = masks.attn_mask;
  const auto fail = [](const char* what, const Tensor& mask, const Shape& want) {
    return ShapeError(fmt::format("{}: {} {} must be {}", attention_name, what, to_string(mask.spec()), to_string(want)));
  };
  if (padding.defined()) {
    const bool alone = batch == 1 && padding.shape() == Shape{keys};
    if (!alone && padding.shape() != Shape{batch, keys}) throw fail("key_padding_mask", padding, {batch, keys});
    padding = reshape(padding, {batch, 1, 1, keys});
  }
  if (attention.defined()) {
    if (attention.shape() == Shape{batch * heads_, queries, keys})
      attention = reshape(attention, scores);
    else if (attention.shape() != Shape{queries, keys})
      throw fail("attn_mask", attention, {queries, keys});
  }
  for (const auto* mask : {&padding, &attention})
    if (mask->defined() && mask->dtype() != Dtype::boolean && !is_floating(mask->dtype()))
      throw DtypeError(fmt::format("{}: masks must be bool or floating, got {}", attention_name, to_string(mask->spec())));
  const auto both = joined(padding, attention,
                           padding.defined() && is_floating(padding.dtype())       ? padding.dtype()
                           : attention.defined() && is_floating(attention.dtype()) ? attention.dtype()
                                                                                   : Dtype::f32);
  return both.defined() && both.dtype() == Dtype::boolean ? logical_not(both) : both;
}

MultiheadAttentionResult MultiheadAttention::run(const Tensor& query, const Tensor& key, const Tensor& value,
                                                 const AttentionMasks& masks, bool weights) {
  require_defined(attention_name, {{"query", query}, {"key", key}, {"value", value}});
  const int rank = query.rank();
  const auto features = [&](const char* what, const Tensor& x, std::int64_t want) {
    if (x.rank() != rank || (rank != 2 && rank != 3) || x.size(-1) != want)
      throw ShapeError(fmt::format("{}: {} {} must be {{{}, {}}} or {{length, {}}}", attention_name, what, to_string(x.spec()),
                                   options_.batch_first ? "batch, length" : "length, batch", want, want));
  };
  features("query", query, embed_dim_);
  features("key", key, options_.kdim);
  features("value", value, options_.vdim);
  const int batch_dim = options_.batch_first ? 0 : 1;
  const auto batched = [&](const Tensor& x) { return rank == 3 ? x : unsqueeze(x, batch_dim); };
  const Tensor q_in = batched(query), k_in = key.same(query) ? q_in : batched(key),
               v_in = value.same(key) ? k_in : batched(value);
  if (q_in.size(batch_dim) != k_in.size(batch_dim) || k_in.shape().with(2, 1) != v_in.shape().with(2, 1))
    throw ShapeError(fmt::format("{}: query {}, key {} and value {} do not fit each other", attention_name,
                                 to_string(query.spec()), to_string(key.spec()), to_string(value.spec())));

  const Tensor bias = value_or_none(in_bias_), in_weight = value_or_none(in_weight_);
  // Rows first..last of the three projections' weights, as one product of what is the same.
  const auto project = [&](const Tensor& x, const Tensor& weight, int first, int last) {
    const auto from = first * embed_dim_, to = last * embed_dim_;
    return heads_of(linear(x, in_weight_ ? slice(weight, 0, from, to) : weight, bias.defined() ? slice(bias, 0, from, to) : bias),
                    last - first);
  };
  const auto part = [](const Tensor& x, std::int64_t i) { return squeeze(slice(x, 0, i, i + 1), 0); };
  Tensor q, k, v;
  if (in_weight_ && k_in.same(q_in) && v_in.same(q_in)) {
    const auto all = project(q_in, in_weight, 0, 3);
    q = part(all, 0), k = part(all, 1), v = part(all, 2);
  } else {
    q = part(project(q_in, in_weight_ ? in_weight : *q_weight_, 0, 1), 0);
    if (in_weight_ && v_in.same(k_in)) {
      const auto both = project(k_in, in_weight, 1, 3);
      k = part(both, 0), v = part(both, 1);
    } else {
      k = part(project(k_in, in_weight_ ? in_weight : *k_weight_, 1, 2), 0);
      v = part(project(v_in, in_weight_ ? in_weight : *v_weight_, 2, 3), 0);
    }
  }

  auto own = masks;
  const auto more = (bias_k_ ? 1 : 0) + (options_.add_zero_attn ? 1 : 0);
  if (more > 0 && own.is_causal) {
    // The keys that are added are seen by all.
    const Tensor later = less(unsqueeze(arange(q.size(2)), 1), arange(k.size(2)));
    own.attn_mask = joined(later, own.attn_mask, q.dtype());
    own.is_causal = false;
  }
  Tensor seen = mask(own, {q.size(0), heads_, q.size(2), k.size(2)});
  if (more > 0) {
    k = with_more_keys(k, bias_k_);
    v = with_more_keys(v, bias_v_);
    if (seen.defined())
      seen = ops::padded(seen, seen.shape().with(-1, seen.size(-1) + more), seen.dtype() == Dtype::boolean ? 1 : 0);
  }
  const AttentionOptions options{.mask = seen, .causal = own.is_causal, .dropout = training() ? options_.dropout : 0};
  const auto y = scaled_dot_product_attention(q, k, v, options);  // {batch, heads, queries, width}
  MultiheadAttentionResult result;
  result.y = out_(merged(y));
  if (rank == 2) result.y = squeeze(result.y, batch_dim);
  if (weights) {
    auto plain = options;
    plain.dropout = 0;
    result.weights = cast(ops::attention_weights(ops::checked_attention(q, k, v, plain)), q.dtype());
    if (rank == 2) result.weights = squeeze(result.weights, 0);
  }
  return result;
}

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks) {
  return run(query, key, value, masks, false).y;
}

MultiheadAttentionResult MultiheadAttention::forward_with_weights(const Tensor& query, const Tensor& key, const Tensor& value,
                                                                  const AttentionMasks& masks, bool average) const {
  auto result = called(*this, [&](auto& self) { return self.run(query, key, value, masks, true); });
  if (average) result.weights = mean(result.weights, {-3});
  return result;
}

KVCache MultiheadAttention::cache(std::int64_t batch, std::int64_t capacity, Dtype dtype) const {
  require_positive(attention_name, "the cache's batch", batch);
  require_positive(attention_name, "the cache's capacity", capacity);
  return called(*this, [&](auto& self) { return self.room(batch, capacity, dtype); });
}

KVCache MultiheadAttention::room(std::int64_t batch, std::int64_t capacity, Dtype dtype) const {
  // Where the weights are, if they are on a device: the first step() sets what nothing else has placed yet.
  const auto weight = std::dynamic_pointer_cast<exec::DeviceValue>(exec::asked_value_of(parameters().front().second));
  const auto part = [&] {
    const Tensor empty = zeros({batch, heads_, capacity, embed_dim_ / heads_}, dtype);
    if (weight) clnet::eval(std::vector{empty}, device_with(weight->device));
    return Parameter(empty);
  };
  return {part(), part()};
}

Tensor MultiheadAttention::step(const Tensor& x, KVCache& cache) const {
  return called(*this, [&](auto& self) { return self.next(x, cache); });
}

Tensor MultiheadAttention::next(const Tensor& x, KVCache& cache) {
  require_defined(attention_name, {{"x", x}});
  if (!in_weight_) throw Error(fmt::format("{}: step() is for keys and values of embed_dim features", attention_name));
  if (bias_k_ || options_.add_zero_attn)
    throw Error(fmt::format("{}: step() is for attention without add_bias_kv and add_zero_attn", attention_name));
  // The cache is the caller's, who sets it anew for each text.
  slot_of(cache.k)->held = slot_of(cache.v)->held = true;
  const int batch_dim = options_.batch_first ? 0 : 1;
  const Shape room = cache.k.value().shape();
  if (x.rank() != 3 || x.size(2) != embed_dim_ || room[1] != heads_ || room[3] * heads_ != embed_dim_ ||
      x.size(batch_dim) != room[0])
    throw ShapeError(fmt::format("{}: x {} does not fit a cache of {}", attention_name, to_string(x.spec()), to_string(room)));
  if (x.dtype() != cache.k.value().dtype())
    throw DtypeError(fmt::format("{}: x {} needs a cache of its dtype, this one is {}", attention_name, to_string(x.spec()),
                                 to_string(cache.k.value().dtype())));
  const auto length = x.size(1 - batch_dim);
  if (cache.length < 0 || length > room[2] - cache.length)
    throw Error(fmt::format("{}: the cache of {} positions has {} and no room for {} more", attention_name, room[2], cache.length,
                            length));

  const auto all = heads_of(linear(x, *in_weight_, value_or_none(in_bias_)), 3);
  const auto part = [&](std::int64_t i) { return squeeze(slice(all, 0, i, i + 1), 0); };
  const auto start = Tensor::scalar(static_cast<double>(cache.length), Dtype::i64);
  const auto k = slice_update(cache.k, 2, start, part(1)), v = slice_update(cache.v, 2, start, part(2));
  cache.k.set(k);
  cache.v.set(v);
  const auto y = out_(merged(scaled_dot_product_attention(part(0), cache.k, cache.v, {.causal = true, .start = start})));
  // Last: what a call that throws wrote lies behind the length, where nobody looks before it is overwritten.
  cache.length += length;
  return y;
}

std::string MultiheadAttention::kind() const {
  return fmt::format("MultiheadAttention({}, {}{})", embed_dim_, heads_, options_.bias ? "" : ", bias=false");
}

PositionalEncoding::PositionalEncoding(std::int64_t width, const PositionalEncodingOptions& options)
    : options_(options), table_([&] {
        require_positive("PositionalEncoding", "width", width);
        require_positive("PositionalEncoding", "max_length", options.max_length);
        require_probability("PositionalEncoding", options.dropout);
        return add_buffer("pe", sinusoidal_positions(options.max_length, width), false);
      }()) {}

Tensor PositionalEncoding::forward(const Tensor& x) {
  require_defined("PositionalEncoding", {{"x", x}});
  const Tensor table = table_;
  const auto length = x.rank() == 3 ? x.size(options_.batch_first ? 1 : 0) : 0;
  if (x.rank() != 3 || x.size(2) != table.size(1) || length > table.size(0))
    throw ShapeError(fmt::format("PositionalEncoding: {} is not {} of up to {} positions and width {}", to_string(x.spec()),
                                 options_.batch_first ? "{batch, length, width}" : "{length, batch, width}", table.size(0),
                                 table.size(1)));
  const auto rows = cast(slice(table, 0, 0, length), x.dtype());
  const auto y = x + (options_.batch_first ? rows : unsqueeze(rows, 1));
  return training() ? dropout(y, options_.dropout) : y;
}

std::string PositionalEncoding::kind() const { return fmt::format("PositionalEncoding({})", table_.value().size(1)); }

}  // namespace clnet::nn
