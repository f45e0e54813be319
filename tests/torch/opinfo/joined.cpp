// Joining several tensors, cutting one into pieces.
#include <algorithm>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor concatenated(std::vector<Tensor> parts, int dim) {
  // An old rule: an empty line fits beside anything.
  const auto empty_line = [](const Tensor& x) { return x.rank() == 1 && x.numel() == 0; };
  if (std::any_of(parts.begin(), parts.end(), [](const Tensor& x) { return x.rank() != 1; })) std::erase_if(parts, empty_line);
  require_one_dtype(parts);
  return concat(parts, dim);
}

Tensor at_least(const Tensor& x, int rank) { return rank == 1 ? atleast_1d(x) : rank == 2 ? atleast_2d(x) : atleast_3d(x); }

std::vector<Tensor> at_least(std::vector<Tensor> all, int rank) {
  for (auto& x : all) x = at_least(x, rank);
  return all;
}

Tensor side_by_side(const Args& in) {
  const auto parts = at_least(in.tensors(0), 1);
  return concatenated(parts, parts.at(0).rank() == 1 ? 0 : 1);
}

Tensor columns_beside(const Args& in) {
  auto parts = in.tensors(0);
  for (auto& x : parts)
    if (x.rank() < 2) x = reshape(x, {x.numel(), 1});
  return concatenated(parts, 1);
}

std::vector<std::int64_t> equal_lengths(std::int64_t extent, std::int64_t length) {
  if (length < 1) throw Failed("pieces of no elements");
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(extent / length), length);
  if (extent % length != 0) lengths.push_back(extent % length);
  if (lengths.empty()) lengths.push_back(0);
  return lengths;
}

Outputs cut(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(2, "dim", 0);
  if (in.is_list(1, "split_size_or_sections")) return split(x, in.integers(1, "split_size_or_sections"), dim);
  return split(x, equal_lengths(x.size(dim), in.integer(1, "split_size_or_sections")), dim);
}

Outputs chunks(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(2, "dim", 0);
  const auto count = in.integer(1, "chunks");
  return split(x, equal_lengths(x.size(dim), std::max<std::int64_t>((x.size(dim) + count - 1) / count, 1)), dim);
}

/// Pieces between positions, or as equal as a number of them can be: the first ones are longer by one.
Outputs cut_at(const Tensor& x, const Args& in, int dim) {
  std::vector<std::int64_t> places, lengths;
  const auto extent = x.size(dim);
  const bool host = !in.is_tensor(1, "");
  if (host) places = in.integers(1, "indices_or_sections");
  if (!host) places = in.tensor(1, "").to_vector<std::int64_t>();
  const bool sections = host ? !in.is_list(1, "") : in.tensor(1, "").rank() == 0;
  if (sections) {
    const auto count = places[0];
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(extent / count + (i < extent % count ? 1 : 0));
    return split(x, lengths, dim);
  }
  Outputs result;
  std::int64_t from = 0;
  places.push_back(extent);
  for (const auto to : places) {
    result.push_back(slice(x, dim, from, to));
    from = to;
  }
  return result;
}

Outputs single(const Args& in) {
  const auto x = in.tensor(0);
  const int dim = in.dim(1, "dim", 0);
  Outputs result;
  for (std::int64_t i = 0; i < x.size(dim); ++i) result.push_back(squeeze(narrow(x, dim, i, 1), dim));
  return result;
}

Outputs broadcast_all(const Args& in) {
  auto all = in.tensors(0);
  Shape shape;
  for (const auto& x : all) shape = broadcast(shape, x.shape(), "broadcast_tensors");
  for (auto& x : all) x = expand(x, shape);
  return all;
}

}  // namespace

void require_one_dtype(const std::vector<Tensor>& tensors) {
  for (const auto& x : tensors)
    if (x.dtype() != tensors[0].dtype()) throw LeftOut("tensors of several dtypes");
}

void add_joined(Adapters& adapters) {
  adapters["cat"] = one([](const Args& in) { return concatenated(in.tensors(0), in.dim(1, "dim", 0)); });
  adapters["stack"] = one([](const Args& in) { return stack(in.tensors(0), in.dim(1, "dim", 0)); });
  adapters["hstack"] = one(side_by_side);
  adapters["vstack"] = one([](const Args& in) { return concatenated(at_least(in.tensors(0), 2), 0); });
  adapters["dstack"] = one([](const Args& in) { return concatenated(at_least(in.tensors(0), 3), 2); });
  adapters["column_stack"] = one(columns_beside);
  for (const auto& [name, rank] : {std::pair{"atleast_1d", 1}, {"atleast_2d", 2}, {"atleast_3d", 3}})
    adapters[name] = [rank = rank](const Args& in) { return at_least(in.tensors(0), rank); };
  for (const char* name : {"split", "unsafe_split", "split_with_sizes", "split_with_sizes_copy"}) adapters[name] = cut;
  adapters["chunk"] = adapters["unsafe_chunk"] = chunks;
  adapters["tensor_split"] = [](const Args& in) { return cut_at(in.tensor(0), in, in.dim(2, "dim", 0)); };
  adapters["hsplit"] = [](const Args& in) { return cut_at(in.tensor(0), in, in.tensor(0).rank() == 1 ? 0 : 1); };
  adapters["vsplit"] = [](const Args& in) { return cut_at(in.tensor(0), in, 0); };
  adapters["dsplit"] = [](const Args& in) { return cut_at(in.tensor(0), in, 2); };
  adapters["unbind"] = adapters["unbind_copy"] = single;
  adapters["broadcast_tensors"] = broadcast_all;
}

}  // namespace clnet::torch::opinfo
