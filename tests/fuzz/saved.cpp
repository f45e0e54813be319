#include "tests/fuzz/saved.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "clnet/error.h"
#include "clnet/onnx.h"
#include "tests/fuzz/judge.h"
#include "tests/fuzz/random.h"

namespace clnet::fuzz {

namespace {

namespace fs = std::filesystem;

/// What becomes outputs of the file.
std::vector<Ref> file_outputs(const Program& program) {
  std::vector<Ref> result;
  for (const auto& evaluation : program.evaluations)
    for (const auto& ref : evaluation.values)
      if (!program.steps[ref.step].is_leaf() && std::find(result.begin(), result.end(), ref) == result.end())
        result.push_back(ref);
  return result;
}

/// The leaves that are inputs of the file. Some of the others, which no step reads first, are constants as weights mostly are:
/// what is made of constants alone is computed by save().
std::vector<std::size_t> file_inputs(const Program& program) {
  constexpr double share_of_constants = 0.5;
  std::set<std::size_t> first;
  for (const auto& step : program.steps)
    if (!step.inputs.empty()) first.insert(step.inputs[0].step);
  std::vector<std::size_t> result;
  for (std::size_t k = 0; k < program.steps.size(); ++k)
    if (program.steps[k].is_leaf() &&
        (result.empty() || first.contains(k) || !Rng(mix(program.seed + k, 5)).chance(share_of_constants)))
      result.push_back(k);
  return result;
}

int opset_of(const Program& program) { return Rng(mix(program.seed / 8, 6)).of({18, 18, 19, 20, 21, 22, 23, 24}); }

/// The outputs for these leaves; nothing is computed.
Tensors carried_out(const Program& program, const std::map<std::size_t, Tensor>& leaves) {
  std::vector<Tensors> values(program.steps.size());
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const auto& step = program.steps[k];
    if (step.is_leaf()) {
      values[k] = {leaves.at(k)};
      continue;
    }
    Tensors inputs;
    for (const auto& input : step.inputs) inputs.push_back(values[input.step][input.output]);
    values[k] = step.make(inputs);
  }
  Tensors result;
  for (const auto& ref : file_outputs(program)) result.push_back(values[ref.step][ref.output]);
  return result;
}

/// A program's leaves with values: those of the inputs may have another batch.
struct Leaves {
  std::map<std::size_t, Tensor> tensors;
  std::vector<std::pair<Tensor, Array>> values;

  Leaves(const Program& program, const std::vector<std::size_t>& inputs, std::int64_t batch, std::uint64_t round) {
    const auto own = batch_of(program, inputs);
    for (std::size_t k = 0; k < program.steps.size(); ++k) {
      if (!program.steps[k].is_leaf()) continue;
      auto leaf = program.steps[k].leaf;
      const bool is_input = std::find(inputs.begin(), inputs.end(), k) != inputs.end();
      auto& shape = leaf.spec.shape;
      if (is_input && batch >= 0 && shape.rank() > 0 && shape[0] == own) shape = shape.with(0, batch);
      auto array = leaf_values(leaf, mix(program.seed + k, is_input ? round : 0));
      const Tensor tensor = leaf_tensor(array, leaf.spec.dtype);
      tensors.emplace(k, tensor);
      values.emplace_back(tensor, std::move(array));
    }
  }
  /// The extent that save() takes for the batch; -1: there is none.
  static std::int64_t batch_of(const Program& program, const std::vector<std::size_t>& inputs) {
    if (inputs.empty()) return -1;
    const auto& shape = program.steps[inputs[0]].leaf.spec.shape;
    return shape.rank() > 0 ? shape[0] : -1;
  }
  Tensors of(const std::vector<std::size_t>& places) const {
    Tensors result;
    for (const auto place : places) result.push_back(tensors.at(place));
    return result;
  }
};

void write_file(const Program& program, const std::vector<std::size_t>& inputs, const Leaves& leaves, const fs::path& path) {
  const onnx::Function function = [&](const Tensors& given) {
    auto all = leaves.tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i) all[inputs[i]] = given[i];
    return carried_out(program, all);
  };
  onnx::save(function, leaves.of(inputs), path, {.opset = opset_of(program)});
}

/// Why save() refuses the program; nothing: it does not.
std::optional<std::string> refusal(const Program& program, const fs::path& folder) {
  const auto inputs = file_inputs(program);
  if (file_outputs(program).empty()) return std::nullopt;
  try {
    write_file(program, inputs, Leaves(program, inputs, -1, 0), folder / "model.onnx");
  } catch (const Unsupported& error) {
    return error.what();
  }
  return std::nullopt;
}

/// A step with leaves as its inputs.
Program alone(const Program& program, std::size_t k) {
  Program result;
  result.seed = program.seed;
  auto step = program.steps[k];
  for (auto& input : step.inputs) {
    Step leaf;
    leaf.op = "leaf";
    leaf.outputs = {program.spec(input)};
    const bool floating = is_floating(leaf.outputs[0].dtype);
    leaf.leaf = {leaf.outputs[0], floating ? Fill::smooth : Fill::integers, floating ? 0.25 : 0.0, 1};
    input = {result.steps.size(), 0};
    result.steps.push_back(std::move(leaf));
  }
  result.steps.push_back(std::move(step));
  Evaluation all{result.steps.size(), {}};
  for (std::size_t i = 0; i < result.steps.back().outputs.size(); ++i) all.values.push_back({result.steps.size() - 1, i});
  result.evaluations = {all};
  return result;
}

/// Attributes of ONNX are f32: what is added to variances and the constants of selu are not those of f64.
double absolute_roundings(const Program& program) {
  constexpr double usual = 2, coarse = 2e8;
  for (const auto& step : program.steps) {
    const bool has_attribute = step.op.find("norm") != std::string::npos || step.op == "selu";
    const bool is_double =
        std::any_of(step.outputs.begin(), step.outputs.end(), [](const Spec& s) { return s.dtype == Dtype::f64; });
    if (has_attribute && is_double) return coarse;
  }
  return usual;
}

std::string first_line(std::string text) {
  if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text;
}

Built built_of(const Leaves& leaves, Tensors wanted) {
  Built result;
  result.leaves = leaves.values;
  result.wanted = std::move(wanted);
  return result;
}

/// What is wrong with the specs of some outputs.
std::optional<std::string> spec_fault(const Tensors& want, const Tensors& got) {
  if (want.size() != got.size()) return fmt::format("{} outputs instead of {}", got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i].spec() != got[i].spec())
      return fmt::format("output {} is {} instead of {}", i, to_string(got[i].spec()), to_string(want[i].spec()));
  return std::nullopt;
}

/// One program's file and its data sets.
class SavedCheck {
 public:
  SavedCheck(const Program& program, const SavedOptions& options)
      : program_(program), options_(options), inputs_(file_inputs(program)) {}

  SavedOutcome run() {
    fs::remove_all(options_.folder);
    fs::create_directories(options_.folder);
    const auto path = options_.folder / "model.onnx";
    try {
      write_file(program_, inputs_, Leaves(program_, inputs_, -1, 0), path);
    } catch (const std::exception& error) {
      return fault("save throws", first_line(error.what()));
    }
    try {
      loaded_.emplace(onnx::load(path, {.passes = false}));
      if (mix(program_.seed, 7) % 2 == 0) with_passes_.emplace(onnx::load(path));
    } catch (const std::exception& error) {
      return fault("load throws", first_line(error.what()));
    }
    add_set(-1, 0);
    if (outcome_.fault) return outcome_;
    const auto own = Leaves::batch_of(program_, inputs_);
    outcome_.follows_batch =
        !loaded_->inputs().empty() && !loaded_->inputs()[0].extents.empty() && loaded_->inputs()[0].extents[0] == "batch";
    if (outcome_.follows_batch) add_set(own + 2, 1);
    if (!outcome_.fault && options_.runner) ask_other();
    return outcome_;
  }

 private:
  struct Set {
    std::unique_ptr<Leaves> leaves;
    std::unique_ptr<Built> own, loaded;
    std::unique_ptr<Judge> judge;
  };

  SavedOutcome fault(std::string_view kind, const std::string& text) {
    outcome_.fault = fmt::format("{}: {}", kind, text);
    return outcome_;
  }

  void add_set(std::int64_t batch, std::uint64_t round) {
    Set set;
    set.leaves = std::make_unique<Leaves>(program_, inputs_, batch, round);
    try {
      set.own = std::make_unique<Built>(built_of(*set.leaves, carried_out(program_, set.leaves->tensors)));
    } catch (const std::exception&) {
      // The program has no meaning for this batch: its extents divide by none.
      if (batch >= 0) return;
      throw;
    }
    std::string part = round == 0 ? "" : fmt::format("with a batch of {}, ", batch);
    try {
      set.loaded = std::make_unique<Built>(built_of(*set.leaves, loaded_->run(set.leaves->of(inputs_))));
      if (const auto why = spec_fault(set.own->wanted, set.loaded->wanted)) {
        fault("loaded", part + *why);
        return;
      }
      set.judge = std::make_unique<Judge>(*set.own, set.loaded.get(), absolute_roundings(program_));
      compare(*set.judge, "loaded", part, meant(*set.loaded), !options_.runner);
      if (with_passes_ && !outcome_.fault) {
        const auto other = built_of(*set.leaves, with_passes_->run(set.leaves->of(inputs_)));
        if (const auto why = spec_fault(set.own->wanted, other.wanted))
          fault("loaded with passes", part + *why);
        else
          compare(*set.judge, "loaded with passes", part, meant(other), false);
      }
      if (options_.device && !outcome_.fault) {
        eval(set.loaded->wanted);
        compare(*set.judge, "loaded, on the device", part, read_storage(set.loaded->wanted), false);
      }
    } catch (const std::exception& error) {
      fault("load throws", part + first_line(error.what()));
    }
    sets_.push_back(std::move(set));
  }

  void compare(Judge& judge, std::string_view kind, const std::string& part, const Storage& results, bool counts) {
    const auto verdict = judge(results);
    if (counts) {
      outcome_.elements += verdict.elements;
      outcome_.judged += verdict.judged;
    }
    if (verdict.fault) fault(kind, part + *verdict.fault);
  }

  void ask_other() {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const auto folder = set_folder(i);
      fs::create_directories(folder);
      const auto given = sets_[i].leaves->of(inputs_);
      for (std::size_t k = 0; k < given.size(); ++k) onnx::save_tensor(folder / fmt::format("input_{}.pb", k), given[k]);
    }
    if (!differs(false) || outcome_.fault->starts_with("ended:")) return;
    const auto found = outcome_.fault;
    outcome_.fault.reset();
    // A difference that comes of its optimizations alone is not the file's.
    if (differs(true) || outcome_.refused) {
      outcome_.refused.reset();
      outcome_.fault = found;
      return;
    }
    outcome_.optimizer = true;
  }

  bool differs(bool plain) {
    const auto answer = options_.runner(options_.folder, plain);
    if (answer.kind == Answer::Kind::invalid) {
      fault("invalid", answer.text);
      return true;
    }
    if (answer.kind == Answer::Kind::ended) {
      fault("ended", answer.text);
      return true;
    }
    if (answer.kind == Answer::Kind::refused) {
      outcome_.refused = answer.text;
      return false;
    }
    for (std::size_t i = 0; i < sets_.size() && !outcome_.fault; ++i) {
      Tensors got;
      for (std::size_t k = 0; k < sets_[i].own->wanted.size(); ++k)
        got.push_back(onnx::load_tensor(set_folder(i) / fmt::format("other_{}.pb", k)).tensor);
      if (const auto why = spec_fault(sets_[i].own->wanted, got))
        fault("other", *why);
      else
        compare(*sets_[i].judge, "other", i == 0 ? "" : "with another batch, ", read_storage(got), !plain);
    }
    return outcome_.fault.has_value();
  }

  fs::path set_folder(std::size_t i) const { return options_.folder / fmt::format("test_data_set_{}", i); }

  const Program& program_;
  const SavedOptions& options_;
  const std::vector<std::size_t> inputs_;
  std::optional<onnx::Model> loaded_, with_passes_;
  std::vector<Set> sets_;
  SavedOutcome outcome_;
};

}  // namespace

Program writable(const Program& program, const fs::path& folder, std::map<std::string, std::int64_t>& refused) {
  auto result = without_unused(program);
  // Other errors are for check_saved() to report; those of leaves that stand in for a step are not the program's.
  const auto refused_alone = [&](std::size_t k) -> std::optional<std::string> {
    try {
      return refusal(alone(result, k), folder);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  try {
    if (!refusal(result, folder)) return result;
  } catch (const std::exception&) {
    return result;
  }
  for (auto k = result.steps.size(); k-- > 0;) {
    if (result.steps[k].is_leaf()) continue;
    const auto why = refused_alone(k);
    if (!why) continue;
    ++refused[*why];
    result = with_leaves(result, k);
  }
  result = without_unused(result);
  try {
    if (!refusal(result, folder)) return result;
  } catch (const std::exception&) {
  }
  result.evaluations.clear();
  return result;
}

SavedOutcome check_saved(const Program& program, const SavedOptions& options) { return SavedCheck(program, options).run(); }

std::set<std::string, std::less<>> never_written(const Settings& settings, const fs::path& folder) {
  constexpr int tries = 4;
  std::set<std::string, std::less<>> result;
  for (const auto& entry : table()) {
    auto one = settings;
    one.operation = std::string(catalogued_name(entry.name));
    one.max_ops = 0;
    one.block = 1;
    bool written = false;
    for (std::uint64_t i = 0; i < tries && !written; ++i) {
      try {
        auto program = Generator(i, one)();
        // The call is the last step.
        const auto last = program.steps.size() - 1;
        program.evaluations = {{program.steps.size(), {{last, 0}}}};
        written = !refusal(program, folder);
      } catch (const std::exception&) {
        written = false;
      }
    }
    if (!written) result.emplace(entry.name);
  }
  return result;
}

}  // namespace clnet::fuzz
