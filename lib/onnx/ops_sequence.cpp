// Sequences of tensors, as far as control flow and splits need them, and optional values.
#include <fmt/format.h>

#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

constexpr std::int64_t most_elements = 1'000'000;

const std::vector<RunValue>& elements(const Call& call, std::size_t input) {
  if (!call.in(input).is_sequence()) call.fail(fmt::format("input {} is no sequence", input));
  return call.in(input).elements();
}

std::size_t position(const Call& call, std::size_t input, std::size_t size, bool behind) {
  auto at = call.integer(input);
  const auto count = static_cast<std::int64_t>(size);
  if (at < 0) at += count;
  if (at < 0 || at > count || (at == count && !behind)) call.fail(fmt::format("position {} of {}", call.integer(input), count));
  return static_cast<std::size_t>(at);
}

/// A sequence in a sequence would nest without a bound.
const RunValue& tensor_at(const Call& call, std::size_t input) {
  if (call.in(input).is_sequence()) call.fail(fmt::format("input {} is a sequence, not a tensor", input));
  return call.in(input);
}

Outputs empty(const Call&) { return {RunValue::sequence({})}; }

Outputs construct(const Call& call) {
  std::vector<RunValue> all;
  for (std::size_t i = 0; i < call.count(); ++i) all.push_back(tensor_at(call, i));
  return {RunValue::sequence(std::move(all))};
}

Outputs insert(const Call& call) {
  auto all = elements(call, 0);
  const auto at = call.has(2) ? position(call, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), tensor_at(call, 1));
  return {RunValue::sequence(std::move(all))};
}

Outputs erase(const Call& call) {
  auto all = elements(call, 0);
  if (all.empty()) call.fail("the sequence is empty");
  const auto at = call.has(1) ? position(call, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  return {RunValue::sequence(std::move(all))};
}

Outputs element_at(const Call& call) {
  const auto& all = elements(call, 0);
  return {all[position(call, 1, all.size(), false)]};
}

Outputs length(const Call& call) {
  const auto count = static_cast<std::int64_t>(elements(call, 0).size());
  return {RunValue(HostTensor::of(ElementType::i64, {}, std::vector<std::int64_t>{count}))};
}

Outputs concat_from(const Call& call) {
  std::vector<Tensor> all;
  for (const auto& element : elements(call, 0)) all.push_back(element.tensor());
  if (all.empty()) call.fail("the sequence is empty");
  const bool adds = call.attribute("new_axis", std::int64_t{0}) != 0;
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), all[0].rank() + (adds ? 1 : 0));
  return {call.give_as(adds ? stack(all, axis) : concat(all, axis), elements(call, 0)[0].type())};
}

Outputs split_to(const Call& call) {
  const Tensor& x = call.x(0);
  const auto axis = Call::axis(call.attribute("axis", std::int64_t{0}), x.rank());
  const auto extent = x.size(axis);
  bool drops = false;
  std::vector<std::int64_t> lengths;
  if (!call.has(1)) {
    if (extent > most_elements) call.fail(fmt::format("{} parts", extent));
    lengths.assign(static_cast<std::size_t>(extent), 1);
    drops = call.attribute("keepdims", std::int64_t{1}) == 0;
  } else if (call.shape(1).rank() == 0) {
    const auto each = call.integer(1);
    if (each < 1 || extent / each > most_elements) call.fail(fmt::format("parts of {} of {}", each, extent));
    for (std::int64_t at = 0; at < extent; at += each) lengths.push_back(std::min(each, extent - at));
  } else {
    lengths = call.integers(1);
  }
  std::vector<RunValue> all;
  for (auto& part : split(x, lengths, axis)) all.push_back(call.give(drops ? squeeze(part, axis) : part));
  return {RunValue::sequence(std::move(all))};
}

/// Runs its graph for each element of the first sequence, with those of further ones, and with tensors as they are.
Outputs sequence_map(const Call& call) {
  const auto* body = call.graph("body");
  if (!body) call.fail("has no graph body");
  const auto count = elements(call, 0).size();
  for (std::size_t i = 1; i < call.count(); ++i)
    if (call.in(i).is_sequence() && call.in(i).elements().size() != count)
      call.fail(fmt::format("sequences of {} and {} elements", count, call.in(i).elements().size()));
  std::vector<std::vector<RunValue>> results(body->outputs.size());
  for (std::size_t k = 0; k < count; ++k) {
    call.runner().options().check();
    std::vector<RunValue> inputs;
    for (std::size_t i = 0; i < call.count(); ++i)
      inputs.push_back(call.in(i).is_sequence() ? call.in(i).elements()[k] : call.in(i));
    auto outputs = call.runner().run_body(*body, inputs);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(std::move(outputs[i]));
  }
  Outputs out;
  for (auto& all : results) out.push_back(RunValue::sequence(std::move(all)));
  return out;
}

/// An optional value is the value itself, or nothing.
Outputs optional_of(const Call& call) { return {call.maybe(0)}; }
Outputs optional_element(const Call& call) { return {call.in(0)}; }
Outputs has_element(const Call& call) {
  return {RunValue(HostTensor::of(ElementType::boolean, {}, std::vector<std::int64_t>{call.has(0) ? 1 : 0}))};
}

}  // namespace

std::vector<Operator> sequence_operators() {
  return {
      {"Optional", 15, optional_of},
      {"OptionalGetElement", 15, optional_element},
      {"OptionalHasElement", 15, has_element},
      {"SequenceMap", 17, sequence_map},
      {"ConcatFromSequence", 11, concat_from},
      {"SequenceAt", 11, element_at},
      {"SequenceConstruct", 11, construct},
      {"SequenceEmpty", 11, empty},
      {"SequenceErase", 11, erase},
      {"SequenceInsert", 11, insert},
      {"SequenceLength", 11, length},
      {"SplitToSequence", 11, split_to},
  };
}

}  // namespace clnet::onnx
