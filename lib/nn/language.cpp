// Networks that write, character by character.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "clnet/data.h"
#include "clnet/error.h"
#include "clnet/models.h"
#include "lib/graph/require.h"
#include "lib/nn/layer.h"
#include "lib/nn/sampler.h"

namespace clnet::models {

namespace {

void require_characters(const char* model, const Tensor& characters) {
  require_defined(model, {{"characters", characters}});
  if (characters.rank() != 2)
    throw ShapeError(fmt::format("{}: characters {} must be {{n, length}}", model, to_string(characters.spec())));
}

void require_readable(const char* model, std::span<const std::int32_t> characters, std::int64_t classes) {
  if (characters.empty()) throw Error(fmt::format("{}: there is nothing to read", model));
  for (const auto c : characters)
    if (c < 0 || c >= classes) throw Error(fmt::format("{}: character {} is not one of {}", model, c, classes));
}

/// A text's characters as a batch of one.
Tensor as_batch(std::span<const std::int32_t> characters) {
  return Tensor::from(characters, {1, static_cast<std::int64_t>(characters.size())});
}

Tensor last_position(const Tensor& y) { return slice(y, 1, y.size(1) - 1, y.size(1)); }

nn::TransformerLayerOptions layer_options(const CharGptOptions& options) {
  return {.dim_feedforward = 4 * options.width,
          .dropout = options.dropout,
          .activation = nn::TransformerActivation::gelu,
          .batch_first = true,
          .norm_first = true};
}

}  // namespace

LanguageModel::~LanguageModel() = default;

CharLstm::CharLstm(std::int64_t classes, const CharLstmOptions& options)
    : classes_(classes),
      emb_(classes, options.embedding),
      lstm_(options.embedding, options.hidden, options.layers, {.batch_first = true, .dropout = options.dropout}),
      fc_(options.hidden, classes) {
  add("emb", emb_);
  add("lstm", lstm_);
  add("fc", fc_);
}

Tensor CharLstm::forward(const Tensor& characters) {
  require_characters("CharLstm", characters);
  return fc_(lstm_(emb_(characters)));
}

LanguageModel::Reader CharLstm::reader() const {
  return [model = *this, state = std::make_shared<LstmState>()](std::span<const std::int32_t> characters) mutable {
    require_readable("CharLstm", characters, model.classes_);
    const auto [output, h, c] = model.lstm_(model.emb_(as_batch(characters)), *state);
    const auto logits = flatten(model.fc_(last_position(output)));
    clnet::eval({logits, h, c});
    *state = {h.detach(), c.detach()};
    return reshape(logits, {model.classes_});
  };
}

CharGpt::CharGpt(std::int64_t classes, const CharGptOptions& options)
    : classes_(classes),
      context_(options.context),
      emb_(classes, options.width),
      positions_(options.context, options.width),
      encoder_(options.width, options.heads, options.layers, layer_options(options), true),
      fc_(options.width, classes) {
  add("emb", emb_);
  add("positions", positions_);
  add("encoder", encoder_);
  add("fc", fc_);
  const double deviation = 0.02, into_residuals = deviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  for (auto& [name, parameter] : parameters()) {
    const auto shape = parameter.value().shape();
    const bool ends_branch = name.ends_with("out_proj.weight") || name.ends_with("linear2.weight");
    if (shape.rank() == 2)
      parameter.set(nn::init::normal(shape, 0, ends_branch ? into_residuals : deviation));
    else if (name.ends_with("bias"))
      parameter.set(zeros(shape));
  }
}

Tensor CharGpt::forward(const Tensor& characters) {
  require_characters("CharGpt", characters);
  if (characters.size(1) > context_)
    throw ShapeError(
        fmt::format("CharGpt: characters {} are longer than its context of {}", to_string(characters.spec()), context_));
  const auto x = emb_(characters) + positions_(arange(characters.size(1)));
  return fc_(encoder_(x, {.is_causal = true}));
}

class CharGpt::Reading {
 public:
  explicit Reading(const CharGpt& model) : model_(model), caches_(model.encoder_.caches(1, model.context_)) {}

  Tensor read(std::span<const std::int32_t> characters) {
    require_readable("CharGpt", characters, model_.classes_);
    const auto context = static_cast<std::size_t>(model_.context_);
    auto length = static_cast<std::size_t>(caches_.front().length);
    auto seen = seen_;
    seen.insert(seen.end(), characters.begin(), characters.end());
    auto caches = caches_;
    if (characters.size() > context - length) {
      // Copies share keys and values: should what follows throw, those of before are gone, and the next read begins anew, too.
      for (auto& cache : caches_) cache.length = model_.context_;
      for (auto& cache : caches) cache.length = 0;
      length = 0;
      characters = std::span<const std::int32_t>(seen).last(std::min(seen.size(), (context + 1) / 2));
    }
    const auto start = Tensor::scalar(static_cast<double>(length), Dtype::i64);
    const auto positions = arange(static_cast<std::int64_t>(characters.size())) + start;
    const auto y = model_.encoder_.step(model_.emb_(as_batch(characters)) + model_.positions_(positions), caches);
    const auto logits = reshape(model_.fc_(last_position(y)), {model_.classes_});
    if (seen.size() > context) seen.erase(seen.begin(), seen.end() - static_cast<std::ptrdiff_t>(context));
    seen_ = std::move(seen);
    caches_ = std::move(caches);
    return logits;
  }

 private:
  CharGpt model_;
  std::vector<nn::KVCache> caches_;
  std::vector<std::int32_t> seen_;  ///< at most as many as the context has
};

LanguageModel::Reader CharGpt::reader() const {
  return [reading = std::make_shared<Reading>(*this)](std::span<const std::int32_t> characters) {
    return reading->read(characters);
  };
}

std::vector<std::int32_t> generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  if (options.count < 0) throw Error(fmt::format("generate: count cannot be {}", options.count));
  const decode::Sampler sampler("generate", {options.temperature, options.top_k, options.top_p});
  const nn::KeptModes kept(model);
  model.inference();
  const auto read = model.reader();
  std::mt19937_64 random(options.seed);
  std::vector<std::int32_t> written;
  auto logits = read(prompt);
  while (std::cmp_less(written.size(), options.count)) {
    written.push_back(static_cast<std::int32_t>(sampler.draw(logits.to_vector<float>(), random)));
    if (options.on_character && !options.on_character(written.back())) break;
    if (std::cmp_less(written.size(), options.count)) logits = read({&written.back(), 1});
  }
  return written;
}

std::string generate(LanguageModel& model, std::string_view alphabet, std::string_view prompt, const GenerateOptions& options) {
  if (std::cmp_not_equal(alphabet.size(), model.classes()))
    throw Error(fmt::format("generate: an alphabet of {} characters for a model of {}", alphabet.size(), model.classes()));
  std::string text;
  for (const auto character : generate(model, data::encode(prompt, alphabet), options))
    text += alphabet[static_cast<std::size_t>(character)];
  return text;
}

}  // namespace clnet::models
