// Products, looked-up rows and changes of shape as layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/shape.h"

namespace clnet::nn {

struct LinearOptions {
  bool bias = true;
};
/// Parameters weight {out, in} and bias {out}.
class CLNET_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = std::nullopt;  ///< a row that starts as zeros and gets no gradient
};
/// Rows of weight {count, width} for integer indices.
class CLNET_API Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& indices) override;
  std::string kind() const override;

 private:
  EmbeddingOptions options_;
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

/// One dimension as several.
class CLNET_API Unflatten : public Module {
 public:
  Unflatten(int dim, const Shape& sizes) : dim_(dim), sizes_(sizes) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  int dim_;
  Shape sizes_;
};

/// Gives what it gets: in the place of a layer that is to be left out.
class CLNET_API Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
  std::string kind() const override { return "Identity"; }
};

}  // namespace clnet::nn
