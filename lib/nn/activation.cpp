#include "clnet/nn/activation.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/random.h"

namespace clnet::nn {

Activation ReLU() { return {"ReLU", relu}; }
Activation LeakyReLU(double negative_slope) {
  return {fmt::format("LeakyReLU({})", negative_slope), [=](const Tensor& x) { return leaky_relu(x, negative_slope); }};
}
Activation ELU(double alpha) {
  return {fmt::format("ELU({})", alpha), [=](const Tensor& x) { return elu(x, alpha); }};
}
Activation GELU(Gelu form) {
  return {"GELU", [=](const Tensor& x) { return gelu(x, form); }};
}
Activation SiLU() { return {"SiLU", silu}; }
Activation Tanh() {
  return {"Tanh", [](const Tensor& x) { return tanh(x); }};
}
Activation Sigmoid() { return {"Sigmoid", sigmoid}; }
Activation Hardswish() { return {"Hardswish", hardswish}; }
Activation Hardsigmoid() { return {"Hardsigmoid", hardsigmoid}; }
Activation Softplus() {
  return {"Softplus", [](const Tensor& x) { return softplus(x); }};
}
Activation Softmax(int dim) {
  return {fmt::format("Softmax({})", dim), [=](const Tensor& x) { return softmax(x, dim); }};
}
Activation LogSoftmax(int dim) {
  return {fmt::format("LogSoftmax({})", dim), [=](const Tensor& x) { return log_softmax(x, dim); }};
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("Dropout: p must be from 0 to 1, not {}", p));
}

Tensor Dropout::forward(const Tensor& x) { return training() ? dropout(x, p_) : x; }
std::string Dropout::kind() const { return fmt::format("Dropout({})", p_); }

}  // namespace clnet::nn
