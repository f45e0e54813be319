#include "clnet/nn/activation.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/random.h"
#include "lib/nn/layer.h"

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
Activation Softplus(double beta, double threshold) {
  return {"Softplus", [=](const Tensor& x) { return softplus(x, beta, threshold); }};
}
Activation Softmax(int dim) {
  return {fmt::format("Softmax({})", dim), [=](const Tensor& x) { return softmax(x, dim); }};
}
Activation Softmax2d() {
  return {"Softmax2d", [](const Tensor& x) {
            if (x.defined() && x.rank() != 3 && x.rank() != 4)
              throw ShapeError(fmt::format("Softmax2d: {} is no image: 3 or 4 dimensions", to_string(x.spec())));
            return softmax(x, -3);
          }};
}
Activation LogSoftmax(int dim) {
  return {fmt::format("LogSoftmax({})", dim), [=](const Tensor& x) { return log_softmax(x, dim); }};
}
Activation Softmin(int dim) {
  return {fmt::format("Softmin({})", dim), [=](const Tensor& x) { return softmin(x, dim); }};
}
Activation ReLU6() { return {"ReLU6", relu6}; }
Activation CELU(double alpha) {
  return {fmt::format("CELU({})", alpha), [=](const Tensor& x) { return celu(x, alpha); }};
}
Activation SELU() { return {"SELU", selu}; }
Activation Mish() { return {"Mish", mish}; }
Activation Hardtanh(double low, double high) {
  return {fmt::format("Hardtanh({}, {})", low, high), [=](const Tensor& x) { return hardtanh(x, low, high); }};
}
Activation LogSigmoid() { return {"LogSigmoid", log_sigmoid}; }
Activation Softsign() { return {"Softsign", softsign}; }
Activation Hardshrink(double lambda) {
  return {fmt::format("Hardshrink({})", lambda), [=](const Tensor& x) { return hardshrink(x, lambda); }};
}
Activation Softshrink(double lambda) {
  return {fmt::format("Softshrink({})", lambda), [=](const Tensor& x) { return softshrink(x, lambda); }};
}
Activation Tanhshrink() { return {"Tanhshrink", tanhshrink}; }
Activation Threshold(double bound, double value) {
  return {fmt::format("Threshold({}, {})", bound, value), [=](const Tensor& x) { return threshold(x, bound, value); }};
}
Activation GLU(int dim) {
  return {fmt::format("GLU({})", dim), [=](const Tensor& x) { return glu(x, dim); }};
}

PReLU::PReLU(std::int64_t channels, double init)
    : weight_([&] {
        require_positive("PReLU", "channels", channels);
        return add_parameter("weight", full({channels}, init));
      }()) {}

Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight_); }
std::string PReLU::kind() const { return fmt::format("PReLU({})", weight_.value().size(0)); }

RReLU::RReLU(double lower, double upper) : lower_(lower), upper_(upper) {
  if (!(lower <= upper)) throw Error(fmt::format("RReLU: there are no slopes from {} to {}", lower, upper));
}

Tensor RReLU::forward(const Tensor& x) { return rrelu(x, lower_, upper_, training()); }
std::string RReLU::kind() const { return fmt::format("RReLU({}, {})", lower_, upper_); }

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("Dropout: p must be from 0 to 1, not {}", p));
}

Tensor Dropout::forward(const Tensor& x) { return training() ? dropout(x, p_) : x; }
std::string Dropout::kind() const { return fmt::format("Dropout({})", p_); }

Dropping::Dropping(std::string name, double p, Tensor (*function)(const Tensor& x, double p))
    : name_(std::move(name)), p_(p), function_(function) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("{}: p must be from 0 to 1, not {}", name_, p));
}

Tensor Dropping::forward(const Tensor& x) { return training() ? function_(x, p_) : x; }
std::string Dropping::kind() const { return fmt::format("{}({})", name_, p_); }

Dropping Dropout1d(double p) { return {"Dropout1d", p, dropout1d}; }
Dropping Dropout2d(double p) { return {"Dropout2d", p, dropout2d}; }
Dropping Dropout3d(double p) { return {"Dropout3d", p, dropout3d}; }
Dropping AlphaDropout(double p) { return {"AlphaDropout", p, alpha_dropout}; }
Dropping FeatureAlphaDropout(double p) { return {"FeatureAlphaDropout", p, feature_alpha_dropout}; }

}  // namespace clnet::nn
