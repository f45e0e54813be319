// Products and looked-up rows.
#include "tests/torch/cases.h"

namespace clnet::torch {

void add_products(Operations& operations) {
  operations["linear"] = [](const Given& in) { return y(linear(in["x"], in["weight"], in["bias"])); };
  operations["matmul"] = [](const Given& in) { return y(matmul(in["a"], in["b"])); };
  operations["outer"] = [](const Given& in) { return y(outer(in["a"], in["b"])); };
  // As many operands a, b, c, ... as there are.
  operations["einsum"] = [](const Given& in) {
    std::vector<Tensor> operands;
    for (char name = 'a'; in.inputs.contains(std::string(1, name)); ++name) operands.push_back(in[std::string(1, name)]);
    return y(einsum(in.attributes.at("equation").get<std::string>(), operands));
  };
  operations["embedding"] = [](const Given& in) {
    std::optional<std::int64_t> padding;
    if (const auto found = in.attributes.find("padding_idx"); found != in.attributes.end() && !found->is_null())
      padding = found->get<std::int64_t>();
    return y(embedding(in["idx"], in["weight"], padding));
  };
}

}  // namespace clnet::torch
