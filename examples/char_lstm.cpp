// A small LSTM that learns to write, character by character: char_lstm [FILE [STEPS]]. Without a file it learns sentences made up
// here and checks that it writes such sentences. The text is read as several streams side by side; each step goes on with the
// states of the one before, whose gradients end there. It writes with the states of one character after the other: one plan for
// all.
#include <clnet/clnet.h>

#include <exception>
#include <iostream>
#include <random>
#include <string>

#include "text.h"

using namespace clnet;

constexpr std::int64_t width = 64, length = 32, streams = 16;

struct CharLstm : nn::Module {
  nn::Embedding characters;
  nn::LSTM lstm{width, width, 2, {.batch_first = true}};
  nn::Linear head;

  explicit CharLstm(std::int64_t alphabet) : characters{alphabet, width}, head{width, alphabet} {
    add("characters", characters);
    add("lstm", lstm);
    add("head", head);
  }
  /// {batch, length} of characters: the logits of those that follow, {batch, length, alphabet}. `state` (at first none) becomes
  /// that after them.
  Tensor next(const Tensor& x, LstmState& state) {
    const auto result = lstm(characters(x), state);
    state = {result.h.detach(), result.c.detach()};
    return head(result.output);
  }
};

int main(int argc, char** argv) try {
  const auto text = argc > 1 ? Text::of_file(argv[1]) : Text::of_sentences();
  const int steps = argc > 2 ? std::stoi(argv[2]) : argc > 1 ? 2000 : 200;
  const auto stream = static_cast<std::int64_t>(text.numbers.size()) / streams;
  if (stream <= length) throw Error("the text is too short");

  manual_seed(1);
  CharLstm model(text.size());
  optim::Adam optimizer(model, {.learning_rate = 5e-3, .clip_norm = 1});
  std::cout << model.parameter_count() << " parameters\n";
  LstmState state;
  float last = 0;
  for (std::int64_t step = 0, at = 0; step < steps; ++step, at += length) {
    if (at + length >= stream) {
      at = 0;
      state = {};
    }
    std::vector<std::int64_t> x, following;
    for (std::int64_t i = 0; i < streams; ++i) {
      const auto from = text.numbers.begin() + i * stream + at;
      x.insert(x.end(), from, from + length);
      following.insert(following.end(), from + 1, from + length + 1);
    }
    const auto logits = model.next(Tensor::from(x, {streams, length}), state);
    const auto loss = optimizer.step(cross_entropy(flatten(logits, 0, 1), Tensor::from(following, {streams * length})));
    if (step % 50 == 0 || step + 1 == steps) std::cout << "step " << step << ": loss " << (last = loss.item<float>()) << '\n';
  }

  model.inference();
  std::mt19937_64 random(1);
  state = {};
  std::string written = text.text.substr(0, 1);
  while (written.size() < 64)
    written += text.draw(model.next(Tensor::from({text.number(written.back())}, {1, 1}), state), random);
  std::cout << written << '\n';
  return argc > 1 || last < 0.9F ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "char_lstm: " << error.what() << '\n';
  return 1;
}
