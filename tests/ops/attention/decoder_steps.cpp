// Decoders with caches against the same decoders without them.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t decoder_width = 8, decoder_heads = 2;

Tensor decoder_values(const Shape& shape, std::uint64_t seed) {
  auto values = make_values({shape}, seed);
  return to_tensor(values, Dtype::f32);
}

/// Other numbers than the initial ones, of which many are 0 or 1.
void fill_decoder(nn::Module& module) {
  std::uint64_t seed = 20;
  for (auto& [name, parameter] : module.parameters()) {
    auto values = make_values({parameter.value().shape(), -0.8, 0.9}, ++seed);
    parameter.set(to_tensor(values, Dtype::f32));
  }
}

nn::Transformer small_transformer(bool norm_first, bool batch_first) {
  nn::Transformer model(decoder_width, decoder_heads, 1, 2,
                        {.dim_feedforward = 12, .dropout = 0.5, .batch_first = batch_first, .norm_first = norm_first});
  fill_decoder(model);
  model.inference();
  return model;
}

/// True for the last key of row 1.
Tensor padding_of(std::int64_t batch, std::int64_t keys) {
  std::vector<bool> padding(static_cast<std::size_t>(batch * keys), false);
  padding[static_cast<std::size_t>(2 * keys - 1)] = true;
  return Tensor::from(padding, {batch, keys});
}

/// The steps' results one behind the other, from pieces of these lengths.
Tensor in_steps(const nn::Transformer& model, const Tensor& target, int dim, std::vector<nn::DecoderCache>& caches,
                const std::vector<std::int64_t>& lengths) {
  std::vector<Tensor> pieces;
  std::int64_t at = 0;
  for (const auto length : lengths) {
    pieces.push_back(model.step(slice(target, dim, at, at + length).detach(), caches).detach());
    at += length;
  }
  return concat(pieces, dim);
}

}  // namespace

TEST_CASE("steps of a decoder with caches are what decode() gives for the whole sequence") {
  for (const bool norm_first : {false, true})
    for (const bool batch_first : {false, true})
      for (const int mask : {0, 1, 2}) {
        CAPTURE(norm_first, batch_first, mask);
        const auto model = small_transformer(norm_first, batch_first);
        const auto arranged = [&](const Tensor& x) { return batch_first ? x : permute(x, {1, 0, 2}); };
        const auto source = arranged(decoder_values({3, 4, decoder_width}, 1)),
                   target = arranged(decoder_values({3, 6, decoder_width}, 2));
        nn::AttentionMasks masks;
        if (mask > 0) masks.key_padding_mask = padding_of(3, 4);
        if (mask > 1) masks.key_padding_mask = where(masks.key_padding_mask, Tensor::scalar(-1.5), Tensor::scalar(0.25));
        const auto memory = model.encode(source, masks);
        const auto want = to_array(model.decode(target, memory, {.is_causal = true}, masks));
        compare("whole", to_array(model(source, target, {.source = masks, .target = {.is_causal = true}, .memory = masks})), want,
                1e-6);
        auto caches = model.caches(memory, 7, masks);
        CHECK(caches.size() == 2);
        compare("steps", to_array(in_steps(model, target, batch_first ? 1 : 0, caches, {2, 1, 1, 2})), want, 1e-5);
        CHECK(caches.front().target.length == 6);
        CHECK_THROWS_WITH(model.step(target, caches), Contains("the cache of 7 positions has 6 and no room for 6 more"));
        CHECK(caches.front().target.length == 6);
        for (auto& cache : caches) cache.target.length = 0;
        compare("anew", to_array(in_steps(model, target, batch_first ? 1 : 0, caches, {6})), want, 1e-5);
      }
}

TEST_CASE("steps of a decoder in mixed precision are what decode() gives there") {
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    CAPTURE(to_string(dtype));
    const auto model = small_transformer(true, true);
    const auto target = decoder_values({2, 5, decoder_width}, 2);
    const Autocast scope(dtype);
    const auto memory = model.encode(decoder_values({2, 4, decoder_width}, 1));
    auto caches = model.caches(memory, 5);
    CHECK(caches.front().memory.k.dtype() == dtype);
    const auto want = to_array(model.decode(target, memory, {.is_causal = true}));
    compare("steps", to_array(in_steps(model, target, 1, caches, {1, 1, 1, 1, 1})), want, dtype == Dtype::f16 ? 1e-2 : 8e-2);
  }
}

TEST_CASE("a memory's keys and values are those of any attention") {
  const std::vector<nn::MultiheadAttentionOptions> kinds{
      {.batch_first = true},
      {.bias = false, .batch_first = false},
      {.add_bias_kv = true, .batch_first = true},
      {.add_zero_attn = true, .kdim = 5, .vdim = 3, .batch_first = true},
      {.add_bias_kv = true, .add_zero_attn = true, .kdim = 5, .batch_first = false}};
  for (const auto& options : kinds) {
    nn::MultiheadAttention layer(decoder_width, decoder_heads, options);
    fill_decoder(layer);
    layer.inference();
    const auto arranged = [&](const Tensor& x) { return options.batch_first ? x : permute(x, {1, 0, 2}); };
    const auto x = arranged(decoder_values({2, 3, decoder_width}, 1)),
               key = arranged(decoder_values({2, 4, options.kdim ? options.kdim : decoder_width}, 2)),
               value = arranged(decoder_values({2, 4, options.vdim ? options.vdim : decoder_width}, 3));
    const nn::AttentionMasks masks{.key_padding_mask = padding_of(2, 4)};
    const auto cache = layer.memory_cache(key, value, masks);
    compare("step", to_array(layer.step(x, cache)), to_array(layer(x, key, value, masks)), 1e-5);
    // Two rows of x for each of the memory, as beam search has them.
    const auto dim = options.batch_first ? 0 : 1;
    const auto twice = [&](const Tensor& t) { return repeat_interleave(t, 2, dim); };
    const auto more = arranged(decoder_values({4, 3, decoder_width}, 5));
    compare("beams", to_array(layer.step(more, cache)),
            to_array(layer(more, twice(key), twice(value), {.key_padding_mask = repeat_interleave(padding_of(2, 4), 2, 0)})),
            1e-5);
    CHECK_THROWS_WITH(layer.step(arranged(decoder_values({3, 3, decoder_width}, 5)), cache),
                      Contains("does not fit a memory's keys"));
    CHECK_THROWS_WITH(layer.memory_cache(key, value, {.is_causal = true}), Contains("takes a key_padding_mask only"));
    CHECK_THROWS_WITH(layer.memory_cache(key, slice(value, dim, 0, 1)), Contains("do not fit each other"));
  }
}

TEST_CASE("rows of caches are reordered within a memory's beams") {
  const auto model = small_transformer(false, true);
  const auto memory = model.encode(decoder_values({2, 4, decoder_width}, 1));
  auto caches = model.caches(memory, 4, {}, 2);
  const auto x = decoder_values({4, 3, decoder_width}, 2);
  const auto first = in_steps(model, x, 1, caches, {2});
  const std::vector<std::int64_t> parents{1, 0, 3, 3};
  nn::reorder(caches, Tensor::from(parents));
  const auto next = slice(x, 1, 2, 3).detach();
  const auto got = to_array(model.step(next, caches));
  const auto whole = concat({index_select(slice(x, 1, 0, 2), 0, Tensor::from(parents)), next}, 1);
  const auto want = model.decode(whole, repeat_interleave(memory, 2, 0), {.is_causal = true});
  compare("reordered", got, to_array(slice(want, 1, 2, 3)), 1e-5);
  CHECK_THROWS_WITH(nn::reorder(caches, Tensor::from({0, 1})), Contains("rows i32[2] do not fit a cache of [4, 2, 4, 4]"));
  CHECK_THROWS_WITH(nn::reorder(caches, zeros({4})), Contains("rows must be i32 or i64, got f32[4]"));
  auto encoder_caches = nn::TransformerEncoder(decoder_width, decoder_heads, 2).caches(4, 3);
  nn::reorder(encoder_caches, Tensor::from(parents));
  CHECK(encoder_caches.front().capacity() == 3);
}

TEST_CASE("steps of a decoder refuse what does not fit") {
  const auto model = small_transformer(false, true);
  const auto memory = model.encode(decoder_values({2, 4, decoder_width}, 1));
  CHECK_THROWS_WITH(model.caches(memory, 4, {.is_causal = true}), Contains("takes a key_padding_mask only"));
  CHECK_THROWS_WITH(model.caches(memory, 4, {}, 0), Contains("the cache's beams must be at least 1, not 0"));
  CHECK_THROWS_WITH(model.caches(memory, 0), Contains("capacity must be at least 1, not 0"));
  CHECK_THROWS_WITH(model.caches(decoder_values({2, 4, 5}, 1), 4), Contains("key f32[2, 4, 5] must be {batch, length, 8}"));
  auto caches = model.caches(memory, 4);
  CHECK_THROWS_WITH(model.step(decoder_values({3, 1, decoder_width}, 1), caches), Contains("does not fit a cache"));
  caches.pop_back();
  CHECK_THROWS_WITH(model.step(memory, caches), Contains("TransformerDecoder: 2 layers cannot step with 1 caches"));
  auto replaced = small_transformer(false, true);
  nn::TransformerDecoder other(decoder_width, decoder_heads, 1, {.dim_feedforward = 3, .dropout = 0, .batch_first = true});
  replaced.replace("decoder", other);
  auto one = replaced.caches(memory, 4);
  CHECK(one.size() == 1);
  compare("replaced", to_array(replaced.step(memory, one)), to_array(other(memory, memory, {.is_causal = true})), 1e-5);
}

TEST_CASE("positions have an offset, and a new one makes no plan") {
  const auto table = to_array(sinusoidal_positions(12, 6));
  const auto later = to_array(sinusoidal_positions(3, 6, Dtype::f32, 7));
  for (std::int64_t i = 0; i < later.numel(); ++i) CHECK(later[i] == table[7 * 6 + i]);
  CHECK_THROWS_WITH(sinusoidal_positions(3, 6, Dtype::f32, -1), Contains("offset -1 is not from 0 to"));
  for (const bool batch_first : {false, true}) {
    nn::PositionalEncoding layer(6, {.dropout = 0.5, .max_length = 12, .batch_first = batch_first});
    layer.inference();
    const auto x = decoder_values(batch_first ? Shape{2, 3, 6} : Shape{3, 2, 6}, 1);
    const auto added = [&](std::int64_t offset) { return to_array((layer(x, offset) - x).detach()); };
    (void)added(0);
    const auto plans = exec::statistics().plans_made;
    for (const std::int64_t offset : {1, 5, 9}) {
      const auto y = added(offset);
      for (std::int64_t i = 0; i < y.numel(); ++i) {
        const auto position = offset + (batch_first ? i / 6 % 3 : i / 12);
        CHECK(y[i] == Approx(table[position * 6 + i % 6]).margin(1e-5));
      }
    }
    CHECK(exec::statistics().plans_made == plans);
    CHECK_THROWS_WITH(layer(x, 10), Contains("3 positions from 10 on are not all below max_length 12"));
    CHECK_THROWS_WITH(layer(x, -1), Contains("3 positions from -1 on"));
  }
}
