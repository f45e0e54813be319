// A Transformer with encoder and decoder that learns to translate: English numbers into German ones, whose words come in another
// order ("three hundred forty two": "drei hundert zwei und vierzig"). It is tested on numbers that it has not seen: the source is
// encoded once, and beam search writes with caches of keys and values.
#include <clnet/clnet.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace clnet;

constexpr std::int64_t width = 32, heads = 4, longest = 8, batch = 64, beams = 3;
constexpr std::int64_t padding = 0, begin = 1, end = 2;

std::string english(int n) {
  const std::vector<std::string> small{"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                       "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                       "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"},
      tens{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
  const auto at = [](const auto& list, int i) { return list[static_cast<std::size_t>(i)]; };
  if (n >= 100) return at(small, n / 100) + " hundred" + (n % 100 ? " " + english(n % 100) : "");
  if (n < 20) return at(small, n);
  return at(tens, n / 10) + (n % 10 ? " " + at(small, n % 10) : "");
}

std::string german(int n) {
  const std::vector<std::string> small{"null",     "ein",       "zwei",     "drei",     "vier",     "fuenf",   "sechs",
                                       "sieben",   "acht",      "neun",     "zehn",     "elf",      "zwoelf",  "dreizehn",
                                       "vierzehn", "fuenfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"},
      tens{"", "", "zwanzig", "dreissig", "vierzig", "fuenfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
  const auto at = [](const auto& list, int i) { return list[static_cast<std::size_t>(i)]; };
  if (n >= 100) return at(small, n / 100) + " hundert" + (n % 100 ? " " + german(n % 100) : "");
  if (n < 20) return at(small, n);
  return (n % 10 ? at(small, n % 10) + " und " : "") + at(tens, n / 10);
}

/// Words and their numbers; those of padding, begin and end come first.
struct Vocabulary {
  std::vector<std::string> words{"", "<", ">"};
  std::map<std::string, std::int64_t> numbers;

  std::vector<std::int64_t> encode(const std::string& text) {
    std::vector<std::int64_t> result;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
      const auto [found, is_new] = numbers.emplace(word, static_cast<std::int64_t>(words.size()));
      if (is_new) words.push_back(word);
      result.push_back(found->second);
    }
    return result;
  }
};

struct Sentence {
  std::vector<std::int64_t> source, target;
};

struct Translator : nn::Module {
  nn::Embedding source, target;
  nn::Transformer transformer{width, heads, 2, 2, {.dim_feedforward = 4 * width, .dropout = 0, .batch_first = true}};
  nn::Linear head;
  nn::PositionalEncoding positions{width, {.dropout = 0, .max_length = longest}};

  Translator(std::int64_t source_words, std::int64_t target_words)
      : source{source_words, width}, target{target_words, width}, head{width, target_words} {
    add("source", source);
    add("target", target);
    add("transformer", transformer);
    add("positions", positions);
    add("head", head);
  }
  static nn::AttentionMasks is_padding(const Tensor& from) { return {.key_padding_mask = eq(from, padding)}; }
  /// {batch, longest} of numbers of words: the logits of the word behind each of `to`, {batch, longest, words}.
  Tensor operator()(const Tensor& from, const Tensor& to) {
    return head(transformer.decode(positions(target(to)), encode(from), {.is_causal = true}, is_padding(from)));
  }
  Tensor encode(const Tensor& from) { return transformer.encode(positions(source(from)), is_padding(from)); }
  /// The likeliest translations {batch, 1, words}, word by word.
  Tensor translate(const Tensor& from) {
    auto caches = transformer.caches(encode(from), longest, is_padding(from), beams);
    const auto step = [&](const Tensor& words) {
      return head(transformer.step(positions(target(words), caches.front().target.length), caches));
    };
    return decode::beam_search(step, [&](const Tensor& rows) { nn::reorder(caches, rows); },
                               full({from.size(0)}, begin, Dtype::i64),
                               {.beams = beams, .max_new_tokens = longest, .end = end, .padding = padding})
        .tokens;
  }
};

/// A line of `longest` numbers, with `first` before it and padding behind it.
void add_line(std::vector<std::int64_t>& lines, std::vector<std::int64_t> line) {
  line.resize(longest, padding);
  lines.insert(lines.end(), line.begin(), line.end());
}

int main() try {
  Vocabulary from, to;
  std::vector<Sentence> sentences;
  for (int n = 0; n < 1000; ++n) sentences.push_back({from.encode(english(n)), to.encode(german(n))});
  std::mt19937 random(1);
  std::shuffle(sentences.begin(), sentences.end(), random);
  constexpr std::size_t tests = 100;

  manual_seed(1);
  Translator model(static_cast<std::int64_t>(from.words.size()), static_cast<std::int64_t>(to.words.size()));
  constexpr int steps = 200;
  optim::AdamW optimizer(model, {.learning_rate = 3e-3, .clip_norm = 1});
  const auto rate = optim::one_cycle(4e-3, steps);
  for (int step = 0; step < steps; ++step) {
    std::vector<std::int64_t> x, y, wanted;
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto& sentence = sentences[tests + random() % (sentences.size() - tests)];
      auto shifted = sentence.target, ended = sentence.target;
      shifted.insert(shifted.begin(), begin);
      ended.push_back(end);
      add_line(x, sentence.source);
      add_line(y, shifted);
      add_line(wanted, ended);
    }
    const auto logits = model(Tensor::from(x, {batch, longest}), Tensor::from(y, {batch, longest}));
    optimizer.set_learning_rate(rate(step));
    const auto loss =
        optimizer.step(cross_entropy(flatten(logits, 0, 1), Tensor::from(wanted, {batch * longest}), {.ignore_index = padding}));
    if (step % 50 == 0 || step + 1 == steps) std::cout << "step " << step << ": loss " << loss.item() << '\n';
  }

  // All tests at once.
  model.inference();
  std::vector<std::int64_t> x;
  for (std::size_t i = 0; i < tests; ++i) add_line(x, sentences[i].source);
  const auto y = model.translate(Tensor::from(x, {tests, longest}));
  const auto written = y.to_vector<std::int64_t>();
  const auto length = y.size(2);
  std::size_t right = 0;
  for (std::size_t i = 0; i < tests; ++i) {
    const auto line = written.begin() + static_cast<std::ptrdiff_t>(i) * length;
    const std::vector<std::int64_t> words(line, std::find(line, line + length, end));
    right += words == sentences[i].target ? 1 : 0;
    if (i >= 3) continue;
    for (auto word : sentences[i].source) std::cout << from.words[static_cast<std::size_t>(word)] << ' ';
    std::cout << "->";
    for (auto word : words) std::cout << ' ' << to.words[static_cast<std::size_t>(word)];
    std::cout << '\n';
  }
  std::cout << right << " of " << tests << " translated without a fault\n";
  return right >= 90 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "translation: " << error.what() << '\n';
  return 1;
}
