// Runs a resolved graph: builds clnet's graph node by node. Only what control flow and dynamic shapes depend on is evaluated.
#pragma once

#include <functional>
#include <list>
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
  /// The results of an instruction that gives the same in each run, computed by the first one. Where results take much memory,
  /// further ones are not kept.
  std::vector<RunValue> of(const Instruction& instruction, const std::function<std::vector<RunValue>()>& run);

 private:
  /// What lives on one device.
  struct OnDevice {
    Device device;
    std::map<const void*, RunValue> large;
    std::map<const Instruction*, std::vector<RunValue>> results;
  };
  template <class Data>
  RunValue read(const Data& data);
  OnDevice& here_now();

  const ModelFile& file_;
  const bool f64_as_f32_;
  std::mutex mutex_;
  std::map<const void*, RunValue> known_;
  std::list<OnDevice> devices_;
  std::uint64_t kept_ = 0;  ///< bytes of the results
};

/// Values that instructions make of untrained weights: buffers, frozen parameters and constants. Each is computed once, and anew
/// when a weight has changed. Several threads may ask.
class WeightValues {
 public:
  using Make = std::function<std::vector<RunValue>(const std::vector<RunValue>& sources)>;
  /// `key` tells values of one instruction apart. Sources without a value were left out.
  std::vector<RunValue> of(const Instruction& instruction, std::size_t key, const std::vector<RunValue>& sources,
                           const Make& make);

 private:
  struct Entry {
    std::vector<Tensor> sources;  ///< of which the results were made
    std::vector<RunValue> results;
  };
  std::mutex mutex_;
  std::map<std::pair<const Instruction*, std::size_t>, Entry> entries_;
};

/// What all graphs of one run share.
struct RunOptions {
  bool training = false;
  bool f64_as_f32 = false;
  bool may_read = true;             ///< whether data may be evaluated on the way
  WeightValues* weights = nullptr;  ///< null: what is made of weights is not kept
  double* multiply_adds = nullptr;  ///< takes those of the nodes; null: they are not counted
  bool freeze_statistics = false;   ///< batch norm normalizes by its statistics in training, too
  /// Called before each node and each turn of a loop; throws to end the run.
  std::function<void()> check = [] {};
};

class Runner {
 public:
  /// Initializers that the module holds: by the file's own pointer.
  using Held = std::map<const TensorData*, RunValue>;

  Runner(const Held& held, Constants& constants, RunOptions options);

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
  /// Whether the fusion fits this run, and has run.
  bool run_fused(Frame& frame, const Instruction& instruction);
  /// Whether its result depends on untrained weights only.
  bool makes_weights(const Instruction& instruction, const std::vector<RunValue>& inputs) const;
  std::vector<RunValue> run_function(const Instruction& instruction, std::span<const RunValue> inputs);

  const Held& held_;
  Constants& constants_;
  RunOptions options_;
  const bool keeps_;        ///< whether what is made of constants and weights is kept for further runs
  Frame* frame_ = nullptr;  ///< the running one
  int depth_ = 0;
};

}  // namespace clnet::onnx
