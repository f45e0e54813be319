// How operations on indices are written.
#include <algorithm>

#include "clnet/ops/index.h"
#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

void select_of(SaveCall& call) {
  const auto op = call.name() == "gather" ? "GatherElements" : "Gather";
  call.give(call.op(op, {call.in(0), call.in(1)}, {write_attribute("axis", call.integer("dim"))}));
}

std::string reduction(std::string_view name) { return write_attribute("reduction", name); }

/// Elements added up at their indices, in zeros.
void add_of(SaveCall& call) {
  const auto dim = call.integer("dim");
  const auto zeros = call.expand(call.scalar(0, call.out().dtype), call.extents("shape"));
  auto indices = call.in(1);
  if (call.name() == "index_add") {
    // One index for each line.
    std::vector<std::int64_t> column(static_cast<std::size_t>(call.rank()), 1);
    column[static_cast<std::size_t>(dim)] = -1;
    indices = call.expand(call.reshape(indices, fixed(column)), call.shape(0));
  }
  call.give(call.op("ScatterElements", {zeros, indices, call.in_as(0, call.out().dtype)},
                    {write_attribute("axis", dim), reduction("add")}));
}

/// Inputs: x, indices, source.
void scatter_of(SaveCall& call) {
  std::vector<std::string> attributes{write_attribute("axis", call.integer("dim"))};
  if (call.name() == "scatter_add") attributes.push_back(reduction("add"));
  call.give(call.op("ScatterElements", {call.in(0), call.in(1), call.in(2)}, std::move(attributes)));
}

void scatter_reduce_of(SaveCall& call) {
  std::string_view name;
  switch (static_cast<ScatterReduction>(call.integer("reduction"))) {
    case ScatterReduction::prod: name = "mul"; break;
    case ScatterReduction::amax: name = "max"; break;
    case ScatterReduction::amin: name = "min"; break;
    default: call.refuse("of this kind has no operator of ONNX");
  }
  if (!call.flag("own")) call.refuse("without the tensor's own elements has no operator of ONNX");
  call.give(call.op("ScatterElements", {call.in(0), call.in(1), call.in(2)},
                    {write_attribute("axis", call.integer("dim")), reduction(name)}));
}

/// The last place among the indices that picks each element; -1: none does.
void last_picks_of(SaveCall& call) {
  const auto dim = call.integer("dim");
  const auto at = static_cast<std::size_t>(dim);
  const auto indices = call.shape(0);
  if (!indices[at].fixed()) call.follow_no_batch();
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < indices[at].constant; ++i) places.push_back(i);
  std::vector<std::int64_t> column(indices.size(), 1);
  column[at] = indices[at].constant;
  const auto own = call.tensor(HostTensor::of(ElementType::i32, Shape(column), places));
  const auto none = call.expand(call.scalar(-1, Dtype::i32), call.out_shape());
  call.give(call.op("ScatterElements", {none, call.in(0), call.expand(own, indices)},
                    {write_attribute("axis", dim), reduction("max")}));
}

void top_of(SaveCall& call) {
  const auto dim = call.integer("dim");
  const bool sorts = call.name() == "argsort";
  const auto count = sorts ? call.shape(0)[static_cast<std::size_t>(dim)] : call.extent("count");
  const std::int64_t largest = call.flag("descending") ? 1 : 0;
  const auto x = call.dtype() == Dtype::boolean ? call.in_as(0, Dtype::u8)
                 : call.dtype() == Dtype::bf16  ? call.in_as(0, Dtype::f32)
                                                : call.in(0);
  const auto both =
      call.ops("TopK", {x, call.list(ExtentList{count})}, {write_attribute("axis", dim), write_attribute("largest", largest)}, 2);
  call.give(both[1]);
}

}  // namespace

std::vector<Saver> index_savers() {
  return {{"index_select", select_of},
          {"gather", select_of},
          {"index_add", add_of},
          {"gather_add", add_of},
          {"scatter", scatter_of},
          {"scatter_add", scatter_of},
          {"scatter_reduce", scatter_reduce_of},
          {"last_picks", last_picks_of},
          {"topk", top_of},
          {"argsort", top_of}};
}

}  // namespace clnet::onnx
