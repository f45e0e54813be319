// A small GPT that learns to write, character by character: char_gpt [FILE [STEPS]]. Without a file it learns sentences made up
// here and checks that it writes such sentences. It writes with caches of keys and values: one plan for all positions.
#include <clnet/clnet.h>

#include <exception>
#include <iostream>
#include <random>
#include <string>

#include "text.h"

using namespace clnet;

constexpr std::int64_t layers = 2, width = 64, heads = 4, context = 32, batch = 16;

struct Block : nn::Module {
  nn::LayerNorm norm1{width}, norm2{width};
  nn::MultiheadAttention attention{width, heads, {.batch_first = true}};
  nn::Linear up{width, 4 * width}, down{4 * width, width};

  Block() {
    add("norm1", norm1);
    add("attention", attention);
    add("norm2", norm2);
    add("up", up);
    add("down", down);
  }
  Tensor forward(const Tensor& x) override {
    const auto h = norm1(x);
    return mlp(x + attention(h, h, h, {.is_causal = true}));
  }
  /// x {batch, 1, width}, the position that follows those in the cache.
  Tensor step(const Tensor& x, nn::KVCache& cache) { return mlp(x + attention.step(norm1(x), cache)); }
  Tensor mlp(const Tensor& x) { return x + down(gelu(up(norm2(x)))); }
};

struct Gpt : nn::Module {
  nn::Embedding characters, positions{context, width};
  std::vector<Block> blocks{layers};
  nn::LayerNorm norm{width};
  nn::Linear head;

  explicit Gpt(std::int64_t alphabet) : characters{alphabet, width}, head{width, alphabet} {
    add("characters", characters);
    add("positions", positions);
    for (std::size_t i = 0; i < blocks.size(); ++i) add("block" + std::to_string(i), blocks[i]);
    add("norm", norm);
    add("head", head);
  }
  /// {batch, length} of characters: the logits of those that follow, {batch, length, alphabet}.
  Tensor forward(const Tensor& x) override {
    auto y = characters(x) + positions(arange(x.size(1)));
    for (auto& block : blocks) y = block(y);
    return head(norm(y));
  }
  /// The logits of what follows one more character at a position.
  Tensor step(std::int64_t character, std::int64_t position, std::vector<nn::KVCache>& caches) {
    auto y = characters(Tensor::from({character}, {1, 1})) + positions(Tensor::from({position}));
    for (std::size_t i = 0; i < blocks.size(); ++i) y = blocks[i].step(y, caches[i]);
    return head(norm(y));
  }
};

int main(int argc, char** argv) try {
  const auto text = argc > 1 ? Text::of_file(argv[1]) : Text::of_sentences();
  const int steps = argc > 2 ? std::stoi(argv[2]) : argc > 1 ? 2000 : 150;
  const auto& numbers = text.numbers;
  if (numbers.size() <= context + 1) throw Error("the text is too short");

  manual_seed(1);
  Gpt model(text.size());
  optim::AdamW optimizer(model, {.learning_rate = 3e-3, .weight_decay = 0.01, .clip_norm = 1});
  const auto rate = optim::cosine(3e-3, steps);
  std::cout << model.parameter_count() << " parameters\n";
  std::mt19937_64 random(1);
  float last = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::int64_t> x, next;
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(random() % (numbers.size() - context - 1));
      x.insert(x.end(), at, at + context);
      next.insert(next.end(), at + 1, at + context + 1);
    }
    const auto logits = model(Tensor::from(x, {batch, context}));
    optimizer.set_learning_rate(rate(step));
    const auto loss = optimizer.step(cross_entropy(flatten(logits, 0, 1), Tensor::from(next, {batch * context})));
    if (step % 50 == 0 || step + 1 == steps) std::cout << "step " << step << ": loss " << (last = loss.item<float>()) << '\n';
  }

  model.inference();
  std::vector<nn::KVCache> caches;
  for (auto& block : model.blocks) caches.push_back(block.attention.cache(1, context));
  std::string written = text.text.substr(0, 1);
  for (std::int64_t position = 0; position + 1 < context; ++position) {
    written += text.draw(model.step(text.number(written.back()), position, caches), random);
  }
  std::cout << written << '\n';
  return argc > 1 || last < 0.9F ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "char_gpt: " << error.what() << '\n';
  return 1;
}
