// Foresight: the programs that a plan would need for other sequence lengths, known with its first plan.
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

/// The data to compile a launch's kernel ahead. Buffers get `growth` times the size of their values.
ocl::KernelToBuild to_build(const Recording& recording, const Launch& launch, std::int64_t growth = 1);
/// Whether a driver may compile the kernel differently than for a single group.
bool is_large(const Launch& launch);
bool is_empty(const Launch& launch);

/// The lengths of sequences that attention and recurrences run along; empty for networks of images and rows.
std::vector<std::int64_t> lengths_of(const Subgraph& graph);
/// The kind of a subgraph: equal for subgraphs that differ in their lengths only.
std::string kind_of(const Subgraph& graph);

/// The further kernels of the subgraph with other lengths: of the solvers that it would choose, and of attention's other form.
/// `recording` has its lengths.
std::vector<ocl::KernelToBuild> foreseen(const Subgraph& graph, const Recording& recording, const DeviceInfo& device,
                                         const Options& options, const std::vector<Maker>& avoided);

/// Compiles foreseen programs while plans run, at the lowest priority, where the device's Prebuilder builds beside. Other drivers
/// build all of them with the first plan that needs one (Plan::build).
class BuildsBeside {
 public:
  void add(std::vector<ocl::KernelToBuild> kernels);
  /// Call it when a plan's first run is enqueued.
  void start(ocl::Context& device);
  /// Whether no build is running.
  bool done() const;

 private:
  std::vector<ocl::KernelToBuild> waiting_;
  std::vector<std::unique_ptr<ocl::BuildingBeside>> running_;
};

}  // namespace clnet::exec
