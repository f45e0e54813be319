// The state that all plans of a device share: the plans, the arena, the prepacked values; and the reasons for new plans.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/plan/foresight.h"
#include "lib/exec/plan/plan.h"
#include "lib/exec/plan/speculative_outputs.h"
#include "lib/exec/tune/tuning.h"

namespace clnet::exec {

class PlanCache : public ocl::Context::Extension {
 public:
  /// Limit of plans; the least recently used one is dropped.
  static constexpr std::size_t most = 256;

  /// The cache of a device.
  static PlanCache& of(ocl::Context& device);

  explicit PlanCache(const ocl::Context& device) : tuning_(device) {}

  /// The plan for the work, made where none has its structure; `made` tells which. Before that, solvers may be measured by
  /// `evaluate`. Any thread may call it, without the context's lock: other threads run meanwhile, and those that want the same
  /// plan wait. `failed` is a plan that found no memory: a smaller one is made in its place.
  std::shared_ptr<Plan> plan(const Work& work, ocl::Context& device, const Options& options, const Tuning::Evaluate& evaluate,
                             bool& made, const Plan* failed = nullptr);
  /// Whether a plan made with more free memory may be made again to take less.
  bool may_shrink(const Plan& plan, ocl::Context& device) { return !plan.is_shrunk() && !fits(plan, device); }
  /// Call it when the first run of a plan is enqueued.
  void build_beside(ocl::Context& device);
  /// Whether no build runs beside the program.
  bool is_built_beside() const;
  /// Call it with the context's lock held.
  Arena& arena() { return arena_; }
  PrepackCache& prepacks() { return prepacks_; }
  SpeculativeOutputs& speculative_outputs() { return speculative_outputs_; }

  /// The choices of all plans so far, for follow() in another process.
  std::string choices() const { return tuning_.choices().text(); }
  /// Makes later plans with these choices, where no solver is forced. False: they are of another device, driver or version and
  /// have no effect.
  bool follow(StoredChoices choices);

  void trim() override;
  void reclaim(std::size_t bytes) override { evict(bytes); }

 private:
  struct CachedPlan {
    std::string key;
    std::shared_ptr<Plan> plan;
    std::vector<std::string> description;  ///< for explaining misses to a listener
  };

  /// Call it with the mutex held. Null where there is none except `failed`, which is dropped.
  std::shared_ptr<Plan> find(const std::string& key, const Plan* failed);
  void insert(CachedPlan entry);
  /// Options of making a plan.
  struct Making {
    Options options;
    bool speculates = true;  ///< keeps further values that launches write anyway
    bool caches = true;      ///< caches values made from leaves only
    std::vector<Maker> avoided = {};
  };
  CachedPlan build(std::string key, const Work& work, const Subgraph& graph, ocl::Context& device, const Options& options);
  /// Makes a plan, with other solvers and without fusion where kernels crash the driver's compiler.
  std::shared_ptr<Plan> make(const Subgraph& graph, ocl::Context& device, Making making);
  std::shared_ptr<Plan> make_once(const Subgraph& graph, ocl::Context& device, const Making& making);
  /// The lengths of the sequences, if no subgraph of the kind was recorded before.
  std::vector<std::int64_t> lengths_to_foresee(const Subgraph& graph, const Options& options);
  void evict(std::size_t bytes);
  /// Whether its memory is available, as far as known now.
  bool fits(const Plan& plan, ocl::Context& device);
  std::string reason(const std::vector<std::string>& description) const;

  mutable std::mutex mutex_;  ///< guards the plans; never held while one is made
  std::condition_variable ready_;
  std::unordered_set<std::string> building_;  ///< keys of the plans in the making
  std::list<CachedPlan> entries_;             ///< the last used first
  std::unordered_map<std::string_view, std::list<CachedPlan>::iterator> by_key_;
  Arena arena_;
  PrepackCache prepacks_;
  SpeculativeOutputs speculative_outputs_;
  Tuning tuning_;
  std::set<std::string> foreseen_;  ///< kinds of subgraphs that were recorded with their lengths
  BuildsBeside beside_;
};

}  // namespace clnet::exec
