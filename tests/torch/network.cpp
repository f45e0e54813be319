#include "tests/torch/network.h"

#include <cctype>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

/// "conv1(1,8,k3,p1)": the name, the numbers in order and those behind a letter; all of these as they are written.
struct Word {
  std::string name;
  std::vector<std::string> parts;
  std::vector<std::int64_t> numbers;
  std::map<char, std::int64_t> letters;

  std::int64_t number(std::size_t i) const {
    if (i >= numbers.size()) throw Failed("too few numbers for " + name);
    return numbers[i];
  }
  std::int64_t first(std::int64_t otherwise) const { return numbers.empty() ? otherwise : numbers[0]; }
  std::int64_t letter(char c, std::int64_t otherwise) const {
    const auto found = letters.find(c);
    return found == letters.end() ? otherwise : found->second;
  }
};

std::vector<Word> words(const std::string& description) {
  std::vector<Word> result;
  const auto text = description.substr(0, description.find(';'));
  for (std::size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    Word word;
    while (at < text.size() && text[at] != '(' && std::isspace(static_cast<unsigned char>(text[at])) == 0)
      word.name += text[at++];
    if (at < text.size() && text[at] == '(') {
      const auto end = text.find(')', at);
      if (end == std::string::npos) throw Failed("no ) after " + word.name);
      std::istringstream parts(text.substr(at + 1, end - at - 1));
      for (std::string part; std::getline(parts, part, ',');) {
        const auto first = part.find_first_not_of(' ');
        if (first == std::string::npos) continue;
        part = part.substr(first);
        word.parts.push_back(part);
        if (std::isdigit(static_cast<unsigned char>(part[0])) != 0)
          word.numbers.push_back(std::stoll(part));
        else if (part.size() > 1 && std::isdigit(static_cast<unsigned char>(part[1])) != 0)
          word.letters[part[0]] = std::stoll(part.substr(1));
      }
      at = end + 1;
    }
    result.push_back(std::move(word));
  }
  return result;
}

/// Layers under names of their own, one after the other.
class Described : public nn::Module {
 public:
  template <class L>
  void append(const std::string& name, const L& layer) {
    add(name, layer);
    steps_.push_back([layer = L(layer)](const Tensor& x) mutable { return layer(x); });
  }
  void append(std::function<Tensor(const Tensor&)> step) { steps_.push_back(std::move(step)); }
  Tensor forward(const Tensor& x) override {
    auto result = x;
    for (const auto& step : steps_) result = step(result);
    return result;
  }

 private:
  std::vector<std::function<Tensor(const Tensor&)>> steps_;
};

/// A batch normalisation of features or of images: what comes tells. Its parameters are PyTorch's either way.
class Normalized : public nn::BatchNorm2d {
 public:
  using nn::BatchNorm2d::BatchNorm2d;
  Tensor forward(const Tensor& x) override {
    if (x.rank() != 2) return nn::BatchNorm2d::forward(x);
    return flatten(nn::BatchNorm2d::forward(reshape(x, {x.size(0), x.size(1), 1, 1})));
  }
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Whether it is a layer or function of that kind, under one of its names.
bool is(const Word& word, const std::string& kind) {
  static const std::map<std::string, std::string> in_full{
      {"bn", "batchnorm"}, {"gn", "groupnorm"}, {"ln", "layernorm"}, {"fc", "linear"}};
  const auto name = lower(word.name);
  const auto full = in_full.find(kind);
  return name.starts_with(kind) || (full != in_full.end() && name.starts_with(full->second));
}

/// The options that both directions have.
template <class Options>
Options convolution(const Word& word, bool bias) {
  Options options;
  options.stride = word.letter('s', 1);
  options.padding = word.letter('p', 0);
  options.groups = word.letter('g', 1);
  options.bias = bias;
  return options;
}

/// `weights` tells what a layer has, as a bias.
void append(Described& network, const Word& word, const Named& weights) {
  const auto has = [&](const std::string& name) { return weights.contains(name); };
  const bool bias = has(word.name + ".bias");
  static const std::map<std::string, std::function<Tensor(const Tensor&)>> functions{
      {"flatten", [](const Tensor& x) { return flatten(x); }},
      {"identity", [](const Tensor& x) { return x; }},
      {"globalavgpool", global_avg_pool2d},
      {"gap", global_avg_pool2d},
  };
  if (is(word, "dropout")) {
    if (word.first(1) != 0 || word.numbers.empty()) throw Failed("dropout is random");
    return;
  }
  if (const auto found = functions.find(word.name); found != functions.end()) return network.append(found->second);
  if (is(word, "maxpool") || is(word, "avgpool")) {
    const auto size = word.name.size() > 7 ? std::stoll(word.name.substr(7)) : word.letter('k', word.first(1));
    const auto stride = word.letter('s', size), padding = word.letter('p', 0);
    if (is(word, "max"))
      return network.append([=](const Tensor& x) { return max_pool2d(x, size, {.stride = stride, .padding = padding}); });
    return network.append([=](const Tensor& x) { return avg_pool2d(x, size, {.stride = stride, .padding = padding}); });
  }
  if (is(word, "convt") || is(word, "deconv"))
    return network.append(word.name, nn::ConvTranspose2d{word.number(0), word.number(1), word.letter('k', 1),
                                                         convolution<nn::ConvTranspose2dOptions>(word, bias)});
  if (is(word, "conv")) {
    auto options = convolution<nn::Conv2dOptions>(word, bias);
    options.dilation = word.letter('d', 1);
    return network.append(word.name, nn::Conv2d{word.number(0), word.number(1), word.letter('k', 1), options});
  }
  const bool affine = has(word.name + ".weight");
  if (is(word, "bn")) {
    const bool tracked = has(word.name + ".running_mean");
    return network.append(word.name, Normalized{word.number(0), {.affine = affine, .track_running_stats = tracked}});
  }
  if (is(word, "gn")) return network.append(word.name, nn::GroupNorm{word.number(0), word.number(1), {.affine = affine}});
  if (is(word, "ln"))
    return network.append(word.name, nn::LayerNorm{word.number(0), {.elementwise_affine = affine, .bias = bias}});
  if (is(word, "fc")) return network.append(word.name, nn::Linear{word.number(0), word.number(1), {.bias = bias}});
  if (is(word, "lstm") || is(word, "gru") || is(word, "rnn")) {
    // {N, T, width}; a lower-case name, as PyTorch's modules have.
    const auto name = lower(word.name);
    const auto in = word.number(0), hidden = word.number(1), layers = word.numbers.size() > 2 ? word.number(2) : 1;
    const nn::RecurrentOptions options{
        .bias = has(name + ".bias_ih_l0"), .batch_first = true, .bidirectional = has(name + ".weight_ih_l0_reverse")};
    if (is(word, "lstm")) return network.append(name, nn::LSTM{in, hidden, layers, options});
    if (is(word, "gru")) return network.append(name, nn::GRU{in, hidden, layers, options});
    return network.append(name, nn::RNN{in, hidden, layers, options});
  }
  if (is(word, "emb")) return network.append(word.name, nn::Embedding{word.number(0), word.number(1)});
  // Any function of one tensor, as torch_reference knows it: gelu(tanh) is gelu_tanh there.
  auto name = word.name;
  for (const auto& part : word.parts) name += "_" + part;
  network.append([name](const Tensor& x) {
    static const auto operations = all_operations();
    return operations.run(Given("activation", {{"fn", name}}, {{"x", x}}, {})).outputs.at("y");
  });
}

}  // namespace

std::unique_ptr<nn::Module> network(const std::string& description, const Named& weights) {
  auto result = std::make_unique<Described>();
  for (const auto& word : words(description)) append(*result, word, weights);
  return result;
}

std::map<std::string, std::string> biases_without_effect(const std::string& description) {
  std::map<std::string, std::string> result;
  std::string bias;
  for (const auto& word : words(description)) {
    if (is(word, "bn") && !bias.empty()) result[word.name + ".running_mean"] = bias;
    // What makes of x + b what it makes of x, plus b; a mean does not where it counts padding.
    const bool keeps = is(word, "dropout") || is(word, "identity") || is(word, "maxpool") || is(word, "global") ||
                       is(word, "gap") || (is(word, "avgpool") && word.letter('p', 0) == 0);
    if (is(word, "conv") || is(word, "deconv") || is(word, "fc"))
      bias = word.name + ".bias";
    else if (!keeps)
      bias.clear();
  }
  return result;
}

Steps optimizer(const std::string& description, const nn::Module& module) {
  // As PyTorch prints it, too: Adam(lr=0.1, betas=(0.9, 0.98)).
  std::string text = std::regex_replace(description, std::regex(R"(\b(True|true)\b)"), "");
  text = std::regex_replace(text, std::regex(R"(\(([-.0-9e]+), *([-.0-9e]+)\))"), "$1,$2");
  text = std::regex_replace(text, std::regex(R"(^(\w+)\((.*)\)$)"), "$1 $2");
  text = std::regex_replace(text, std::regex("=|, +|,$"), " ");
  std::istringstream in(text);
  std::string key;
  json attributes;
  in >> key;
  attributes["algo"] = key;
  // Keys are words, a flag's alone; values are numbers with commas between them, and what stands in parentheses explains.
  for (std::string word; in >> word;) {
    if (word[0] == '(') break;
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0 && word[0] != '.' && word[0] != '-') {
      attributes[key = word] = true;
      continue;
    }
    std::vector<double> numbers;
    std::istringstream parts(word);
    for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stod(part));
    attributes[key] = numbers.size() == 1 ? json(numbers[0]) : json(numbers);
  }
  const Given given("optimizer", attributes, {}, {});
  auto result = make_steps(given, module);
  given.require_all_read();
  return result;
}

}  // namespace clnet::torch
