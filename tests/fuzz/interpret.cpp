#include "tests/fuzz/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "clnet/error.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/rounding.h"

namespace clnet::fuzz {

namespace {

std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t hash = 0;
  for (char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

bool compares(std::string_view op) {
  constexpr std::string_view names[] = {"eq", "not_equal", "less", "less_equal", "greater", "greater_equal"};
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

}  // namespace

const Meaning& meaning_of(std::string_view op) {
  static const Meanings all = [] {
    Meanings meanings;
    for (const auto& part : {elementwise_meanings(), shape_meanings(), reduce_meanings(), image_meanings(), normalize_meanings(),
                             attention_meanings(), recurrent_meanings(), index_meanings(), testing::registered_meanings()})
      meanings.insert(part.begin(), part.end());
    return meanings;
  }();
  const auto found = all.find(op);
  if (found == all.end()) throw Error(fmt::format("the interpreter has no meaning for operation {}", op));
  return found->second;
}

void Interpreter::set(const Tensor& tensor, Array value) {
  given_[{node_of(tensor).get(), output_of(tensor)}] = std::move(value);
}

const Array& Interpreter::operator()(const Tensor& tensor) {
  std::vector<std::shared_ptr<Node>> stack{node_of(tensor)};
  while (!stack.empty()) {
    const auto node = stack.back();
    if (results_.count(node.get())) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for (const auto& input : node->inputs) {
      if (results_.count(node_of(input).get())) continue;
      stack.push_back(node_of(input));
      ready = false;
    }
    if (!ready) continue;
    compute(node);
    stack.pop_back();
  }
  return results_.at(node_of(tensor).get()).values[static_cast<std::size_t>(output_of(tensor))];
}

std::uint64_t Interpreter::hash_of(const Node& node) const {
  auto hash = hash_of_text(std::string(node.op->name()) + to_string(node.op->fields()));
  for (const auto& input : node.inputs)
    hash = mix(hash, results_.at(node_of(input).get()).hash + static_cast<std::uint64_t>(output_of(input)));
  return hash;
}

void Interpreter::wobble(Array& array, double relative, double absolute, std::uint64_t hash) {
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const double way = 2 * as_fraction(mix(hash + i)) - 1;
    array.values[i] += (array.values[i] * relative + absolute) * way;
  }
}

void Interpreter::read_leaf(const std::shared_ptr<Node>& node, Result& result) {
  const auto& spec = node->outputs[0];
  if (const auto given = given_.find({node.get(), 0}); given != given_.end()) {
    result.values = {given->second};
  } else {
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
    tensor_of(node, 0).to_bytes(bytes.data(), bytes.size());
    result.values = {from_storage(bytes, spec)};
  }
  result.hash = hash_of_text(to_string(spec));
  for (double value : result.values[0].values) result.hash = mix(result.hash, std::bit_cast<std::uint64_t>(value));
}

void Interpreter::compute(const std::shared_ptr<Node>& shared) {
  const Node& node = *shared;
  Result result;
  if (!node.op) {
    read_leaf(shared, result);
    results_[&node] = std::move(result);
    return;
  }
  // In f32 and f64, functions are a few units off; a result of a narrower dtype is off by a rounding to either side.
  constexpr double units = 4;
  const auto& meaning = meaning_of(node.op->name());
  result.hash = hash_of(node);
  const auto wobbling = mix(result.hash ^ arithmetic_.wobble);
  Call call{node, {}};
  bool narrows = false;
  // With f64 among inputs or results an operation computes in double.
  const bool in_double =
      std::any_of(node.outputs.begin(), node.outputs.end(), [](const Spec& spec) { return spec.dtype == Dtype::f64; }) ||
      std::any_of(node.inputs.begin(), node.inputs.end(), [](const Tensor& x) { return x.dtype() == Dtype::f64; });
  const auto computed = in_double ? Dtype::f64 : Dtype::f32;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const auto& input = node.inputs[k];
    call.in.push_back(results_.at(node_of(input).get()).values[static_cast<std::size_t>(output_of(input))]);
    if (!is_floating(input.dtype())) continue;
    for (const auto& output : node.outputs) narrows = narrows || unit(output.dtype) > unit(input.dtype());
    if (arithmetic_.wobble != 0 && !meaning.exact)
      wobble(call.in.back(), units * meaning.slack * arithmetic_.strength * unit(computed), 0, wobbling + k);
  }
  // Another program may round a narrow value for one of its readers, and give the other one what it was before.
  if (arithmetic_.wobble != 0 && arithmetic_.absolute != 0 && (!meaning.exact || compares(node.op->name())))
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (unit(node.inputs[k].dtype()) > unit(Dtype::f32))
        wobble(call.in[k], unit(node.inputs[k].dtype()), tiniest(node.inputs[k].dtype()), mix(wobbling + k, 2));
  result.values = meaning.apply(call);
  if (arithmetic_.wobble != 0 && meaning.terms) {
    auto sizes = meaning.terms(call);
    for (std::size_t i = 0; i < sizes.values.size(); ++i)
      result.values[0].values[i] += sizes.values[i] * units * arithmetic_.strength * unit(computed) *
                                    (2 * as_fraction(mix(wobbling ^ arithmetic_.wobble, i)) - 1);
  }
  for (std::size_t k = 0; k < result.values.size(); ++k) {
    const auto dtype = node.outputs[k].dtype;
    auto& values = result.values[k];
    if (arithmetic_.wobble != 0 && (!meaning.exact || narrows) && is_floating(dtype))
      wobble(values, (dtype == computed ? units : 1) * arithmetic_.strength * unit(dtype),
             arithmetic_.strength * (tiniest(dtype) + arithmetic_.absolute * unit(computed)), mix(wobbling + k));
    if (arithmetic_.rounds || !is_floating(dtype))
      for (auto& value : values.values) value = rounded(value, dtype);
    if (const auto given = given_.find({&node, static_cast<int>(k)}); given != given_.end()) values = given->second;
  }
  results_[&node] = std::move(result);
}

}  // namespace clnet::fuzz
