#include "lib/onnx/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <protozero/pbf_writer.hpp>

#include "lib/graph/number.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {

namespace {

const std::map<std::string_view, Saver>& savers() {
  static const auto* const all = [] {
    auto* result = new std::map<std::string_view, Saver>;
    for (const auto& family : {elementwise_savers(), image_savers(), index_savers(), layer_savers(), norm_savers(),
                               recurrent_savers(), reduce_savers(), shape_savers()})
      for (const auto& saver : family) result->emplace(saver.name, saver);
    return result;
  }();
  return *all;
}

const Saver* saver_of(std::string_view name) {
  const auto found = savers().find(name);
  return found == savers().end() ? nullptr : &found->second;
}

/// Operations with another result at each run: never a constant.
bool is_random(std::string_view name) {
  constexpr std::string_view names[] = {"rand", "randn", "randint", "dropout", "poisson"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string place_of(const ScopePtr& scope) {
  const auto text = to_string(scope);
  return text.empty() ? text : fmt::format(" in {}", text);
}

/// A tensor that depends on nothing that a run brings.
HostTensor value_of(const Tensor& tensor) { return to_host(tensor, type_of(tensor.dtype())); }

bool same_value(const Tensor& a, const Tensor& b) {
  if (a.same(b)) return true;
  if (a.spec() != b.spec()) return false;
  return value_of(a).bytes == value_of(b).bytes;
}

[[noreturn]] void builds_differ(std::string_view name) {
  throw FollowsNoBatch(fmt::format("{} differs with the batch in more than integers that follow it", name));
}

}  // namespace

Exporter::Exporter(int opset, const std::vector<std::unique_ptr<Build>>& builds, std::vector<std::int64_t> batch,
                   const Names& names)
    : opset_(opset), builds_(builds), batch_(std::move(batch)), names_(names) {
  for (const auto* list : {&names_.inputs, &names_.outputs})
    for (const auto& name : *list) taken_.take(name);
  for (const auto& [slot, name] : names_.parameters) taken_.take(name);
  for (std::size_t i = 0; i < builds_[0]->inputs.size(); ++i) {
    Tensors at;
    for (const auto& build : builds_) at.push_back(build->inputs[i]);
    define(at, names_.inputs[i], false);
    const auto& shape = at[0].shape();
    if (batch_input_.empty() && at.size() > 1 && shape.rank() > 0 && shape[0] == batch_[0] && at[1].shape()[0] == batch_[1])
      batch_input_ = names_.inputs[i];
  }
}

void Exporter::define(const Tensors& at, std::string name, bool constant) {
  known_[key_of(at[0])] = {std::move(name), constant, at};
}

Exporter::Known& Exporter::known(const Tensor& tensor) { return known_.at(key_of(tensor)); }

const std::string& Exporter::name_of(const Tensor& tensor) {
  auto& value = known(tensor);
  if (value.name.empty()) value.name = constant(value_of(value.at[0]));
  return value.name;
}

std::string Exporter::constant(const HostTensor& host) {
  auto& name = constants_[{static_cast<int>(host.type), host.shape.extents(), host.bytes}];
  if (name.empty()) {
    name = unique("constant");
    initializers_.push_back({name, host});
  }
  return name;
}

namespace {

/// A scope without what the importer adds to the names of nodes, " (Conv of opset 17)".
std::string plain(std::string place) {
  for (auto at = place.find(" of opset "); at != std::string::npos; at = place.find(" of opset ")) {
    const auto begin = place.rfind(" (", at), end = place.find(')', at);
    if (begin == std::string::npos || end == std::string::npos) {
      place.erase(at, place.find('/', at) - at);  // of a node without a name: "Conv of opset 17"
      continue;
    }
    place.erase(begin, end + 1 - begin);
  }
  return place;
}

/// Whether a name of a file's node, as the scope of what it computes, is that of this operator: "conv1/Conv", "Conv_12".
bool is_named_after(std::string_view place, std::string_view op) {
  place.remove_prefix(place.rfind('/') + 1);
  if (!place.starts_with(op)) return false;
  place.remove_prefix(op.size());
  return place.empty() ||
         (place.size() > 1 && place[0] == '_' && place.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

}  // namespace

std::string Exporter::add_node(const ScopePtr& scope, std::string_view op, std::vector<std::string> inputs,
                               std::vector<std::string> attributes, std::size_t outputs, std::vector<std::string>* all) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  const auto place = plain(to_string(scope));
  WrittenNode node;
  node.op = op;
  node.name = unique(place.empty() ? std::string(op) : is_named_after(place, op) ? place : fmt::format("{}/{}", place, op));
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(unique(fmt::format("{}:{}", node.name, i)));
  nodes_.push_back(node);
  if (all) *all = node.outputs;
  return node.outputs.empty() ? std::string() : node.outputs[0];
}

Extent Exporter::extent_of(const std::vector<std::int64_t>& by_build) const {
  const auto first = by_build[0];
  if (std::all_of(by_build.begin(), by_build.end(), [&](auto value) { return value == first; })) return {0, first};
  const auto steps = batch_[1] - batch_[0], grown = by_build[1] - first;
  const Extent found{grown / steps, first - grown / steps * batch_[0]};
  for (std::size_t i = 0; i < by_build.size(); ++i)
    if (found.factor * batch_[i] + found.constant != by_build[i]) builds_differ("an extent");
  return found;
}

std::string Exporter::batch() {
  if (batch_name_.empty()) {
    if (batch_input_.empty()) builds_differ("the graph");
    batch_name_ = add_node({}, "Shape", {batch_input_},
                           {write_attribute("start", std::int64_t{0}), write_attribute("end", std::int64_t{1})}, 1);
  }
  return batch_name_;
}

std::string Exporter::integer(const Extent& extent) {
  const auto number = [&](std::int64_t value) {
    return constant(HostTensor::of(ElementType::i64, Shape{1}, std::vector<std::int64_t>{value}));
  };
  if (extent.fixed()) return number(extent.constant);
  auto& name = integers_[extent];
  if (!name.empty()) return name;
  auto value = batch();
  if (extent.factor != 1) value = add_node({}, "Mul", {value, number(extent.factor)}, {}, 1);
  if (extent.constant != 0) value = add_node({}, "Add", {value, number(extent.constant)}, {}, 1);
  return name = value;
}

std::string Exporter::integers(const ExtentList& extents) {
  std::vector<std::string> pieces;
  std::vector<std::int64_t> run;
  const auto end_run = [&] {
    if (run.empty()) return;
    pieces.push_back(constant(HostTensor::of(ElementType::i64, Shape{static_cast<std::int64_t>(run.size())}, run)));
    run.clear();
  };
  for (const auto& extent : extents) {
    if (extent.fixed()) {
      run.push_back(extent.constant);
      continue;
    }
    end_run();
    pieces.push_back(integer(extent));
  }
  if (pieces.empty() && run.empty()) return constant(HostTensor::of(ElementType::i64, Shape{0}, std::vector<std::int64_t>{}));
  end_run();
  return pieces.size() == 1 ? pieces[0] : add_node({}, "Concat", pieces, {write_attribute("axis", std::int64_t{0})}, 1);
}

/// A value that no operation of the function made: a parameter, or a constant.
bool Exporter::define_leaf(const Tensors& at) {
  std::ptrdiff_t leaves = 0;
  for (std::size_t b = 0; b < at.size(); ++b) {
    const auto& node = *node_of(at[b]);
    if (!node.op || node.slot != 0 || node.order < builds_[b]->first) ++leaves;
  }
  if (leaves == 0) return false;
  if (leaves != static_cast<std::ptrdiff_t>(at.size())) builds_differ("the graph");
  const auto slot = node_of(at[0])->slot;
  for (const auto& tensor : at)
    if (node_of(tensor)->slot != slot) builds_differ("the graph");
  if (const auto found = names_.parameters.find(slot); slot != 0 && found != names_.parameters.end()) {
    define(at, found->second, false);
    return true;
  }
  if (std::all_of(at.begin(), at.end(), [&](const Tensor& tensor) { return same_value(at[0], tensor); })) {
    define(at, {}, true);
    return true;
  }
  define_value(at);
  return true;
}

/// Integers that follow the batch, as a shape that became a tensor.
void Exporter::define_value(const Tensors& at) {
  constexpr std::int64_t most = 64;
  const auto& spec = at[0].spec();
  if (spec.shape.numel() > most) builds_differ("a constant");
  std::vector<std::vector<double>> values;
  for (const auto& tensor : at) {
    if (tensor.spec() != spec) builds_differ("a constant");
    values.push_back(value_of(tensor).numbers());
  }
  ExtentList list;
  for (std::size_t i = 0; i < values[0].size(); ++i) {
    std::vector<std::int64_t> by_build;
    for (const auto& of : values) {
      if (of[i] != std::floor(of[i]) || std::abs(of[i]) > 0x1p52) builds_differ("a constant");
      by_build.push_back(static_cast<std::int64_t>(of[i]));
    }
    list.push_back(extent_of(by_build));
  }
  auto name = integers(list);
  if (spec.shape.rank() != 1) name = add_node({}, "Reshape", {name, integers(fixed(spec.shape.extents()))}, {}, 1);
  if (spec.dtype != Dtype::i64)
    name = add_node({}, "Cast", {name}, {write_attribute("to", static_cast<std::int64_t>(type_of(spec.dtype)))}, 1);
  define(at, name, false);
}

std::optional<Site> Exporter::composed_site(const Tensors& at) {
  std::vector<std::vector<const Composition*>> calls;
  for (std::size_t b = 0; b < at.size(); ++b) calls.push_back(builds_[b]->compositions.of(at[b]));
  for (std::size_t i = 0; i < calls[0].size(); ++i) {
    Site site;
    site.name = calls[0][i]->name;
    site.saver = saver_of(site.name);
    if (!site.saver) continue;
    for (const auto& of : calls) {
      if (i >= of.size() || of[i]->name != site.name) builds_differ(site.name);
      site.fields.push_back(of[i]->fields);
      site.inputs.push_back(of[i]->inputs);
      site.outputs.push_back(of[i]->outputs);
    }
    site.scope = node_of(at[0])->scope;
    if (site.saver->fits && !site.saver->fits(SaveCall(*this, site))) continue;
    return site;
  }
  return std::nullopt;
}

Site Exporter::site_of(const Tensors& at) {
  if (auto composed = composed_site(at)) return std::move(*composed);
  Site site;
  const auto& first = *node_of(at[0]);
  site.name = first.op->name();
  site.saver = saver_of(site.name);
  site.scope = first.scope;
  for (const auto& tensor : at) {
    const auto& node = node_of(tensor);
    if (node->op->name() != site.name || node->inputs.size() != first.inputs.size() ||
        node->outputs.size() != first.outputs.size() || output_of(tensor) != output_of(at[0]))
      builds_differ(site.name);
    site.fields.push_back(node->op->fields());
    site.inputs.push_back(node->inputs);
    Tensors outputs;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) outputs.push_back(uncounted(node, static_cast<int>(i)));
    site.outputs.push_back(std::move(outputs));
  }
  return site;
}

void Exporter::visit(const Tensors& root) {
  struct Step {
    Tensors at;
    std::optional<Site> site;
    std::size_t next = 0;
  };
  std::vector<Step> steps;
  steps.push_back({root, std::nullopt, 0});
  while (!steps.empty()) {
    auto& step = steps.back();
    if (const auto found = known_.find(key_of(step.at[0])); found != known_.end()) {
      for (std::size_t b = 0; b < step.at.size(); ++b)
        if (key_of(step.at[b]) != key_of(found->second.at[b]) &&
            (!found->second.constant || !same_value(step.at[b], found->second.at[b])))
          builds_differ("the graph");
      steps.pop_back();
      continue;
    }
    if (!step.site) {
      if (define_leaf(step.at)) {
        steps.pop_back();
        continue;
      }
      step.site = site_of(step.at);
    }
    const auto& inputs = step.site->inputs;
    if (step.next == inputs[0].size()) {
      emit(*step.site);
      if (!known_.contains(key_of(step.at[0]))) SaveCall(*this, *step.site).refuse("has a second result, which ONNX lacks");
      steps.pop_back();
      continue;
    }
    Tensors next;
    for (const auto& of : inputs) {
      if (of.size() != inputs[0].size() || of[step.next].defined() != inputs[0][step.next].defined())
        builds_differ(step.site->name);
      next.push_back(of[step.next]);
    }
    ++step.next;
    if (next[0].defined()) steps.push_back({std::move(next), std::nullopt, 0});
  }
}

bool Exporter::is_constant(const Site& site) const {
  if (is_random(site.name)) return false;
  for (const auto& input : site.inputs[0])
    if (input.defined() && !known_.at(key_of(input)).constant) return false;
  for (std::size_t b = 1; b < site.fields.size(); ++b) {
    if (site.fields[b] != site.fields[0]) return false;
    for (std::size_t i = 0; i < site.outputs[b].size(); ++i)
      if (site.outputs[b][i].spec() != site.outputs[0][i].spec()) return false;
  }
  return true;
}

void Exporter::require_same_kind(const Site& site) const {
  const auto differ = [](const Tensor& a, const Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() != b.defined();
    return a.dtype() != b.dtype() || a.rank() != b.rank();
  };
  for (const auto* by_build : {&site.inputs, &site.outputs})
    for (const auto& tensors : *by_build)
      if (!std::equal(tensors.begin(), tensors.end(), by_build->front().begin(), by_build->front().end(), std::not_fn(differ)))
        builds_differ(site.name);
}

void Exporter::emit(const Site& site) {
  require_same_kind(site);
  const auto outputs_at = [&](std::size_t output) {
    Tensors at;
    for (const auto& of : site.outputs) at.push_back(of[output]);
    return at;
  };
  const auto count = site.outputs[0].size();
  if (is_constant(site)) {
    for (std::size_t i = 0; i < count; ++i)
      if (site.outputs[0][i].defined()) define(outputs_at(i), {}, true);
    return;
  }
  SaveCall call(*this, site);
  if (is_random(site.name)) call.refuse("is random, and another value at each run");
  if (!site.saver) call.refuse("has no operator of ONNX");
  site.saver->save(call);
  for (auto& [output, name] : call.given_) define(outputs_at(output), std::move(name), false);
}

void Exporter::run() {
  const auto& first = *builds_[0];
  std::map<std::string, std::string> renamed;
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    Tensors at;
    for (const auto& build : builds_) {
      if (build->outputs.size() != first.outputs.size()) builds_differ("the number of outputs");
      at.push_back(build->outputs[i]);
    }
    visit(at);
    const auto found = known_.find(key_of(at[0]));
    if (found == known_.end()) throw Unsupported(fmt::format("onnx::save: output {} is a result that is not written", i));
    const auto name = name_of(at[0]);
    const bool made = std::any_of(nodes_.begin(), nodes_.end(), [&](const WrittenNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
    });
    if (made && renamed.emplace(name, names_.outputs[i]).second) continue;
    // An input, a parameter, or another output as well.
    WrittenNode same{"Identity", unique("Identity"), {name}, {names_.outputs[i]}, {}};
    nodes_.push_back(std::move(same));
  }
  for (auto& node : nodes_)
    for (auto* names : {&node.inputs, &node.outputs})
      for (auto& name : *names)
        if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
}

void Exporter::require_outputs(std::int64_t batch, const Tensors& outputs) const {
  if (outputs.size() != builds_[0]->outputs.size()) builds_differ("the number of outputs");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& first = builds_[0]->outputs[i];
    if (outputs[i].dtype() != first.dtype() || outputs[i].rank() != first.rank()) builds_differ("an output");
    for (int d = 0; d < first.rank(); ++d) {
      std::vector<std::int64_t> by_build;
      for (const auto& build : builds_) by_build.push_back(build->outputs[i].size(d));
      const auto extent = extent_of(by_build);
      if (extent.factor * batch + extent.constant != outputs[i].size(d)) builds_differ("an output");
    }
  }
}

std::string Exporter::value_info(const Tensors& at, const std::string& name) const {
  std::vector<WrittenExtent> extents;
  for (int d = 0; d < at[0].rank(); ++d) {
    std::vector<std::int64_t> by_build;
    for (const auto& tensor : at) {
      if (tensor.rank() != at[0].rank()) builds_differ("an output");
      by_build.push_back(tensor.size(d));
    }
    const auto extent = extent_of(by_build);
    if (extent.fixed())
      extents.push_back({extent.constant, {}});
    else
      extents.push_back({-1, extent == Extent{1, 0} ? "batch" : ""});
  }
  return write_value_info(name, type_of(at[0].dtype()), extents);
}

std::uint64_t Exporter::constant_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& initializer : initializers_) bytes += initializer.host.bytes.size();
  return bytes;
}

std::string Exporter::graph(const std::vector<std::pair<std::string, Tensor>>& parameters, ExternalData* beside) const {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto& node : nodes_) {
    std::string message;
    protozero::pbf_writer fields(message);
    for (const auto& input : node.inputs) fields.add_string(1, input);
    for (const auto& output : node.outputs) fields.add_string(2, output);
    fields.add_string(3, node.name);
    fields.add_string(4, node.op);
    for (const auto& attribute : node.attributes) fields.add_message(5, attribute);
    writer.add_message(1, message);
  }
  writer.add_string(2, "clnet");
  // Parameters first, in the module's order, read or not.
  for (const auto& [name, value] : parameters)
    writer.add_message(5, beside ? beside->add(name, value) : write_tensor(value_of(value), name));
  for (const auto& [name, host] : initializers_)
    writer.add_message(5, beside ? beside->add(name, host) : write_tensor(host, name));
  const auto info = [&](const std::string& name, std::size_t i, Tensors Build::*of) {
    Tensors at;
    for (const auto& build : builds_) at.push_back(((*build).*of)[i]);
    return value_info(at, name);
  };
  for (std::size_t i = 0; i < names_.inputs.size(); ++i) writer.add_message(11, info(names_.inputs[i], i, &Build::inputs));
  for (std::size_t i = 0; i < names_.outputs.size(); ++i) writer.add_message(12, info(names_.outputs[i], i, &Build::outputs));
  return out;
}

const Field& SaveCall::field(std::string_view field, std::size_t build) const {
  for (const auto& [name, value] : site_.fields[build])
    if (name == field) return value;
  throw Error(fmt::format("onnx::save: {} has no attribute {}", site_.name, field));
}

bool SaveCall::has_field(std::string_view field) const {
  const auto has = [&](const Fields& fields) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& entry) { return entry.first == field; });
  };
  const bool first = has(site_.fields[0]);
  for (const auto& fields : site_.fields)
    if (has(fields) != first) builds_differ(site_.name);
  return first;
}
template <class T>
const T& SaveCall::same(std::string_view field) const {
  const auto& value = std::get<T>(this->field(field, 0));
  for (std::size_t b = 1; b < site_.fields.size(); ++b)
    if (std::get<T>(this->field(field, b)) != value) builds_differ(site_.name);
  return value;
}
bool SaveCall::flag(std::string_view field) const { return same<bool>(field); }
std::string SaveCall::text(std::string_view field) const { return same<std::string>(field); }
double SaveCall::number(std::string_view field) const {
  const auto value = std::get<double>(this->field(field, 0));
  for (std::size_t b = 1; b < site_.fields.size(); ++b) {
    const auto other = std::get<double>(this->field(field, b));
    if (std::memcmp(&value, &other, sizeof value) != 0) builds_differ(site_.name);
  }
  return value;
}
Extent SaveCall::extent(std::string_view field) const {
  std::vector<std::int64_t> by_build;
  for (std::size_t b = 0; b < site_.fields.size(); ++b) by_build.push_back(std::get<std::int64_t>(this->field(field, b)));
  return exporter_.extent_of(by_build);
}
std::int64_t SaveCall::integer(std::string_view field) const {
  const auto found = extent(field);
  if (!found.fixed()) builds_differ(site_.name);
  return found.constant;
}
ExtentList SaveCall::extents(std::string_view field) const {
  ExtentList out;
  const auto& first = std::get<std::vector<std::int64_t>>(this->field(field, 0));
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::vector<std::int64_t> by_build;
    for (std::size_t b = 0; b < site_.fields.size(); ++b) {
      const auto& list = std::get<std::vector<std::int64_t>>(this->field(field, b));
      if (list.size() != first.size()) builds_differ(site_.name);
      by_build.push_back(list[i]);
    }
    out.push_back(exporter_.extent_of(by_build));
  }
  return out;
}
std::vector<std::int64_t> SaveCall::integers(std::string_view field) const {
  std::vector<std::int64_t> out;
  for (const auto& extent : extents(field)) {
    if (!extent.fixed()) builds_differ(site_.name);
    out.push_back(extent.constant);
  }
  return out;
}

namespace {

ExtentList shapes_of(const std::vector<Tensors>& by_build, std::size_t which, const auto& extent_of) {
  ExtentList out;
  for (int d = 0; d < by_build[0][which].rank(); ++d) {
    std::vector<std::int64_t> extents;
    for (const auto& tensors : by_build) {
      if (tensors[which].rank() != by_build[0][which].rank()) builds_differ("a rank");
      extents.push_back(tensors[which].size(d));
    }
    out.push_back(extent_of(extents));
  }
  return out;
}

}  // namespace

ExtentList SaveCall::shape(std::size_t input) const {
  return shapes_of(site_.inputs, input, [&](const auto& extents) { return exporter_.extent_of(extents); });
}
ExtentList SaveCall::out_shape(std::size_t output) const {
  return shapes_of(site_.outputs, output, [&](const auto& extents) { return exporter_.extent_of(extents); });
}

std::int64_t SaveCall::fixed_extent(std::size_t input, std::size_t dim) const {
  const auto extent = shape(input)[dim];
  if (!extent.fixed()) follow_no_batch();
  return extent.constant;
}

std::string SaveCall::in(std::size_t input) { return has(input) ? exporter_.name_of(site_.inputs[0][input]) : std::string(); }

std::string SaveCall::in_as(std::size_t input, Dtype dtype) {
  if (spec(input).dtype == dtype) return in(input);
  if (const auto host = constant(input)) {
    const auto type = type_of(dtype);
    return tensor(is_floating(type) ? HostTensor::of(type, host->shape, host->numbers())
                                    : HostTensor::of(type, host->shape, host->integers()));
  }
  return cast(in(input), dtype);
}

std::optional<HostTensor> SaveCall::constant(std::size_t input) const {
  if (!has(input)) return std::nullopt;
  const auto found = exporter_.known_.find(Exporter::key_of(site_.inputs[0][input]));
  if (found == exporter_.known_.end() || !found->second.constant) return std::nullopt;
  return value_of(site_.inputs[0][input]);
}

std::string SaveCall::op(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes) {
  return exporter_.add_node(site_.scope, op, std::move(inputs), std::move(attributes), 1);
}
std::vector<std::string> SaveCall::ops(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes,
                                       std::size_t outputs) {
  std::vector<std::string> all;
  exporter_.add_node(site_.scope, op, std::move(inputs), std::move(attributes), outputs, &all);
  return all;
}
std::string SaveCall::cast(const std::string& value, Dtype to) {
  return op("Cast", {value}, {write_attribute("to", static_cast<std::int64_t>(type_of(to)))});
}
std::string SaveCall::scalar(double value, Dtype dtype) {
  return tensor(HostTensor::of(type_of(dtype), Shape{}, std::vector<double>{value}));
}
std::string SaveCall::list(const std::vector<std::int64_t>& values) { return exporter_.integers(fixed(values)); }

std::string SaveCall::reshape(const std::string& value, const ExtentList& to) {
  // One extent that follows the batch is what the others leave.
  ExtentList wanted = to;
  const auto follows = [](const Extent& extent) { return !extent.fixed(); };
  const bool none_is_empty = std::none_of(to.begin(), to.end(), [](const Extent& extent) { return extent == Extent{}; });
  if (std::count_if(to.begin(), to.end(), follows) == 1 && none_is_empty)
    *std::find_if(wanted.begin(), wanted.end(), follows) = {0, -1};
  std::vector<std::string> attributes;
  if (!none_is_empty) attributes.push_back(write_attribute("allowzero", std::int64_t{1}));
  return op("Reshape", {value, list(wanted)}, std::move(attributes));
}
std::string SaveCall::expand(const std::string& value, const ExtentList& to) { return op("Expand", {value, list(to)}); }
std::string SaveCall::transpose(const std::string& value, const std::vector<std::int64_t>& order) {
  return op("Transpose", {value}, {write_attribute("perm", order)});
}
std::string SaveCall::slice(const std::string& value, std::int64_t dim, std::int64_t start, std::int64_t end) {
  return op("Slice", {value, list(std::vector{start}), list(std::vector{end}), list(std::vector{dim})});
}

void SaveCall::give(std::string name, std::size_t output) { given_[output] = std::move(name); }

void SaveCall::follow_no_batch() const { builds_differ(site_.name); }

void SaveCall::refuse(std::string_view why) const {
  throw Unsupported(fmt::format("onnx::save: {}{} {}", site_.name, place_of(site_.scope), why));
}

}  // namespace clnet::onnx
