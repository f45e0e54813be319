#include "lib/onnx/adapt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "clnet/error.h"
#include "clnet/nn/linear.h"
#include "lib/base/input_file.h"
#include "lib/onnx/host_tensor.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

using Extents = std::vector<std::int64_t>;

const Attribute* attribute_of(const NodeInfo& node, std::string_view name) {
  const auto found =
      std::find_if(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) { return attribute.name == name; });
  return found == node.attributes.end() ? nullptr : &*found;
}

std::int64_t integer_of(const NodeInfo& node, std::string_view name, std::int64_t otherwise) {
  const auto* found = attribute_of(node, name);
  return found ? found->integer : otherwise;
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

using Readers = std::map<std::string_view, int>;

void count_readers(const GraphInfo& graph, Readers& readers, int by);
/// Adds how often a node, and nodes of graphs within it, read each value.
void count_readers(const NodeInfo& node, Readers& readers, int by) {
  for (const auto input : node.inputs) readers[input] += by;
  for (const auto& attribute : node.attributes)
    for (const auto& inner : attribute.graphs) count_readers(*inner, readers, by);
}
void count_readers(const GraphInfo& graph, Readers& readers, int by) {
  for (const auto& node : graph.nodes) count_readers(node, readers, by);
  for (const auto& output : graph.outputs) readers[output.name] += by;
}
Readers readers_of(const GraphInfo& graph) {
  Readers readers;
  count_readers(graph, readers, 1);
  return readers;
}

/// A file's main graph, by names.
class Editor {
 public:
  explicit Editor(ModelFile& file) : file_(file), graph_(file.graph) {
    for (auto& node : graph_.nodes)
      for (const auto output : node.outputs) makers_[output] = &node;
  }

  [[noreturn]] void fail(std::string_view reason) const { throw Error(fmt::format("{}: {}", file_.name, reason)); }

  NodeInfo* maker(std::string_view name) const {
    const auto found = makers_.find(name);
    return found == makers_.end() || !found->second->domain.empty() ? nullptr : found->second;
  }
  TensorData* initializer(std::string_view name) const {
    const auto found =
        std::find_if(graph_.initializers.begin(), graph_.initializers.end(), [&](const auto& data) { return data.name == name; });
    return found == graph_.initializers.end() ? nullptr : &*found;
  }
  /// An initializer, or a node's constant.
  TensorData* constant(std::string_view name) const {
    if (auto* data = initializer(name)) return data;
    auto* node = maker(name);
    if (!node || node->op_type != "Constant") return nullptr;
    for (auto& attribute : node->attributes)
      if (attribute.name == "value" && attribute.tensors.size() == 1) return &attribute.tensors[0];
    return nullptr;
  }
  std::optional<Extents> integers(std::string_view name) const {
    const auto* data = constant(name);
    if (!data || data->type != ElementType::i64) return std::nullopt;
    return content_of(*data, file_.folder, file_.name).integers();
  }

  /// The shape of a Reshape where the file has it: an input, and an attribute before operator set 5.
  std::optional<Extents> target(const NodeInfo& node) const {
    if (node.inputs.size() > 1) return integers(node.inputs[1]);
    const auto* attribute = attribute_of(node, "shape");
    return attribute ? std::optional(attribute->integers) : std::nullopt;
  }
  void set_target(NodeInfo& node, const Extents& target) {
    if (node.inputs.size() > 1)
      replace(node, 1, HostTensor::of(ElementType::i64, Shape{std::ssize(target)}, target));
    else
      for (auto& attribute : node.attributes)
        if (attribute.name == "shape") attribute.integers = target;
  }

  /// Of a weight, also where nodes make it from constants.
  std::optional<Extents> extents(std::string_view name, int depth = 0) const {
    if (depth > most_nodes_of_a_weight) return std::nullopt;
    if (const auto* data = constant(name)) return data->dims;
    const auto* node = maker(name);
    if (!node || node->inputs.empty()) return std::nullopt;
    if (node->op_type == "ConstantOfShape") return integers(node->inputs[0]);
    const auto before = extents(node->inputs[0], depth + 1);
    if (!before || is_one_of(node->op_type, {"Identity", "Cast"})) return before;
    if (node->op_type == "Transpose") return transposed(*before, attribute_of(*node, "perm"));
    if (node->op_type == "Reshape") return reshaped(*before, target(*node));
    return std::nullopt;
  }

  /// The floating type of a weight, also where nodes make it from constants; f32 where that is unknown.
  ElementType type(std::string_view name, int depth = 0) const {
    auto type = ElementType::undefined;
    const auto* node = maker(name);
    if (const auto* data = constant(name))
      type = data->type;
    else if (node && node->op_type == "Cast")
      type = static_cast<ElementType>(integer_of(*node, "to", 0));
    else if (const auto* value = node && node->op_type == "ConstantOfShape" ? attribute_of(*node, "value") : nullptr)
      type = value->tensors.size() == 1 ? value->tensors[0].type : type;
    else if (node && is_one_of(node->op_type, {"Identity", "Transpose", "Reshape"}) && !node->inputs.empty() &&
             depth < most_nodes_of_a_weight)
      return this->type(node->inputs[0], depth + 1);
    return is_floating(type) ? type : ElementType::f32;
  }

  /// Gives a node's input another tensor, under the old one's name where nothing else reads that.
  std::string replace(NodeInfo& node, std::size_t input, const HostTensor& host) {
    const auto old = node.inputs[input];
    auto readers = readers_of(graph_);
    auto name = std::string(old);
    if (initializer(old) && readers[old] == 1) {
      std::erase_if(graph_.initializers, [&](const auto& each) { return each.name == old; });
      gone_.insert(name);
    } else {
      while (makers_.contains(name) || initializer(name) || readers.contains(name)) name += "_head";
    }
    auto made = read_tensor(write_tensor(host, name), file_.name);
    file_.added.push_back(made.bytes);
    node.inputs[input] = made.tensor.name;
    graph_.initializers.push_back(std::move(made.tensor));
    return name;
  }
  /// The same with numbers of the old one's type.
  std::string replace(NodeInfo& node, std::size_t input, const Extents& extents, const std::vector<double>& values) {
    return replace(node, input, HostTensor::of(type(node.inputs[input]), Shape(extents), values));
  }

  /// Removes nodes and initializers that nothing reads but that something read before.
  void prune(const Readers& before) {
    auto readers = readers_of(graph_);
    const auto is_left = [&](std::string_view name) { return readers[name] == 0 && before.contains(name); };
    std::set<const NodeInfo*> left;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (node->outputs.empty() || !std::all_of(node->outputs.begin(), node->outputs.end(), is_left)) continue;
      left.insert(&*node);
      count_readers(*node, readers, -1);
    }
    std::vector<NodeInfo> kept;
    for (auto& node : graph_.nodes)
      if (!left.contains(&node)) kept.push_back(std::move(node));
    graph_.nodes = std::move(kept);
    // Files of early versions list initializers among the inputs, too.
    std::erase_if(graph_.initializers, [&](const auto& data) {
      if (is_left(data.name)) gone_.insert(std::string(data.name));
      return is_left(data.name);
    });
    std::erase_if(graph_.inputs, [&](const auto& input) { return gone_.contains(std::string(input.name)); });
    makers_.clear();
  }
  Readers readers() const { return readers_of(graph_); }

 private:
  static constexpr int most_nodes_of_a_weight = 8;

  static std::optional<Extents> transposed(const Extents& extents, const Attribute* permutation) {
    Extents order = permutation ? permutation->integers : Extents{};
    if (order.empty())
      for (auto d = static_cast<std::int64_t>(extents.size()); d-- > 0;) order.push_back(d);
    Extents out;
    for (const auto d : order) {
      if (d < 0 || d >= static_cast<std::int64_t>(extents.size())) return std::nullopt;
      out.push_back(extents[static_cast<std::size_t>(d)]);
    }
    return out;
  }
  static std::optional<Extents> reshaped(const Extents& extents, const std::optional<Extents>& target) {
    if (!target) return std::nullopt;
    for (const auto extent : *target)
      if (extent < 1) return std::nullopt;
    const auto product = [](const Extents& of) {
      return std::accumulate(of.begin(), of.end(), 1.0, [](double a, auto b) { return a * static_cast<double>(b); });
    };
    if (product(extents) != product(*target)) return std::nullopt;
    return target;
  }

  ModelFile& file_;
  GraphInfo& graph_;
  std::map<std::string_view, NodeInfo*> makers_;
  std::set<std::string> gone_;  ///< initializers of the file that were removed or replaced
};

/// What may lie between the last linear layer and the output: nothing with weights.
bool keeps_classes(std::string_view op) {
  return is_one_of(
      op, {"Softmax", "LogSoftmax", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout", "Cast", "Relu",
           "Sigmoid", "Clip", "GlobalAveragePool", "GlobalMaxPool", "AveragePool", "MaxPool", "ReduceMean", "Transpose"});
}

/// Only ones between the extent of classes and the others: what Reshape and the like leave of a classifier's output.
bool keeps_values(std::string_view op) {
  return is_one_of(op, {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast"});
}

/// A layer's weight and bias in the file.
struct Head {
  NodeInfo* node = nullptr;
  NodeInfo* bias_node = nullptr;  ///< null: no bias
  std::size_t bias_input = 0;
  std::vector<NodeInfo*> norms, reshapes;  ///< between it and the output
  Extents weight;
  bool inputs_first = false;  ///< the weight is {inputs, outputs}

  std::int64_t inputs() const { return weight[inputs_first ? 0 : 1]; }
  std::int64_t outputs() const { return weight[inputs_first ? 1 : 0]; }
};

Head find_head(const Editor& editor, const ModelFile& file) {
  if (file.graph.outputs.empty()) editor.fail("has no output, so no head could be replaced");
  Head head;
  auto at = file.graph.outputs[0].name;
  for (;;) {
    auto* node = editor.maker(at);
    const auto refuse = [&](std::string_view why) {
      editor.fail(fmt::format("no head to replace: {}{}",
                              node ? fmt::format("{} before the output ", in_quotes(node->op_type)) : std::string("the output "),
                              why));
    };
    if (!node) refuse("comes from no operator of ONNX");
    const auto op = node->op_type;
    if (is_one_of(op, {"Gemm", "MatMul", "Conv"}) && node->inputs.size() >= 2) {
      const auto weight = editor.extents(node->inputs[1]);
      if (!weight) refuse("has no constant weight");
      head.node = node;
      head.weight = *weight;
      head.inputs_first = op == "MatMul" || (op == "Gemm" && integer_of(*node, "transB", 0) == 0);
      const auto spatial = std::find_if(weight->begin() + std::min<std::ptrdiff_t>(2, std::ssize(*weight)), weight->end(),
                                        [](auto extent) { return extent != 1; });
      if (op == "Conv" ? weight->size() < 3 || spatial != weight->end() || integer_of(*node, "group", 1) != 1
                       : weight->size() != 2)
        refuse(op == "Conv" ? "has a kernel of more than one pixel" : "has a weight that is no matrix");
      if (head.inputs() < 1 || head.outputs() < 1) refuse("has an empty weight");
      if (op != "MatMul" && node->inputs.size() > 2 && !node->inputs[2].empty()) {
        head.bias_node = node;
        head.bias_input = 2;
      }
      return head;
    }
    if (op == "Add" && node->inputs.size() == 2 && !head.bias_node) {
      const std::size_t constant = editor.extents(node->inputs[1]) ? 1 : 0;
      if (!editor.extents(node->inputs[constant])) refuse("adds two values, so it is no bias");
      head.bias_node = node;
      head.bias_input = constant;
      at = node->inputs[1 - constant];
      continue;
    }
    if (op == "BatchNormalization" && node->inputs.size() == 5)
      head.norms.push_back(node);
    else if (!keeps_classes(op) || node->inputs.empty())
      refuse("is no linear layer: a Gemm, a MatMul with an Add, or a 1x1 Conv is needed");
    if (op == "Reshape") head.reshapes.push_back(node);
    at = node->inputs[0];
  }
}

/// A layer's initial values as {inputs, outputs}, or {outputs, inputs}.
std::vector<double> initial_weight(const nn::Linear& layer, std::int64_t inputs, std::int64_t outputs, bool inputs_first) {
  const auto values = layer.parameter("weight").value().to_vector<double>();
  if (!inputs_first) return values;
  std::vector<double> out(values.size());
  const auto rows = static_cast<std::size_t>(outputs), columns = static_cast<std::size_t>(inputs);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) out[j * rows + i] = values[i * columns + j];
  return out;
}

constexpr std::int64_t most_classes = 1'000'000, most_weights = std::int64_t{1} << 28;

}  // namespace

std::vector<std::string> replace_head(ModelFile& file, std::int64_t classes) {
  Editor editor(file);
  if (classes < 1 || classes > most_classes)
    editor.fail(fmt::format("a head of {} classes; 1 to {} are possible", classes, most_classes));
  const auto head = find_head(editor, file);
  const auto before = editor.readers();
  const auto inputs = head.inputs(), old = head.outputs();
  if (inputs > most_weights / classes) editor.fail(fmt::format("a head of {} x {} weights is too large", inputs, classes));
  // A bias of one element for all classes stays.
  const auto changed = [&](Extents extents) {
    const auto found = std::find(extents.rbegin(), extents.rend(), old);
    if (found != extents.rend()) *found = classes;
    return extents;
  };
  const nn::Linear layer(inputs, classes);
  auto weight = head.weight;
  weight[head.inputs_first ? 1 : 0] = classes;
  std::vector<std::string> names{
      editor.replace(*head.node, 1, weight, initial_weight(layer, inputs, classes, head.inputs_first))};
  if (head.bias_node) {
    const auto extents = editor.extents(head.bias_node->inputs[head.bias_input]);
    if (!extents) editor.fail("no head to replace: its bias is no constant");
    const auto wanted = changed(*extents);
    if (wanted != *extents && std::count(wanted.begin(), wanted.end(), 1) + (classes > 1) != std::ssize(wanted))
      editor.fail("no head to replace: its bias is no row");
    if (wanted != *extents)
      names.push_back(
          editor.replace(*head.bias_node, head.bias_input, wanted, layer.parameter("bias").value().to_vector<double>()));
  }
  const auto count = static_cast<std::size_t>(classes);
  for (auto* norm : head.norms)
    for (std::size_t i = 1; i < 5; ++i) {
      const bool ones = i == 1 || i == 4;
      auto name = editor.replace(*norm, i, {classes}, std::vector<double>(count, ones ? 1.0 : 0.0));
      if (i < 3) names.push_back(std::move(name));
    }
  for (auto* node : head.reshapes)
    if (const auto target = editor.target(*node); target && changed(*target) != *target)
      editor.set_target(*node, changed(*target));
  if (auto& declared = file.graph.outputs[0].type.shape) {
    const auto last = std::find_if(declared->rbegin(), declared->rend(), [&](const auto& extent) { return extent.value == old; });
    if (last != declared->rend()) last->value = classes;
  }
  editor.prune(before);
  return names;
}

std::string last_softmax(ModelFile& file, bool bypass) {
  const Editor editor(file);
  auto at = file.graph.outputs.empty() ? std::string_view{} : file.graph.outputs[0].name;
  auto* node = editor.maker(at);
  while (node && keeps_values(node->op_type) && !node->inputs.empty()) node = editor.maker(node->inputs[0]);
  if (!node || !is_one_of(node->op_type, {"Softmax", "LogSoftmax"})) return {};
  if (const auto axis = integer_of(*node, "axis", 1); axis != 1 && axis != -1) return {};
  std::string name(node->op_type);
  if (bypass) {
    node->op_type = "Identity";
    node->attributes.clear();
  }
  return name;
}

void free_batch(ModelFile& file) {
  std::set<std::int64_t> batches;
  std::vector<Dimension*> declared;
  Editor editor(file);
  for (auto& input : file.graph.inputs) {
    if (editor.initializer(input.name) || !input.type.shape || input.type.shape->empty()) continue;
    auto& first = input.type.shape->front();
    if (!first.value) continue;
    batches.insert(*first.value);
    declared.push_back(&first);
  }
  if (batches.size() > 1) return;
  const auto batch = batches.empty() ? 1 : *batches.begin();
  for (auto* dimension : declared) *dimension = {};
  const auto before = editor.readers();
  for (auto& node : file.graph.nodes) {
    if (node.op_type != "Reshape" || !node.domain.empty()) continue;
    auto target = editor.target(node);
    if (!target || target->empty() || target->front() != batch || std::count(target->begin(), target->end(), -1) > 0) continue;
    if (std::count(target->begin(), target->end(), 0) > 0 && integer_of(node, "allowzero", 0) != 0) continue;
    target->front() = -1;
    editor.set_target(node, *target);
  }
  editor.prune(before);
}

void take_constants(ModelFile& file) {
  auto& graph = file.graph;
  std::vector<NodeInfo> kept;
  for (auto& node : graph.nodes) {
    auto* value = node.op_type == "Constant" && node.domain.empty() && node.outputs.size() == 1 && node.attributes.size() == 1 &&
                          node.attributes[0].name == "value" && node.attributes[0].tensors.size() == 1
                      ? &node.attributes[0].tensors[0]
                      : nullptr;
    const bool is_taken = value && is_floating(value->type) &&
                          std::any_of(value->dims.begin(), value->dims.end(), [](auto extent) { return extent > 1; });
    if (is_taken) {
      value->name = node.outputs[0];
      graph.initializers.push_back(std::move(*value));
    } else {
      kept.push_back(std::move(node));
    }
  }
  graph.nodes = std::move(kept);
}

}  // namespace clnet::onnx
