// torch_reference FOLDER: runs the cases of operations that PyTorch computed, forward and backward, through the public interface.
// torch_reference --names: prints the names of PyTorch's functions whose calls it knows, for tools/dev/torch_opinfo.py.
#include <fmt/format.h>

#include <fstream>

#include "tests/torch/cases.h"
#include "tests/torch/opinfo/adapters.h"

using namespace clnet;
using namespace clnet::torch;

namespace {

/// Four times what PyTorch's own f32 is off: another order of summation.
double tolerance(const json& example, const char* error) { return 4 * example.value(error, 0.0) + 2e-6; }

std::string_view kind_of(const Tensor& x) {
  return is_floating(x.dtype()) ? "floating" : x.dtype() == Dtype::boolean ? "bool" : "an integer";
}

/// The results of a case that has a call's arguments, whose shapes and kinds of dtypes are PyTorch's.
Results call(const json& example, const Named& inputs, const Named& wanted) {
  const opinfo::Args args(example.at("args"), example.value("kwargs", json::object()), inputs);
  const auto outputs = opinfo::call(example.at("op").get<std::string>(), args);
  Results results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.outputs[fmt::format("y{}", i)] = outputs[i];
  if (outputs.size() != wanted.size()) throw Failed(fmt::format("{} outputs, not {}", outputs.size(), wanted.size()));
  for (const auto& [name, want] : wanted) {
    const auto found = results.outputs.find(name);
    if (found == results.outputs.end()) throw Failed("unknown output " + name);
    if (found->second.shape() != want.shape())
      throw Failed(
          fmt::format("output {} has shape {}, not {}", name, to_string(found->second.shape()), to_string(want.shape())));
    if (kind_of(found->second) != kind_of(want))
      throw Failed(fmt::format("output {} is {}, not {}", name, kind_of(found->second), kind_of(want)));
  }
  return results;
}

void run(const json& example, const Operations& operations, const std::filesystem::path& folder) {
  Named output_gradients, input_gradients;
  Named inputs, outputs;
  for (const auto& [name, tensor] : load(folder / example.at("file").get<std::string>())) {
    const auto dot = name.find('.');
    const auto kind = name.substr(0, dot), rest = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (kind != "in" && kind != "out" && kind != "gout" && kind != "grad") throw Failed("unknown tensor " + name);
    (kind == "in" ? inputs : kind == "out" ? outputs : kind == "gout" ? output_gradients : input_gradients)[rest] = tensor;
  }
  if (outputs.empty()) throw Failed("there is no output to compare with");
  const bool is_call = example.contains("args");
  Given given(example.at("op").get<std::string>(), example.value("attrs", json::object()), inputs, outputs);
  given.gradients = input_gradients;
  given.output_gradients = output_gradients;
  const auto results = is_call ? call(example, inputs, outputs) : operations.run(given);
  for (const auto& [name, want] : given.outputs) {
    const auto found = results.outputs.find(name);
    if (found == results.outputs.end()) throw Failed("unknown output " + name);
    compare("output " + name, found->second, want, tolerance(example, "f32_out_err"));
  }
  if (input_gradients.empty()) return;
  std::vector<Tensor> from, with, to;
  std::vector<std::string> names;
  for (const auto& [name, gradient] : output_gradients) {
    const auto found = results.outputs.find(name);
    if (found == results.outputs.end()) throw Failed("unknown output " + name);
    from.push_back(found->second);
    with.push_back(reshape(gradient, from.back().shape()));
  }
  for (const auto& [name, gradient] : input_gradients) {
    const auto stand_in = results.stand_ins.find(name);
    if (stand_in == results.stand_ins.end() && !inputs.contains(name)) throw Failed("there is no input " + name);
    to.push_back(stand_in == results.stand_ins.end() ? inputs.at(name) : stand_in->second);
    names.push_back(name);
  }
  const auto computed = gradients(from, with, to);
  for (std::size_t i = 0; i < names.size(); ++i)
    compare("gradient of " + names[i], computed[i], input_gradients.at(names[i]), tolerance(example, "f32_grad_err"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--names") {
    for (const auto& [name, _] : opinfo::all_adapters()) fmt::print("{}\n", name);
    return 0;
  }
  return torch::main(argc, argv, [](const std::filesystem::path& folder) {
    std::ifstream in(folder / "manifest.json");
    if (!in) throw Failed("there is no manifest.json to read");
    const auto cases = json::parse(in).at("cases");
    const auto operations = all_operations();
    Count count;
    for (const auto& example : cases) count.run(example.at("name").get<std::string>(), [&] { run(example, operations, folder); });
    return count.finish();
  });
}
