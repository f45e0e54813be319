// The text that the examples which write learn from.
#ifndef CLNET_EXAMPLES_TEXT_H
#define CLNET_EXAMPLES_TEXT_H

#include <clnet/clnet.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

/// A text, its characters, and each character of the text as its number among them.
struct Text {
  std::string text, alphabet;
  std::vector<std::int64_t> numbers;

  explicit Text(std::string words) : text(std::move(words)), alphabet(text) {
    std::sort(alphabet.begin(), alphabet.end());
    alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
    for (char c : text) numbers.push_back(number(c));
  }

  static Text of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw clnet::Error("cannot read " + path);
    return Text(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  /// Sentences made up from a few words.
  static Text of_sentences() {
    const std::vector<std::string> who{"the cat", "a dog", "my bird"}, does{"sees", "likes", "hears"},
        what{"the sea", "a song", "you"};
    std::mt19937 random(1);
    const auto pick = [&](const auto& words) { return words[random() % words.size()]; };
    std::string text;
    for (int i = 0; i < 2000; ++i) text += pick(who) + " " + pick(does) + " " + pick(what) + ". ";
    return Text(text);
  }

  std::int64_t number(char c) const { return static_cast<std::int64_t>(alphabet.find(c)); }
  std::int64_t size() const { return static_cast<std::int64_t>(alphabet.size()); }

  /// A character drawn by its logits at temperature 0.5.
  template <class Random>
  char draw(const clnet::Tensor& logits, Random& random) const {
    const auto p = clnet::softmax(logits / 0.5, -1).to_vector<float>();
    return alphabet[std::discrete_distribution<std::size_t>(p.begin(), p.end())(random)];
  }
};

#endif
