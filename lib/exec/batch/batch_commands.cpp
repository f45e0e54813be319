#include "lib/exec/batch/batch_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/cl/quirks.h"

namespace clnet::exec {

namespace {

LaunchBatchMode mode_by_environment() {
  static const LaunchBatchMode known = [] {
    const auto word = env::word("CLNET_LAUNCH_BATCHES", {"auto", "off", "eager", "force"});
    if (word == "off") return LaunchBatchMode::off;
    return word == "eager" ? LaunchBatchMode::eager : word == "force" ? LaunchBatchMode::force : LaunchBatchMode::automatic;
  }();
  return known;
}

/// A plan that has run so often is worth looking at, and one whose launches have been so many a compiler's time.
constexpr std::size_t fewest_entries = 4;
constexpr std::uint64_t runs_to_look = 4, runs_to_build = 16, launches_to_build = 2000;

/// Where it was not measured, it stays off.
constexpr int most_units = 16;

/// What is gained must be worth the process and the threads that wait for each other: of what the plan takes, so much at least.
constexpr double command_microseconds = 10, least_gain = 0.05;

}  // namespace

bool BatchCommands::ready(const Recording& recording, const Placement& placement, ocl::Context& device,
                          std::optional<LaunchBatchMode> mode, std::size_t tail) {
  const auto how = mode ? *mode : mode_by_environment();
  if (how == LaunchBatchMode::off) return false;
  if (state_ == State::ready || state_ == State::none) return state_ == State::ready;
  if (state_ == State::building) {
    if (!beside_->done()) return false;
    beside_.reset();
    state_ = State::none;
    // What crashed a compiler is not tried in this process.
    if (ocl::prebuilder_for(device.info())->has_built(to_build())) make(device);
    return state_ == State::ready;
  }
  // Where many threads take tasks from one counter, commands may cost less.
  const bool force = how == LaunchBatchMode::force,
             worth = ocl::has_quirk(device.info(), "costly-commands") && device.info().compute_units <= most_units;
  if (!device.info().prefers_vector_kernels || !(force || worth)) {
    state_ = State::none;
    return false;
  }
  ++runs_;
  if (how == LaunchBatchMode::automatic && runs_ < runs_to_look) return false;
  try {
    if (programs_.empty()) find(recording, placement, device.info(), force ? 2 : fewest_entries, tail);
  } catch (const std::exception& error) {
    // The plan's own programs are built: it runs without.
    logging::print(logging::Level::plan, "launches are not batched: {}", error.what());
  }
  if (programs_.empty() || !(force || pays())) {
    state_ = State::none;
    return false;
  }
  // In between nothing changes, and who is asked looks at files.
  const bool is_worth_building = runs_ >= runs_to_build && launches() * runs_ >= launches_to_build;
  if (how == LaunchBatchMode::automatic && runs_ != runs_to_look && !is_worth_building) return false;
  const auto prebuilder = ocl::prebuilder_for(device.info());
  if (how != LaunchBatchMode::automatic) {
    const bool elsewhere_first = prebuilder->takes() == ocl::Prebuilder::Takes::all;
    if (elsewhere_first) prebuilder->build(to_build(), {}, {});
    state_ = State::none;
    if (!elsewhere_first || prebuilder->has_built(to_build())) make(device);
    return state_ == State::ready;
  }
  constexpr auto soon = ocl::Prebuilder::Haste::soon;
  if (!prebuilder->builds_beside(soon)) {
    state_ = State::none;
  } else if (runs_ == runs_to_look && prebuilder->has_built(to_build())) {
    make(device);
  } else if (is_worth_building) {
    state_ = State::none;
    try {
      beside_ = prebuilder->build_beside(to_build(), soon);
      state_ = State::building;
    } catch (const std::exception& error) {
      // A host may have no thread left.
      logging::print(logging::Level::plan, "launches are not batched: {}", error.what());
    }
  }
  return state_ == State::ready;
}

bool BatchCommands::pays() const {
  const auto spared = command_microseconds * static_cast<double>(launches() - batches_.batches.size());
  return spared >= least_gain * batches_.microseconds;
}

void BatchCommands::find(const Recording& recording, const Placement& placement, const DeviceInfo& device, std::size_t fewest,
                         std::size_t tail) {
  batches_ = find_launch_batches(recording, placement, device, fewest, tail);
  if (batches_.batches.empty()) return;
  std::vector<ocl::ProgramSource> programs;
  for (const auto& program : batches_.programs) {
    std::vector<const Launch*> kernels;
    for (auto command : program.commands) kernels.push_back(&std::get<Launch>(recording.commands()[command]));
    programs.push_back(batch_program(recording, kernels, program.parameters, device));
  }
  programs_ = std::move(programs);
}

std::vector<ocl::KernelToBuild> BatchCommands::to_build() const {
  std::vector<ocl::KernelToBuild> result;
  for (std::size_t k = 0; k < programs_.size(); ++k) {
    using ocl::KernelToBuild;
    KernelToBuild kernel{programs_[k], "launch_batch", {1}, {}};
    // A list of zeros has no tasks.
    kernel.arguments = {KernelToBuild::Buffer{64}, KernelToBuild::Buffer{BatchCounters::bytes}, KernelToBuild::Local{64}};
    const auto& parameters = batches_.programs[k].parameters;
    kernel.arguments.resize(kernel.arguments.size() + parameters.bases, KernelToBuild::Buffer{64});
    kernel.arguments.resize(kernel.arguments.size() + parameters.scalars, std::uint64_t{0});
    result.push_back(std::move(kernel));
  }
  return result;
}

void BatchCommands::make(ocl::Context& device) {
  state_ = State::none;
  try {
    std::vector<PreparedBatch> commands;
    for (const auto& batch : batches_.batches) {
      auto& command = commands.emplace_back();
      const auto& parameters = batches_.programs[batch.program].parameters;
      command.kernel = device.programs().kernel(programs_[batch.program], "launch_batch");
      // Threads take several groups at once: with as many as this each gets some.
      command.groups = batch.side_by_side ? 2 * static_cast<std::size_t>(std::max(1, device.info().compute_units)) : 1;
      std::size_t words = BatchList::first_value + 1 + batch.values.size();
      for (const auto& entry : batch.entries) words += BatchList::arguments + entry.words.size();
      command.list = device.memory().allocate(8 * words, "a launch batch's list");
      command.counters = device.memory().allocate(BatchCounters::bytes, "a launch batch's counters");
      device.fill(*command.counters, 0, BatchCounters::bytes, 0);
      command.left_out.resize(batch.entries.size());
      command.bases.resize(batch.bases.size());
      command.scalars.resize(batch.scalars.size());
      command.values.resize(batch.values.size());
      command.kernel.setArg(BatchParameters::list, command.list->memory());
      command.kernel.setArg(BatchParameters::counters, command.counters->memory());
      command.kernel.setArg(BatchParameters::local, std::max<std::size_t>(64, batch.local_bytes), nullptr);
      for (std::size_t k = batch.bases.size(); k < parameters.bases; ++k)
        command.kernel.setArg(BatchParameters::base(k), command.list->memory());
      for (std::size_t k = batch.scalars.size(); k < parameters.scalars; ++k)
        command.kernel.setArg(parameters.scalar(k), cl_ulong{0});
    }
    prepared_ = std::move(commands);
    state_ = State::ready;
    first_run_ = true;
    logging::print(logging::Level::plan, "{} launches are {} commands from now on", launches(), prepared_.size());
  } catch (const Error& error) {
    logging::print(logging::Level::plan, "launches are not batched: {}", error.what());
  } catch (const ::cl::Error& error) {
    logging::print(logging::Level::plan, "launches are not batched: {} from {}", ocl::error_name(error.err()), error.what());
  }
}

std::size_t BatchCommands::launches() const {
  return std::accumulate(batches_.batches.begin(), batches_.batches.end(), std::size_t{0},
                         [](auto sum, const LaunchBatch& batch) { return sum + batch.entries.size(); });
}

std::size_t BatchCommands::spared() const { return state_ == State::ready ? launches() - prepared_.size() : 0; }

const LaunchBatch* BatchCommands::at(std::size_t command, std::size_t tail) const {
  const auto found = std::lower_bound(batches_.batches.begin(), batches_.batches.end(), command,
                                      [](const LaunchBatch& batch, std::size_t first) { return batch.first < first; });
  return found != batches_.batches.end() && found->first == command && found->last <= tail ? &*found : nullptr;
}

void BatchCommands::enqueue(const LaunchBatch& batch, const Recording& recording, ocl::Context& device, const Places& places) {
  auto& command = prepared_[static_cast<std::size_t>(&batch - batches_.batches.data())];
  const auto& parameters = batches_.programs[batch.program].parameters;
  const auto what = fmt::format("batch of {} launches", batch.entries.size());
  try {
    for (std::size_t k = 0; k < batch.bases.size(); ++k) {
      const auto& base = batch.bases[k];
      const auto& buffer = base.in_arena ? places.segment(base.index) : places.buffer(base.index);
      auto& known = command.bases[k];
      if (known == buffer->id()) continue;
      known = 0;
      command.kernel.setArg(BatchParameters::base(k), buffer->memory());
      known = buffer->id();
    }
    for (std::size_t k = 0; k < batch.scalars.size(); ++k) {
      const auto bits = places.scalar(batch.scalars[k]);
      auto& known = command.scalars[k];
      if (known == bits) continue;
      known.reset();
      command.kernel.setArg(parameters.scalar(k), cl_ulong{bits});
      known = bits;
    }
  } catch (const ::cl::Error& error) {
    throw DeviceError(fmt::format("{}: an argument was refused: {}", what, ocl::error_name(error.err())));
  }
  for (std::size_t k = 0; k < batch.entries.size(); ++k) {
    if (!batch.entries[k].may_be_left_out) continue;
    const bool now = places.left_out(batch.entries[k].command);
    if (command.left_out[k] != now) command.list_known = false;
    command.left_out[k] = now;
  }
  for (std::size_t k = 0; k < batch.values.size(); ++k) {
    const auto& value = batch.values[k];
    const auto now = value.scalar ? places.scalar(value.leaf) : static_cast<std::uint64_t>(places.first(value.leaf));
    if (command.values[k] != now) command.list_known = false;
    command.values[k] = now;
  }
  if (!command.list_known) {
    const auto list = batch_list(recording, batch, command.values, command.left_out, command.groups);
    device.write(*command.list, 0, list.data(), 8 * list.size());
    command.list_known = true;
  }
  device.launch(command.kernel, {command.groups}, {1}, {"launch_batch", what, 0, 0, {}});
}

}  // namespace clnet::exec
