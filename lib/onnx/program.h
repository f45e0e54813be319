// An ONNX graph with its names resolved: operators by function, values by number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/onnx.h"
#include "lib/onnx/file.h"
#include "lib/onnx/operators.h"

namespace clnet::onnx {

/// The number of a value within its graph; -1: none.
using Slot = int;

struct Fusion;
struct Program;

/// A node.
struct Instruction {
  const NodeInfo* node = nullptr;
  std::int64_t opset = 0;
  std::string place;                        ///< for errors and traces: "conv1 (Conv of opset 17)"
  const Operator* op = nullptr;             ///< null: a function of the file, or not supported
  std::shared_ptr<const Program> function;  ///< the function's body
  const FunctionInfo* definition = nullptr;
  std::vector<Slot> inputs, outputs;
  std::vector<Slot> ends;                              ///< values that no later node reads
  std::vector<std::shared_ptr<const Program>> graphs;  ///< of all its attributes, in order
  std::shared_ptr<const Fusion> fusion;                ///< a pass put it in the place of several
  bool kept = false;                                   ///< its results are the same in each run
};

struct Program {
  std::vector<Slot> inputs, outputs;
  Slot slots = 0;
  std::vector<Instruction> instructions;
  std::vector<std::pair<Slot, const TensorData*>> initializers;
  std::vector<std::pair<Slot, const SparseData*>> sparse_initializers;
  /// Values of the enclosing graph: its slot, then the own one.
  std::vector<std::pair<Slot, Slot>> captures;
  std::vector<std::string_view> names;  ///< by slot
};

/// Throws FileError for a graph that is none: a name that no earlier node gives, or that two give, an operator set that the file
/// does not import. Operators that are missing are listed.
std::shared_ptr<const Program> resolve(const ModelFile& file, std::vector<MissingOperator>& missing);

/// Sets Instruction::ends.
void find_ends(Program& program);

}  // namespace clnet::onnx
