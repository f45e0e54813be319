// Pieces of a tensor along a dimension, and tensors that are joined or broadcast together.
#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"

namespace clnet {

namespace {

/// With ones in front, until there are `rank` dimensions; dstack() puts its third one behind.
Tensor at_least(const Tensor& x, int rank) {
  Tensor result = x;
  while (result.rank() < rank) result = unsqueeze(result, rank == 3 && result.rank() == 2 ? 2 : 0);
  return result;
}

Tensor join(std::string_view op, const std::vector<Tensor>& tensors, int rank, int dim) {
  if (tensors.empty()) throw Error(fmt::format("{}: no tensors", op));
  require_defined(op, "tensors", tensors);
  std::vector<Tensor> parts;
  for (const auto& tensor : tensors) parts.push_back(at_least(tensor, rank));
  for (const auto& part : parts) {
    if (part.dtype() != parts[0].dtype())
      throw DtypeError(fmt::format("{}: {} and {} differ in dtype", op, to_string(parts[0].spec()), to_string(part.spec())));
    const bool fits = part.rank() == parts[0].rank() && part.shape().with(dim, 0) == parts[0].shape().with(dim, 0);
    if (!fits)
      throw ShapeError(fmt::format("{}: {} and {} differ outside dimension {}", op, to_string(parts[0].shape()),
                                   to_string(part.shape()), dim));
  }
  return concat(parts, dim);
}

/// Pieces of the length, the last one perhaps shorter; one empty piece of nothing.
std::vector<Tensor> pieces_of(const Tensor& x, int dim, std::int64_t length) {
  const auto extent = x.size(dim);
  std::vector<std::int64_t> lengths;
  for (std::int64_t start = 0; start < extent; start += length) lengths.push_back(std::min(length, extent - start));
  if (lengths.empty()) lengths.push_back(0);
  return split(x, lengths, dim);
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::int64_t length, int dim) {
  require_defined("split", {{"x", x}});
  const int at = require_dim("split", x, dim);
  if (length < 1) throw Error(fmt::format("split: the length {} is below 1", length));
  return pieces_of(x, at, length);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim) {
  require_defined("chunk", {{"x", x}});
  const int at = require_dim("chunk", x, dim);
  constexpr std::int64_t most = 1'000'000;
  if (chunks < 1 || chunks > most) throw Error(fmt::format("chunk: {} pieces are not 1 to {}", chunks, most));
  const auto extent = x.size(at);
  if (extent == 0) return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0), at);
  return pieces_of(x, at, std::max<std::int64_t>(1, extent / chunks + (extent % chunks == 0 ? 0 : 1)));
}

std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, int dim) {
  require_defined("tensor_split", {{"x", x}});
  const int at = require_dim("tensor_split", x, dim);
  constexpr std::int64_t most = 1'000'000;
  if (sections < 1 || sections > most) throw Error(fmt::format("tensor_split: {} pieces are not 1 to {}", sections, most));
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(sections), x.size(at) / sections);
  for (std::int64_t i = 0; i < x.size(at) % sections; ++i) ++lengths[static_cast<std::size_t>(i)];
  return split(x, lengths, at);
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& places, int dim) {
  require_defined("tensor_split", {{"x", x}});
  const int at = require_dim("tensor_split", x, dim);
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  for (auto place : places) {
    pieces.push_back(slice(x, at, start, place));
    start = place;
  }
  pieces.push_back(slice(x, at, start));
  return pieces;
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  require_defined("unbind", {{"x", x}});
  const int at = require_dim("unbind", x, dim);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.size(at); ++i) parts.push_back(squeeze(slice(x, at, i, i + 1), at));
  return parts;
}

Tensor select(const Tensor& x, int dim, std::int64_t index) {
  require_defined("select", {{"x", x}});
  const int at = require_dim("select", x, dim);
  const auto extent = x.size(at), place = index < 0 ? index + extent : index;
  if (place < 0 || place >= extent)
    throw ShapeError(fmt::format("select: there is no element {} in dimension {} of {}", index, at, to_string(x.spec())));
  return squeeze(narrow(x, at, place, 1), at);
}

Tensor hstack(const std::vector<Tensor>& tensors) {
  const bool lines = !tensors.empty() && tensors[0].defined() && tensors[0].rank() <= 1;
  return join("hstack", tensors, 1, lines ? 0 : 1);
}
Tensor vstack(const std::vector<Tensor>& tensors) { return join("vstack", tensors, 2, 0); }
Tensor dstack(const std::vector<Tensor>& tensors) { return join("dstack", tensors, 3, 2); }

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  require_defined("broadcast_tensors", "tensors", tensors);
  Shape shape;
  for (const auto& tensor : tensors) shape = broadcast(shape, tensor.shape(), "broadcast_tensors");
  std::vector<Tensor> result;
  for (const auto& tensor : tensors) result.push_back(expand(tensor, shape));
  return result;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, Indexing indexing) {
  require_defined("meshgrid", "tensors", tensors);
  std::vector<std::int64_t> extents;
  for (const auto& tensor : tensors) {
    if (tensor.rank() > 1) throw ShapeError(fmt::format("meshgrid: {} is no vector", to_string(tensor.spec())));
    extents.push_back(tensor.numel());
  }
  const bool swapped = indexing == Indexing::xy && tensors.size() >= 2;
  if (swapped) std::swap(extents[0], extents[1]);
  const auto shape = shape_of("meshgrid", extents);
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto dim = swapped && i < 2 ? 1 - i : i;
    std::vector<std::int64_t> own(extents.size(), 1);
    own[dim] = tensors[i].numel();
    grids.push_back(expand(reshape(tensors[i], Shape(own)), shape));
  }
  return grids;
}

Tensor Tensor::operator[](const Tensor& indices) const {
  require_defined("x[...]", {{"x", *this}, {"indices", indices}});
  if (indices.dtype() == Dtype::boolean)
    throw DtypeError("x[...]: of a bool mask; masked_select(x, mask) gives its elements, where(mask, y, x) changes them");
  return index_select(0, indices);
}

}  // namespace clnet
