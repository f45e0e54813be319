// The networks that clnet-train knows, with parameters named as PyTorch names them: classifiers of images, and language models.
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

/// The names that make() takes, language models last.
CLNET_API std::vector<std::string> names();
/// Whether it is a language model's.
CLNET_API bool is_language_model(std::string_view name);

/// A classifier of images of shape {channels, height, width}. Throws Error for an unknown name or an image too small for it.
/// - mlp: flatten, linear 128, relu, linear
/// - keras-cnn: conv 3x3 without padding to 32, relu, max-pool 2, flatten, linear
/// - cnn: conv 3x3 padding 1 to 32, relu, max-pool 2, conv 3x3 padding 1 to 64, relu, max-pool 2, flatten, linear 128, relu,
/// linear
/// - lenet5: conv 5x5 padding 2 to 6, tanh, avg-pool 2, conv 5x5 to 16, tanh, avg-pool 2, flatten, linear 120, tanh, 84, tanh,
/// linear
/// - resnet20: He et al. 2015 for CIFAR: 3 stages of 3 blocks, 16, 32, 64 channels
/// - resnet18, resnet50, vgg16, mobilenetv2: torchvision's, for images of about 224x224
///
/// Or a language model of `classes` characters, for samples of {length}.
/// - char-lstm: CharLstm with its default options
/// - char-gpt: CharGpt of context `length`
CLNET_API std::unique_ptr<nn::Module> make(std::string_view name, const Shape& sample, std::int64_t classes);

/// A network that says what follows: characters {n, length}, i32 or i64 numbers from 0, become logits {n, length, classes} of the
/// one behind each.
class CLNET_API LanguageModel : public nn::Module {
 public:
  ~LanguageModel() override;
  /// Reads on in one text, remembering what it needs of all that came before, and gives the logits {classes} of what follows.
  /// Copies of a reader are the same one. A call that throws has read nothing; where evaluating what it returned fails, evaluate
  /// that again.
  using Reader = std::function<Tensor(std::span<const std::int32_t> characters)>;
  /// One that has read nothing yet. It keeps the parameters alive, and sees the values that they have when it reads.
  virtual Reader reader() const = 0;
  virtual std::int64_t classes() const = 0;
};

struct CharLstmOptions {
  std::int64_t embedding = 128, hidden = 128, layers = 2;
  double dropout = 0;  ///< between layers
};
/// Embedding `emb`, LSTM `lstm`, Linear `fc`; each sample begins with states of zeros.
class CLNET_API CharLstm : public LanguageModel {
 public:
  explicit CharLstm(std::int64_t classes, const CharLstmOptions& options = {});
  Tensor forward(const Tensor& characters) override;
  /// Its states go on without end.
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
/// GPT-2's network (Radford and others 2019) and initial values: embeddings `emb` of characters and `positions`, `encoder`, a
/// causal TransformerEncoder with norms first, GELU and a final norm, and Linear `fc`. Samples are `context` characters at most.
class CLNET_API CharGpt : public LanguageModel {
 public:
  explicit CharGpt(std::int64_t classes, const CharGptOptions& options = {});
  Tensor forward(const Tensor& characters) override;
  /// With caches of keys and values: no position is computed twice. When `context` characters are read, it begins anew with the
  /// last half of them, so that what it knows of a long text are between half and all of `context` characters.
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

/// make() for language models alone.
CLNET_API std::unique_ptr<LanguageModel> make_language_model(std::string_view name, std::int64_t length, std::int64_t classes);

struct GenerateOptions {
  std::int64_t count = 200;  ///< characters behind the prompt
  /// Below 1 likely characters become likelier, above 1 all more alike; 0: always the likeliest.
  double temperature = 0.8;
  std::uint64_t seed = 0;  ///< the process's generator is not asked
  /// Called for each character as it comes; false ends.
  std::function<bool(std::int32_t character)> on_character = nullptr;
};
/// What the model, in inference mode, writes behind a prompt of at least one character. Throws Error for a prompt or options
/// without sense, and when the logits are no numbers.
CLNET_API std::vector<std::int32_t> generate(LanguageModel& model, std::span<const std::int32_t> prompt,
                                             const GenerateOptions& options = {});
/// The same in characters of an alphabet (data::alphabet_of), which has as many as the model has classes.
CLNET_API std::string generate(LanguageModel& model, std::string_view alphabet, std::string_view prompt,
                               const GenerateOptions& options = {});

}  // namespace clnet::models
