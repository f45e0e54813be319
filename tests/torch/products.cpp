// Products and looked-up rows.
#include "tests/torch/cases.h"

namespace clnet::torch {

void add_products(Operations& operations) {
  operations["linear"] = [](const Given& in) { return y(linear(in["x"], in["weight"], in["bias"])); };
  operations["matmul"] = [](const Given& in) { return y(matmul(in["a"], in["b"])); };
  operations["outer"] = [](const Given& in) { return y(outer(in["a"], in["b"])); };
  operations["embedding"] = [](const Given& in) {
    std::optional<std::int64_t> padding;
    if (const auto found = in.attributes.find("padding_idx"); found != in.attributes.end() && !found->is_null())
      padding = found->get<std::int64_t>();
    return y(embedding(in["idx"], in["weight"], padding));
  };
}

}  // namespace clnet::torch
