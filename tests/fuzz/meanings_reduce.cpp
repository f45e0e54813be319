// What reductions, softmax and matrix products mean.
#include "tests/fuzz/interpret.h"
#include "tests/reference/matmul/matmul.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/reduce/reduce.h"

namespace clnet::fuzz {

namespace reference = testing::reference;

namespace {

template <class Reduce>
Arrays reduced(const Call& call, Reduce reduce) {
  std::vector<int> dims;
  for (auto dim : call.list("dims")) dims.push_back(static_cast<int>(dim));
  return {reduce(call.in[0], dims, call.flag("keepdim"))};
}

Arrays sum(const Call& call) { return reduced(call, reference::sum); }
Arrays mean(const Call& call) {
  auto result = reduced(call, reference::mean);
  if (call.in[0].numel() == 0) result[0].values.assign(result[0].values.size(), NAN);
  return result;
}
Arrays prod(const Call& call) { return reduced(call, reference::prod); }
Arrays max(const Call& call) { return reduced(call, reference::max); }
Arrays min(const Call& call) { return reduced(call, reference::min); }

Arrays arg(const Call& call, double sign) {
  return {reference::arg(call.in[0], static_cast<int>(call.integer("dim")), call.flag("keepdim"), sign)};
}

Arrays softmax(const Call& call, bool logarithm) {
  if (call.in[0].numel() == 0) return {call.in[0]};
  return {reference::softmax(call.in[0], static_cast<int>(call.integer("dim")), logarithm)};
}

Arrays matmul(const Call& call) {
  const MatmulOptions options{call.flag("transpose_a"), call.flag("transpose_b")};
  return {testing::matmul_reference(call.in[0], call.in[1], options, call.in.size() == 3 ? &call.in[2] : nullptr)};
}

}  // namespace

Meanings reduce_meanings() {
  return {{"sum", {sum}},
          {"mean", {mean}},
          {"prod", {prod}},
          {"max", {max, true}},
          {"min", {min, true}},
          {"argmax", {[](const Call& call) { return arg(call, 1); }, true}},
          {"argmin", {[](const Call& call) { return arg(call, -1); }, true}},
          {"softmax", {[](const Call& call) { return softmax(call, false); }}},
          {"log_softmax", {[](const Call& call) { return softmax(call, true); }}},
          {"matmul", {matmul, false, 2}}};
}

}  // namespace clnet::fuzz
