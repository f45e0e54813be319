// Products, looked-up rows and changes of shape as layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/shape.h"

namespace clnet::nn {

/// Parameters weight {out, in} and bias {out}.
class CLNET_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

/// Rows of weight {count, width} for integer indices.
class CLNET_API Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t width);
  Tensor forward(const Tensor& indices) override;
  std::string kind() const override;

 private:
  Parameter weight_;
};

class CLNET_API Flatten : public Module {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}
  Tensor forward(const Tensor& x) override { return flatten(x, first_, last_); }
  std::string kind() const override { return "Flatten"; }

 private:
  int first_, last_;
};

}  // namespace clnet::nn
