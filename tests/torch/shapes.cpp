// Changes of shape and elements chosen by indices. What a function's name stands for is the format's own.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

Tensor shape(const Given& in) {
  const auto x = in["x"];
  const auto name = in.attributes.at("fn").get<std::string>();
  if (name == "slice") return slice(slice(slice(x, 1, 1, 4), 2, 0, 4, 2), 3, 1, 3);
  if (name == "pad_const") return pad(x, {0, 0, 0, 1}, {0, 0, 3, 2}, 0.5);
  if (name == "pad_replicate") return pad(x, {0, 0, 2, 1}, {0, 0, 1, 2}, 0, PadMode::edge);
  if (name == "pad_reflect") return pad(x, {0, 0, 2, 1}, {0, 0, 1, 2}, 0, PadMode::reflect);
  if (name == "pad_circular") return pad(x, {0, 0, 2, 1}, {0, 0, 1, 2}, 0, PadMode::circular);
  if (name == "cat_self") return concat({x, x * 2.0}, 1);
  if (name == "tile") return tile(x, {1, 2, 1, 3});
  if (name.starts_with("pixel_shuffle")) return pixel_shuffle(x, std::stoll(name.substr(13)));
  if (name.starts_with("pixel_unshuffle")) return pixel_unshuffle(x, std::stoll(name.substr(15)));
  if (name == "tril") return tril(x);
  if (name == "triu") return triu(x);
  // These say by the expected shape what they do.
  const auto& wanted = in.outputs.at("y").shape();
  if (name == "reshape" || name == "view" || name.starts_with("flatten") || name.starts_with("squeeze") ||
      name.starts_with("unsqueeze"))
    return reshape(x, wanted);
  if (name == "expand") return expand(x, wanted);
  throw Failed("unknown function " + name);
}

Tensor index(const Given& in) {
  const auto name = in.attributes.at("fn").get<std::string>();
  const auto dim = static_cast<int>(in.integer("dim", 0));
  if (name == "gather") return gather(in["x"], dim, in["idx"]);
  if (name == "scatter") return scatter(in["x"], dim, in["idx"], in["src"]);
  if (name == "scatter_add") return scatter_add(in["x"], dim, in["idx"], in["src"]);
  if (name == "index_add") return index_add(in["x"], dim, in["idx"], in["src"]);
  if (name == "masked_fill") return masked_fill(in["x"], greater(in["c"], 0.0), in.number("value", 0));
  if (name == "index_select") return index_select(in["x"], dim, in["idx"]);
  if (name == "where") return where(greater(in["c"], 0.0), in["a"], in["b"]);
  throw Failed("unknown function " + name);
}

}  // namespace

void add_shapes(Operations& operations) {
  operations["shape"] = [](const Given& in) { return y(shape(in)); };
  operations["index"] = [](const Given& in) { return y(index(in)); };
}

}  // namespace clnet::torch
