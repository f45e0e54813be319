// The networks of clnet-train: image classifiers and language models. Parameters have PyTorch's names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn.h"

namespace clnet::models {

/// The names for make(), language models last.
CLNET_API std::vector<std::string> names();
/// Whether `name` is a language model.
CLNET_API bool is_language_model(std::string_view name);

/// Makes a network by name. Throws Error for an unknown name or an image too small for it. Classifiers of images {channels,
/// height, width}:
/// - mlp: flatten, linear 128, relu, linear
/// - keras-cnn: conv 3x3 without padding to 32, relu, max-pool 2, flatten, linear
/// - cnn: conv 3x3 padding 1 to 32, relu, max-pool 2, conv 3x3 padding 1 to 64, relu, max-pool 2, flatten, linear 128, relu,
///   linear
/// - lenet5: conv 5x5 padding 2 to 6, tanh, avg-pool 2, conv 5x5 to 16, tanh, avg-pool 2, flatten, linear 120, tanh, 84, tanh,
///   linear
/// - resnet20: He et al. 2015 for CIFAR: 3 stages of 3 blocks, 16, 32, 64 channels
/// - resnet18, resnet50, vgg16, mobilenetv2: torchvision's, for images of about 224x224
///
/// Language models of `classes` characters, for samples of {length}:
/// - char-lstm: CharLstm with its default options
/// - char-gpt: CharGpt of context `length`
CLNET_API std::unique_ptr<nn::Module> make(std::string_view name, const Shape& sample, std::int64_t classes);

/// A language model: characters {n, length}, i32 or i64 numbers from 0, become logits {n, length, classes} of each next
/// character.
class CLNET_API LanguageModel : public nn::Module {
 public:
  ~LanguageModel() override;
  /// Reads the next characters of one text, keeps the state of all earlier ones, and returns the logits {classes} of the next
  /// character. Copies share the state. A call that throws has read nothing. Where evaluation of the result fails, evaluate it
  /// again.
  using Reader = std::function<Tensor(std::span<const std::int32_t> characters)>;
  /// A new reader. It keeps the parameters alive and uses their values at the time of reading.
  virtual Reader reader() const = 0;
  virtual std::int64_t classes() const = 0;
};

struct CharLstmOptions {
  std::int64_t embedding = 128, hidden = 128, layers = 2;
  double dropout = 0;  ///< probability, between layers
};
/// Embedding `emb`, LSTM `lstm`, Linear `fc`. Each sample begins with zero states.
class CLNET_API CharLstm : public LanguageModel {
 public:
  explicit CharLstm(std::int64_t classes, const CharLstmOptions& options = {});
  Tensor forward(const Tensor& characters) override;
  /// The states of the LSTM, for a text of any length.
  Reader reader() const override;
  std::int64_t classes() const override { return classes_; }
  std::string kind() const override { return "CharLstm"; }

 private:
  std::int64_t classes_;
  nn::Embedding emb_;
  nn::LSTM lstm_;
  nn::Linear fc_;
};

struct CharGptOptions {
  std::int64_t layers = 4, width = 128, heads = 4, context = 64;
  double dropout = 0;
};
/// GPT-2's network (Radford and others 2019) and initial values. Embeddings `emb` of characters and `positions`; `encoder`, a
/// causal TransformerEncoder with norms first, GELU and a final norm; Linear `fc`. Samples have at most `context` characters.
class CLNET_API CharGpt : public LanguageModel {
 public:
  explicit CharGpt(std::int64_t classes, const CharGptOptions& options = {});
  Tensor forward(const Tensor& characters) override;
  /// With caches of keys and values: no position is computed twice. After `context` characters it restarts from the last half of
  /// them. So it sees between half of `context` and `context` characters of a long text.
  Reader reader() const override;
  std::int64_t classes() const override { return classes_; }
  std::string kind() const override { return "CharGpt"; }

 private:
  class Reading;
  std::int64_t classes_, context_;
  nn::Embedding emb_, positions_;
  nn::TransformerEncoder encoder_;
  nn::Linear fc_;
};

/// make() for language models. Throws Error for any other name.
CLNET_API std::unique_ptr<LanguageModel> make_language_model(std::string_view name, std::int64_t length, std::int64_t classes);

/// Options of generate().
struct GenerateOptions {
  std::int64_t count = 200;  ///< characters to write after the prompt
  /// Divides the logits: below 1 likely characters become likelier, above 1 all become more alike. 0: always the likeliest.
  double temperature = 0.8;
  std::int64_t top_k = 0;  ///< only the k likeliest characters; 0: all
  double top_p = 1;        ///< of these, only the fewest likeliest ones whose probabilities sum to at least top_p
  std::uint64_t seed = 0;  ///< independent of manual_seed()
  /// Called for each new character; false stops.
  std::function<bool(std::int32_t character)> on_character = nullptr;
};
/// The characters that the model, in inference mode, writes after a prompt of at least one character. Throws Error for an empty
/// prompt, options out of range, and logits that are not finite.
CLNET_API std::vector<std::int32_t> generate(LanguageModel& model, std::span<const std::int32_t> prompt,
                                             const GenerateOptions& options = {});
/// The same with characters of `alphabet` (data::alphabet_of), whose length is the model's number of classes.
CLNET_API std::string generate(LanguageModel& model, std::string_view alphabet, std::string_view prompt,
                               const GenerateOptions& options = {});

}  // namespace clnet::models
