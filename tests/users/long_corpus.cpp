// A corpus of two million sentences of different lengths, of which each is made when a worker asks for it. Batches take
// sentences of similar lengths and pad them; every word of a batch is compared with the corpus. Then a bag of words learns from
// some of them whether more words of a sentence belong to the first half of the vocabulary.
#include <clnet/clnet.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

using namespace clnet;

namespace {

constexpr std::int64_t vocabulary = 20;

class Corpus : public data::Dataset {
 public:
  Corpus(std::int64_t size, std::uint64_t first) : size_(size), first_(first) {}
  std::int64_t size() const override { return size_; }
  std::int64_t length(std::int64_t i) const { return 1 + 2 * static_cast<std::int64_t>(mixed(i, 0) % 15); }  // always odd
  std::vector<std::int32_t> words(std::int64_t i) const {
    std::vector<std::int32_t> result;
    for (std::int64_t k = 0; k < length(i); ++k)
      result.push_back(1 + static_cast<std::int32_t>(mixed(i, 1 + static_cast<std::uint64_t>(k)) % vocabulary));
    return result;
  }
  std::int32_t label(std::int64_t i) const {
    const auto all = words(i);
    return 2 * std::count_if(all.begin(), all.end(), [](auto w) { return w <= vocabulary / 2; }) > length(i) ? 1 : 0;
  }
  data::Example get(std::int64_t i, std::uint64_t /*seed*/) const override {
    return {data::Array(words(i), Shape{length(i)}, "words"), data::Array(label(i), "label"), data::Array(i, "number")};
  }

 private:
  std::uint64_t mixed(std::int64_t i, std::uint64_t k) const {
    std::uint64_t x = (first_ + static_cast<std::uint64_t>(i)) * 0x9E3779B97F4A7C15U + k * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 31)) * 0x94D049BB133111EBU;
    return x ^ (x >> 29);
  }
  std::int64_t size_;
  std::uint64_t first_;
};

struct Bag : nn::Module {
  nn::Embedding words{vocabulary + 1, 8, {.padding_idx = 0}};
  nn::Linear head{8, 2};
  Bag() {
    add("words", words);
    add("head", head);
  }
  /// The mean of the words that are no padding, and two logits from it.
  Tensor operator()(const Tensor& sentences, const Tensor& lengths) {
    const Tensor counts = arange(sentences.size(1)) < lengths.unsqueeze(1);
    const Tensor sum = (words(sentences) * counts.to(Dtype::f32).unsqueeze(2)).sum(1);
    return head(sum / lengths.to(Dtype::f32).unsqueeze(1));
  }
};

/// Compares the first `count` batches with the corpus. Returns their numbers, and counts padding and words.
std::vector<std::int64_t> checked(const Corpus& corpus, const data::BatchOptions& options, int count, const std::string& name) {
  std::vector<std::int64_t> seen;
  std::size_t padding = 0, words = 0;
  bool right = true;
  for (const auto& batch : data::batches(corpus, options)) {
    const auto numbers = batch["number"].to_vector<std::int64_t>();
    const auto values = batch["words"].to_vector<std::int32_t>(), lengths = batch["lengths"].to_vector<std::int32_t>();
    const auto labels = batch["label"].to_vector<std::int32_t>();
    const auto width = static_cast<std::size_t>(batch["words"].size(1));
    right = right && width % 4 == 0;
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      auto wanted = corpus.words(numbers[row]);
      words += wanted.size();
      padding += width - wanted.size();
      right = right && lengths[row] == static_cast<std::int32_t>(wanted.size()) && labels[row] == corpus.label(numbers[row]);
      wanted.resize(width, 0);
      right = right && std::equal(wanted.begin(), wanted.end(), values.begin() + static_cast<std::ptrdiff_t>(row * width));
    }
    seen.insert(seen.end(), numbers.begin(), numbers.end());
    if (--count == 0) break;
  }
  std::cout << name << ": " << seen.size() << " sentences " << (right ? "right" : "WRONG")
            << ", padding below a fifth: " << (5 * padding < words ? "yes" : "no") << '\n';
  return seen;
}

}  // namespace

int main() {
  const Corpus corpus(2'000'000, 0), test(500, 30'000'000);
  data::BatchOptions options{
      .batch_size = 32, .shuffle = true, .seed = 3, .collate = data::pad_collate({.multiple = 4, .lengths = true})};
  checked(corpus, options, 30, "unsorted");
  options.length = [&](std::int64_t i) { return corpus.length(i); };
  const auto one = checked(corpus, options, 30, "by length");
  options.workers = 4;
  const auto four = checked(corpus, options, 30, "by length, 4 workers");
  options.workers = 0;
  const auto none = checked(corpus, options, 30, "by length, no workers");
  std::cout << "the same sentences with any workers: " << (one == four && one == none ? "yes" : "no") << '\n';

  manual_seed(1);
  Bag model;
  const auto of_batch = [&](nn::Module&, const data::Batch& batch) -> train::Step {
    const Tensor logits = model(batch["words"], batch["lengths"]);
    return {cross_entropy(logits, batch["label"]), {logits}, {batch["label"]}};
  };
  train::FitOptions fit{.steps = 150, .batch_size = 64, .optimizer = optim::Adam(model, 2e-2), .step_function = of_batch};
  fit.metrics = {metrics::Accuracy()};
  fit.workers = 2;
  fit.collate = options.collate;
  fit.length = options.length;
  fit.progress = false;
  const auto result = train::fit(model, corpus, fit);
  std::cout << result.steps << " steps, loss below 0.3: " << (result.epochs.back().train_loss < 0.3 ? "yes" : "no") << '\n';
  const auto scores =
      train::evaluate(model, test, {.workers = 0, .collate = options.collate, .step_function = of_batch, .metrics = fit.metrics});
  std::cout << "accuracy above 0.95: " << (scores.metrics[0].value > 0.95 ? "yes" : "no") << '\n';
}
