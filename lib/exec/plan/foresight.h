// Which programs a plan would need if its sequences had other lengths: known with its first plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/cl/context.h"
#include "lib/cl/prebuild.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// What it takes to compile a launch's kernel ahead. Buffers are made so many times as large as their values.
ocl::KernelToBuild to_build(const Recording& recording, const Launch& launch, std::int64_t growth = 1);
/// Whether a driver may compile the kernel in another way than for a single group.
bool is_large(const Launch& launch);
bool is_empty(const Launch& launch);

/// The lengths of the sequences, if there are any: of what attention and recurrences go along. Networks of images and rows
/// have none, and nothing is foreseen for them.
std::vector<std::int64_t> lengths_of(const Subgraph& graph);
/// What subgraphs that differ in their lengths only have in common.
std::string kind_of(const Subgraph& graph);

/// The kernels of the subgraph with other lengths that its recording does not have: those of solvers that it would choose, and
/// those of attention made in the other way. `recording` has its lengths.
std::vector<ocl::KernelToBuild> foreseen(const Subgraph& graph, const Recording& recording, const DeviceInfo& device,
                                         const Options& options, const std::vector<Maker>& avoided);

/// What was foreseen and is compiled while plans run: at the lowest priority where the device's Prebuilder builds beside. Other
/// drivers build all of them at once with the first plan that needs one (Plan::build).
class BuildsBeside {
 public:
  void add(std::vector<ocl::KernelToBuild> kernels);
  /// To be called when a plan's first run is enqueued.
  void start(ocl::Context& device);
  /// Whether there is nothing under way.
  bool done() const;

 private:
  std::vector<ocl::KernelToBuild> waiting_;
  std::vector<std::unique_ptr<ocl::BuildingBeside>> running_;
};

}  // namespace clnet::exec
