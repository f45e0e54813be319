#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "clnet/error.h"
#include "clnet/onnx.h"
#include "clnet/ops/elementwise.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/exec/collect/copy.h"
#include "lib/graph/capture.h"
#include "lib/onnx/adapt.h"
#include "lib/onnx/names.h"
#include "lib/onnx/passes.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"
#include "lib/ops/stand_in.h"

namespace clnet::onnx {
namespace {

/// One that is taken gets an underline, or one and a number.
struct Names : UniqueNames {
  std::string free_name(const std::string& name) { return numbered(name, 0); }
};

constexpr std::ptrdiff_t deepest_group = 64;  // dots in a name that makes groups

/// A part of a name before a dot: it has parameters, buffers and further parts.
struct Group : nn::Module {
  std::map<std::string, std::shared_ptr<Group>> groups;
  Names names;

  std::shared_ptr<Group> group(const std::string& name) {
    auto& found = groups[name];
    if (!found) {
      found = std::make_shared<Group>();
      add(names.free_name(name), found);
    }
    return found;
  }
  using nn::Module::add_buffer;
  using nn::Module::add_parameter;
};

/// Where an initializer goes.
enum class Place : std::uint8_t { parameter, buffer, graph };

/// What the nodes of a graph, and of graphs within, read an initializer for.
struct Roles {
  std::map<std::string_view, std::set<Role>> of;
  std::map<const Program*, std::vector<std::set<Role>>> functions;

  /// Of a function's inputs, by what its body reads them for.
  const std::vector<std::set<Role>>& roles_of_inputs(const Program& body) {
    auto [known, is_new] = functions.try_emplace(&body);
    if (is_new) {
      Roles inside;
      inside.add(body);
      std::vector<std::set<Role>> roles;
      for (const auto slot : body.inputs) roles.push_back(inside.of[body.names[static_cast<std::size_t>(slot)]]);
      functions[&body] = std::move(roles);
    }
    return functions[&body];
  }

  void add(const Program& program, const std::set<std::string_view>& shadowed = {}) {
    for (const auto& instruction : program.instructions) {
      const auto& node = *instruction.node;
      const auto inner_roles = instruction.function ? roles_of_inputs(*instruction.function) : std::vector<std::set<Role>>{};
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].empty() || shadowed.contains(node.inputs[i])) continue;
        auto& roles = of[node.inputs[i]];
        if (i < inner_roles.size())
          roles.insert(inner_roles[i].begin(), inner_roles[i].end());
        else if (instruction.op && !instruction.op->roles.empty())
          roles.insert(instruction.op->roles[std::min(i, instruction.op->roles.size() - 1)]);
        else
          roles.insert(Role::data);
      }
      for (const auto& body : instruction.graphs) {
        auto inner = shadowed;
        for (const auto slot : body->inputs) inner.insert(body->names[static_cast<std::size_t>(slot)]);
        add(*body, inner);
      }
    }
  }
};

/// What save() wrote about initializers: which are parameters, and which are buffers.
struct SavedNames {
  std::set<std::string_view> parameters, buffers;
  bool known = false;  ///< whether that holds for the file: other initializers are constants

  SavedNames(const ModelFile& file, const std::vector<std::string>& fresh) {
    for (const auto& [key, value] : file.metadata) {
      auto* names = key == parameters_key ? &parameters : key == buffers_key ? &buffers : nullptr;
      known = known || names;
      for (auto rest = value; names && !rest.empty();) {
        const auto end = std::min(rest.find('\n'), rest.size());
        names->insert(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    if (!known) return;
    // Another program may have renamed them and kept the lists.
    std::set<std::string_view> present;
    for (const auto& data : file.graph.initializers) present.insert(data.name);
    if (std::includes(present.begin(), present.end(), parameters.begin(), parameters.end()) &&
        std::includes(present.begin(), present.end(), buffers.begin(), buffers.end()))
      parameters.insert(fresh.begin(), fresh.end());
    else
      *this = {};
  }

 private:
  SavedNames() = default;
};

Place place_of(const TensorData& data, const std::set<Role>& roles, const SavedNames& saved) {
  if (saved.parameters.contains(data.name) && is_floating(data.type)) return Place::parameter;
  if (saved.buffers.contains(data.name)) return Place::buffer;
  if (saved.known) return Place::graph;
  // Whether it has few elements, and one.
  std::int64_t count = 1;
  for (const auto extent : data.dims) count = std::min<std::int64_t>(count * std::clamp<std::int64_t>(extent, 0, 65), 65);
  if (!roles.empty() && std::all_of(roles.begin(), roles.end(), [](auto role) { return role == Role::structure; }))
    return Place::graph;
  if (roles.contains(Role::structure)) return Place::graph;
  if (roles.contains(Role::statistic)) return Place::buffer;
  if (!is_floating(data.type)) return count <= 64 ? Place::graph : Place::buffer;
  if (roles.contains(Role::weight) || count > 1) return Place::parameter;
  return Place::graph;
}

/// A tensor of the file, and where it goes.
struct Placed {
  const TensorData* data;
  std::string_view name;
  Place place;
};

/// Initializers, and what Constant nodes give to weights' inputs, of a graph and of those within.
void add_placed(const Program& program, Roles& roles, const SavedNames& saved, std::vector<Placed>& out) {
  for (const auto& [slot, data] : program.initializers)
    out.push_back({data, data->name, place_of(*data, roles.of[data->name], saved)});
  for (const auto& instruction : program.instructions) {
    for (const auto& body : instruction.graphs) add_placed(*body, roles, saved, out);
    const auto& node = *instruction.node;
    if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.size() != 1) continue;
    const auto& used = roles.of[node.outputs[0]];
    for (const auto& attribute : node.attributes)
      if (attribute.name == "value" && attribute.tensors.size() == 1 && used.contains(Role::weight) &&
          place_of(attribute.tensors[0], used, saved) == Place::parameter)
        out.push_back({attribute.tensors.data(), node.outputs[0], Place::parameter});
  }
}

std::string type_name(const TypeInfo& type) {
  const auto* inner = &type;
  while (inner->inner) inner = inner->inner.get();
  return inner->element == ElementType::undefined ? std::string() : std::string(to_string(inner->element));
}

ValueInfo info_of(const TypedName& of, bool optional) {
  ValueInfo out;
  out.name = of.name;
  out.type = type_name(of.type);
  out.is_optional = of.type.kind == TypeInfo::Kind::optional;
  const auto* of_value = out.is_optional ? of.type.inner.get() : &of.type;
  out.is_sequence = of_value && of_value->kind == TypeInfo::Kind::sequence;
  out.optional = optional;
  out.is_known_rank = of.type.shape.has_value();
  if (of.type.shape)
    for (const auto& extent : *of.type.shape)
      // Some exporters write -1 for an extent that they do not know.
      out.extents.push_back(extent.value.value_or(-1) >= 0 ? std::to_string(*extent.value)
                            : extent.parameter.empty()     ? std::string("?")
                                                           : std::string(extent.parameter));
  return out;
}

/// The type of a value that a program gives, as the file declares it or as its dtype is.
ElementType type_of_given(const Value& value, ElementType declared) {
  if (const auto named = element_type_of(value.type); named != ElementType::undefined) return named;
  if (declared != ElementType::undefined && dtype_of(declared) == value.tensor.dtype()) return declared;
  return type_of(value.tensor.dtype());
}

RunValue run_value(const Value& value, ElementType declared) {
  if (!value.is_sequence) return value.tensor.defined() ? RunValue(value.tensor, type_of_given(value, declared)) : RunValue();
  std::vector<RunValue> elements;
  for (const auto& element : value.elements) elements.push_back(run_value(element, declared));
  return RunValue::sequence(std::move(elements));
}

Value value_of(const RunValue& value) {
  Value out;
  if (value.is_sequence()) {
    out.is_sequence = true;
    for (const auto& element : value.elements()) out.elements.push_back(value_of(element));
  } else if (value.is_there()) {
    out.tensor = value.tensor();
    out.type = to_string(value.type());
  }
  return out;
}

}  // namespace

struct Model::Loaded {
  ModelFile file;
  LoadOptions options;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Program> for_inference;  ///< the same after passes
  std::vector<MissingOperator> missing;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<std::pair<std::string, std::int64_t>> opsets;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::unique_ptr<Constants> constants;
  std::string last_softmax;
  std::vector<std::string> fresh;  ///< initializers of a new head
};

/// A clone has its own, and keeps nothing yet.
struct Model::Held {
  Held() = default;
  Held(const Held& other) : parameters(other.parameters), head(other.head), check(other.check) {}
  Held& operator=(const Held&) = delete;
  ~Held() = default;

  struct Initializer {
    const TensorData* data;
    nn::Parameter parameter;
    bool is_buffer;
  };
  std::vector<Initializer> parameters;
  std::shared_ptr<WeightValues> weights = std::make_shared<WeightValues>();
  std::vector<std::string> head;
  std::function<void()> check = [] {};
};

Model::Model(const Model& other) : Module(other), loaded_(other.loaded_), held_(nn::detail::shared_or_cloned(other.held_)) {}

Model::Model(std::shared_ptr<Loaded> loaded) : loaded_(std::move(loaded)), held_(std::make_shared<Held>()) {
  const auto& file = loaded_->file;
  Roles roles;
  roles.add(*loaded_->program);
  const SavedNames saved(file, loaded_->fresh);
  std::map<std::string, std::shared_ptr<Group>> groups;
  Names own;
  std::vector<Placed> all;
  add_placed(*loaded_->program, roles, saved, all);
  for (const auto& [data, given_name, place] : all) {
    if (place == Place::graph) {
      loaded_->constants->of(*data);  // a damaged one is an error of load()
      continue;
    }
    auto host = content_of(*data, file.folder, file.name);
    if (host.type == ElementType::f64 && loaded_->options.f64_as_f32)
      host = HostTensor::of(ElementType::f32, host.shape, host.numbers());
    const Tensor value = to_tensor(host);
    // "layer1.0.conv1.weight" lies in the groups layer1, 0 and conv1.
    const std::string name(given_name);
    const auto dot = name.find('.');
    const bool plain = dot == std::string::npos;
    const bool parted = !plain && dot > 0 && name.back() != '.' && name.find("..") == std::string::npos &&
                        std::count(name.begin(), name.end(), '.') <= deepest_group;
    const bool trains = place == Place::parameter;
    const auto take = [&](auto& module, std::string last) {
      return trains ? module.add_parameter(last, value) : module.add_buffer(last, value);
    };
    std::optional<nn::Parameter> parameter;
    if (!parted) {
      auto last = name.empty() ? std::string("unnamed") : name;
      std::replace(last.begin(), last.end(), '.', '_');
      last = own.free_name(last);
      parameter = trains ? add_parameter(last, value) : add_buffer(last, value);
    } else {
      auto& first = groups[name.substr(0, dot)];
      if (!first) {
        first = std::make_shared<Group>();
        add(own.free_name(name.substr(0, dot)), first);
      }
      auto group = first;
      auto rest = name.substr(dot + 1);
      for (auto at = rest.find('.'); at != std::string::npos; at = rest.find('.')) {
        group = group->group(rest.substr(0, at));
        rest = rest.substr(at + 1);
      }
      parameter = take(*group, group->names.free_name(rest));
    }
    held_->parameters.push_back({data, *parameter, place == Place::buffer});
  }
  std::vector<nn::Parameter> head;
  for (const auto& [data, parameter, is_buffer] : held_->parameters)
    if (std::find(loaded_->fresh.begin(), loaded_->fresh.end(), data->name) != loaded_->fresh.end()) head.push_back(parameter);
  if (!head.empty())
    for (const auto& [name, parameter] : parameters())
      if (std::any_of(head.begin(), head.end(), [&of = parameter](const auto& each) { return each.same(of); }))
        held_->head.push_back(name);
  inference();
}

const std::vector<ValueInfo>& Model::inputs() const { return loaded_->inputs; }
const std::vector<ValueInfo>& Model::outputs() const { return loaded_->outputs; }
const std::vector<MissingOperator>& Model::missing_operators() const { return loaded_->missing; }
std::int64_t Model::ir_version() const { return loaded_->file.ir_version; }
const std::vector<std::pair<std::string, std::int64_t>>& Model::opsets() const { return loaded_->opsets; }
const std::string& Model::producer() const { return loaded_->producer; }
const std::string& Model::last_softmax() const { return loaded_->last_softmax; }
const std::vector<std::string>& Model::head() const { return held_->head; }

const std::vector<std::pair<std::string, std::string>>& Model::metadata() const { return loaded_->metadata; }

std::vector<std::pair<std::string, std::int64_t>> Model::operators() const {
  std::map<std::string, std::int64_t> counts;
  for (const auto& node : loaded_->file.graph.nodes)
    ++counts[node.domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type)];
  return {counts.begin(), counts.end()};
}

void Model::set_check(std::function<void()> check) {
  held_->check = check ? std::move(check) : [] {};
}

std::vector<Value> Model::run_values(const std::vector<Value>& inputs) {
  return called(*this, [&](Model& self) { return self.results_of(inputs); });
}

namespace {

/// Throws ShapeError for an input that has not the declared extents. A name stands for one extent in all inputs.
void require_declared_shapes(const ModelFile& file, const std::vector<RunValue>& values) {
  std::map<std::string_view, std::int64_t> extent_of;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& declared = file.graph.inputs[i];
    if (!values[i].is_there() || values[i].is_sequence() || declared.type.kind != TypeInfo::Kind::tensor || !declared.type.shape)
      continue;
    const auto& shape = values[i].shape();
    const auto& wanted = *declared.type.shape;
    const auto fail = [&](const std::string& reason) {
      throw ShapeError(fmt::format("{}: input {} is {}, {}", file.name, in_quotes(declared.name), to_string(shape), reason));
    };
    if (std::cmp_not_equal(wanted.size(), shape.rank()))
      fail(fmt::format("the network wants {} dimension{}", wanted.size(), wanted.size() == 1 ? "" : "s"));
    for (int d = 0; d < shape.rank(); ++d) {
      const auto& dimension = wanted[static_cast<std::size_t>(d)];
      if (dimension.value && *dimension.value >= 0 && *dimension.value != shape[d])
        fail(fmt::format("the network wants {} in dimension {}", *dimension.value, d));
      if (dimension.value || dimension.parameter.empty()) continue;
      const auto known = extent_of.emplace(dimension.parameter, shape[d]).first->second;
      if (known != shape[d]) fail(fmt::format("and {} of another input is {}", in_quotes(dimension.parameter), known));
    }
  }
}

/// Where inputs or parameters live; the current device where they live on none.
Device device_of(const std::vector<RunValue>& inputs, const std::vector<nn::Parameter>& parameters) {
  for (const auto& input : inputs)
    if (input.is_there() && !input.is_sequence() && exec::device_of_graph(input.tensor())) return input.tensor().device();
  for (const auto& parameter : parameters)
    if (exec::device_of_graph(parameter.value())) return parameter.value().device();
  return Device::current();
}

}  // namespace

std::optional<double> Model::multiply_adds() try {
  std::vector<Value> given;
  for (const auto& input : loaded_->inputs) {
    const auto& type = loaded_->file.graph.inputs[given.size()].type;
    if (input.optional || input.is_optional) {
      given.emplace_back();
      continue;
    }
    if (input.is_sequence || !type.shape) return std::nullopt;
    std::vector<std::int64_t> extents;
    for (const auto& extent : *type.shape) {
      const auto known = extent.value.value_or(-1);
      if (known < 0 && !extents.empty()) return std::nullopt;
      extents.push_back(known < 0 ? 1 : known);
    }
    given.emplace_back(ops::stand_in({Shape(extents), dtype_of(type.element)}));
  }
  double count = 0;
  (void)results_of(given, &count);
  return count;
} catch (const Error&) {
  return std::nullopt;  // a run tells the reason
}

std::vector<Value> Model::results_of(const std::vector<Value>& inputs, double* multiply_adds) {
  const auto& loaded = *loaded_;
  if (!loaded.missing.empty()) {
    const auto& first = loaded.missing.front();
    throw clnet::Unsupported(fmt::format(
        "{}: operator {} of set {} (node {}) is not supported{}", loaded.file.name, in_quotes(first.operation), first.opset,
        in_quotes(first.node), loaded.missing.size() > 1 ? fmt::format(", nor are {} others", loaded.missing.size() - 1) : ""));
  }
  const auto& declared = loaded.file.graph.inputs;
  if (inputs.size() > declared.size())
    throw Error(fmt::format("{}: got {} inputs, the network has {}", loaded.file.name, inputs.size(), declared.size()));
  std::vector<RunValue> values;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    auto value = i < inputs.size() ? run_value(inputs[i], declared[i].type.element) : RunValue();
    if (value.type() == ElementType::f64 && loaded.options.f64_as_f32) value = RunValue(cast(value.tensor(), Dtype::f32));
    if (!value.is_there() && !loaded.inputs[i].optional && !loaded.inputs[i].is_optional)
      throw Error(fmt::format("{}: input {} is missing", loaded.file.name, in_quotes(declared[i].name)));
    values.push_back(std::move(value));
  }
  require_declared_shapes(loaded.file, values);
  Runner::Held held;
  std::vector<nn::Parameter> parameters;
  for (const auto& [data, parameter, is_buffer] : held_->parameters) {
    parameters.push_back(parameter);
    // The dtype of a double is f32 where the options say so.
    const bool keeps = dtype_of(data->type) == parameter.dtype();
    RunValue value(parameter, keeps ? data->type : type_of(parameter.dtype()));
    if (is_buffer) value.set_buffer();
    held.emplace(data, std::move(value));
  }
  const DeviceScope scope(device_of(values, parameters));
  // A file that save() writes has the weights themselves.
  const bool is_saved = capturing() && capturing()->keeps_values;
  const bool keeps_weights = loaded.options.passes && !training() && !multiply_adds && !is_saved;
  Runner runner(held, *loaded.constants,
                {.training = training() && !multiply_adds,
                 .f64_as_f32 = loaded.options.f64_as_f32,
                 .may_read = capturing() == nullptr && !multiply_adds,
                 .weights = keeps_weights ? held_->weights.get() : nullptr,
                 .multiply_adds = multiply_adds,
                 .freeze_statistics = loaded.options.freeze_statistics,
                 .check = held_->check});
  std::vector<Value> out;
  for (const auto& value : runner.run(training() || multiply_adds ? *loaded.program : *loaded.for_inference, values))
    out.push_back(value_of(value));
  return out;
}

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  for (auto& value : run_values({inputs.begin(), inputs.end()})) {
    if (value.is_sequence) throw Error(fmt::format("{}: an output is a sequence: run_values() returns it", loaded_->file.name));
    out.push_back(std::move(value.tensor));
  }
  return out;
}

Tensor Model::forward(const Tensor& x) {
  std::vector<Tensor> given(inputs().size());
  int missing = 0;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!inputs()[i].optional && ++missing == 1) given[i] = x;
  if (missing != 1) throw Error(fmt::format("{}: the network has {} inputs; use run()", loaded_->file.name, missing));
  auto results = results_of({given.begin(), given.end()});
  if (results.empty() || !results[0].tensor.defined())
    throw Error(fmt::format("{}: the first output is no tensor", loaded_->file.name));
  return std::move(results[0].tensor);
}

namespace {

constexpr std::int64_t oldest = 1, newest = 28;

}  // namespace

Model load(const std::filesystem::path& path, const LoadOptions& options) {
  auto loaded = std::make_shared<Model::Loaded>();
  loaded->file = read_model(path);
  loaded->options = options;
  auto& file = loaded->file;
  for (const auto& [domain, version] : file.opsets) {
    if (domain.empty() && (version < oldest || version > newest))
      throw FileError(fmt::format("{}: operator set {} of ONNX; {} to {} are read", file.name, version, oldest, newest));
    loaded->opsets.emplace_back(domain, version);
  }
  loaded->producer = file.producer;
  if (!file.producer_version.empty()) loaded->producer += fmt::format(" {}", file.producer_version);
  loaded->metadata.assign(file.metadata.begin(), file.metadata.end());
  loaded->program = resolve(file, loaded->missing);
  // Changes need a graph that was checked.
  loaded->last_softmax = last_softmax(file, options.logits);
  if (options.train_constants) take_constants(file);
  if (options.replace_head != 0) loaded->fresh = replace_head(file, options.replace_head);
  if (options.free_batch) free_batch(file);
  if (options.logits || options.replace_head != 0 || options.free_batch || options.train_constants) {
    loaded->missing.clear();
    loaded->program = resolve(file, loaded->missing);
  }
  loaded->for_inference = options.passes ? optimized(loaded->program) : loaded->program;
  std::set<std::string_view> initialized;
  for (const auto& data : file.graph.initializers) initialized.insert(data.name);
  for (const auto& data : file.graph.sparse_initializers) initialized.insert(data.values.name);
  for (const auto& input : file.graph.inputs) loaded->inputs.push_back(info_of(input, initialized.contains(input.name)));
  for (const auto& output : file.graph.outputs) loaded->outputs.push_back(info_of(output, false));
  loaded->constants = std::make_unique<Constants>(file, options.f64_as_f32);
  return Model(std::move(loaded));
}

namespace {

Value value_of(const TensorData& data, const std::filesystem::path& file) {
  const auto host = content_of(data, file.parent_path(), file.string());
  Value out(to_tensor(host));
  out.type = to_string(host.type);
  return out;
}

constexpr std::uint64_t largest_tensor = std::uint64_t{1} << 31;

Value sequence_of(const std::vector<TensorData>& tensors, const std::filesystem::path& file) {
  Value out;
  out.is_sequence = true;
  for (const auto& tensor : tensors) out.elements.push_back(value_of(tensor, file));
  return out;
}

}  // namespace

Value load_tensor(const std::filesystem::path& path, bool sequence) {
  auto bytes = file::read(path, largest_tensor);
  if (!sequence) {
    const auto file = read_tensor(std::move(bytes), path.string());
    return value_of(file.tensor, path);
  }
  const auto file = read_sequence(std::move(bytes), path.string());
  return sequence_of(file.tensors, path);
}

Value load_value(const std::filesystem::path& path, const ValueInfo& info) {
  if (!info.is_optional && info.is_sequence) return load_tensor(path, true);
  if (!info.is_optional) {
    auto file = read_tensor(file::read(path, largest_tensor), path.string());
    // Before its release 1.18 ONNX's tests had the bits of bfloat16 as uint16.
    if (info.type == to_string(ElementType::bf16) && file.tensor.type == ElementType::u16) file.tensor.type = ElementType::bf16;
    return value_of(file.tensor, path);
  }
  const auto file = read_optional(file::read(path, largest_tensor), path.string());
  if (file.sequence) return sequence_of(*file.sequence, path);
  return file.tensor ? value_of(*file.tensor, path) : Value();
}

}  // namespace clnet::onnx
