#include "clnet/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/nn/sampler.h"

namespace clnet::decode {

namespace {

constexpr auto minus_infinity = -std::numeric_limits<double>::infinity();

/// The tokens that sentences begin with, i64 {batch * each, length}: each sentence `each` times.
Tensor beginnings(const char* who, const Tensor& first, std::int64_t each) {
  require_defined(who, {{"first", first}});
  if (first.dtype() != Dtype::i32 && first.dtype() != Dtype::i64)
    throw DtypeError(fmt::format("{}: first must be i32 or i64, got {}", who, to_string(first.spec())));
  if ((first.rank() != 1 && first.rank() != 2) || first.numel() == 0)
    throw ShapeError(
        fmt::format("{}: first {} must be {{batch}} or {{batch, length}}, and not empty", who, to_string(first.spec())));
  std::vector<std::int64_t> tokens;
  const auto given = first.to_vector<std::int64_t>();
  const auto batch = first.size(0), length = first.numel() / batch;
  for (auto line = given.begin(); line != given.end(); line += length)
    for (std::int64_t i = 0; i < each; ++i) tokens.insert(tokens.end(), line, line + length);
  return Tensor::from(tokens, {batch * each, length});
}

void require_count(const char* who, std::int64_t max_new_tokens) {
  if (max_new_tokens < 0) throw Error(fmt::format("{}: max_new_tokens cannot be {}", who, max_new_tokens));
}

/// The logits {rows, vocabulary} of a step.
Tensor rated(const char* who, const StepFunction& step, const Tensor& tokens, std::optional<std::int64_t> end) {
  if (!step) throw Error(fmt::format("{}: the step is no function", who));
  const Tensor y = step(tokens);
  require_defined(who, {{"the step's logits", y}});
  const auto rows = tokens.size(0);
  if ((y.rank() != 2 && y.rank() != 3) || y.size(0) != rows || y.numel() == 0)
    throw ShapeError(fmt::format("{}: the step's logits {} must be {{{}, vocabulary}} or {{{}, length, vocabulary}}", who,
                                 to_string(y.spec()), rows, rows));
  if (!is_floating(y.dtype()))
    throw DtypeError(fmt::format("{}: the step's logits must be floating, got {}", who, to_string(y.spec())));
  if (end && (*end < 0 || *end >= y.size(-1)))
    throw Error(fmt::format("{}: end is {}, and the step rates the tokens 0 to {}", who, *end, y.size(-1) - 1));
  return y.rank() == 2 ? y : squeeze(slice(y, 1, y.size(1) - 1, y.size(1)), 1);
}

/// Sentences that grow by a token at each step, until all have ended.
template <class Options>
class Sentences {
 public:
  Sentences(const char* who, const Tensor& first, const Options& options)
      : who_(who),
        options_(options),
        tokens_(beginnings(who, first, 1)),
        ended_(static_cast<std::size_t>(tokens_.size(0)), false) {
    require_count(who, options.max_new_tokens);
  }
  /// choose(logits {batch, vocabulary}, ended): a token for each sentence that has not ended.
  template <class Choose>
  Tensor write(const StepFunction& step, const Choose& choose) {
    const auto batch = ended_.size();
    std::vector<std::vector<std::int64_t>> steps;
    while (std::cmp_less(steps.size(), options_.max_new_tokens) && !std::all_of(ended_.begin(), ended_.end(), std::identity{})) {
      auto next = choose(rated(who_, step, tokens_, options_.end), ended_);
      for (std::size_t i = 0; i < batch; ++i) {
        if (ended_[i])
          next[i] = options_.padding;
        else if (next[i] == options_.end)
          ended_[i] = true;
      }
      steps.push_back(next);
      if constexpr (requires { options_.on_tokens; })
        if (options_.on_tokens && !options_.on_tokens(next)) break;
      tokens_ = Tensor::from(next, {static_cast<std::int64_t>(batch), 1});
    }
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < batch; ++i)
      for (const auto& tokens : steps) all.push_back(tokens[i]);
    return Tensor::from(all, {static_cast<std::int64_t>(batch), static_cast<std::int64_t>(steps.size())});
  }

 private:
  const char* who_;
  const Options& options_;
  Tensor tokens_;
  std::vector<bool> ended_;
};

/// A beginning of a sequence, or an ended one, and its score.
struct Hypothesis {
  std::vector<std::int64_t> tokens;
  double score = minus_infinity;  ///< a sum of log probabilities while it runs
};

/// The beams of one sentence.
class Beams {
 public:
  explicit Beams(const BeamSearchOptions& options) : options_(options), running_(static_cast<std::size_t>(options.beams)) {
    running_.front().score = 0;  // the others are the same beginning
  }
  bool done() const { return done_; }
  const std::vector<Hypothesis>& running() const { return running_; }
  /// The beam that each running one continues.
  const std::vector<std::size_t>& parents() const { return parents_; }

  /// A step, by log probabilities {beams, vocabulary}.
  void extend(std::span<const float> log_probabilities) {
    const auto vocabulary = log_probabilities.size() / running_.size();
    std::vector<Hypothesis> next;
    parents_.clear();
    std::size_t rank = 0;
    for (const auto& [score, beam, token] : best(log_probabilities, vocabulary)) {
      const bool ends = static_cast<std::int64_t>(token) == options_.end;
      // As Hugging Face's: an ending counts only where it is among the best `beams`.
      if (rank++ < running_.size() || !ends) {
        Hypothesis longer{running_[beam].tokens, score};
        longer.tokens.push_back(static_cast<std::int64_t>(token));
        if (ends)
          finish(std::move(longer));
        else {
          next.push_back(std::move(longer));
          parents_.push_back(beam);
        }
      }
      if (next.size() == running_.size()) break;
    }
    ++length_;
    done_ = next.empty() || finished(next.front().score);
    // Where there are fewer sequences than beams, the others stay empty and cannot be continued.
    while (next.size() < running_.size()) {
      parents_.push_back(next.size());
      next.push_back({std::vector<std::int64_t>(static_cast<std::size_t>(length_), options_.padding)});
    }
    running_ = std::move(next);
  }

  /// The best sequences, after the last step.
  std::vector<Hypothesis> results() {
    if (!done_)
      for (auto& beam : running_)
        if (length_ > 0 && beam.score > minus_infinity) finish(std::move(beam));
    ended_.resize(std::min(ended_.size(), static_cast<std::size_t>(options_.sequences)));
    return ended_;
  }

 private:
  struct Candidate {
    double score;
    std::size_t beam, token;
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : std::tie(a.beam, a.token) < std::tie(b.beam, b.token);
  }
  /// The best continuations, twice as many as beams: so many are left when one of each beam has ended.
  std::vector<Candidate> best(std::span<const float> log_probabilities, std::size_t vocabulary) const {
    std::vector<Candidate> heap;  // the worst first
    for (std::size_t beam = 0; beam < running_.size(); ++beam) {
      if (running_[beam].score == minus_infinity) continue;
      for (std::size_t token = 0; token < vocabulary; ++token) {
        const Candidate made{running_[beam].score + static_cast<double>(log_probabilities[beam * vocabulary + token]), beam,
                             token};
        if (made.score == minus_infinity) continue;
        const bool full = heap.size() == 2 * running_.size();
        if (full && !better(made, heap.front())) continue;
        if (full) {
          std::pop_heap(heap.begin(), heap.end(), better);
          heap.pop_back();
        }
        heap.push_back(made);
        std::push_heap(heap.begin(), heap.end(), better);
      }
    }
    std::sort_heap(heap.begin(), heap.end(), better);
    return heap;
  }
  double normalized(double sum, std::int64_t tokens) const {
    return sum / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }
  void finish(Hypothesis ended) {
    ended.score = normalized(ended.score, static_cast<std::int64_t>(ended.tokens.size()));
    const auto at = std::upper_bound(ended_.begin(), ended_.end(), ended,
                                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    ended_.insert(at, std::move(ended));
    if (ended_.size() > running_.size()) ended_.pop_back();
  }
  /// Whether no running sequence can come among the ended ones, given the best sum of log probabilities.
  bool finished(double best_sum) const {
    if (ended_.size() < running_.size()) return false;
    // A sum only falls; how a longer sequence is rated depends on the penalty's sign.
    const auto most = options_.max_new_tokens;
    const auto tokens = options_.length_penalty > 0 ? most : std::min(length_ + 1, most);
    return options_.early_stopping || normalized(best_sum, tokens) <= ended_.back().score;
  }

  const BeamSearchOptions& options_;
  std::vector<Hypothesis> running_, ended_;
  std::vector<std::size_t> parents_;
  std::int64_t length_ = 0;
  bool done_ = false;
};

}  // namespace

Tensor greedy(const StepFunction& step, const Tensor& first, const GreedyOptions& options) {
  return Sentences("greedy", first, options).write(step, [](const Tensor& logits, const std::vector<bool>& ended) {
    const Tensor index = argmax(logits, 1), largest = max(logits, {1});
    eval({index, largest});
    const auto values = largest.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!ended[i] && !std::isfinite(values[i])) throw Error("greedy: the model's logits are no finite numbers");
    return index.to_vector<std::int64_t>();
  });
}

Tensor sample(const StepFunction& step, const Tensor& first, const SampleOptions& options) {
  const Sampler sampler("sample", {options.temperature, options.top_k, options.top_p});
  std::vector<std::mt19937_64> random;
  return Sentences("sample", first, options).write(step, [&](const Tensor& logits, const std::vector<bool>& ended) {
    const auto values = logits.to_vector<float>();
    const auto vocabulary = static_cast<std::size_t>(logits.size(1));
    std::vector<std::int64_t> next(ended.size(), options.padding);
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (random.size() == i) random.emplace_back(options.seed + i * 0x9e3779b97f4a7c15U);
      if (!ended[i]) next[i] = sampler.draw(std::span(values).subspan(i * vocabulary, vocabulary), random[i]);
    }
    return next;
  });
}

namespace {

/// Of beams that go on: where fewer sequences than beams are left, others only fill the batch.
void require_numbers(const char* who, const Beams& beams, std::span<const float> ratings) {
  const auto& running = beams.running();
  const auto vocabulary = ratings.size() / running.size();
  for (std::size_t beam = 0; beam < running.size(); ++beam) {
    if (std::isinf(running[beam].score)) continue;
    const auto row = ratings.subspan(beam * vocabulary, vocabulary);
    if (std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); }))
      throw Error(fmt::format("{}: the model's logits are no finite numbers", who));
  }
}

}  // namespace

BeamSearchResult beam_search(const StepFunction& step, const ReorderFunction& reorder, const Tensor& first,
                             const BeamSearchOptions& options) {
  constexpr auto who = "beam_search";
  if (options.beams < 1) throw Error(fmt::format("{}: beams must be at least 1, not {}", who, options.beams));
  if (options.sequences < 1 || options.sequences > options.beams)
    throw Error(fmt::format("{}: sequences must be from 1 to {} beams, not {}", who, options.beams, options.sequences));
  if (!std::isfinite(options.length_penalty))
    throw Error(fmt::format("{}: length_penalty cannot be {}", who, options.length_penalty));
  require_count(who, options.max_new_tokens);
  Tensor tokens = beginnings(who, first, options.beams);
  const auto rows = tokens.size(0), batch = rows / options.beams;
  std::vector<Beams> sentences(static_cast<std::size_t>(batch), Beams(options));
  std::vector<std::int64_t> parents;
  for (std::int64_t length = 0; length < options.max_new_tokens; ++length) {
    if (std::all_of(sentences.begin(), sentences.end(), [](const auto& beams) { return beams.done(); })) break;
    // Always, though often no row changes: one plan serves all steps. One beam has no other to continue.
    if (length > 0 && reorder && options.beams > 1) reorder(Tensor::from(parents));
    const auto rating = log_softmax(cast(rated(who, step, tokens, options.end), Dtype::f32), 1);
    const auto values = rating.to_vector<float>();
    const auto size = values.size() / sentences.size();
    std::vector<std::int64_t> next;
    parents.clear();
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      auto& beams = sentences[i];
      if (!beams.done()) {
        const auto own = std::span(values).subspan(i * size, size);
        require_numbers(who, beams, own);
        beams.extend(own);
      }
      for (std::size_t beam = 0; beam < beams.running().size(); ++beam) {
        next.push_back(beams.done() ? options.padding : beams.running()[beam].tokens.back());
        parents.push_back(static_cast<std::int64_t>(i * beams.running().size() + (beams.done() ? beam : beams.parents()[beam])));
      }
    }
    tokens = Tensor::from(next, {rows, 1});
  }
  std::vector<std::int64_t> all;
  std::vector<float> scores;
  std::vector<std::vector<Hypothesis>> results;
  std::size_t longest = 0;
  for (auto& beams : sentences) {
    results.push_back(beams.results());
    for (const auto& result : results.back()) longest = std::max(longest, result.tokens.size());
  }
  for (auto& found : results) {
    found.resize(static_cast<std::size_t>(options.sequences));
    for (auto& result : found) {
      result.tokens.resize(longest, options.padding);
      all.insert(all.end(), result.tokens.begin(), result.tokens.end());
      scores.push_back(static_cast<float>(result.score));
    }
  }
  return {Tensor::from(all, {batch, options.sequences, static_cast<std::int64_t>(longest)}),
          Tensor::from(scores, {batch, options.sequences})};
}

}  // namespace clnet::decode
