// torch_reference FOLDER: runs the cases of operations that PyTorch computed, forward and backward, through the public interface.
#include <fmt/format.h>

#include <fstream>

#include "tests/torch/cases.h"

using namespace clnet;
using namespace clnet::torch;

namespace {

/// Four times what PyTorch's own f32 is off: another order of summation.
double tolerance(const json& example, const char* error) { return 4 * example.value(error, 0.0) + 2e-6; }

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
  Given given(example.at("op").get<std::string>(), example.value("attrs", json::object()), inputs, outputs);
  given.gradients = input_gradients;
  given.output_gradients = output_gradients;
  const auto results = operations.run(given);
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
