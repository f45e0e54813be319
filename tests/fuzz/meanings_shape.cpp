// What operations mean that arrange elements otherwise: everything but sums of gradients is exact.
#include "tests/fuzz/interpret.h"
#include "tests/reference/index/index.h"
#include "tests/reference/shape/arrange.h"
#include "tests/reference/shape/slice_update.h"

namespace clnet::fuzz {

using namespace testing::reference;

namespace {

Arrays reshape(const Call& call) { return {Array(call.shape(), call.in[0].values)}; }

Arrays permute(const Call& call) { return {testing::reference::permute(call.in[0], call.list("dims"))}; }

/// A step of -1 takes the whole dimension backwards, from `start` on.
Arrays slice(const Call& call) {
  return {pick(call.in[0], static_cast<int>(call.integer("dim")), call.integer("start"), call.integer("count"),
               call.integer("step"))};
}

Arrays concat(const Call& call) { return {testing::reference::concat(call.in, static_cast<int>(call.integer("dim")))}; }

Arrays pad(const Call& call) { return {surround(call.in[0], call.list("before"), call.list("after"), call.in[1][0])}; }

Arrays slice_update(const Call& call) {
  return {testing::reference::slice_update(call.in[0], static_cast<int>(call.integer("dim")),
                                           static_cast<std::int64_t>(call.in[2][0]), call.in[1])};
}

bool picks_per_place(const Call& call) { return call.node.op->name().starts_with("gather"); }

Arrays index_select(const Call& call) {
  return {testing::reference::index_select(call.in[0], static_cast<int>(call.integer("dim")), call.in[1], picks_per_place(call),
                                           call.shape(), is_floating(call.dtype()) ? NAN : 0)};
}

Arrays index_add(const Call& call) {
  return {testing::reference::index_add(call.in[0], static_cast<int>(call.integer("dim")), call.in[1], picks_per_place(call),
                                        call.shape())};
}

Arrays roll(const Call& call) {
  const auto shifts = call.list("shifts");
  return {testing::make_array(call.shape(), [&](const testing::Coordinates& at) {
    auto from = at;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto extent = call.shape()[static_cast<int>(d)];
      from[d] = (at[d] - shifts[d] + extent) % extent;
    }
    return call.in[0][testing::linear_index(call.shape(), from)];
  })};
}

Arrays copy_to(const Call& call) { return {call.in[0]}; }

}  // namespace

Meanings shape_meanings() {
  return {{"copy_to", {copy_to, true}},     {"reshape", {reshape, true}},
          {"permute", {permute, true}},     {"slice", {slice, true}},
          {"concat", {concat, true}},       {"pad", {pad, true}},
          {"roll", {roll, true}},           {"index_select", {index_select, true}},
          {"gather", {index_select, true}}, {"index_add", {index_add}},
          {"gather_add", {index_add}},      {"slice_update", {slice_update, true}}};
}

}  // namespace clnet::fuzz
