// Elements chosen by indices, and their order.
#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

/// Indices of a line, in the shape that gather() and scatter() take.
Tensor spread_out(const Tensor& indices, const Shape& shape, int dim) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank()), 1);
  if (!extents.empty()) extents[static_cast<std::size_t>(shape.normalize(dim))] = indices.numel();
  return expand(reshape(indices, extents), shape);
}

/// Where there are none, PyTorch takes indices of any dtype.
Tensor indices_of(const Args& in, int at) {
  const auto indices = in.tensor(at, "index");
  return indices.numel() == 0 ? cast(indices, Dtype::i64) : indices;
}

Tensor scattered(const Args& in) {
  const auto x = in.tensor(0), indices = indices_of(in, 2);
  const int dim = in.dim(1);
  const auto mode = in.text(4, "reduce", "");
  const bool number = !in.is_tensor(3, "src") && !in.is_tensor(-1, "value");
  const auto value = number ? in.number(in.count() > 3 ? 3 : -1, "value") : 0;
  const auto source = number ? full(indices.shape(), value, x.dtype()) : in.tensor(3, "src");
  if (mode == "add") return scatter_add(x, dim, indices, source);
  if (mode == "multiply") return scatter_reduce(x, dim, indices, source, ScatterReduction::prod);
  if (!mode.empty()) throw Failed("unknown reduction " + mode);
  return number ? scatter(x, dim, indices, value) : scatter(x, dim, indices, source);
}

Tensor scatter_reduced(const Args& in) {
  static const std::map<std::string, ScatterReduction> known{{"sum", ScatterReduction::sum},
                                                             {"prod", ScatterReduction::prod},
                                                             {"mean", ScatterReduction::mean},
                                                             {"amax", ScatterReduction::amax},
                                                             {"amin", ScatterReduction::amin}};
  const auto mode = known.find(in.text(4, "reduce", ""));
  if (mode == known.end()) throw Failed("unknown reduction");
  return scatter_reduce(in.tensor(0), in.dim(1), indices_of(in, 2), in.tensor(3, "src"), mode->second,
                        in.flag(5, "include_self", true));
}

Tensor copied(const Args& in) {
  const auto x = in.tensor(0), source = in.tensor(3, "source");
  return scatter(x, in.dim(1), spread_out(indices_of(in, 2), source.shape(), in.dim(1)), source);
}

Outputs sorted(const Args& in) {
  in.without_effect({"stable"});
  const auto result = sort(in.tensor(0), in.dim(1, "dim", -1), in.flag(2, "descending"));
  return {result.values, result.indices};
}

Outputs largest(const Args& in) {
  static_cast<void>(in.find(4, "sorted"));
  const auto result = topk(in.tensor(0), in.integer(1, "k"), in.dim(2, "dim", -1), in.flag(3, "largest", true));
  return {result.values, result.indices};
}

Tensor one_hot_case(const Args& in) {
  const auto x = in.tensor(0);
  const auto classes = in.integer(1, "num_classes", -1);
  return one_hot(x, classes == -1 ? max(x).item<std::int64_t>() + 1 : classes, Dtype::i64);
}

/// OpInfo has the weight first.
Tensor embedded(const Args& in) {
  if (in.find(-1, "max_norm") != nullptr) throw LeftOut("max_norm");
  if (in.flag(-1, "scale_grad_by_freq")) throw LeftOut("scale_grad_by_freq");
  in.without_effect({"norm_type", "sparse"});
  const auto padding = in.maybe_number(2, "padding_idx");
  return embedding(in.tensor(1), in.tensor(0, "weight"),
                   padding ? std::optional(static_cast<std::int64_t>(*padding)) : std::nullopt);
}

bool whole_numbers(const json& list) {
  for (const auto& one : list)
    if (!one.is_number_integer()) return false;
  return list.is_array();
}

/// x[...], with at most one list or tensor of indices.
Tensor indexed(const Args& in) {
  auto x = in.tensor(0);
  const auto* given = in.find(1, "index");
  json parts = json::array();
  if (given != nullptr && given->is_array() && !whole_numbers(*given))
    parts = *given;
  else
    parts.push_back(given == nullptr ? json() : *given);
  int named = 0, lists = 0;
  for (const auto& part : parts) {
    if (!part.is_null() && !holds(part, "ellipsis")) ++named;
    if (part.is_array() || holds_tensor(part)) ++lists;
    if (part.is_boolean()) throw LeftOut("indexing by a truth value");
  }
  if (lists > 1) throw LeftOut("indexing by several lists");
  int dim = 0;
  for (const auto& part : parts) {
    if (part.is_null()) {
      x = unsqueeze(x, dim++);
    } else if (holds(part, "ellipsis")) {
      dim += in.tensor(0).rank() - named;
    } else if (holds(part, "slice")) {
      const auto& bounds = part["slice"];
      const auto bound = [&](std::size_t i, std::int64_t otherwise) {
        return bounds.at(i).is_null() ? otherwise : as_integer(bounds.at(i), "slice");
      };
      x = slice(x, dim, bound(0, 0), bound(1, std::numeric_limits<std::int64_t>::max()), bound(2, 1));
      ++dim;
    } else if (holds_tensor(part)) {
      const auto indices = in.as_tensor(part, "index");
      const bool mask = indices.dtype() == Dtype::boolean;
      if (mask && parts.size() > 1) throw LeftOut("indexing by a mask beside others");
      x = mask ? x[indices] : index_select(x, dim, indices);
      dim += indices.rank();
    } else if (part.is_array()) {
      std::vector<std::int64_t> indices;
      for (const auto& one : part) indices.push_back(as_integer(one, "index"));
      x = index_select(x, dim++, Tensor::from(indices));
    } else {
      const auto at = as_integer(part, "index");
      x = squeeze(narrow(x, dim, at < 0 ? at + x.size(dim) : at, 1), dim);
    }
  }
  return x;
}

}  // namespace

void add_indexed(Adapters& adapters) {
  adapters["gather"] = one([](const Args& in) {
    in.without_effect({"sparse_grad"});
    const auto x = in.tensor(0), indices = indices_of(in, 2);
    if (indices.numel() == 0 && indices.rank() != x.rank()) throw LeftOut("no indices, of another rank");
    return gather(x, in.dim(1), indices);
  });
  adapters["scatter"] = one(scattered);
  adapters["scatter_add"] =
      one([](const Args& in) { return scatter_add(in.tensor(0), in.dim(1), indices_of(in, 2), in.tensor(3, "src")); });
  adapters["scatter_reduce"] = one(scatter_reduced);
  adapters["index_select"] = one([](const Args& in) {
    const auto x = in.tensor(0), indices = indices_of(in, 2);
    // A single index keeps its dimension.
    return index_select(x, in.dim(1), x.rank() > 0 ? as_line(indices) : reshape(indices, {}));
  });
  adapters["index_add"] = one([](const Args& in) {
    return index_add(in.tensor(0), in.dim(1), as_line(indices_of(in, 2)), in.tensor(3, "source"), in.number(4, "alpha", 1));
  });
  adapters["index_copy"] = one(copied);
  adapters["__getitem__"] = one(indexed);
  adapters["sort"] = sorted;
  adapters["argsort"] = one([](const Args& in) {
    in.without_effect({"stable"});
    return argsort(in.tensor(0), in.dim(1, "dim", -1), in.flag(2, "descending"));
  });
  adapters["msort"] = one([](const Args& in) { return sort(in.tensor(0), 0).values; });
  adapters["topk"] = largest;
  adapters["nn.functional.one_hot"] = one(one_hot_case);
  adapters["nn.functional.embedding"] = one(embedded);
}

}  // namespace clnet::torch::opinfo
