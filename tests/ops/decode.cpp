// Greedy decoding, sampling and beam search, against searches on the host.
#include "clnet/decode.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

using namespace clnet;
using Catch::Matchers::Contains;

namespace {

using Tokens = std::vector<std::int64_t>;

/// A model on the host whose logits depend on all tokens of a row; `wide` spreads them.
class HostModel {
 public:
  HostModel(std::int64_t vocabulary, double wide) : vocabulary_(vocabulary), wide_(wide) {}
  std::vector<double> log_probabilities(const Tokens& tokens) const {
    std::uint64_t state = 1;
    for (const auto token : tokens) state = (state + static_cast<std::uint64_t>(token) + 1) * 0x9e3779b97f4a7c15U;
    std::vector<double> result;
    for (std::int64_t i = 0; i < vocabulary_; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      result.push_back(static_cast<float>(wide_ * static_cast<double>(state >> 40) * 0x1p-24));
    }
    double sum = 0;
    for (const auto x : result) sum += std::exp(x);
    for (auto& x : result) x -= std::log(sum);
    return result;
  }
  Tensor step(const Tensor& tokens) {
    const auto values = tokens.to_vector<std::int64_t>();
    const auto rows = static_cast<std::size_t>(tokens.size(0)), length = values.size() / rows;
    seen_.resize(rows);
    std::vector<float> logits;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < length; ++i) seen_[row].push_back(values[row * length + i]);
      for (const auto x : log_probabilities(seen_[row])) logits.push_back(static_cast<float>(x));
    }
    ++steps;
    return Tensor::from(logits, {tokens.size(0), vocabulary_});
  }
  void reorder(const Tensor& rows) {
    const auto parents = rows.to_vector<std::int64_t>();
    auto former = seen_;
    for (std::size_t i = 0; i < parents.size(); ++i) seen_[i] = former[static_cast<std::size_t>(parents[i])];
  }
  decode::StepFunction steps_of() {
    seen_.clear();
    steps = 0;
    return [this](const Tensor& tokens) { return step(tokens); };
  }
  decode::ReorderFunction order_of() {
    return [this](const Tensor& rows) { reorder(rows); };
  }
  /// The score of a sequence behind its beginning.
  double score(Tokens tokens, const Tokens& written, double penalty) const {
    double sum = 0;
    for (const auto token : written) {
      sum += log_probabilities(tokens)[static_cast<std::size_t>(token)];
      tokens.push_back(token);
    }
    return sum / std::pow(static_cast<double>(written.size()), penalty);
  }

  int steps = 0;

 private:
  std::int64_t vocabulary_;
  double wide_;
  std::vector<Tokens> seen_;
};

/// All sequences of at most `most` tokens that end, or have that many, the best first.
std::vector<std::pair<double, Tokens>> all_sequences(const HostModel& model, const Tokens& begun, std::int64_t vocabulary,
                                                     std::int64_t end, std::size_t most, double penalty) {
  std::vector<std::pair<double, Tokens>> result;
  const std::function<void(const Tokens&)> grow = [&](const Tokens& written) {
    for (std::int64_t token = 0; token < vocabulary; ++token) {
      auto longer = written;
      longer.push_back(token);
      if (token == end || longer.size() == most)
        result.emplace_back(model.score(begun, longer, penalty), longer);
      else
        grow(longer);
    }
  };
  grow({});
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return result;
}

/// The sequence at a place of a result, without padding behind its end.
Tokens line_of(const Tensor& tokens, std::int64_t row, std::int64_t end) {
  const auto length = tokens.size(-1);
  const auto all = tokens.to_vector<std::int64_t>();
  Tokens line(all.begin() + row * length, all.begin() + (row + 1) * length);
  if (const auto at = std::find(line.begin(), line.end(), end); at != line.end()) line.erase(at + 1, line.end());
  return line;
}

/// The plain form of beam search: all continuations in order.
std::vector<std::pair<double, Tokens>> plain_beam_search(const HostModel& model, const Tokens& begun, std::int64_t end,
                                                         std::size_t beams, std::size_t most, double penalty) {
  std::vector<std::pair<double, Tokens>> running{{0, {}}}, ended;
  const auto better = [](const auto& a, const auto& b) { return a.first > b.first; };
  for (std::size_t length = 1; length <= most && ended.size() < beams; ++length) {
    std::vector<std::pair<double, Tokens>> all;
    for (const auto& [score, line] : running) {
      auto whole = begun;
      whole.insert(whole.end(), line.begin(), line.end());
      const auto more = model.log_probabilities(whole);
      for (std::size_t token = 0; token < more.size(); ++token) {
        all.emplace_back(score + more[token], line);
        all.back().second.push_back(static_cast<std::int64_t>(token));
      }
    }
    std::sort(all.begin(), all.end(), better);
    running.clear();
    for (std::size_t i = 0; i < all.size() && running.size() < beams; ++i) {
      if (all[i].second.back() != end)
        running.push_back(all[i]);
      else if (i < beams)
        ended.emplace_back(all[i].first / std::pow(static_cast<double>(length), penalty), all[i].second);
    }
  }
  if (ended.size() < beams)
    for (auto& [score, line] : running) ended.emplace_back(score / std::pow(static_cast<double>(most), penalty), line);
  std::sort(ended.begin(), ended.end(), better);
  ended.resize(std::min(ended.size(), beams));
  return ended;
}

}  // namespace

TEST_CASE("beam search with room for all sequences finds the best of all") {
  constexpr std::int64_t vocabulary = 4, end = 2, most = 4, beams = 64;
  const std::vector<Tokens> beginnings{{1, 3}, {0, 0}, {3, 2}};
  for (const double penalty : {0.0, 1.0, 2.5, -0.5}) {
    CAPTURE(penalty);
    HostModel model(vocabulary, 4);
    const auto result = decode::beam_search(
        model.steps_of(), model.order_of(), Tensor::from(Tokens{1, 3, 0, 0, 3, 2}, {3, 2}),
        {.beams = beams, .sequences = 5, .max_new_tokens = most, .end = end, .padding = 9, .length_penalty = penalty});
    CHECK(result.tokens.shape()[0] == 3);
    CHECK(result.tokens.shape()[1] == 5);
    const auto scores = result.scores.to_vector<float>();
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto want = all_sequences(model, beginnings[static_cast<std::size_t>(i)], vocabulary, end, most, penalty);
      for (std::int64_t j = 0; j < 5; ++j) {
        CHECK(line_of(result.tokens, i * 5 + j, end) == want[static_cast<std::size_t>(j)].second);
        CHECK(scores[static_cast<std::size_t>(i * 5 + j)] == Approx(want[static_cast<std::size_t>(j)].first).margin(1e-4));
      }
    }
  }
}

TEST_CASE("beam search with few beams keeps the best of each step, whatever else is in the batch") {
  constexpr std::int64_t vocabulary = 7, end = 3, most = 6;
  for (const std::int64_t beams : {1, 2, 3}) {
    CAPTURE(beams);
    Tokens firsts;
    for (std::int64_t i = 0; i < 12; ++i) firsts.push_back(i % vocabulary + i / vocabulary * 31);
    HostModel model(vocabulary, 3);
    const decode::BeamSearchOptions options{.beams = beams,
                                            .sequences = beams,
                                            .max_new_tokens = most,
                                            .end = end,
                                            .padding = 8,
                                            .length_penalty = 0.7,
                                            .early_stopping = true};
    const auto result = decode::beam_search(model.steps_of(), model.order_of(), Tensor::from(firsts), options);
    const auto scores = result.scores.to_vector<float>();
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto want = plain_beam_search(model, {firsts[static_cast<std::size_t>(i)]}, end, static_cast<std::size_t>(beams),
                                          static_cast<std::size_t>(most), 0.7);
      for (std::int64_t j = 0; j < beams; ++j) {
        CHECK(line_of(result.tokens, i * beams + j, end) == want[static_cast<std::size_t>(j)].second);
        CHECK(scores[static_cast<std::size_t>(i * beams + j)] == Approx(want[static_cast<std::size_t>(j)].first).margin(1e-4));
      }
    }
    // One beam that stops at its first end is greedy decoding.
    if (beams > 1) continue;
    const auto greedy =
        decode::greedy(model.steps_of(), Tensor::from(firsts), {.max_new_tokens = most, .end = end, .padding = 8});
    CHECK(greedy.to_vector<std::int64_t>() == result.tokens.to_vector<std::int64_t>());
  }
}

TEST_CASE("beam search stops where no running sequence can become better") {
  // Token 1 ends with a probability of about 0.88, and token 0 goes on.
  int steps = 0;
  const auto step = [&](const Tensor& tokens) {
    ++steps;
    return Tensor::from(std::vector<float>{0, 2, 0, 2}, {tokens.size(0), 2});
  };
  const auto found = [&](const decode::BeamSearchOptions& options) {
    steps = 0;
    return decode::beam_search(step, nullptr, Tensor::from(Tokens{0}), options);
  };
  // Behind the second step both ended ones are above whatever may come, if longer ones are not rated higher.
  auto result = found({.beams = 2, .sequences = 2, .max_new_tokens = 30, .end = 1, .length_penalty = 0});
  CHECK(steps == 2);
  CHECK(result.tokens.to_vector<std::int64_t>() == Tokens{1, 0, 0, 1});
  const double ends = -std::log1p(std::exp(-2.0)), goes = ends - 2;
  CHECK(result.scores.to_vector<float>()[1] == Approx(goes + ends));
  // A high penalty prefers long ones: thirty tokens.
  result = found({.beams = 2, .max_new_tokens = 30, .end = 1, .length_penalty = 9});
  CHECK(steps == 30);
  CHECK(result.tokens.shape() == Shape{1, 1, 30});
  found({.beams = 2, .max_new_tokens = 30, .end = 1, .length_penalty = 9, .early_stopping = true});
  CHECK(steps == 2);
}

TEST_CASE("beam search gives fewer sequences where there are no more, and none of no length") {
  const auto only = [](const Tensor& tokens) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(tokens.size(0)), 0), {tokens.size(0), 1});
  };
  const auto result = decode::beam_search(only, nullptr, Tensor::from(Tokens{0}),
                                          {.beams = 3, .sequences = 2, .max_new_tokens = 2, .padding = 7});
  CHECK(result.tokens.to_vector<std::int64_t>() == Tokens{0, 0, 7, 7});
  CHECK(result.scores.to_vector<float>() == std::vector<float>{0, -std::numeric_limits<float>::infinity()});
  CHECK(decode::beam_search(only, nullptr, Tensor::from(Tokens{0}), {.max_new_tokens = 0}).tokens.shape() == Shape{1, 1, 0});
}

TEST_CASE("beams that are none may have any logits") {
  // Two tokens are allowed; the padding is out of the embedding's range, whose rows are NaN.
  const Tensor weight = Tensor::from({0.0F, -1.0F, 1.0F, 2.0F}, {2, 2});
  const auto step = [&](const Tensor& tokens) { return embedding(tokens.reshape({tokens.numel()}), weight); };
  const auto found =
      decode::beam_search(step, nullptr, zeros({1}, Dtype::i64), {.beams = 4, .max_new_tokens = 3, .padding = -100});
  CHECK(std::isfinite(found.scores.item()));
}

TEST_CASE("greedy decoding stops each sentence at its end and all at the last one's") {
  // Each token is followed by the next number: sentences end after different times.
  int steps = 0;
  const auto step = [&](const Tensor& tokens) {
    ++steps;
    return one_hot(tokens + 1, 10) * 5;  // {batch, length, 10}
  };
  const auto first = Tensor::from(std::vector<std::int32_t>{0, 5, 0, 2, 0, 7}, {3, 2});
  const decode::GreedyOptions options{.max_new_tokens = 9, .end = 8, .padding = -1};
  const auto written = decode::greedy(step, first, options);
  CHECK(written.to_vector<std::int64_t>() == Tokens{6, 7, 8, -1, -1, -1, 3, 4, 5, 6, 7, 8, 8, -1, -1, -1, -1, -1});
  CHECK(steps == 6);
  CHECK(decode::greedy(step, first, {.max_new_tokens = 2}).to_vector<std::int64_t>() == Tokens{6, 7, 3, 4, 8, 9});
  CHECK(decode::greedy(step, first, {.max_new_tokens = 0}).shape() == Shape{3, 0});
  // The likeliest are also what is drawn at temperature 0 or of one.
  for (const decode::SampleOptions& same : {decode::SampleOptions{.max_new_tokens = 9, .end = 8, .padding = -1, .temperature = 0},
                                            decode::SampleOptions{.max_new_tokens = 9, .end = 8, .padding = -1, .top_k = 1},
                                            decode::SampleOptions{.max_new_tokens = 9, .end = 8, .padding = -1, .top_p = 1e-9}})
    CHECK(decode::sample(step, first, same).to_vector<std::int64_t>() == written.to_vector<std::int64_t>());
}

TEST_CASE("samples come as often as their probabilities, of the likeliest where that is asked for") {
  const std::vector<float> logits{1, -2, 0.5F, 2, -std::numeric_limits<float>::infinity(), 1.5F};
  constexpr std::int64_t batch = 400, tokens = 50;
  const auto step = [&](const Tensor& given) { return expand(Tensor::from(logits), {given.size(0), 6}); };
  struct Wanted {
    double temperature;
    std::int64_t top_k;
    double top_p;
    std::vector<int> kept;
  };
  // At temperature 1, probabilities of 0.43, 0.26, 0.16, 0.10 and 0.01 for tokens 3, 5, 0, 2 and 1.
  for (const auto& [temperature, top_k, top_p, kept] :
       {Wanted{1, 0, 1, {0, 1, 2, 3, 5}}, Wanted{0.5, 0, 1, {0, 1, 2, 3, 5}}, Wanted{1, 3, 1, {0, 3, 5}},
        Wanted{1, 0, 0.75, {0, 3, 5}}, Wanted{1, 0, 0.6, {3, 5}}, Wanted{2, 4, 0.5, {3, 5}}, Wanted{1, 100, 0.4, {3}}}) {
    CAPTURE(temperature, top_k, top_p);
    const auto drawn =
        decode::sample(step, zeros({batch}, Dtype::i64),
                       {.max_new_tokens = tokens, .temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 5});
    std::vector<double> counts(6), probabilities(6);
    for (const auto token : drawn.to_vector<std::int64_t>()) ++counts.at(static_cast<std::size_t>(token));
    double sum = 0;
    for (const int token : kept)
      sum += probabilities.at(static_cast<std::size_t>(token)) =
          std::exp(static_cast<double>(logits.at(static_cast<std::size_t>(token))) / temperature);
    constexpr double n = batch * tokens;
    for (std::size_t i = 0; i < 6; ++i) {
      const auto p = probabilities[i] / sum;
      CHECK(std::abs(counts[i] - n * p) <= 5 * std::sqrt(n * p * (1 - p)));
    }
  }
}

TEST_CASE("samples of a sentence depend on the seed, and not on other sentences") {
  const auto step = [](const Tensor& given) { return zeros({given.size(0), 9}); };
  const auto drawn = [&](std::int64_t batch, std::uint64_t seed) {
    auto all = decode::sample(step, zeros({batch}, Dtype::i64), {.max_new_tokens = 12, .seed = seed}).to_vector<std::int64_t>();
    all.resize(12);
    return all;
  };
  const auto before = random_state();
  CHECK(drawn(1, 3) == drawn(4, 3));
  CHECK(drawn(1, 3) != drawn(1, 4));
  CHECK(random_state().offset == before.offset);
  std::vector<Tokens> heard;
  const auto stopped = decode::sample(step, zeros({2}, Dtype::i64), {.on_tokens = [&](std::span<const std::int64_t> tokens) {
                                        heard.emplace_back(tokens.begin(), tokens.end());
                                        return heard.size() < 3;
                                      }});
  CHECK(transpose(stopped, 0, 1).to_vector<std::int64_t>() ==
        Tokens{heard[0][0], heard[0][1], heard[1][0], heard[1][1], heard[2][0], heard[2][1]});
}

TEST_CASE("decoding refuses what it cannot use, by one line") {
  const auto good = [](const Tensor& tokens) { return zeros({tokens.size(0), 3}); };
  const auto first = zeros({2}, Dtype::i64);
  const auto gives = [](const Tensor& logits) { return [=](const Tensor&) { return logits; }; };
  CHECK_THROWS_WITH(decode::greedy(good, zeros({2})), "greedy: first must be i32 or i64, got f32[2]");
  CHECK_THROWS_WITH(decode::greedy(good, zeros({2, 0}, Dtype::i64)),
                    Contains("must be {batch} or {batch, length}, and not empty"));
  CHECK_THROWS_WITH(decode::greedy(good, Tensor{}), "greedy: argument 'first' is undefined");
  CHECK_THROWS_WITH(decode::greedy(good, first, {.max_new_tokens = -1}), "greedy: max_new_tokens cannot be -1");
  CHECK_THROWS_WITH(decode::greedy(nullptr, first), "greedy: the step is no function");
  CHECK_THROWS_WITH(decode::greedy(good, first, {.end = 3}), "greedy: end is 3, and the step rates the tokens 0 to 2");
  CHECK_THROWS_WITH(decode::beam_search(good, nullptr, first, {.beams = 2, .end = -1}), Contains("beam_search: end is -1"));
  CHECK_THROWS_WITH(decode::greedy(gives(zeros({3, 4})), first),
                    "greedy: the step's logits f32[3, 4] must be {2, vocabulary} or {2, length, vocabulary}");
  CHECK_THROWS_WITH(decode::greedy(gives(zeros({2, 4}, Dtype::i32)), first), Contains("must be floating, got i32[2, 4]"));
  CHECK_THROWS_WITH(decode::greedy(gives(full({2, 4}, NAN)), first), "greedy: the model's logits are no finite numbers");
  CHECK_THROWS_WITH(decode::sample(gives(full({2, 4}, NAN)), first), "sample: the model's logits are no finite numbers");
  CHECK_THROWS_WITH(decode::beam_search(gives(full({8, 4}, NAN)), nullptr, first),
                    "beam_search: the model's logits are no finite numbers");
  CHECK_THROWS_WITH(decode::sample(good, first, {.temperature = -1}), "sample: the temperature must be a number from 0, not -1");
  CHECK_THROWS_WITH(decode::sample(good, first, {.top_k = -2}), "sample: top_k must be a number from 0, not -2");
  CHECK_THROWS_WITH(decode::sample(good, first, {.top_p = 0}), "sample: top_p must be above 0 and at most 1, not 0");
  CHECK_THROWS_WITH(decode::beam_search(good, nullptr, first, {.beams = 0}), "beam_search: beams must be at least 1, not 0");
  CHECK_THROWS_WITH(decode::beam_search(good, nullptr, first, {.beams = 2, .sequences = 3}),
                    "beam_search: sequences must be from 1 to 2 beams, not 3");
  CHECK_THROWS_WITH(decode::beam_search(good, nullptr, first, {.length_penalty = INFINITY}),
                    "beam_search: length_penalty cannot be inf");
}

namespace {

/// A translator with a random vocabulary, for lines of different lengths.
struct SmallTranslator : nn::Module {
  static constexpr std::int64_t width = 16, words = 11, longest = 12, end = 2;
  nn::Embedding source{words, width}, target{words, width};
  nn::Transformer transformer{width, 2, 1, 2, {.dim_feedforward = 24, .dropout = 0, .batch_first = true}};
  nn::PositionalEncoding positions{width, {.dropout = 0, .max_length = longest}};
  nn::Linear head{width, words};

  SmallTranslator() {
    add("source", source);
    add("target", target);
    add("transformer", transformer);
    add("positions", positions);
    add("head", head);
    for (auto& [name, parameter] : parameters())
      if (name == "head.weight") parameter.set(nn::init::normal({words, width}, 0, 0.5));
    inference();
  }
  nn::AttentionMasks padding(const Tensor& from) const { return {.key_padding_mask = eq(from, 0)}; }
  Tensor memory(const Tensor& from) const { return transformer.encode(positions(source(from)), padding(from)); }
};

struct WithCaches {
  const SmallTranslator& model;
  std::vector<nn::DecoderCache> caches;
  WithCaches(const SmallTranslator& m, const Tensor& from, std::int64_t beams)
      : model(m), caches(m.transformer.caches(m.memory(from), SmallTranslator::longest, m.padding(from), beams)) {}
  Tensor step(const Tensor& tokens) {
    plans.push_back(exec::statistics().plans_made);
    const auto x = model.positions(model.target(tokens), caches.front().target.length);
    return model.head(model.transformer.step(x, caches));
  }
  void reorder(const Tensor& rows) { nn::reorder(caches, rows); }
  std::vector<std::uint64_t> plans;
};

struct Anew {
  const SmallTranslator& model;
  Tensor memory, padding, seen;
  Anew(const SmallTranslator& m, const Tensor& from, std::int64_t beams)
      : model(m),
        memory(repeat_interleave(m.memory(from), beams, 0).detach()),
        padding(repeat_interleave(m.padding(from).key_padding_mask, beams, 0).detach()) {}
  Tensor step(const Tensor& tokens) {
    seen = seen.defined() ? concat({seen, tokens}, 1).detach() : tokens;
    const auto y =
        model.transformer.decode(model.positions(model.target(seen)), memory, {.is_causal = true}, {.key_padding_mask = padding});
    return model.head(y);
  }
  void reorder(const Tensor& rows) { seen = index_select(seen, 0, rows).detach(); }
};

}  // namespace

TEST_CASE("a translator writes with caches what it writes without, and makes no plan after the second step") {
  manual_seed(4);
  const SmallTranslator model;
  const auto from = Tensor::from(Tokens{3, 4, 5, 6, 7, 0, 8, 9, 0, 0, 1, 2, 3, 4, 5}, {3, 5});
  const auto first = full({3}, 1, Dtype::i64);
  const auto written = [&](auto&& way) {
    return decode::greedy([&](const Tensor& tokens) { return way.step(tokens); }, first,
                          {.max_new_tokens = SmallTranslator::longest, .end = SmallTranslator::end});
  };
  WithCaches greedy_caches(model, from, 1);
  const auto got = written(greedy_caches);
  CHECK(got.to_vector<std::int64_t>() == written(Anew(model, from, 1)).to_vector<std::int64_t>());
  REQUIRE(greedy_caches.plans.size() > 4);
  CHECK(greedy_caches.plans.back() == greedy_caches.plans[2]);

  const auto searched = [&](auto&& way) {
    return decode::beam_search(
        [&](const Tensor& tokens) { return way.step(tokens); }, [&](const Tensor& rows) { way.reorder(rows); }, first,
        {.beams = 3, .sequences = 2, .max_new_tokens = SmallTranslator::longest, .end = SmallTranslator::end});
  };
  WithCaches beam_caches(model, from, 3);
  const auto best = searched(beam_caches), want = searched(Anew(model, from, 3));
  CHECK(best.tokens.to_vector<std::int64_t>() == want.tokens.to_vector<std::int64_t>());
  const auto a = best.scores.to_vector<float>(), b = want.scores.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-4));
  REQUIRE(beam_caches.plans.size() > 4);
  CHECK(beam_caches.plans.back() == beam_caches.plans[2]);
  // Other sentences of these lengths make none at all.
  const auto other = (from + 1).detach();
  eval({other});
  const auto plans = exec::statistics().plans_made;
  (void)searched(WithCaches(model, other, 3));
  CHECK(exec::statistics().plans_made == plans);
}
