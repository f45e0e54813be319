// Linear, embedding and shape layers.
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
/// linear(): x {..., in_features} becomes {..., out_features}. Parameters weight {out, in} and bias {out}.
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
  std::optional<std::int64_t> padding_idx = std::nullopt;  ///< row that starts as zeros and gets no gradient
};
/// embedding(): integer indices {...} become {..., width}. Parameter weight {count, width}. An index out of range throws Error
/// where the host knows the indices, and gives NaN elsewhere. Throws Error for a padding_idx that is no row.
class CLNET_API Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& indices) override;
  std::string kind() const override;

 private:
  EmbeddingOptions options_;
  Parameter weight_;
};

/// flatten(): joins dimensions first..last.
class CLNET_API Flatten : public Module {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}
  Tensor forward(const Tensor& x) override { return flatten(x, first_, last_); }
  std::string kind() const override { return "Flatten"; }

 private:
  int first_, last_;
};

/// Splits dimension `dim` into `sizes`. The call throws ShapeError where their product is not its extent.
class CLNET_API Unflatten : public Module {
 public:
  Unflatten(int dim, const Shape& sizes) : dim_(dim), sizes_(sizes) {}
  Tensor forward(const Tensor& x) override;
  std::string kind() const override;

 private:
  int dim_;
  Shape sizes_;
};

/// Returns its input: a placeholder for a layer to leave out.
class CLNET_API Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
  std::string kind() const override { return "Identity"; }
};

}  // namespace clnet::nn
