#include "lib/onnx/multiply_adds.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace clnet::onnx {
namespace {

double numel(const RunValue& value) { return static_cast<double>(value.shape().numel()); }

const Attribute* attribute_of(const Instruction& instruction, std::string_view name) {
  for (const auto& attribute : instruction.node->attributes)
    if (attribute.name == name && attribute.reference.empty()) return &attribute;
  return nullptr;
}

/// A dimension of an einsum is a letter; those of "..." are negative, the last one -1.
using Labels = std::set<int>;

/// Products of two operands at a time, as einsum() computes them. The equation is right: the node has run.
double of_einsum(std::string_view equation, const std::vector<RunValue>& inputs) {
  std::map<int, double> extents;
  std::map<int, int> times;  // that a dimension is named so
  const auto labels_of = [&](std::string_view part, const Shape* shape) {
    std::vector<int> labels;
    const auto named = std::count_if(part.begin(), part.end(), [](char c) { return c != '.' && c != ' '; });
    const auto open = shape ? shape->rank() - static_cast<int>(named) : 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] == ' ') continue;
      if (part[i] != '.') {
        labels.push_back(part[i]);
        continue;
      }
      for (int d = -open; d < 0; ++d) labels.push_back(d);
      i += 2;
    }
    return labels;
  };
  const auto arrow = equation.find("->");
  std::vector<Labels> terms;
  auto left = equation.substr(0, arrow);
  for (const auto& input : inputs) {
    const auto comma = std::min(left.find(','), left.size());
    const auto labels = labels_of(left.substr(0, comma), &input.shape());
    left.remove_prefix(std::min(comma + 1, left.size()));
    for (std::size_t d = 0; d < labels.size() && d < static_cast<std::size_t>(input.shape().rank()); ++d) {
      auto& extent = extents[labels[d]];
      extent = std::max(extent, static_cast<double>(input.shape()[static_cast<int>(d)]));
      ++times[labels[d]];
    }
    terms.emplace_back(labels.begin(), labels.end());
  }
  Labels result;
  const bool is_said = arrow != std::string_view::npos;
  if (is_said)
    for (const int label : labels_of(equation.substr(arrow + 2), nullptr)) result.insert(label);
  const bool has_dots = !is_said || equation.substr(arrow + 2).find('.') != std::string_view::npos;
  for (const auto& [label, count] : times)
    if (label < 0 ? has_dots : !is_said && count == 1) result.insert(label);

  double sum = 0;
  Labels all = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Labels after = result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) after.insert(terms[k].begin(), terms[k].end());
    Labels both = all, next;
    both.insert(terms[i].begin(), terms[i].end());
    double products = 1;
    for (const int label : both) {
      // What one of the two alone has is summed before.
      const bool is_shared = all.contains(label) && terms[i].contains(label);
      if (after.contains(label) || is_shared) products *= extents[label];
      if (after.contains(label)) next.insert(label);
    }
    all = std::move(next);
    sum += products;
  }
  return sum;
}

/// Each step of each head of the keys changes a state and, with a delta rule, reads it first. Each query reads it.
double of_linear_attention(const Instruction& instruction, const std::vector<RunValue>& inputs) {
  const auto& values = inputs[2].shape();
  const auto* heads = attribute_of(instruction, "kv_num_heads");
  const auto* rule = attribute_of(instruction, "update_rule");
  const bool corrects = !rule || rule->text.ends_with("delta");
  const auto width = static_cast<double>(values[-1]) / static_cast<double>(values.rank() == 4 || !heads ? 1 : heads->integer);
  return width * (numel(inputs[0]) + numel(inputs[1]) * (corrects ? 2 : 1));
}

}  // namespace

double multiply_adds_of(const Instruction& instruction, const std::vector<RunValue>& inputs, const RunValue& output) {
  const auto& op = instruction.node->op_type;
  const auto is_there = [&](std::size_t i) { return i < inputs.size() && inputs[i].is_there() && !inputs[i].is_sequence(); };
  if (!instruction.op || !is_there(0) || !is_there(1) || !output.is_there() || output.is_sequence()) return 0;
  if (op == "Conv" || op == "ConvInteger" || op == "QLinearConv" || op == "DeformConv") {
    const std::size_t weight = op == "QLinearConv" ? 3 : 1;
    if (!is_there(weight) || numel(inputs[weight]) == 0) return 0;
    return numel(output) * numel(inputs[weight]) / static_cast<double>(inputs[weight].shape()[0]);
  }
  const auto& shape = inputs[0].shape();
  if (op == "ConvTranspose" && numel(inputs[0]) > 0)
    return numel(inputs[0]) * numel(inputs[1]) / static_cast<double>(inputs[1].shape()[0]);
  if (op == "Einsum")
    if (const auto* equation = attribute_of(instruction, "equation")) return of_einsum(equation->text, inputs);
  if (shape.rank() < 1) return 0;
  if (is_there(2) && (op == "LSTM" || op == "GRU" || op == "RNN") && shape[-1] > 0)
    return numel(inputs[0]) / static_cast<double>(shape[-1]) * (numel(inputs[1]) + numel(inputs[2]));
  if ((op == "Attention" || op == "FlexAttention") && shape.rank() > 2) {
    const auto keys = inputs[1].shape()[-2] + (op == "Attention" && is_there(4) ? inputs[4].shape()[-2] : 0);
    return static_cast<double>(keys) * (numel(inputs[0]) + numel(output));
  }
  if (op == "LinearAttention" && is_there(2)) return of_linear_attention(instruction, inputs);
  // The first matrix has a row, or a column, for each row of the output.
  if (op == "Gemm") return numel(inputs[0]) * static_cast<double>(output.shape()[-1]);
  if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") return numel(output) * static_cast<double>(shape[-1]);
  return 0;
}

}  // namespace clnet::onnx
