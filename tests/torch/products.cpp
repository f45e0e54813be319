// Products and looked-up rows.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

const Names left{"a", "x", "input", "mat1"}, right{"b", "other", "mat2", "vec", "y"};

}  // namespace

void add_products(Operations& operations) {
  operations["linear"] = [](const Given& in) {
    in.restated({"in_features", "out_features", "bias"});
    return y(linear(in[{"x", "input"}], in["weight"], in["bias"]));
  };
  for (const char* name : {"matmul", "mm", "bmm", "mv", "dot"})
    operations[name] = [](const Given& in) { return y(matmul(in[left], in[right])); };
  operations["outer"] = [](const Given& in) { return y(outer(in[left], in[right])); };
  operations["addmm"] = operations["baddbmm"] = operations["addmv"] = [](const Given& in) {
    const auto a = in[{"mat1", "batch1", "mat", "a"}], b = in[{"mat2", "batch2", "vec", "b"}];
    return y(addmm(in[{"input", "c", "bias", "x"}], a, b, in.number("beta", 1), in.number("alpha", 1)));
  };
  operations["einsum"] = [](const Given& in) { return y(einsum(in.text("equation", ""), in.operands())); };
  operations["embedding"] = [](const Given& in) {
    in.restated({"num_embeddings", "embedding_dim"});
    std::optional<std::int64_t> padding;
    if (in.find("padding_idx") != nullptr) padding = in.integer("padding_idx", 0);
    return y(embedding(in[{"idx", "indices", "index", "x", "input"}], in["weight"], padding));
  };
  operations["one_hot"] = [](const Given& in) {
    const auto classes = in.integer({"num_classes", "classes"}, in.outputs.at("y").size(-1));
    return y(one_hot(in[{"idx", "indices", "index", "x", "input", "target"}], classes));
  };
}

}  // namespace clnet::torch
