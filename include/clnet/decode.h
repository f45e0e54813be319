// Decoding: sentences from a model that rates each next token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::decode {

/// Reads the next tokens {rows, length}, i64, and returns the logits of the token behind them: {rows, vocabulary}, or {rows,
/// length, vocabulary}, whose last position counts. The first call gets the tokens that the sentences begin with, each later one
/// {rows, 1}. Steps with caches give one plan for all later calls: see nn::Transformer::step(). Logits of -infinity forbid a
/// token. Put the model in inference mode first.
using StepFunction = std::function<Tensor(const Tensor& tokens)>;
/// Makes row i of the model's caches continue the former row rows[i], for `rows` {rows}, i64, as nn::reorder() does.
using ReorderFunction = std::function<void(const Tensor& rows)>;

struct GreedyOptions {
  std::int64_t max_new_tokens = 64;      ///< of a sentence, with its `end`
  std::optional<std::int64_t> end = {};  ///< the token that ends a sentence; std::nullopt: none does
  std::int64_t padding = 0;              ///< fills the places behind it
};
/// The likeliest token at each step. `first` has the tokens that each sentence begins with, {batch} or {batch, length}, i32 or
/// i64. The result {batch, n}, i64, has those behind them. Decoding stops when all sentences have ended. Throws Error for options
/// out of range, an `end` that is no token and logits without a largest finite number, ShapeError and DtypeError for tokens and
/// logits that do not fit.
///
///   auto caches = transformer.caches(transformer.encode(source), 64);
///   const auto written = decode::greedy(
///       [&](const Tensor& tokens) { return head(transformer.step(words(tokens), caches)); }, full({batch}, begin, Dtype::i64),
///       {.max_new_tokens = 64, .end = end});
CLNET_API Tensor greedy(const StepFunction& step, const Tensor& first, const GreedyOptions& options = {});

struct SampleOptions {
  std::int64_t max_new_tokens = 64;      ///< of a sentence, with its `end`
  std::optional<std::int64_t> end = {};  ///< the token that ends a sentence; std::nullopt: none does
  std::int64_t padding = 0;              ///< fills the places behind it
  /// Divides the logits: below 1 likely tokens become likelier, above 1 all become more alike. 0: always the likeliest.
  double temperature = 1;
  std::int64_t top_k = 0;  ///< only the k likeliest tokens; 0: all
  /// Of these, only the fewest likeliest ones whose probabilities sum to at least top_p, at least one (Holtzman and others 2020).
  double top_p = 1;
  std::uint64_t seed = 0;  ///< independent of manual_seed()
  /// Called with each step's token for every sentence; false stops.
  std::function<bool(std::span<const std::int64_t> tokens)> on_tokens = nullptr;
};
/// Tokens drawn by their probabilities; otherwise as greedy(). Each sentence has random numbers of its own: those of sentence 0
/// do not depend on the number of others. Probabilities and choice are computed on the host in double.
CLNET_API Tensor sample(const StepFunction& step, const Tensor& first, const SampleOptions& options = {});

struct BeamSearchOptions {
  std::int64_t beams = 4;
  std::int64_t sequences = 1;            ///< results of each sentence, at most `beams`
  std::int64_t max_new_tokens = 64;      ///< of a sequence, with its `end`
  std::optional<std::int64_t> end = {};  ///< the token that ends a sequence; std::nullopt: none does
  std::int64_t padding = 0;              ///< fills the places behind it
  double length_penalty = 1;             ///< the exponent a of score = log probability / (number of tokens, with `end`)^a
  /// Stops a sentence at as many ended sequences as beams. Otherwise at the step where no running one can become better.
  bool early_stopping = false;
};
struct BeamSearchResult {
  Tensor tokens;  ///< {batch, sequences, n}, i64, the best first
  Tensor scores;  ///< {batch, sequences}, f32; -infinity where there are fewer sequences
};
/// Beam search as Hugging Face's generate(): each step keeps the `beams` likeliest sequences of each sentence. Sequences that
/// have not ended after max_new_tokens count as they are. For `first` {batch} or {batch, length}, `step` gets batch * beams rows,
/// those of one sentence behind each other: make the caches for that many. `reorder` is called before every step but the first,
/// with rows that stay in their sentence; without it where the model has no caches. Throws as greedy().
///
///   auto caches = transformer.caches(transformer.encode(source), 64, {}, beams);
///   const auto best = decode::beam_search(
///       [&](const Tensor& tokens) { return head(transformer.step(words(tokens), caches)); },
///       [&](const Tensor& rows) { nn::reorder(caches, rows); }, first, {.beams = beams, .end = end});
CLNET_API BeamSearchResult beam_search(const StepFunction& step, const ReorderFunction& reorder, const Tensor& first,
                                       const BeamSearchOptions& options = {});

}  // namespace clnet::decode
