#include "lib/ops/matmul/matmul_slice.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "lib/exec/fuse/elementwise.h"

namespace clnet::ops {

namespace {

/// As many elements of its input as its output has, from `start` on.
class Range : public Op {
 public:
  Range(Spec spec, std::int64_t start) : spec_(std::move(spec)), start_(start) {}
  std::string_view name() const override { return "range"; }
  Fields fields() const override { return {{"start", start_}}; }
  Specs infer(const Specs&) const override { return {spec_}; }
  std::optional<Alias> alias(const Specs&, std::size_t) const override { return Alias{0, start_}; }

 private:
  Spec spec_;
  std::int64_t start_;
};

/// Whether it is less by so much that a kernel feels it.
bool is_less(std::int64_t slice, std::int64_t whole) {
  constexpr std::int64_t tile = 64;
  return 2 * slice <= whole || (4 * slice <= 3 * whole && whole - slice >= tile);
}

/// The elements of a product's second factor that what `reader` takes of it needs.
struct SlicedProduct {
  exec::NodeNumber product = exec::none, reader = exec::none;
  Spec range;
  std::int64_t start = 0;
};

/// Nothing where `reader` is not all that reads a product, or needs as good as all of it, or no range. Who merely holds the
/// product changes nothing: a slice may be summed in another order, and handles change no result. It is computed again if it is
/// read.
std::optional<SlicedProduct> sliced_product(const exec::Subgraph& graph, exec::NodeNumber reader) {
  const auto& node = *graph.nodes()[reader];
  if (node.inputs.size() != 1) return std::nullopt;
  const auto value = exec::Subgraph::number(node.inputs[0]);
  const auto product = graph.producer(value);
  if (product == exec::none || graph.uses(value).size() != 1 || graph.is_wanted(value)) return std::nullopt;
  const auto options = matmul_options(*graph.nodes()[product]);
  const auto& factors = graph.nodes()[product]->inputs;
  if (!options || factors.size() != 2) return std::nullopt;
  const auto input_slice = exec::input_slice_of(node);
  const auto rank = factors[1].rank();
  if (!input_slice || input_slice->dim != std::max(factors[0].rank(), rank) - 1) return std::nullopt;
  const auto columns = node.outputs[0].shape[input_slice->dim];
  if (columns == 0 || !is_less(columns, node.inputs[0].size(input_slice->dim))) return std::nullopt;
  const auto& from = factors[1].shape();
  const auto dim = options->transpose_b ? rank - 2 : rank - 1;
  const bool follows = std::all_of(from.begin(), from.begin() + dim, [](auto extent) { return extent == 1; });
  if (!follows || from.numel() == 0) return std::nullopt;
  return SlicedProduct{
      product, reader, {from.with(dim, columns), factors[1].dtype()}, input_slice->start * (from.numel() / from[dim])};
}

class SliceOfMatmul : public exec::Rewrite {
 public:
  std::optional<exec::Subgraph> nodes(const exec::Subgraph& graph) const override {
    const auto count = graph.nodes().size();
    std::vector<std::optional<SlicedProduct>> sliced(count);  // by product
    std::vector<bool> replaced(count);
    for (exec::NodeNumber k = 0; k < count; ++k)
      if (auto slice = sliced_product(graph, k)) {
        replaced[k] = true;
        sliced[slice->product] = std::move(slice);
      }
    if (std::find(replaced.begin(), replaced.end(), true) == replaced.end()) return std::nullopt;
    exec::Rebuilding result(graph);
    for (exec::NodeNumber k = 0; k < count; ++k) {
      if (sliced[k])
        multiply_slice(graph, *sliced[k], result);
      else if (!replaced[k])
        result.copy(k);
    }
    return std::move(result).finish();
  }

 private:
  /// In the product's place, so that its factors live no longer than before.
  static void multiply_slice(const exec::Subgraph& graph, const SlicedProduct& slice, exec::Rebuilding& result) {
    const auto &product = *graph.nodes()[slice.product], &reader = *graph.nodes()[slice.reader];
    const InScope scope(product.scope);
    const auto range = std::make_shared<Node>(std::make_shared<Range>(slice.range, slice.start),
                                              Tensors{result.now(product.inputs[1])}, Specs{slice.range});
    const auto made =
        std::make_shared<Node>(product.op, Tensors{result.now(product.inputs[0]), tensor_of(range, 0)}, reader.outputs);
    result.add(range);
    result.add(made);
    result.set(tensor_of(graph.nodes()[slice.reader], 0), tensor_of(made, 0));
  }
};

}  // namespace

const exec::Rewrite& matmul_slice() {
  static const SliceOfMatmul rewrite;
  return rewrite;
}

}  // namespace clnet::ops
