// The plans of one device, the arena that they share, and why a new one had to be made.
#pragma once

#include <list>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/choose/tuning.h"
#include "lib/exec/plan/plan.h"
#include "lib/exec/record/work.h"

namespace clnet::exec {

class PlanCache : public ocl::Context::Extension {
 public:
  /// Plans kept; the one that was not used for the longest time goes first.
  static constexpr std::size_t most = 256;

  /// The cache of a device.
  static PlanCache& of(ocl::Context& device);

  explicit PlanCache(const ocl::Context& device) : tuning_(device) {}

  /// The plan for the work, made when there is none of the same structure; `made` says which. Before one is made, solvers may be
  /// measured, by way of `evaluate`.
  Plan& plan(const Work& work, std::span<const Tensor> wanted, ocl::Context& device, const Tuning::Evaluate& evaluate,
             bool& made);
  Arena& arena() { return arena_; }
  void trim() override { arena_.clear(); }

 private:
  struct Entry {
    std::string key;
    std::unique_ptr<Plan> plan;
    std::vector<std::string> description;  ///< for explaining misses, when somebody listens
  };

  std::unique_ptr<Plan> make(const Work& work, std::span<const Tensor> wanted, ocl::Context& device) const;
  /// Whether its memory is to be had, as far as one can say now.
  bool fits(const Plan& plan, ocl::Context& device) const;
  std::string reason(const std::vector<std::string>& description) const;

  std::list<Entry> entries_;  ///< the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  Arena arena_;
  Tuning tuning_;
};

}  // namespace clnet::exec
