// save(): builds the graph of a module or function, and writes it as a file.
#include "lib/onnx/save.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "clnet/error.h"
#include "clnet/onnx.h"
#include "clnet/version.h"
#include "lib/base/file.h"
#include "lib/graph/capture.h"
#include "lib/nn/parameter.h"
#include "lib/onnx/exporter.h"
#include "lib/onnx/external_data.h"
#include "lib/onnx/names.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {

namespace {

constexpr int oldest_written = 18, newest_written = 26;

/// The format's version that goes with an operator set.
std::int64_t ir_version_of(int opset) {
  constexpr std::int64_t versions[] = {8, 9, 9, 10, 10, 11, 12, 13, 13};
  return versions[opset - oldest_written];
}

/// Builds the graph for a size of the batch. It keeps what the function captured, and its marks.
struct Building {
  Capture capture;
  std::unique_ptr<Build> build = std::make_unique<Build>();
};

Building build_for(const Function& function, const Specs& inputs) {
  Building result;
  result.capture.keeps_values = true;
  result.build->first = result.capture.first;
  const auto nothing = std::make_shared<InputValue>();
  for (const auto& spec : inputs) result.build->inputs.push_back(make_leaf(spec, nothing));
  const Capturing here(&result.capture);
  const Composing listening(result.build->compositions);
  result.build->outputs = function(result.build->inputs);
  return result;
}

/// Sizes of the batch that tell what follows it; the examples' own first, unless it is 0 or 1, which broadcasts. The last is far
/// off: near the others a part of the batch, as n / 8, may be the same number.
std::vector<std::int64_t> sizes_for(std::int64_t own) {
  if (own < 2) own = 2;
  return {own, own + 1, own + 3, 7 * own + 97};
}

/// The examples' specs, and those for another batch: the first extent of all that have that of the first example.
Specs specs_for(const std::vector<Tensor>& examples, std::int64_t own, std::int64_t batch) {
  Specs specs;
  for (const auto& example : examples) {
    auto spec = example.spec();
    if (spec.shape.rank() > 0 && spec.shape[0] == own) spec.shape = spec.shape.with(0, batch);
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string indexed(const char* name, std::size_t i) { return i == 0 ? std::string(name) : fmt::format("{}_{}", name, i); }

void require_names(const char* what, const std::vector<std::string>& names, std::size_t count) {
  if (!names.empty() && names.size() != count)
    throw Error(fmt::format("onnx::save: {} names for {} {}s", names.size(), count, what));
  for (const auto& name : names)
    if (name.empty() || std::count(names.begin(), names.end(), name) > 1)
      throw Error(fmt::format("onnx::save: the {}s need names that differ, got '{}'", what, name));
}

/// Parameters, or buffers: those that state_dict() has. The module computes the others again.
nn::NamedParameters saved(const nn::Module& module, bool buffers) {
  const auto state = module.state_dict();
  nn::NamedParameters result;
  for (const auto& entry : buffers ? module.buffers() : module.parameters())
    if (std::any_of(state.begin(), state.end(), [&](const auto& named) { return named.first == entry.first; }))
      result.push_back(entry);
  return result;
}
nn::NamedParameters saved(const nn::Module& module) {
  auto result = saved(module, false);
  for (auto& entry : saved(module, true)) result.push_back(entry);
  return result;
}

/// Names one on each line.
std::string lines_of(const nn::NamedParameters& named) {
  std::string out;
  for (const auto& [name, parameter] : named) out += (out.empty() ? "" : "\n") + name;
  return out;
}

struct Saving {
  const Function& function;
  const std::vector<Tensor>& examples;
  const std::filesystem::path& path;
  const SaveOptions& options;
  nn::Module* parameters;
  std::uint64_t most;

  Exporter::Names names(std::size_t outputs) const {
    Exporter::Names result;
    result.inputs = options.input_names;
    result.outputs = options.output_names;
    if (result.inputs.empty())
      for (std::size_t i = 0; i < examples.size(); ++i) result.inputs.push_back(indexed("input", i));
    if (result.outputs.empty())
      for (std::size_t i = 0; i < outputs; ++i) result.outputs.push_back(indexed("output", i));
    require_names("output", result.outputs, outputs);
    for (const auto& name : result.inputs)
      if (std::find(result.outputs.begin(), result.outputs.end(), name) != result.outputs.end())
        throw Error(fmt::format("onnx::save: '{}' names an input and an output", name));
    if (parameters)
      for (const auto& [name, parameter] : saved(*parameters)) {
        const auto is_taken = [&, &own = name](const std::vector<std::string>& list) {
          return std::find(list.begin(), list.end(), own) != list.end();
        };
        if (is_taken(result.inputs) || is_taken(result.outputs))
          throw Error(fmt::format("onnx::save: '{}' names a parameter, and an input or output", name));
        result.parameters.emplace(nn::slot_of(parameter)->id, name);
      }
    return result;
  }

  std::string model(const std::string& graph) const {
    std::string out, opset;
    protozero::pbf_writer(opset).add_int64(2, options.opset);
    protozero::pbf_writer writer(out);
    writer.add_int64(1, ir_version_of(options.opset));
    writer.add_message(8, opset);
    writer.add_string(2, "clnet");
    writer.add_string(3, version().data(), version().size());
    writer.add_message(7, graph);
    auto metadata = options.metadata;
    std::erase_if(metadata, [](const auto& entry) { return entry.second.empty(); });
    // What load() makes of initializers again; the others are constants.
    metadata.emplace_back(parameters_key, parameters ? lines_of(saved(*parameters, false)) : std::string());
    metadata.emplace_back(buffers_key, parameters ? lines_of(saved(*parameters, true)) : std::string());
    for (const auto& [key, value] : metadata) writer.add_message(14, write_entry(key, value));
    return out;
  }

  std::vector<std::pair<std::string, Tensor>> values() const {
    std::vector<std::pair<std::string, Tensor>> result;
    if (!parameters) return result;
    for (const auto& [name, parameter] : saved(*parameters)) result.emplace_back(name, parameter.value());
    return result;
  }

  struct Written {
    std::string model;
    ExternalData beside;
  };

  /// The file for builds of these sizes; empty: the examples' own alone.
  Written write(const std::vector<std::int64_t>& sizes, std::int64_t own) const {
    std::vector<std::unique_ptr<Build>> builds;
    for (std::size_t i = 0; i < std::max<std::size_t>(sizes.size(), 1); ++i) {
      auto built = build_for(function, specs_for(examples, own, sizes.empty() ? own : sizes[i]));
      if (!built.capture.effects.empty())
        throw Unsupported("onnx::save: the function changes parameters or buffers, as in training; only inference is written");
      for (std::size_t k = 0; k < built.build->outputs.size(); ++k)
        if (!built.build->outputs[k].defined()) throw Error(fmt::format("onnx::save: output {} is an undefined tensor", k));
      builds.push_back(std::move(built.build));
    }
    const auto all_names = names(builds[0]->outputs.size());
    Exporter exporter(options.opset, builds, sizes, all_names);
    exporter.run();
    // Of an extent of 0 or 1 the function may make another graph.
    if (!sizes.empty() && sizes[0] != own)
      exporter.require_outputs(own, build_for(function, specs_for(examples, own, own)).build->outputs);
    const auto tensors = values();
    auto bytes = exporter.constant_bytes();
    for (const auto& [name, value] : tensors) bytes += static_cast<std::uint64_t>(value.spec().bytes());
    Written out{{}, ExternalData(path)};
    out.model = model(exporter.graph(tensors, options.external_data || bytes > most ? &out.beside : nullptr));
    return out;
  }

  void put(const Written& written) const {
    if (written.model.size() > largest_model)
      throw FileError(fmt::format("{}: {} bytes; the format holds at most 2 GiB in a file", path.string(), written.model.size()));
    written.beside.write([&] { file::replace(path, written.model); });
  }
};

}  // namespace

void save(const Function& function, const std::vector<Tensor>& examples, const std::filesystem::path& path,
          const SaveOptions& options, nn::Module* parameters) {
  save_within(function, examples, path, options, parameters, most_in_model);
}

void save_within(const Function& function, const std::vector<Tensor>& examples, const std::filesystem::path& path,
                 const SaveOptions& options, nn::Module* parameters, std::uint64_t most) {
  if (options.opset < oldest_written || options.opset > newest_written)
    throw Error(fmt::format("onnx::save: operator set {}; {} to {} are written", options.opset, oldest_written, newest_written));
  for (std::size_t i = 0; i < examples.size(); ++i)
    if (!examples[i].defined()) throw Error(fmt::format("onnx::save: example {} is an undefined tensor", i));
  require_names("input", options.input_names, examples.size());
  std::optional<nn::KeptModes> modes;
  if (parameters) {
    modes.emplace(*parameters);
    parameters->inference();
  }
  const Saving saving{function, examples, path, options, parameters, most};
  const bool has_batch = !examples.empty() && examples[0].rank() > 0;
  const auto own = has_batch ? examples[0].size(0) : 0;
  std::optional<Saving::Written> written;
  if (options.dynamic_batch && has_batch) {
    try {
      written = saving.write(sizes_for(own), own);
    } catch (const Unsupported&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {
      written.reset();  // the graph is for one size of the batch
    }
  }
  if (!written) written = saving.write({}, own);
  saving.put(*written);
}

namespace {

/// Old files list initializers among the inputs. Those that are the network's parameters are no inputs of what is saved.
void leave_parameters_out(const Model& model, std::vector<std::size_t>& places, std::vector<Tensor>& examples,
                          std::vector<std::string>& names) {
  const auto own = saved(model);
  const bool named = names.size() == examples.size();
  for (auto i = places.size(); i-- > 0;) {
    const auto& input = model.inputs()[i];
    if (!input.optional || std::none_of(own.begin(), own.end(), [&](const auto& e) { return e.first == input.name; })) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    if (named) names.erase(names.begin() + at);
    examples.erase(examples.begin() + at);
    places.erase(places.begin() + at);
  }
}

}  // namespace

void save(nn::Module& module, const std::vector<Tensor>& examples, const std::filesystem::path& path,
          const SaveOptions& options) {
  auto* const model = dynamic_cast<Model*>(&module);
  auto named = options;
  auto given_examples = examples;
  // Where the examples are among the inputs of a Model: all of these, or those without a value in the file.
  std::vector<std::size_t> places;
  if (model) {
    const auto& inputs = model->inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (examples.size() == inputs.size() || !inputs[i].optional) places.push_back(i);
    if (examples.size() == inputs.size()) leave_parameters_out(*model, places, given_examples, named.input_names);
    for (const auto& [key, value] : model->metadata())
      if (key != parameters_key && key != buffers_key &&
          std::none_of(options.metadata.begin(), options.metadata.end(),
                       [&, &own = key](const auto& e) { return e.first == own; }))
        named.metadata.emplace_back(key, value);
    if (places.size() != given_examples.size())
      throw Error(fmt::format("onnx::save: got {} examples, the network has {} inputs", examples.size(), places.size()));
    if (named.input_names.empty())
      for (const auto place : places) named.input_names.push_back(inputs[place].name);
    if (named.output_names.empty())
      for (const auto& output : model->outputs()) named.output_names.push_back(output.name);
  } else if (examples.size() != 1) {
    throw Error(
        fmt::format("onnx::save: a module takes one input, got {} examples; save a function that calls it", examples.size()));
  }
  const Function function = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    if (!model) return {module(inputs[0])};
    std::vector<Tensor> given(places.empty() ? 0 : places.back() + 1);
    for (std::size_t i = 0; i < places.size(); ++i) given[places[i]] = inputs[i];
    return model->run(given);
  };
  save(function, given_examples, path, named, &module);
}

}  // namespace clnet::onnx
