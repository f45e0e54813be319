// Runs a resolved graph: builds clnet's graph node by node. Only what control flow and dynamic shapes depend on is evaluated.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "lib/onnx/program.h"
#include "lib/onnx/value.h"

namespace clnet::onnx {

/// Thrown where a run may not read data, and the graph's structure depends on some.
struct DependsOnData : Error {
  using Error::Error;
};

/// Tensors of attributes, each read from the file once, or once for each device where it is large. Several threads may ask.
class Constants {
 public:
  Constants(const ModelFile& file, bool f64_as_f32) : file_(file), f64_as_f32_(f64_as_f32) {}
  RunValue of(const TensorData& data);
  RunValue of(const SparseData& data);

 private:
  template <class Data>
  RunValue read(const Data& data);

  const ModelFile& file_;
  const bool f64_as_f32_;
  std::mutex mutex_;
  std::map<const void*, RunValue> known_;
  std::vector<std::pair<Device, std::map<const void*, RunValue>>> large_;  ///< by the device where they are
};

/// What all graphs of one run share.
struct RunOptions {
  bool training = false;
  bool f64_as_f32 = false;
  bool may_read = true;            ///< whether data may be evaluated on the way
  bool freeze_statistics = false;  ///< batch norm normalizes by its statistics in training, too
  /// Called before each node and each turn of a loop; throws to end the run.
  std::function<void()> check = [] {};
};

class Runner {
 public:
  /// Initializers that the module holds: by the file's own pointer.
  using Held = std::map<const TensorData*, RunValue>;

  Runner(const Held& held, Constants& constants, RunOptions options)
      : held_(held), constants_(constants), options_(std::move(options)) {}

  std::vector<RunValue> run(const Program& program, std::span<const RunValue> inputs);
  /// The graph of an attribute of the running node. It reads values of the graph around it.
  std::vector<RunValue> run_body(const Program& body, std::span<const RunValue> inputs);

  const RunOptions& options() const { return options_; }
  /// An attribute of the function that is running; null: there is none.
  const Attribute* attribute_of_function(std::string_view name) const;
  Constants& constants() const { return constants_; }
  /// What the module holds of a tensor in the file; nothing: it is a constant.
  RunValue held(const TensorData& data) const {
    const auto found = held_.find(&data);
    return found == held_.end() ? RunValue() : found->second;
  }
  /// The type that stands for `type` here.
  ElementType stored(ElementType type) const { return type == ElementType::f64 && options_.f64_as_f32 ? ElementType::f32 : type; }

 private:
  struct Frame {
    const Program* program;
    std::vector<RunValue> values;  ///< by slot
    /// Of a function: its attributes by name.
    std::map<std::string_view, const Attribute*> attributes;
    const Frame* outer = nullptr;  ///< whose attributes hold here, too: of a graph in a function's node
  };
  /// While it lives, `frame` is the running one.
  struct Running {
    Running(Runner& runner, Frame& frame) : runner_(runner), before_(std::exchange(runner.frame_, &frame)) { ++runner_.depth_; }
    ~Running() {
      runner_.frame_ = before_;
      --runner_.depth_;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    Runner& runner_;
    Frame* const before_;
  };
  std::vector<RunValue> run(Frame& frame);
  void run(Frame& frame, const Instruction& instruction);
  std::vector<RunValue> run_function(const Instruction& instruction, std::span<const RunValue> inputs);

  const Held& held_;
  Constants& constants_;
  RunOptions options_;
  Frame* frame_ = nullptr;  ///< the running one
  int depth_ = 0;
};

}  // namespace clnet::onnx
