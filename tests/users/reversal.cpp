// A Transformer that learns to write a line of digits backwards, and the ways to decode it: greedily, by beam search and by
// sampling, with caches. Each way is compared with plain loops over the logits of whole lines, which need no cache.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

namespace {

constexpr std::int64_t digits = 6, length = 5, begin = digits, end = digits + 1, words = digits + 2, width = 32;

void check(const std::string& name, bool right) { std::cout << name << ": " << (right ? "right" : "WRONG") << '\n'; }

struct Reverser : nn::Module {
  nn::Embedding embedding{words, width};
  nn::PositionalEncoding positions{width, {.dropout = 0, .max_length = 16}};
  nn::Transformer transformer{width, 4, 1, 1, {.dim_feedforward = 64, .dropout = 0, .batch_first = true}};
  nn::Linear head{width, words};
  Reverser() {
    add("embedding", embedding);
    add("positions", positions);
    add("transformer", transformer);
    add("head", head);
  }
  Tensor encode(const Tensor& source) { return transformer.encode(positions(embedding(source))); }
  /// The logits behind each position of `target`.
  Tensor logits(const Tensor& target, const Tensor& memory) {
    return head(transformer.decode(positions(embedding(target)), memory, {.is_causal = true}));
  }
  std::vector<nn::DecoderCache> caches(const Tensor& source, std::int64_t beams = 1) {
    return transformer.caches(encode(source), 8, {}, beams);
  }
  decode::StepFunction stepper(std::vector<nn::DecoderCache>& caches) {
    return [&](const Tensor& tokens) {
      return head(transformer.step(positions(embedding(tokens), caches.front().target.length), caches));
    };
  }
};

std::vector<double> log_softmax_of(const std::vector<double>& logits) {
  double sum = 0;
  for (double x : logits) sum += std::exp(x);
  std::vector<double> result;
  for (double x : logits) result.push_back(x - std::log(sum));
  return result;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  manual_seed(1);
  Reverser model;
  constexpr std::int64_t batch = 48;
  constexpr int steps = 160;
  optim::AdamW adam(model, {.learning_rate = 5e-3, .clip_norm = 1});
  optim::Scheduler schedule(adam, optim::one_cycle(6e-3, steps));
  Tensor loss;
  const auto lines = [&](std::int64_t count, std::vector<std::int64_t>& x, std::vector<std::int64_t>& y,
                         std::vector<std::int64_t>& z) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> line;
      for (std::int64_t k = 0; k < length; ++k) line.push_back(static_cast<std::int64_t>(random() % digits));
      x.insert(x.end(), line.begin(), line.end());
      y.push_back(begin);
      y.insert(y.end(), line.rbegin(), line.rend());
      z.insert(z.end(), line.rbegin(), line.rend());
      z.push_back(end);
    }
  };
  for (int step = 0; step < steps; ++step) {
    std::vector<std::int64_t> x, y, z;
    lines(batch, x, y, z);
    const Tensor logits = model.logits(Tensor::from(y, {batch, length + 1}), model.encode(Tensor::from(x, {batch, length})));
    loss = adam.step(cross_entropy(logits.flatten(0, 1), Tensor::from(z)));
    schedule.step();
  }
  std::cout << "loss below 0.1: " << (loss.item() < 0.1 ? "yes" : "no") << '\n';

  model.inference();
  constexpr std::int64_t tests = 20;
  std::vector<std::int64_t> x, y, z;
  lines(tests, x, y, z);
  const Tensor source = Tensor::from(x, {tests, length}), first = full({tests}, begin, Dtype::i64);
  auto caches = model.caches(source);
  const Tensor greedy = decode::greedy(model.stepper(caches), first, {.max_new_tokens = length + 1, .end = end});
  const auto written = greedy.to_vector<std::int64_t>();
  std::size_t whole = 0;
  for (std::size_t i = 0; i < tests; ++i)
    whole += std::equal(written.begin() + static_cast<std::ptrdiff_t>(i * 6),
                        written.begin() + static_cast<std::ptrdiff_t>(i * 6 + 6), z.begin() + static_cast<std::ptrdiff_t>(i * 6));
  std::cout << "backwards: " << (whole >= 17 ? "most" : "FEW") << " of " << tests << '\n';

  // Greedy without caches: the whole line again for each token.
  const Tensor memory = model.encode(source);
  Tensor line = first.unsqueeze(1);
  for (int k = 0; k <= length; ++k) {
    const Tensor next = model.logits(line, memory)[{{}, -1}].argmax(1);
    line = cat({line, next.unsqueeze(1)}, 1).detach();
  }
  check("greedy", equal(line.narrow(1, 1, length + 1), greedy));

  // Beam search of one line, whose score is the sum of log probabilities over the length.
  constexpr std::int64_t beams = 3;
  auto wide = model.caches(source, beams);
  const auto best = decode::beam_search(model.stepper(wide), [&](const Tensor& rows) { nn::reorder(wide, rows); }, first,
                                        {.beams = beams, .sequences = 2, .max_new_tokens = length + 1, .end = end});
  const auto sequences = best.tokens.to_vector<std::int64_t>();
  const auto scores = best.scores.to_vector<double>();
  bool right = true;
  for (std::int64_t i = 0; i < tests; ++i)
    for (std::int64_t s = 0; s < 2; ++s) {
      std::vector<std::int64_t> tokens{begin};
      const auto n = best.tokens.size(2);
      for (std::int64_t k = 0; k < n; ++k) {
        tokens.push_back(sequences[static_cast<std::size_t>((i * 2 + s) * n + k)]);
        if (tokens.back() == end) break;
      }
      const auto count = static_cast<std::int64_t>(tokens.size()) - 1;
      const auto all = model.logits(Tensor::from(tokens, {1, count + 1}), memory[{{i, i + 1}}]).to_vector<double>();
      double score = 0;
      for (std::int64_t k = 0; k < count; ++k) {
        const auto row = all.begin() + static_cast<std::ptrdiff_t>(k * words);
        score += log_softmax_of({row, row + words})[static_cast<std::size_t>(tokens[static_cast<std::size_t>(k + 1)])] /
                 static_cast<double>(count);
      }
      right = right && std::abs(score - scores[static_cast<std::size_t>(i * 2 + s)]) < 1e-3;
    }
  check("scores of beam search", right);

  // Sampling: 0 and top_k 1 are greedy; otherwise frequencies are the probabilities.
  const auto sampled = [&](decode::SampleOptions options) {
    auto own = model.caches(source);
    options.max_new_tokens = length + 1;
    options.end = end;
    return decode::sample(model.stepper(own), first, options);
  };
  check("temperature 0", equal(sampled({.temperature = 0}), greedy));
  check("top_k 1", equal(sampled({.top_k = 1}), greedy));
  check("top_p of next to nothing", equal(sampled({.top_p = 1e-9}), greedy));
  check("one seed, one text", equal(sampled({.temperature = 2, .seed = 3}), sampled({.temperature = 2, .seed = 3})));

  const Tensor same = source[{{0, 1}}].repeat({2000, 1}), starts = full({2000}, begin, Dtype::i64);
  auto p = log_softmax_of([&] {
    auto row = model.logits(first[{{0, 1}}].unsqueeze(1), memory[{{0, 1}}]).to_vector<double>();
    for (double& v : row) v /= 4;  // the temperature
    return row;
  }());
  for (double& v : p) v = std::exp(v);
  const auto frequencies_fit = [&](const decode::SampleOptions& options, const std::vector<double>& wanted) {
    auto own = model.caches(same);
    auto tokens = decode::sample(model.stepper(own), starts, options).to_vector<std::int64_t>();
    std::vector<double> counts(words, 0);
    for (auto token : tokens) counts[static_cast<std::size_t>(token)] += 1.0 / 2000;
    return std::equal(counts.begin(), counts.end(), wanted.begin(), [](double a, double b) { return std::abs(a - b) < 0.04; });
  };
  check("frequencies", frequencies_fit({.max_new_tokens = 1, .temperature = 4}, p));
  std::vector<std::size_t> order(words);
  for (std::size_t i = 0; i < words; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return p[a] > p[b]; });
  const auto limited = [&](std::size_t count) {
    std::vector<double> wanted(words, 0);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += p[order[i]];
    for (std::size_t i = 0; i < count; ++i) wanted[order[i]] = p[order[i]] / sum;
    return wanted;
  };
  check("top_k 3", frequencies_fit({.max_new_tokens = 1, .temperature = 4, .top_k = 3}, limited(3)));
  std::size_t count = 0;
  for (double sum = 0; sum < 0.8; ++count) sum += p[order[count]];
  check("top_p 0.8", frequencies_fit({.max_new_tokens = 1, .temperature = 4, .top_p = 0.8}, limited(count)));
}
