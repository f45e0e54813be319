#include "clnet/nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/nn/transformer.h"
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

/// One of the tensors that `all` stacks.
Tensor part_of(const Tensor& all, std::int64_t i) { return squeeze(slice(all, 0, i, i + 1), 0); }

}  // namespace

void KVCache::reorder(const Tensor& rows) {
  std::vector<KVCache> sharing{*this};
  nn::reorder(sharing, rows);
}

void reorder(std::vector<KVCache>& caches, const Tensor& rows) {
  require_defined("KVCache::reorder", {{"rows", rows}});
  if (rows.dtype() != Dtype::i32 && rows.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("KVCache::reorder: rows must be i32 or i64, got {}", to_string(rows.spec())));
  for (const auto& cache : caches)
    if (const auto shape = cache.k.shape(); rows.shape() != Shape{shape[0]})
      throw ShapeError(
          fmt::format("KVCache::reorder: rows {} do not fit a cache of {}", to_string(rows.spec()), to_string(shape)));
  std::vector<std::pair<Parameter, Tensor>> changes;
  for (const auto& cache : caches)
    for (const auto& part : {cache.k, cache.v}) {
      own_slot_of(part)->held = true;
      changes.emplace_back(part, index_select(part, 0, rows));
    }
  prepare_to_set(changes);
  for (auto& [part, value] : changes) part.set(value);
}

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

/// Throws ShapeError where x is not {batch, length, features} (see batch_first) or, for rank 2, {length, features}.
void MultiheadAttention::require_features(const char* what, const Tensor& x, std::int64_t features, int rank) const {
  if (x.rank() != rank || (rank != 2 && rank != 3) || x.size(-1) != features)
    throw ShapeError(fmt::format("{}: {} {} must be {{{}, {}}} or {{length, {}}}", attention_name, what, to_string(x.spec()),
                                 options_.batch_first ? "batch, length" : "length, batch", features, features));
}

/// Queries (0), keys (1) and values (2) from `first` to before `last`: {last - first, batch, heads, length, width}. Where the
/// weights are apart, only one at a time.
Tensor MultiheadAttention::projected(const Tensor& x, int first, int last) const {
  const auto from = first * embed_dim_, to = last * embed_dim_;
  const Tensor bias = value_or_none(in_bias_);
  const auto apart = [&] { return (first == 0 ? q_weight_ : first == 1 ? k_weight_ : v_weight_)->value(); };
  return heads_of(
      linear(x, in_weight_ ? slice(*in_weight_, 0, from, to) : apart(), bias.defined() ? slice(bias, 0, from, to) : bias),
      last - first);
}

std::pair<Tensor, Tensor> MultiheadAttention::projected_keys(const Tensor& key, const Tensor& value) const {
  if (!in_weight_ || !value.same(key)) return {part_of(projected(key, 1, 2), 0), part_of(projected(value, 2, 3), 0)};
  const auto both = projected(key, 1, 3);
  return {part_of(both, 0), part_of(both, 1)};
}

/// The keys of add_bias_kv and add_zero_attn, which all queries see.
void MultiheadAttention::add_keys(Tensor& k, Tensor& v, Tensor& mask) const {
  const auto before = k.size(2);
  if (!bias_k_ && !options_.add_zero_attn) return;
  k = with_more_keys(k, bias_k_);
  v = with_more_keys(v, bias_v_);
  if (mask.defined())
    mask = ops::padded(mask, mask.shape().with(-1, mask.size(-1) + k.size(2) - before), mask.dtype() == Dtype::boolean ? 1 : 0);
}

MultiheadAttentionResult MultiheadAttention::run(const Tensor& query, const Tensor& key, const Tensor& value,
                                                 const AttentionMasks& masks, bool weights) {
  require_defined(attention_name, {{"query", query}, {"key", key}, {"value", value}});
  const int rank = query.rank();
  require_features("query", query, embed_dim_, rank);
  require_features("key", key, options_.kdim, rank);
  require_features("value", value, options_.vdim, rank);
  const int batch_dim = options_.batch_first ? 0 : 1;
  const auto batched = [&](const Tensor& x) { return rank == 3 ? x : unsqueeze(x, batch_dim); };
  const Tensor q_in = batched(query), k_in = key.same(query) ? q_in : batched(key),
               v_in = value.same(key) ? k_in : batched(value);
  if (q_in.size(batch_dim) != k_in.size(batch_dim) || k_in.shape().with(2, 1) != v_in.shape().with(2, 1))
    throw ShapeError(fmt::format("{}: query {}, key {} and value {} do not fit each other", attention_name,
                                 to_string(query.spec()), to_string(key.spec()), to_string(value.spec())));

  Tensor q, k, v;
  if (in_weight_ && k_in.same(q_in) && v_in.same(q_in)) {
    const auto all = projected(q_in, 0, 3);
    q = part_of(all, 0), k = part_of(all, 1), v = part_of(all, 2);
  } else {
    q = part_of(projected(q_in, 0, 1), 0);
    std::tie(k, v) = projected_keys(k_in, v_in);
  }

  auto own = masks;
  if ((bias_k_ || options_.add_zero_attn) && own.is_causal) {
    // The keys that are added are seen by all.
    const Tensor later = less(unsqueeze(arange(q.size(2)), 1), arange(k.size(2)));
    own.attn_mask = joined(later, own.attn_mask, q.dtype());
    own.is_causal = false;
  }
  Tensor seen = mask(own, {q.size(0), heads_, q.size(2), k.size(2)});
  add_keys(k, v, seen);
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
  own_slot_of(cache.k)->held = own_slot_of(cache.v)->held = true;
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
  const auto start = Tensor::scalar(static_cast<double>(cache.length), Dtype::i64);
  const auto k = slice_update(cache.k, 2, start, part_of(all, 1)), v = slice_update(cache.v, 2, start, part_of(all, 2));
  cache.k.set(k);
  cache.v.set(v);
  const auto y = out_(merged(scaled_dot_product_attention(part_of(all, 0), cache.k, cache.v, {.causal = true, .start = start})));
  // Last: what a call that throws wrote lies behind the length, where nobody looks before it is overwritten.
  cache.length += length;
  return y;
}

MemoryCache MultiheadAttention::memory_cache(const Tensor& key, const Tensor& value, const AttentionMasks& masks) const {
  return called(*this, [&](auto& self) { return self.keys_and_values(key, value, masks); });
}

MemoryCache MultiheadAttention::keys_and_values(const Tensor& key, const Tensor& value, const AttentionMasks& masks) {
  require_defined(attention_name, {{"key", key}, {"value", value}});
  require_features("key", key, options_.kdim, 3);
  require_features("value", value, options_.vdim, 3);
  if (key.shape().with(2, 1) != value.shape().with(2, 1))
    throw ShapeError(fmt::format("{}: key {} and value {} do not fit each other", attention_name, to_string(key.spec()),
                                 to_string(value.spec())));
  if (masks.attn_mask.defined() || masks.is_causal)
    throw Error(
        fmt::format("{}: memory_cache() takes a key_padding_mask only, which is the same for all queries", attention_name));
  MemoryCache made;
  std::tie(made.k, made.v) = projected_keys(key, value);
  made.mask = mask(masks, {made.k.size(0), heads_, 1, made.k.size(2)});
  add_keys(made.k, made.v, made.mask);
  // With the memory itself, which several layers read.
  std::vector<Tensor> wanted{key, value, made.k, made.v};
  if (made.mask.defined()) wanted.push_back(made.mask);
  clnet::eval(wanted);
  for (auto* x : {&made.k, &made.v, &made.mask})
    if (x->defined()) *x = x->detach();
  return made;
}

Tensor MultiheadAttention::step(const Tensor& x, const MemoryCache& memory) const {
  return called(*this, [&](auto& self) { return self.look(x, memory); });
}

Tensor MultiheadAttention::look(const Tensor& x, const MemoryCache& memory) {
  require_defined(attention_name, {{"x", x}, {"the memory's keys", memory.k}, {"the memory's values", memory.v}});
  require_features("x", x, embed_dim_, 3);
  const auto rows = x.size(options_.batch_first ? 0 : 1), length = x.size(options_.batch_first ? 1 : 0),
             width = embed_dim_ / heads_;
  const Shape room = memory.k.shape();
  if (room.rank() != 4 || room[0] < 1 || room[1] != heads_ || room[3] != width || rows % room[0] != 0)
    throw ShapeError(
        fmt::format("{}: x {} does not fit a memory's keys {}", attention_name, to_string(x.spec()), to_string(room)));
  const auto each = rows / room[0];
  // Rows of one memory are more queries of it: neither keys nor values are copied.
  auto q = part_of(projected(x, 0, 1), 0);
  if (each > 1)
    q = reshape(permute(reshape(q, {room[0], each, heads_, length, width}), {0, 2, 1, 3, 4}),
                {room[0], heads_, each * length, width});
  auto y = scaled_dot_product_attention(q, memory.k, memory.v, {.mask = memory.mask});
  if (each > 1)
    y = reshape(permute(reshape(y, {room[0], heads_, each, length, width}), {0, 2, 1, 3, 4}), {rows, heads_, length, width});
  return out_(merged(y));
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

void PositionalEncoding::require_positions(const Tensor& x) const {
  require_defined("PositionalEncoding", {{"x", x}});
  const Shape table = table_.shape();
  if (x.rank() != 3 || x.size(2) != table[1] || x.size(options_.batch_first ? 1 : 0) > table[0])
    throw ShapeError(fmt::format("PositionalEncoding: {} is not {} of up to {} positions and width {}", to_string(x.spec()),
                                 options_.batch_first ? "{batch, length, width}" : "{length, batch, width}", table[0], table[1]));
}

Tensor PositionalEncoding::added(const Tensor& x, const Tensor& rows) const {
  const auto cast_rows = cast(rows, x.dtype());
  const auto y = x + (options_.batch_first ? cast_rows : unsqueeze(cast_rows, 1));
  return training() ? dropout(y, options_.dropout) : y;
}

Tensor PositionalEncoding::forward(const Tensor& x) {
  require_positions(x);
  return added(x, slice(table_, 0, 0, x.size(options_.batch_first ? 1 : 0)));
}

Tensor PositionalEncoding::forward(const Tensor& x, std::int64_t offset) {
  require_positions(x);
  const auto length = x.size(options_.batch_first ? 1 : 0), most = table_.shape()[0];
  if (offset < 0 || offset > most - length)
    throw ShapeError(
        fmt::format("PositionalEncoding: {} positions from {} on are not all below max_length {}", length, offset, most));
  return added(x, narrow(table_, 0, offset, length));
}

std::string PositionalEncoding::kind() const { return fmt::format("PositionalEncoding({})", table_.value().size(1)); }

}  // namespace clnet::nn
