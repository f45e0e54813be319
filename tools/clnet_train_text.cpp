#include "tools/clnet_train_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "clnet/data.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/base/input_file.h"

namespace clnet::tools {

namespace {

constexpr const char* model_key = "model";
/// Two hexadecimal digits per byte, as Python's bytes.fromhex() reads them: an alphabet may be no UTF-8.
constexpr const char* alphabet_key = "alphabet";

/// Nothing where there is none.
std::string alphabet_in(const Metadata& metadata) {
  const auto found = metadata.find(alphabet_key);
  if (found == metadata.end()) return {};
  const auto& digits = found->second;
  std::string alphabet;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned char byte = 0;
    const auto [end, code] = std::from_chars(digits.data() + i, digits.data() + std::min(i + 2, digits.size()), byte, 16);
    if (code != std::errc() || end != digits.data() + i + 2) throw Error("its alphabet is damaged");
    alphabet += static_cast<char>(byte);
  }
  if (alphabet.empty() || alphabet != data::alphabet_of(alphabet)) throw Error("its alphabet is damaged");
  return alphabet;
}

struct Writer {
  std::unique_ptr<models::LanguageModel> model;
  std::string alphabet;
};

/// The network that a file of weights alone tells of.
Writer load_writer(const TrainOptions& o, const io::Safetensors& weights) {
  const auto found = weights.metadata.find(model_key);
  const auto name = found == weights.metadata.end() ? o.model : found->second;
  if (name.empty()) throw Error("does not say of which model it holds the weights; give --model");
  if (!models::is_language_model(name))
    throw Error(fmt::format("holds the weights of {}, which writes nothing", in_quotes(name)));
  if (!o.model.empty() && name != o.model) throw Error(fmt::format("holds the weights of {}, not of {}", name, o.model));
  Writer writer;
  writer.alphabet = alphabet_in(weights.metadata);
  if (writer.alphabet.empty()) throw Error("has no alphabet in its metadata, where clnet-train keeps it");
  std::int64_t length = *o.context;
  for (const auto& [parameter, tensor] : weights.tensors)
    if (parameter == "positions.weight" && tensor.rank() == 2) length = tensor.size(0);
  writer.model = models::make_language_model(name, length, static_cast<std::int64_t>(writer.alphabet.size()));
  writer.model->load_state_dict(weights.tensors);
  return writer;
}

models::GenerateOptions generate_options(const TrainOptions& o, std::int64_t count) {
  return {
      .count = count, .temperature = *o.temperature, .top_k = o.top_k.value_or(0), .top_p = o.top_p.value_or(1), .seed = o.seed};
}

}  // namespace

Metadata metadata_of(const std::string& model, const std::string& alphabet) {
  Metadata metadata{{"format", "pt"}, {model_key, model}};
  std::string digits;
  for (const char c : alphabet) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  if (!digits.empty()) metadata[alphabet_key] = digits;
  return metadata;
}

void require_alphabet(const Metadata& metadata, const std::string& alphabet) {
  const auto theirs = alphabet_in(metadata);
  if (!theirs.empty() && theirs != alphabet)
    throw Error(fmt::format("is of another alphabet: of {} characters, the text's has {}", theirs.size(), alphabet.size()));
}

std::string prompt_of(const TrainOptions& o, const std::string& alphabet) {
  if (!o.prompt) return alphabet.find('\n') == std::string::npos ? alphabet.substr(0, 1) : "\n";
  try {
    data::encode(*o.prompt, alphabet);
  } catch (const Error& error) {
    throw Error(fmt::format("--prompt: {}", error.what()));
  }
  return *o.prompt;
}

std::string shown_sample(const TrainOptions& o, models::LanguageModel& model, const std::string& alphabet) {
  constexpr std::int64_t count = 200;
  constexpr const char* indent = "    ";
  const auto prompt = prompt_of(o, alphabet);
  std::string shown = indent;
  for (const char c : (prompt == "\n" ? "" : prompt) + models::generate(model, alphabet, prompt, generate_options(o, count))) {
    shown += c;
    if (c == '\n') shown += indent;
  }
  return shown;
}

void write_sample(const TrainOptions& o) {
  const auto path = o.init.empty() ? o.save : o.init;
  const auto weights = io::load_safetensors(path);
  Writer writer;
  try {
    writer = load_writer(o, weights);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  const auto prompt = prompt_of(o, writer.alphabet);
  const auto put = [](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  };
  bool written = put(o.prompt.value_or(""));
  auto options = generate_options(o, *o.sample);
  options.on_character = [&](std::int32_t character) {
    written = written && put({&writer.alphabet[static_cast<std::size_t>(character)], 1});
    return written;
  };
  models::generate(*writer.model, writer.alphabet, prompt, options);
  if (!written || !put("\n")) throw Error("stdout cannot be written");
}

}  // namespace clnet::tools
