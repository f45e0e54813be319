#include "lib/exec/tune/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/json_format.h"
#include "lib/base/log.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/quirk_file.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/fuse/elementwise.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/lower/readers.h"
#include "lib/graph/slot.h"

namespace clnet::exec {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double default_budget = 5;  ///< seconds for the problems of one plan
constexpr std::string_view tuning_format = "clnet tuning 1";
constexpr std::uint64_t largest_file = 16 << 20;

/// Seconds to spend on a plan; nothing when nothing shall be measured.
std::optional<double> budget() {
  static const auto seconds = []() -> std::optional<double> {
    const auto text = env::text("CLNET_TUNE");
    if (!text || *text == "off") return std::nullopt;
    if (*text == "on") return default_budget;
    return static_cast<double>(*env::integer("CLNET_TUNE", 1, 86400));
  }();
  return seconds;
}

/// The operation says so itself: a user's kernel may have any name. What works on whole numbers alone keeps what the model
/// chooses, and a view is never computed.
bool is_tunable(const Node& node) {
  const auto inputs = specs_of(node.inputs);
  const auto hints = node.op->tuning(inputs);
  if (!hints.measured || node.outputs[0].shape.numel() == 0 || node.op->alias(inputs, 0)) return false;
  if (computes_f64(node)) return false;
  if (std::none_of(node.inputs.begin(), node.inputs.end(), [](const Tensor& input) { return is_floating(input.dtype()); }))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Tensor& input) {
    const bool index = input.dtype() == Dtype::i32 || input.dtype() == Dtype::i64;
    return is_floating(input.dtype()) || (index && hints.indices > 0);
  });
}

TuningHints hints_of(const Node& node) { return node.op->tuning(specs_of(node.inputs)); }

/// Whether products of f32 may be rounded for matrix units; other solvers are the fastest then.
bool rounds_f32() { return env::flag("CLNET_TF32"); }

std::string problem_text(const Node& node, Packed packed) {
  std::string text = fmt::format("{} {} of", node.op->name(), to_string(node.op->fields()));
  for (const auto& input : node.inputs) text += " " + to_string(input.spec());
  if (rounds_f32()) text += " by tf32";
  if (packed == Packed::leaf) text += " packed once";
  if (packed == Packed::shared) text += " packed once and shared";
  return text;
}

/// Whole numbers from 0 on.
std::shared_ptr<HostValue> random_indices(const Spec& spec, std::int64_t bound) {
  std::minstd_rand random(1);
  const auto size = size_of(spec.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const auto value = static_cast<std::int64_t>(random()) % bound;
    const auto narrow = static_cast<std::int32_t>(value);
    std::memcpy(&bytes[i], size == 4 ? static_cast<const void*>(&narrow) : &value, size);
  }
  return std::make_shared<HostValue>(std::move(bytes));
}

/// Values between a quarter and a half, of either sign unless they shall be positive, of whatever floating type.
std::shared_ptr<HostValue> random_values(const Spec& spec, bool positive) {
  std::minstd_rand random(1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  const auto count = static_cast<std::size_t>(spec.shape.numel());
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw = static_cast<std::uint32_t>(random());
    const auto sign = positive ? 0U : draw >> 20 & 1U;
    if (spec.dtype == Dtype::f32) {
      const std::uint32_t bits = sign << 31 | 0x3E800000U | (draw & 0x7FFFFFU);
      std::memcpy(&bytes[4 * i], &bits, 4);
    } else {
      const auto exponent = spec.dtype == Dtype::f16 ? 0x3400U | (draw & 0x3FFU) : 0x3E80U | (draw & 0x7FU);
      const auto bits = static_cast<std::uint16_t>(sign << 15 | exponent);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
  return std::make_shared<HostValue>(std::move(bytes));
}

/// Part of the largest value that solvers may differ by.
double tolerance_of(Dtype dtype) {
  if (!is_floating(dtype)) return 0;
  if (dtype != Dtype::f32) return 3e-2;
  return rounds_f32() ? 3e-3 : 1e-4;
}

template <class Integer>
void copy_integers(const std::vector<std::byte>& bytes, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Integer value = 0;
    std::memcpy(&value, &bytes[i * sizeof value], sizeof value);
    to[i] = static_cast<float>(value);
  }
}

void add_values(std::vector<float>& result, const Tensor& tensor, ocl::Context& device) {
  const auto held = value_of(tensor);
  const auto& value = dynamic_cast<const DeviceValue&>(*held);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec().bytes()));
  device.read(*value.buffer, static_cast<std::size_t>(value.offset) * size_of(tensor.dtype()), bytes.data(), bytes.size());
  const auto begin = result.size(), count = static_cast<std::size_t>(tensor.numel());
  result.resize(begin + count);
  if (tensor.dtype() == Dtype::f32) {
    std::memcpy(result.data() + begin, bytes.data(), bytes.size());
    return;
  }
  if (tensor.dtype() == Dtype::i64) return copy_integers<std::int64_t>(bytes, result.data() + begin, count);
  if (tensor.dtype() == Dtype::i32) return copy_integers<std::int32_t>(bytes, result.data() + begin, count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &bytes[2 * i], 2);
    result[begin + i] = tensor.dtype() == Dtype::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
  }
}

/// Runs one problem by its solvers.
class SolverBenchmark {
 public:
  /// `seconds`: after which no more choices are tried, but for the reference solver.
  SolverBenchmark(const Node& node, Packed packed, ocl::Context& device, PrepackCache& prepacks, const Tuning::Evaluate& evaluate,
                  double seconds)
      : node_(node),
        hints_(hints_of(node)),
        packed_(packed),
        device_(device),
        prepacks_(prepacks),
        evaluate_(evaluate),
        seconds_(seconds) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs_.push_back(leaf(i, node.inputs[i].spec()));
    checked_ = inputs_;
    for (auto index : hints_.batches) {
      auto spec = inputs_[index].spec();
      std::vector<std::int64_t> dims(spec.shape.begin(), spec.shape.end());
      const auto unit = std::min(dims[0], hints_.unit);
      batch_ = static_cast<double>(dims[0]) / static_cast<double>(unit);
      dims[0] = unit;
      checked_[index] = leaf(index, Spec{Shape(dims), spec.dtype});
    }
  }

  /// The reference solver's is the last.
  std::vector<Trial> operator()() {
    std::vector<Trial> trials;
    double best = 1e9;
    const auto start = Clock::now();
    const std::string op(solver_list(node_)), reference = solver_names(op).back();
    for (const auto& solver : choices()) {
      auto choice = Choice::parse(solver);
      if (choice.solver != reference && !trials.empty() && since(start) > seconds_) continue;
      // As it was listed for the whole batch, for one image too.
      const ForceSolver force(op, std::move(choice));
      try {
        Trial trial{.solver = solver, .values = {}};
        for (const auto& output : run(checked_)) {
          add_values(trial.values, output, device_);
          trial.ends.push_back(trial.values.size());
        }
        const auto small_time = timed(checked_);
        // One that is so much slower on one image is not worth the wait.
        trial.seconds = small_time * batch_ > 10 * best ? small_time * batch_ : measured();
        best = std::min(best, trial.seconds);
        logging::print(logging::Level::plan, "tuning: {}: {:.1f} us by {}", problem_text(node_, packed_), trial.seconds * 1e6,
                       solver);
        trials.push_back(std::move(trial));
      } catch (const ocl::CompilingCancelled&) {
        throw;
      } catch (const Unsupported& refusal) {
        logging::print(logging::Level::solver, "tuning: {}", refusal.what());
      } catch (const Error& failure) {
        const std::string_view text = failure.what();
        logging::warn_once(fmt::format("tuning: solver {} FAILS on this device and is discarded for {}: {}", solver,
                                       problem_text(node_, packed_), text.substr(0, text.find('\n'))));
      }
    }
    return trials;
  }

  /// What is taken where nothing was measured.
  const std::string& likely() const { return likely_; }

  /// Whether `one` takes less time than `other` when both run in turn: of many that are as fast as each other, the first trials'
  /// fastest is one by chance.
  bool is_faster(const std::string& one, const std::string& other) {
    constexpr double by = 0.97, seconds = 0.2;
    constexpr std::size_t fewest = 5, most = 50;
    const auto timed_by = [&](const std::string& solver) {
      const ForceSolver force(std::string(solver_list(node_)), Choice::parse(solver));
      return timed(inputs_);
    };
    std::vector<double> ones, others;
    const auto start = Clock::now();
    while (ones.size() < fewest || (ones.size() < most && since(start) < seconds)) {
      ones.push_back(timed_by(one));
      others.push_back(timed_by(other));
    }
    return median(ones) < by * median(others);
  }

 private:
  Tensor leaf(std::size_t index, const Spec& spec) {
    const auto value = is_floating(spec.dtype) ? random_values(spec, hints_.positive) : random_indices(spec, hints_.indices);
    // That of a parameter, which nothing else reads.
    if (packed_ == Packed::shared && hints_.packed == index) return make_leaf(slot_, spec, value);
    return make_leaf(spec, value);
  }

  /// Every configuration of every solver that takes the problem: first the likely one, lest time is up before it was measured,
  /// and last the reference solver's.
  std::vector<std::string> choices() {
    const std::string op(solver_list(node_)), reference = solver_names(op).back();
    const auto outputs = apply_all(node_.op, inputs_);
    ListChoices list;
    lower(Subgraph(collect(outputs)), device_.info(), {.list = &list});
    likely_ = list.chosen(op);
    auto all = list.of(op);
    // Of several problems of one list each lists its own.
    std::set<std::string> seen;
    std::erase_if(all, [&](const std::string& choice) { return !seen.insert(choice).second; });
    std::stable_partition(all.begin(), all.end(), [&](const std::string& choice) { return choice == likely_; });
    std::stable_partition(all.begin(), all.end(),
                          [&](const std::string& choice) { return Choice::parse(choice).solver != reference; });
    return all;
  }

  Tensors run(const Tensors& inputs) {
    auto outputs = apply_all(node_.op, inputs);
    evaluate_(outputs);
    return outputs;
  }

  /// What is packed in every run of the plan is so here.
  void forget_packed(const Tensors& inputs) {
    if (packed_ != Packed::once || !hints_.packed) return;
    const auto value = value_of(inputs[*hints_.packed]);
    if (const auto* there = dynamic_cast<const DeviceValue*>(value.get())) prepacks_.drop(there->id);
  }

  double timed(const Tensors& inputs) {
    forget_packed(inputs);
    device_.finish();
    const auto start = Clock::now();
    run(inputs);
    device_.finish();
    return since(start);
  }

  static double median(std::vector<double>& times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  /// The median of some runs.
  double measured() {
    run(inputs_);
    std::vector<double> times;
    const auto start = Clock::now();
    while (times.size() < 3 || (times.size() < 50 && since(start) < 0.1)) times.push_back(timed(inputs_));
    return median(times);
  }

  const Node& node_;
  TuningHints hints_;
  Packed packed_;
  ocl::Context& device_;
  PrepackCache& prepacks_;
  const Tuning::Evaluate& evaluate_;
  double seconds_;
  Slot slot_;
  Tensors inputs_, checked_;  ///< in full; with a batch of one
  double batch_ = 1;
  std::string likely_;
};

/// The largest difference of what two trials computed, each by what it may be for `tolerance`; more than 1 is too much.
double excess(const Trial& trial, const Trial& reference, double tolerance) {
  if (trial.values.size() != reference.values.size()) return HUGE_VAL;
  const auto size_at = [](float value) { return std::abs(static_cast<double>(value)); };
  double largest_of_all = 0;
  for (const auto value : reference.values) largest_of_all = std::max(largest_of_all, size_at(value));
  const auto ends = reference.ends.empty() ? std::vector{reference.values.size()} : reference.ends;
  double result = 0;
  std::size_t begin = 0;
  for (const auto end : ends) {
    double largest = 1e-3 * largest_of_all, error = 0;
    for (auto i = begin; i < end; ++i) {
      largest = std::max(largest, size_at(reference.values[i]));
      const auto difference = std::abs(static_cast<double>(trial.values[i]) - static_cast<double>(reference.values[i]));
      if (std::isnan(difference)) return HUGE_VAL;
      error = std::max(error, difference);
    }
    if (error > 0) result = std::max(result, error / (tolerance * largest));
    begin = end;
  }
  return result;
}

}  // namespace

const Trial& fastest_right(std::span<const Trial> trials, double tolerance, const std::string& problem) {
  const auto& reference = trials.back();
  const Trial* best = &reference;
  for (const auto& trial : trials) {
    if (const auto error = excess(trial, reference, tolerance); error > 1)
      logging::warn_once(fmt::format(
          "tuning: solver {} is WRONG on this device and is discarded for {}: it differs from {} by {:.3g} times what it may",
          trial.solver, problem, reference.solver, error));
    else if (trial.seconds < best->seconds)
      best = &trial;
  }
  return *best;
}

TuningFile::TuningFile(std::string path, std::string identity) : path_(std::move(path)), identity_(std::move(identity)) {
  entries_ = load();
}

std::map<std::string, TuningFile::Measurement> TuningFile::load() const {
  std::map<std::string, Measurement> result;
  std::error_code code;
  if (!std::filesystem::exists(path_, code)) return result;
  try {
    const auto content = json::parse(file::read(path_, largest_file));
    require_format(path_, content, tuning_format);
    if (content.at("for").get<std::string>() != identity_) return result;
    for (const auto& [problem, choice] : content.at("choices").items())
      result[problem] = {choice.at("solver").get<std::string>(), choice.at("ms").get<double>()};
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "tuning file ignored: {}", error.what());
    result.clear();
  } catch (const json::exception&) {
    logging::print(logging::Level::plan, "tuning file ignored: {}: is damaged", path_);
    result.clear();
  }
  return result;
}

const TuningFile::Measurement* TuningFile::find(const std::string& problem) const {
  const auto found = entries_.find(problem);
  return found == entries_.end() ? nullptr : &found->second;
}

void TuningFile::save() const {
  auto all = load();  // others may have written meanwhile
  for (const auto& [problem, entry] : entries_) all[problem] = entry;
  json content{{format_field, tuning_format}, {"for", identity_}, {"choices", json::object()}};
  for (const auto& [problem, entry] : all) content["choices"][problem] = {{"solver", entry.choice}, {"ms", entry.milliseconds}};
  try {
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), code);
    file::replace(path_, content.dump(1) + "\n");
  } catch (const FileError& error) {
    logging::print(logging::Level::plan, "tuning not kept on disk: {}", error.what());
  }
}

Tuning::Tuning(const ocl::Context& device) : choices_(ocl::identity(device.info())), budget_(budget()) {
  const auto text = env::text("CLNET_TUNE");
  const auto folder = env::cache_folder();
  if (!folder || (text && *text == "off")) return;
  const auto& info = device.info();
  const auto name = Hash().add(info.name).add(info.driver_version).hex();
  file_.emplace((std::filesystem::path(*folder) / fmt::format("tuning-{}.json", name)).string(), ocl::identity(info));
}

std::optional<Choice> Tuning::measured(const std::string& problem) const {
  const std::lock_guard lock(mutex_);
  const auto* found = file_ ? file_->find(problem) : nullptr;
  if (!found) return std::nullopt;
  try {
    return Choice::parse(found->choice);
  } catch (const Error& error) {
    logging::warn_once(fmt::format("{}: ignored what it says for {}: {}", file_->path(), problem, error.what()));
    return std::nullopt;
  }
}

std::optional<Choice> Tuning::choice(const Node& node, Packed packed) const {
  const auto nothing_measured = [&] {
    const std::lock_guard lock(mutex_);
    return !file_ || file_->empty();
  };
  if (!is_tunable(node) || (!choices_.follows() && nothing_measured())) return std::nullopt;
  const auto problem = problem_text(node, packed);
  auto choice = choices_.followed(problem);
  if (!choice) choice = measured(problem);
  if (!choice) return std::nullopt;
  const auto names = solver_names(solver_list(node));
  if (std::find(names.begin(), names.end(), choice->solver) != names.end()) return choice;
  logging::warn_once(fmt::format("tuning: ignored what was chosen for {}: there is no solver '{}'", problem, choice->solver));
  return std::nullopt;
}

void Tuning::note(const Node& node, const Choice& choice, Packed packed) const {
  if (is_tunable(node)) choices_.note(problem_text(node, packed), choice);
}

std::map<std::string, Tuning::Problem> Tuning::open_problems(const Subgraph& graph, const Options& options) const {
  std::map<std::string, Problem> problems;
  Readers readers(graph);
  for (const auto& node : graph.nodes()) {
    if (!is_tunable(*node) || forced_solver(solver_list(*node), options)) continue;
    const auto packed = readers.packed(*node);
    auto text = problem_text(*node, packed);
    // What plans were made with stays, lest two of them compute the same in two ways.
    if (choices_.followed(text) || choices_.is_noted(text)) continue;
    const std::lock_guard lock(mutex_);
    if (!file_->find(text)) problems.emplace(std::move(text), Problem{node.get(), packed});
  }
  return problems;
}

void Tuning::tune(const Subgraph& graph, ocl::Context& device, PrepackCache& prepacks, const Options& options,
                  const Evaluate& evaluate) {
  // Who has nothing to measure never waits: the thread that measures may wait for that one's plan, which is a trial's if its
  // solver is forced.
  if (!budget_ || !file_ || !options.tunes || open_problems(graph, options).empty()) return;
  // One thread measures; another that wants to know waits for it.
  const std::lock_guard alone(measuring_);
  // Devices on the host's memory would disturb each other. They share its bandwidth, and often its cores.
  static auto& on_host = *new std::mutex;
  const auto turn = device.info().unified_memory ? std::unique_lock(on_host) : std::unique_lock<std::mutex>();
  const auto problems = open_problems(graph, options);
  if (problems.empty()) return;

  logging::write(fmt::format("tuning: {} problems, for at most {:.0f} s (CLNET_TUNE)", problems.size(), *budget_));
  // The trials are evaluations, too.
  auto of_trials = options;
  of_trials.tunes = false;
  const OptionsScope here(std::move(of_trials));
  const auto start = Clock::now();
  std::size_t done = 0;
  std::vector<std::pair<std::string, Problem>> ordered(problems.begin(), problems.end());
  std::stable_partition(ordered.begin(), ordered.end(), [](const auto& problem) { return !hints_of(*problem.second.node).last; });
  for (const auto& [text, problem] : ordered) {
    if (since(start) > *budget_) break;
    const auto* node = problem.node;
    SolverBenchmark benchmark(*node, problem.packed, device, prepacks, evaluate, *budget_ - since(start));
    const auto trials = benchmark();
    // Without the reference solver (it may have failed, too) there is nothing to compare with.
    if (trials.empty() || Choice::parse(trials.back().solver).solver != solver_names(solver_list(*node)).back()) continue;
    const auto tolerance = tolerance_of(node->outputs[0].dtype);
    const auto* best = &fastest_right(trials, tolerance, text);
    const auto likely =
        std::find_if(trials.begin(), trials.end(), [&](const Trial& trial) { return trial.solver == benchmark.likely(); });
    constexpr double clearly = 0.75;
    if (likely != trials.end() && &*likely != best && excess(*likely, trials.back(), tolerance) <= 1 &&
        best->seconds > clearly * likely->seconds && !benchmark.is_faster(best->solver, likely->solver))
      best = &*likely;
    logging::write(fmt::format("tuning: {}: {} in {:.3f} ms", text, best->solver, best->seconds * 1e3));
    const std::lock_guard lock(mutex_);
    file_->set(text, {best->solver, best->seconds * 1e3});
    ++done;
  }
  file_->save();
  if (done < problems.size())
    logging::write(fmt::format("tuning: time is up; {} problems keep the default order of solvers", problems.size() - done));
}

}  // namespace clnet::exec
