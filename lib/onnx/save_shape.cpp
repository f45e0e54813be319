// How operations on shapes are written.
#include <algorithm>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

void reshape_of(SaveCall& call) { call.give(call.reshape(call.in(0), call.extents("shape"))); }
void expand_of(SaveCall& call) { call.give(call.expand(call.in(0), call.extents("shape"))); }
void permute_of(SaveCall& call) { call.give(call.transpose(call.in(0), call.integers("dims"))); }
void concat_of(SaveCall& call) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < call.count(); ++i) inputs.push_back(call.in(i));
  call.give(call.op("Concat", inputs, {write_attribute("axis", call.integer("dim"))}));
}

void slice_of(SaveCall& call) {
  const auto dim = call.integer("dim"), step = call.integer("step");
  const auto axes = call.list(std::vector{dim});
  if (step < 0) {
    // The whole dimension backwards.
    constexpr std::int64_t before_all = -(std::int64_t{1} << 62);
    return call.give(call.op("Slice", {call.in(0), call.list(std::vector<std::int64_t>{-1}), call.list(std::vector{before_all}),
                                       axes, call.list(std::vector<std::int64_t>{-1})}));
  }
  const auto start = call.extent("start"), count = call.extent("count");
  // Behind the last element that is taken: at the one that would follow, for at the last one's own an empty slice might end at a
  // negative place, which counts from the back.
  const Extent end{start.factor + count.factor * step, start.constant + count.constant * step};
  std::vector<std::string> inputs{call.in(0), call.list(ExtentList{start}), call.list(ExtentList{end}), axes};
  if (step != 1) inputs.push_back(call.list(std::vector{step}));
  call.give(call.op("Slice", inputs));
}

void pad_of(SaveCall& call) {
  auto amounts = call.extents("before");
  const auto after = call.extents("after");
  amounts.insert(amounts.end(), after.begin(), after.end());
  const auto value = call.in_as(1, call.dtype());
  if (call.dtype() != Dtype::boolean) return call.give(call.op("Pad", {call.in(0), call.list(amounts), value}));
  // onnxruntime pads no bool.
  const auto y = call.op("Pad", {call.cast(call.in(0), Dtype::i32), call.list(amounts), call.in_as(1, Dtype::i32)});
  call.give(call.cast(y, Dtype::boolean));
}

void unstack_of(SaveCall& call) {
  const auto steps = call.outputs();
  const auto axis = call.list(std::vector<std::int64_t>{0});
  if (steps == 1) return call.give(call.op("Squeeze", {call.in(0), axis}));
  const auto parts = call.ops(
      "Split", {call.in(0)},
      {write_attribute("axis", std::int64_t{0}), write_attribute("num_outputs", static_cast<std::int64_t>(steps))}, steps);
  for (std::size_t i = 0; i < steps; ++i) call.give(call.op("Squeeze", {parts[i], axis}), i);
}

/// x with a slice of it replaced, from a place that is a value. Elements outside of x go behind its end, and are cut off.
void slice_update_of(SaveCall& call) {
  const auto dim = call.integer("dim");
  const auto x = call.shape(0), value = call.shape(1);
  const auto at = static_cast<std::size_t>(dim);
  if (!x[at].fixed() || !value[at].fixed()) call.follow_no_batch();
  const auto extent = x[at].constant, count = value[at].constant;
  std::vector<std::int64_t> places, behind;
  for (std::int64_t i = 0; i < count; ++i) {
    places.push_back(i);
    behind.push_back(extent + i);
  }
  auto indices = call.op("Add", {call.list(places), call.in_as(2, Dtype::i64)});
  const auto start = call.constant(2);
  const bool inside = start && start->integers()[0] >= 0 && start->integers()[0] + count <= extent;
  auto into = call.in(0);
  if (!inside) {
    const auto first = call.op("GreaterOrEqual", {indices, call.list(std::vector<std::int64_t>{0})}),
               last = call.op("Less", {indices, call.list(std::vector{extent})});
    indices = call.op("Where", {call.op("And", {first, last}), indices, call.list(behind)});
    into = call.op("Concat", {into, call.in(1)}, {write_attribute("axis", dim)});
  }
  std::vector<std::int64_t> column(x.size(), 1);
  column[at] = -1;
  const auto wide = call.expand(call.reshape(indices, fixed(column)), value);
  const auto y = call.op("ScatterElements", {into, wide, call.in(1)}, {write_attribute("axis", dim)});
  call.give(inside ? y : call.slice(y, dim, 0, extent));
}

void roll_of(SaveCall& call) {
  const auto shifts = call.integers("shifts");
  const auto extents = call.shape(0);
  auto x = call.in(0);
  for (std::size_t d = 0; d < shifts.size(); ++d) {
    if (shifts[d] == 0) continue;
    if (!extents[d].fixed()) call.follow_no_batch();
    const auto dim = static_cast<std::int64_t>(d);
    const auto last = call.slice(x, dim, -shifts[d], std::int64_t{1} << 62), first = call.slice(x, dim, 0, -shifts[d]);
    x = call.op("Concat", {last, first}, {write_attribute("axis", dim)});
  }
  call.give(x == call.in(0) ? call.op("Identity", {x}) : x);
}

void copy_of(SaveCall& call) { call.give(call.op("Identity", {call.in(0)})); }

}  // namespace

std::vector<Saver> shape_savers() {
  return {{"reshape", reshape_of}, {"composed_attention", reshape_of},
          {"expand", expand_of},   {"permute", permute_of},
          {"concat", concat_of},   {"slice", slice_of},
          {"pad", pad_of},         {"unstack", unstack_of},
          {"roll", roll_of},       {"slice_update", slice_update_of},
          {"copy", copy_of},       {"copy_to", copy_of}};
}

}  // namespace clnet::onnx
