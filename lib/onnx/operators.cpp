#include "lib/onnx/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "clnet/error.h"
#include "clnet/ops/elementwise.h"
#include "lib/base/input_file.h"
#include "lib/base/readable.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {

const std::vector<Operator>& operators() {
  static const auto all = [] {
    std::vector<Operator> list;
    for (const auto family :
         {attention_operators, control_operators, conv_operators, elementwise_operators, image_operators, index_operators,
          layer_operators, norm_operators, quantized_operators, random_operators, recurrent_operators, reduce_operators,
          sequence_operators, shape_operators, signal_operators, training_operators}) {
      auto more = family();
      list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
    });
    return list;
  }();
  return all;
}

const Operator* find_operator(std::string_view domain, std::string_view name, std::int64_t opset) {
  const auto& all = operators();
  const auto behind =
      std::upper_bound(all.begin(), all.end(), std::tuple(domain, name, opset), [](const auto& key, const auto& op) {
        return key < std::tuple<std::string_view, std::string_view, std::int64_t>(op.domain, op.name, op.since);
      });
  if (behind == all.begin()) return nullptr;
  const auto& found = *std::prev(behind);
  return found.domain == domain && found.name == name ? &found : nullptr;
}

Call::Call(Runner& runner, const Instruction& instruction, std::span<const RunValue> inputs)
    : runner_(runner), instruction_(instruction), inputs_(inputs) {}

std::int64_t Call::opset() const { return instruction_.opset; }
std::string_view Call::name() const { return instruction_.node->op_type; }
std::size_t Call::outputs() const { return instruction_.outputs.size(); }
bool Call::wants(std::size_t output) const { return output < outputs() && instruction_.outputs[output] >= 0; }

const Program* Call::graph(std::string_view name) const {
  std::size_t at = 0;
  for (const auto& attribute : instruction_.node->attributes) {
    if (attribute.name == name && !attribute.graphs.empty()) return instruction_.graphs[at].get();
    at += attribute.graphs.size();
  }
  return nullptr;
}
const GraphInfo* Call::graph_info(std::string_view name) const {
  for (const auto& attribute : instruction_.node->attributes)
    if (attribute.name == name && !attribute.graphs.empty()) return attribute.graphs[0].get();
  return nullptr;
}

const RunValue& Call::in(std::size_t input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input));
  return inputs_[input];
}

const Tensor& Call::x(std::size_t input) const {
  const auto& value = in(input);
  if (value.is_sequence()) fail(fmt::format("input {} is a sequence, not a tensor", input));
  return value.tensor();
}

namespace {

/// Reads what a graph's structure depends on.
void require_readable(const Call& call, const RunValue& value, std::size_t input) {
  if (!value.is_constant() && !call.runner().options().may_read)
    throw DependsOnData(fmt::format("{}: input {} depends on data", call.name(), input));
}

}  // namespace

std::vector<std::int64_t> Call::integers(std::size_t input) const {
  const auto& value = in(input);
  if (value.host()) return value.host()->integers();
  require_readable(*this, value, input);
  return x(input).to_vector<std::int64_t>();
}

std::vector<double> Call::numbers(std::size_t input) const {
  const auto& value = in(input);
  if (value.host()) return value.host()->numbers();
  require_readable(*this, value, input);
  return x(input).to_vector<double>();
}

std::int64_t Call::integer(std::size_t input) const {
  if (const auto count = shape(input).numel(); count != 1)
    fail(fmt::format("input {} has {} elements instead of 1", input, count));
  return integers(input)[0];
}
double Call::number(std::size_t input) const {
  if (const auto count = shape(input).numel(); count != 1)
    fail(fmt::format("input {} has {} elements instead of 1", input, count));
  return numbers(input)[0];
}

const Attribute* Call::attribute(std::string_view name) const {
  for (const auto& attribute : instruction_.node->attributes)
    if (attribute.name == name)
      return attribute.reference.empty() ? &attribute : runner_.attribute_of_function(attribute.reference);
  return nullptr;
}

namespace {

void require_type(const Call& call, const Attribute& attribute, Attribute::Type type, std::string_view what) {
  // Files before version 2 of the format leave the type out.
  if (attribute.type != type && attribute.type != Attribute::Type::undefined)
    call.fail(fmt::format("attribute {} is no {}", in_quotes(attribute.name), what));
}

}  // namespace

std::int64_t Call::attribute(std::string_view name, std::int64_t otherwise) const {
  const auto* found = attribute(name);
  if (!found) return otherwise;
  require_type(*this, *found, Attribute::Type::integer, "integer");
  return found->integer;
}
double Call::attribute(std::string_view name, double otherwise) const {
  const auto* found = attribute(name);
  if (!found) return otherwise;
  require_type(*this, *found, Attribute::Type::real, "float");
  return static_cast<double>(found->real);
}
std::string Call::attribute(std::string_view name, std::string_view otherwise) const {
  const auto* found = attribute(name);
  if (!found) return std::string(otherwise);
  require_type(*this, *found, Attribute::Type::text, "text");
  // It may become part of an error.
  if (readable(found->text) != found->text) fail(fmt::format("attribute {} is {}", in_quotes(name), in_quotes(found->text)));
  return std::string(found->text);
}
std::vector<std::int64_t> Call::integers(std::string_view name) const {
  const auto* found = attribute(name);
  if (!found) return {};
  require_type(*this, *found, Attribute::Type::integers, "list of integers");
  return found->integers;
}
namespace {

constexpr std::int64_t newest_type = 28;  ///< float6e3m2

}  // namespace

ElementType Call::element_type(std::string_view name, ElementType otherwise) const {
  const auto number = attribute(name, static_cast<std::int64_t>(otherwise));
  if (number < 0 || number > newest_type) fail(fmt::format("attribute {} is {}, no type of elements", in_quotes(name), number));
  return static_cast<ElementType>(number);
}
std::vector<double> Call::numbers(std::string_view name) const {
  const auto* found = attribute(name);
  if (!found) return {};
  require_type(*this, *found, Attribute::Type::reals, "list of floats");
  return {found->reals.begin(), found->reals.end()};
}
std::vector<std::string> Call::texts(std::string_view name) const {
  const auto* found = attribute(name);
  if (!found) return {};
  require_type(*this, *found, Attribute::Type::texts, "list of texts");
  return {found->texts.begin(), found->texts.end()};
}

std::vector<std::int64_t> Call::integers(std::size_t input, std::string_view attribute) const {
  return has(input) ? integers(input) : integers(attribute);
}

std::vector<Tensor> Call::made_of(const std::vector<std::size_t>& inputs, std::size_t key,
                                  const std::function<std::vector<Tensor>(const std::vector<Tensor>& given)>& make) const {
  std::vector<RunValue> sources;
  bool untrained = runner_.options().weights != nullptr;
  for (const auto input : inputs) {
    sources.push_back(has(input) ? in(input) : RunValue());
    const auto& source = sources.back();
    untrained = untrained && (!source.is_there() || source.is_constant() || source.is_untrained());
  }
  const auto tensors_of = [](const std::vector<RunValue>& values) {
    std::vector<Tensor> out;
    for (const auto& value : values) out.push_back(value.is_there() ? value.tensor() : Tensor{});
    return out;
  };
  if (!untrained) return make(tensors_of(sources));
  // Key 0 is the node's own result.
  return tensors_of(runner_.options().weights->of(instruction_, key + 1, sources, [&](const std::vector<RunValue>& weights) {
    std::vector<RunValue> out;
    for (auto& tensor : make(tensors_of(weights))) out.push_back(tensor.defined() ? RunValue(std::move(tensor)) : RunValue());
    return out;
  }));
}

int Call::axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) throw ShapeError(fmt::format("axis {} is out of range for {} dimensions", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

RunValue Call::give(Tensor tensor, std::size_t like) const { return give_as(std::move(tensor), type(like)); }

RunValue Call::give_as(Tensor tensor, ElementType type) const {
  const auto dtype = dtype_of(type);
  if (tensor.dtype() != dtype) tensor = cast(tensor, dtype);
  if (type == ElementType::u16) tensor = tensor & 0xFFFF;
  if (type == ElementType::i16) tensor = ((tensor + 32768.0) & 0xFFFF) - 32768.0;
  if (type == ElementType::u32) tensor = tensor & 0xFFFFFFFF;
  return {std::move(tensor), type};
}

void Call::fail(std::string_view reason) const { throw Error(fmt::format("{}: {}", name(), reason)); }
void Call::refuse(std::string_view reason) const { throw Unsupported(fmt::format("{}: {}", name(), reason)); }

}  // namespace clnet::onnx
