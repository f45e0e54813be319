#include "lib/onnx/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "clnet/error.h"
#include "lib/base/input_file.h"
#include "lib/base/readable.h"
#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

constexpr int deepest_functions = 64;

struct Scope {
  Program& program;
  Scope* outer;
  std::map<std::string_view, Slot> slots = {};

  Slot define(std::string_view name) {
    const auto slot = program.slots++;
    slots[name] = slot;
    program.names.push_back(name);
    return slot;
  }
  /// Also of an enclosing graph; -1: there is none.
  Slot find(std::string_view name) {
    if (const auto own = slots.find(name); own != slots.end()) return own->second;
    const auto captured = outer ? outer->find(name) : -1;
    if (captured < 0) return -1;
    const auto slot = define(name);
    program.captures.emplace_back(captured, slot);
    return slot;
  }
};

class Resolver {
 public:
  Resolver(const ModelFile& file, std::vector<MissingOperator>& missing) : file_(file), missing_(missing) {
    for (const auto& function : file.functions)
      function_of_.emplace(std::tuple(function.domain, function.name, function.overload), &function);
  }

  std::shared_ptr<const Program> graph(const GraphInfo& graph, Scope* outer, const std::vector<Opset>& opsets) {
    auto program = std::make_shared<Program>();
    Scope scope{*program, outer};
    std::set<std::string_view> initialized;
    const auto add_initializer = [&](std::string_view name) {
      if (!initialized.insert(name).second) fail(fmt::format("has two initializers {}", in_quotes(name)));
      return scope.define(name);
    };
    for (const auto& data : graph.initializers) program->initializers.emplace_back(add_initializer(data.name), &data);
    for (const auto& data : graph.sparse_initializers)
      program->sparse_initializers.emplace_back(add_initializer(data.values.name), &data);
    std::set<std::string_view> inputs;
    for (const auto& input : graph.inputs) {
      if (!inputs.insert(input.name).second) fail(fmt::format("has two inputs {}", in_quotes(input.name)));
      program->inputs.push_back(initialized.contains(input.name) ? scope.slots.at(input.name) : scope.define(input.name));
    }
    add_nodes(*program, scope, graph.nodes, opsets);
    for (const auto& output : graph.outputs) {
      const auto slot = scope.find(output.name);
      if (slot < 0) fail(fmt::format("has no node that gives its output {}", in_quotes(output.name)));
      program->outputs.push_back(slot);
    }
    find_ends(*program);
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: the graph {}", file_.name, reason));
  }

  std::int64_t opset_of(std::string_view domain, const std::vector<Opset>& opsets) const {
    for (const auto& opset : opsets)
      if (opset.domain == domain) return opset.version;
    return domain.empty() ? -1 : 1;
  }

  std::shared_ptr<const Program> function(const FunctionInfo& function) {
    auto& known = functions_[&function];
    if (known) return known;
    if (++depth_ > deepest_functions || !open_.insert(&function).second)
      fail(fmt::format("calls the function {} within itself, or too deep", in_quotes(function.name)));
    auto program = std::make_shared<Program>();
    Scope scope{*program, nullptr};
    for (const auto input : function.inputs) program->inputs.push_back(scope.define(input));
    add_nodes(*program, scope, function.nodes, function.opsets.empty() ? file_.opsets : function.opsets);
    for (const auto output : function.outputs) {
      const auto slot = scope.find(output);
      if (slot < 0) fail(fmt::format("has the function {} without a node for {}", in_quotes(function.name), in_quotes(output)));
      program->outputs.push_back(slot);
    }
    find_ends(*program);
    --depth_;
    open_.erase(&function);
    return functions_[&function] = std::move(program);
  }

  void add_nodes(Program& program, Scope& scope, const std::vector<NodeInfo>& nodes, const std::vector<Opset>& opsets) {
    std::set<std::string_view> made;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const auto& node = nodes[k];
      const auto label = node.name.empty() ? fmt::format("{}", k) : std::string(node.name);
      const auto where = [&] { return fmt::format("node {} ({})", in_quotes(label), in_quotes(node.op_type)); };
      Instruction added;
      added.node = &node;
      added.opset = opset_of(node.domain, opsets);
      if (added.opset < 0) fail(fmt::format("has {}, but the file imports no operator set of ONNX", where()));
      added.place = node.name.empty()
                        ? fmt::format("{} of opset {}", readable(node.op_type), added.opset)
                        : fmt::format("{} ({} of opset {})", readable(node.name), readable(node.op_type), added.opset);
      for (const auto input : node.inputs) {
        auto slot = input.empty() ? -1 : scope.find(input);
        if (!input.empty() && slot < 0)
          fail(fmt::format("has {}, whose input {} no earlier node gives", where(), in_quotes(input)));
        added.inputs.push_back(slot);
      }
      // A gradient's y is no input of its node.
      if (node.op_type == "Gradient")
        for (const auto& attribute : node.attributes)
          if (attribute.name == "y") added.inputs.push_back(scope.find(attribute.text));
      added.op = find_operator(node.domain, node.op_type, added.opset);
      if (!added.op) find_function(added);
      if (!added.op && !added.function) {
        const auto operation = node.domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type);
        if (listed_.emplace(operation, added.opset).second) missing_.push_back({operation, added.opset, label});
      }
      for (const auto& attribute : node.attributes)
        for (const auto& body : attribute.graphs) added.graphs.push_back(graph(*body, &scope, opsets));
      for (const auto output : node.outputs) {
        if (!output.empty() && !made.insert(output).second) fail(fmt::format("has two nodes that give {}", in_quotes(output)));
        added.outputs.push_back(output.empty() ? -1 : scope.define(output));
      }
      program.instructions.push_back(std::move(added));
    }
  }

  void find_function(Instruction& instruction) {
    const auto& node = *instruction.node;
    const auto found = function_of_.find({node.domain, node.op_type, node.overload});
    if (found == function_of_.end()) return;
    instruction.definition = found->second;
    instruction.function = function(*found->second);
  }

  const ModelFile& file_;
  std::vector<MissingOperator>& missing_;
  std::set<std::pair<std::string, std::int64_t>> listed_;  ///< of those, by operator and set
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionInfo*> function_of_;
  std::map<const FunctionInfo*, std::shared_ptr<const Program>> functions_;
  std::set<const FunctionInfo*> open_;
  int depth_ = 0;
};

}  // namespace

void find_ends(Program& program) {
  std::vector<bool> read(static_cast<std::size_t>(program.slots));
  for (const auto slot : program.outputs) read[static_cast<std::size_t>(slot)] = true;
  for (auto step = program.instructions.rbegin(); step != program.instructions.rend(); ++step) {
    step->ends.clear();
    const auto end = [&](Slot slot) {
      if (slot < 0 || read[static_cast<std::size_t>(slot)]) return;
      read[static_cast<std::size_t>(slot)] = true;
      step->ends.push_back(slot);
    };
    const auto end_all = [&](const Instruction& instruction) {
      for (const auto slot : instruction.outputs) end(slot);
      for (const auto slot : instruction.inputs) end(slot);
      for (const auto& body : instruction.graphs)
        for (const auto& [outside, inside] : body->captures) end(outside);
    };
    end_all(*step);
    if (step->fusion)
      for (const auto& part : step->fusion->parts) end_all(part);
  }
}

std::shared_ptr<const Program> resolve(const ModelFile& file, std::vector<MissingOperator>& missing) {
  return Resolver(file, missing).graph(file.graph, nullptr, file.opsets);
}

}  // namespace clnet::onnx
