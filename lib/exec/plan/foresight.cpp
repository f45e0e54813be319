#include "lib/exec/plan/foresight.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/log.h"
#include "lib/cl/quirks.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/place/placement.h"
#include "lib/graph/autocast.h"
#include "lib/graph/capture.h"

namespace clnet::exec {

namespace {

/// Of a range that is large where the launch's is, and no larger than it need be.
std::size_t large_size(const Launch& launch, std::size_t axis) {
  const auto group = launch.local()[axis];
  return launch.global()[axis] < ocl::large_range ? group : (ocl::large_range + group - 1) / group * group;
}

}  // namespace

bool is_large(const Launch& launch) {
  return std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size >= ocl::large_range; });
}
bool is_empty(const Launch& launch) {
  return std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size == 0; });
}

namespace {

ocl::KernelToBuild::Scalar scalar_of(double value) { return {sizeof value, std::bit_cast<std::uint64_t>(value)}; }

}  // namespace

ocl::KernelToBuild to_build(const Recording& recording, const Launch& launch, std::int64_t growth) {
  ocl::KernelToBuild kernel{launch.program(), launch.function(), launch.local(), {}};
  if (is_large(launch))
    for (std::size_t axis = 0; axis < launch.local().size(); ++axis) kernel.global.push_back(large_size(launch, axis));
  for (const auto& arg : launch.arguments()) {
    if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
      const auto& info = recording.value(buffer->ref.value);
      const auto bytes = stored_bytes(recording.value(info.root).spec) * static_cast<std::size_t>(growth);
      kernel.arguments.emplace_back(ocl::KernelToBuild::Buffer{bytes});
      kernel.arguments.emplace_back(static_cast<std::uint64_t>(info.offset + buffer->ref.offset));
    } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
      const auto dtype = recording.value(scalar->value).spec.dtype;
      // A kernel takes f16 and bf16 scalars as float; one, as some kernels divide by it.
      constexpr std::uint64_t one = 0x3f800000;
      kernel.arguments.emplace_back(dtype == Dtype::f64  ? scalar_of(1.0)
                                    : is_floating(dtype) ? ocl::KernelToBuild::Scalar{sizeof(float), one}
                                                         : ocl::KernelToBuild::Scalar{size_of(dtype), 1});
    } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
      kernel.arguments.emplace_back(ocl::KernelToBuild::Local{local->bytes});
    } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
      kernel.arguments.emplace_back(*integer);
    } else if (launch.computes_f64()) {
      kernel.arguments.emplace_back(scalar_of(std::get<double>(arg)));
    } else {
      kernel.arguments.emplace_back(static_cast<float>(std::get<double>(arg)));
    }
  }
  return kernel;
}

std::vector<std::int64_t> lengths_of(const Subgraph& graph) {
  std::set<std::int64_t> lengths;
  for (const auto& node : graph.nodes())
    for (const auto length : node->op->lengths(specs_of(node->inputs)))
      if (length > 0) lengths.insert(length);
  return {lengths.begin(), lengths.end()};
}

std::string kind_of(const Subgraph& graph) {
  std::set<std::string> parts;
  for (const auto& node : graph.nodes()) parts.emplace(node->op->name());
  for (const auto& leaf : graph.leaves())
    if (node_of(leaf)->slot != 0) parts.insert(to_string(leaf.spec()));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

std::vector<ocl::KernelToBuild> foreseen(const Subgraph& graph, const Recording& recording, const DeviceInfo& device,
                                         const Options& options, const std::vector<Maker>& avoided) {
  std::vector<ocl::KernelToBuild> result;
  std::set<std::tuple<ocl::ProgramSource, std::string, std::vector<std::size_t>, bool>> known;
  const auto is_new = [&](const Launch& launch) {
    return known.emplace(launch.program(), launch.function(), launch.local(), is_large(launch)).second;
  };
  for (const auto& command : recording.commands())
    if (const auto* launch = std::get_if<Launch>(&command)) is_new(*launch);
  const auto add = [&](const Recording& of, const Launch& launch, std::int64_t growth) {
    if (!is_empty(launch) && is_new(launch)) result.push_back(to_build(of, launch, growth));
  };
  for (const auto& [launch, growth] : recording.foreseen()) add(recording, launch, growth);

  // Groups are another recording's here.
  const Choosing anywhere{.avoided = avoided};
  // What is written down here is nobody's: not evaluated at once, and of the dtypes that it says.
  Capture capture;
  const Capturing here(&capture);
  const Autocast as_written(Dtype::f32);
  std::set<std::string> asked;
  for (const auto& node : graph.nodes()) {
    const auto inputs = specs_of(node->inputs);
    auto what = fmt::format("{} {}", node->op->name(), to_string(node->op->fields()));
    for (const auto& input : inputs) what += " " + to_string(input);
    if (!asked.insert(std::move(what)).second) continue;
    for (const auto from : recording.lengths())
      for (const auto to : foreseen_lengths) {
        const auto outputs = from == to ? Tensors{} : node->op->at_length(inputs, from, to);
        if (outputs.empty()) continue;
        const auto other = lower(Subgraph(collect(outputs)), device, {.options = options}).recording;
        for (const auto& command : other.commands())
          if (const auto* launch = std::get_if<Launch>(&command);
              launch && !is_avoided(launch->maker().op, launch->maker().solver, anywhere))
            add(other, *launch, 1);
      }
  }
  return result;
}

void BuildsBeside::add(std::vector<ocl::KernelToBuild> kernels) {
  waiting_.insert(waiting_.end(), std::make_move_iterator(kernels.begin()), std::make_move_iterator(kernels.end()));
}

void BuildsBeside::start(ocl::Context& device) {
  std::erase_if(running_, [](const auto& beside) { return beside->done(); });
  auto kernels = std::exchange(waiting_, {});
  std::erase_if(kernels, [](const ocl::KernelToBuild& kernel) { return kernel.program.users() || kernel.local.empty(); });
  if (kernels.empty()) return;
  try {
    const auto prebuilder = ocl::prebuilder_for(device.info());
    if (auto building = prebuilder->build_beside(std::move(kernels), ocl::Prebuilder::Haste::when_idle))
      running_.push_back(std::move(building));
  } catch (const std::exception& error) {
    // A host may have no thread left.
    logging::print(logging::Level::plan, "programs of other lengths are compiled when they come: {}", error.what());
  }
}

bool BuildsBeside::done() const {
  return waiting_.empty() && std::all_of(running_.begin(), running_.end(), [](const auto& beside) { return beside->done(); });
}

}  // namespace clnet::exec
