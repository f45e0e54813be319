// Decodes with caches, and compares a beam search that is wide enough with all sequences.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace clnet;

int main() {
  manual_seed(11);
  constexpr std::int64_t kinds = 4, length = 4, all = 256;  // 4^4 sequences; token 4 begins
  nn::Transformer model(16, 2, 1, 1, {.dim_feedforward = 32, .dropout = 0, .batch_first = true});
  nn::Embedding source(9, 16), target(kinds + 1, 16);
  nn::PositionalEncoding positions(16, {.dropout = 0});
  nn::Linear head(16, kinds);
  model.inference();
  const Tensor memory = model.encode(positions(source(randint(0, 9, {1, 5}))));

  // The log-probability of every sequence, by whole lines without caches.
  std::vector<std::int64_t> digits;
  for (std::int64_t s = 0; s < all; ++s)
    for (std::int64_t p = 0, rest = s; p < length; ++p, rest /= kinds) digits.push_back(rest % kinds);
  const Tensor sequences = Tensor::from(digits, {all, length});
  const Tensor inputs = cat({full({all, 1}, kinds, Dtype::i64), sequences.narrow(1, 0, length - 1)}, 1);
  const Tensor lines = model.decode(positions(target(inputs)), memory.expand({all, 5, 16}), {.is_causal = true});
  const auto scores = log_softmax(head(lines), 2).gather(2, sequences.unsqueeze(2)).sum({1, 2}).to_vector<double>();
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();

  constexpr std::int64_t beams = 64;  // as many as prefixes: nothing is lost
  auto caches = model.caches(memory, length, {}, beams);
  const auto step = [&](const Tensor& tokens) {
    const auto position = caches.front().target.length;
    return head(model.step(positions(target(tokens), position), caches));
  };
  const auto found =
      decode::beam_search(step, [&](const Tensor& rows) { nn::reorder(caches, rows); }, full({1}, kinds, Dtype::i64),
                          {.beams = beams, .max_new_tokens = length, .length_penalty = 0});
  const auto tokens = found.tokens.to_vector<std::int64_t>();
  const bool right =
      std::equal(tokens.begin(), tokens.end(), digits.begin() + best * length, digits.begin() + (best + 1) * length) &&
      std::abs(found.scores.to_vector<double>()[0] - scores[static_cast<std::size_t>(best)]) < 1e-4;
  std::cout << "the likeliest of all sequences: " << (right ? "right" : "WRONG") << '\n';
}
