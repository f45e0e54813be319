// Trains a classifier of short texts from a CSV table.
#include <clnet/clnet.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

using namespace clnet;

class Reviews : public data::Dataset {
 public:
  Reviews(const data::Table& table, const data::Tokenizer& tokenizer) {
    const auto& texts = table["text"];
    for (std::size_t i = 0; i < texts.values.size(); ++i) {
      tokens_.push_back(tokenizer.encode(texts.categories[static_cast<std::size_t>(texts.values[i])]));
      labels_.push_back(static_cast<std::int32_t>(table["mood"].values[i]));
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  data::Example get(std::int64_t i, std::uint64_t /*seed*/) const override {
    return {data::Array(tokens_[i], Shape{static_cast<std::int64_t>(tokens_[i].size())}, "tokens"),
            data::Array(labels_[i], "mood")};
  }

 private:
  std::vector<std::vector<std::int32_t>> tokens_;
  std::vector<std::int32_t> labels_;
};

struct Bag : nn::Module {
  nn::Embedding words;
  nn::Linear head{16, 2};
  explicit Bag(std::int64_t count) : words(count, 16) {
    add("words", words);
    add("head", head);
  }
  Tensor forward(const Tensor& tokens) override { return head(words(tokens).mean({1})); }
};

int main() {
  const auto folder = std::filesystem::temp_directory_path() / ("text-classifier-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "reviews.csv";
  const std::vector<std::string> good{"fine", "lovely", "great"}, bad{"awful", "poor", "dull"},
      things{"film", "book", "song", "play"};
  std::ofstream csv(file);
  csv << "text,mood\n";
  std::string text;
  for (const auto& thing : things)
    for (int i = 0; i < 3; ++i) {
      csv << "\"a " << good[i] << ", " << good[(i + 1) % 3] << " " << thing << "\",good\n\"a " << bad[i] << " " << thing
          << "\",bad\n";
      text += "a " + good[i] + ", " + good[(i + 1) % 3] + " " + thing + " a " + bad[i] + " " + thing + " ";
    }
  csv.close();

  manual_seed(4);
  const auto table = data::read_csv(file);
  const auto tokenizer = data::Tokenizer::words(text);
  // By hand: 0 is unknown, "a" (24 times) is 1, "," (12) is 2; "and" is unknown.
  const auto numbers = tokenizer.encode("a, and");
  const Reviews reviews(table, tokenizer);
  Bag model(tokenizer.size());
  train::fit(model, reviews,
             {.epochs = 30,
              .batch_size = 8,
              .optimizer = optim::Adam(model, 3e-2),
              .collate = data::pad_collate({.value = 0, .arrays = {0}}),
              .progress = false});
  model.inference();
  const auto kind = [&](const std::string& line) {
    const auto tokens = tokenizer.encode(line);
    const auto best = model(Tensor::from(tokens, {1, static_cast<std::int64_t>(tokens.size())})).argmax(1).item<std::int64_t>();
    return table["mood"].categories[best];
  };
  const bool right = table["mood"].categories == std::vector<std::string>{"bad", "good"} && reviews.size() == 24 &&
                     numbers == std::vector<std::int32_t>{1, 2, 0} && kind("a lovely play") == "good" &&
                     kind("poor dull song") == "bad";
  std::cout << "words by number, and their mood: " << (right ? "right" : "WRONG") << '\n';
  std::filesystem::remove_all(folder);
}
