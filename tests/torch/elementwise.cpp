// Functions of elements and reductions. The manifest spells parameters into the name: celu_0.7, softmax_d-1, std_d02_biased_keep.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

/// A function's name, split at underscores into words and what follows them.
struct Spelled {
  std::string name;
  std::vector<double> numbers;
  std::vector<int> dims;
  bool biased = false, keep = false;

  double number(std::size_t i, double otherwise) const { return i < numbers.size() ? numbers[i] : otherwise; }
  int dim(int otherwise) const { return dims.empty() ? otherwise : dims[0]; }
};

bool read_number(const std::string& text, double& number) {
  if (text.empty()) return false;
  char* end = nullptr;
  number = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

/// "d02": dimensions 0 and 2; "d-1": the last.
std::vector<int> read_dims(const std::string& text) {
  std::vector<int> result;
  int sign = 1;
  for (const char c : text) {
    if (c == '-') {
      sign = -1;
      continue;
    }
    if (c < '0' || c > '9') return {};
    result.push_back(sign * (c - '0'));
    sign = 1;
  }
  return result;
}

Spelled spelled(const std::string& text) {
  Spelled result;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find('_', from), text.size());
    const auto word = text.substr(from, to - from);
    double number = 0;
    if (read_number(word, number))
      result.numbers.push_back(number);
    else if (word.size() > 1 && word[0] == 'd' && !read_dims(word.substr(1)).empty())
      result.dims = read_dims(word.substr(1));
    else if (word == "biased")
      result.biased = true;
    else if (word == "keep" || word == "keepdim")
      result.keep = true;
    else if (word != "all" && word != "unbiased")
      result.name += (result.name.empty() ? "" : "_") + word;
    from = to + 1;
  }
  return result;
}

using Unary = Tensor (*)(const Tensor&);

Tensor activation(const Given& in) {
  static const std::map<std::string, Unary> plain{
      {"abs", abs},
      {"ceil", ceil},
      {"cos", cos},
      {"erf", erf},
      {"exp", exp},
      {"expm1", expm1},
      {"floor", floor},
      {"gelu", gelu},
      {"hardsigmoid", hardsigmoid},
      {"hardswish", hardswish},
      {"log", log},
      {"log1p", log1p},
      {"log2", log2},
      {"log_sigmoid", log_sigmoid},
      {"logsigmoid", log_sigmoid},
      {"mish", mish},
      {"neg", [](const Tensor& x) { return -x; }},
      {"reciprocal", reciprocal},
      {"relu", relu},
      {"relu6", relu6},
      {"round", round},
      {"rsqrt", rsqrt},
      {"selu", selu},
      {"sigmoid", sigmoid},
      {"sign", sign},
      {"silu", silu},
      {"sin", sin},
      {"softsign", softsign},
      {"sqrt", sqrt},
      {"square", square},
      {"swish", silu},
      {"tanh", tanh},
      {"tanhshrink", tanhshrink},
  };
  const auto x = in["x"];
  const auto fn = spelled(in.attributes.at("fn").get<std::string>());
  const auto& name = fn.name;
  if (const auto found = plain.find(name); found != plain.end() && fn.numbers.empty()) return found->second(x);
  if (name == "gelu_tanh") return gelu(x, Gelu::tanh);
  if (name == "gelu_erf" || name == "gelu_none") return gelu(x);
  if (name == "leaky_relu" || name == "leakyrelu") return leaky_relu(x, fn.number(0, 0.01));
  if (name == "elu") return elu(x, fn.number(0, 1));
  if (name == "celu") return celu(x, fn.number(0, 1));
  if (name == "hardtanh") return hardtanh(x, fn.number(0, -1), fn.number(1, 1));
  if (name == "clamp") return clamp(x, fn.number(0, 0), fn.number(1, INFINITY));
  if (name == "hardshrink") return hardshrink(x, fn.number(0, 0.5));
  if (name == "softshrink") return softshrink(x, fn.number(0, 0.5));
  if (name == "softplus") return softplus(x, fn.number(0, 1), fn.number(1, 20));
  if (name == "threshold") return threshold(x, fn.number(0, 0), fn.number(1, 0));
  if (name == "pow") return pow(x, fn.number(0, 2));
  if (name == "prelu") return prelu(x, in["weight"]);
  if (name == "glu") return glu(x, fn.dim(-1));
  if (name == "softmax") return softmax(x, fn.dim(-1));
  if (name == "softmin") return softmin(x, fn.dim(-1));
  if (name == "log_softmax" || name == "logsoftmax") return log_softmax(x, fn.dim(-1));
  throw Failed("unknown function " + in.attributes.at("fn").get<std::string>());
}

Tensor elementwise(const Given& in) {
  const auto &a = in["a"], &b = in["b"];
  const auto name = in.attributes.at("fn").get<std::string>();
  if (name == "add") return a + b;
  if (name == "sub") return a - b;
  if (name == "mul") return a * b;
  if (name == "div") return a / b;
  if (name == "pow") return pow(a, b);
  if (name == "maximum" || name == "max") return maximum(a, b);
  if (name == "minimum" || name == "min") return minimum(a, b);
  if (name == "fmod") return fmod(a, b);
  if (name == "atan2") return atan2(a, b);
  throw Failed("unknown function " + name);
}

Tensor reduction(const Given& in) {
  const auto x = in["x"];
  const auto fn = spelled(in.attributes.at("fn").get<std::string>());
  const auto& name = fn.name;
  const Dims dims(fn.dims);
  const int correction = fn.biased ? 0 : 1;
  if (name == "sum") return sum(x, dims, fn.keep);
  if (name == "mean") return mean(x, dims, fn.keep);
  if (name == "prod") return prod(x, dims, fn.keep);
  if (name == "max" || name == "amax") return max(x, dims, fn.keep);
  if (name == "min" || name == "amin") return min(x, dims, fn.keep);
  if (name == "var") return var(x, dims, correction, fn.keep);
  if (name == "std") return stddev(x, dims, correction, fn.keep);
  if (name == "cumsum") return cumsum(x, fn.dims.empty() ? 0 : fn.dims[0]);
  if (name == "logsumexp") return logsumexp(x, dims, fn.keep);
  double p = 2;
  if (name == "norm" || (name.starts_with("norm") && read_number(name.substr(4), p)))
    return norm(x, fn.number(0, p), dims, fn.keep);
  throw Failed("unknown function " + in.attributes.at("fn").get<std::string>());
}

}  // namespace

void add_elementwise(Operations& operations) {
  operations["activation"] = [](const Given& in) { return y(activation(in)); };
  operations["elementwise"] = [](const Given& in) { return y(elementwise(in)); };
  operations["reduction"] = [](const Given& in) { return y(reduction(in)); };
}

}  // namespace clnet::torch
