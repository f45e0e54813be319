// What all plans of a device share: the plans themselves, the arena, the cached values; and why a new plan had to be made.
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
#include "lib/exec/plan/kept.h"
#include "lib/exec/plan/plan.h"
#include "lib/exec/tune/tuning.h"

namespace clnet::exec {

class PlanCache : public ocl::Context::Extension {
 public:
  /// Plans kept; the one that was not used for the longest time goes first.
  static constexpr std::size_t most = 256;

  /// The cache of a device.
  static PlanCache& of(ocl::Context& device);

  explicit PlanCache(const ocl::Context& device) : tuning_(device) {}

  /// The plan for the work, made when there is none of the same structure; `made` says which. Before one is made, solvers may be
  /// measured, by way of `evaluate`. Any thread may call it, without the context's lock: others go on while a plan is made, and
  /// who wants the same one waits for it. `failed` is a plan that found no memory: one that takes less is made in its place.
  std::shared_ptr<Plan> plan(const Work& work, ocl::Context& device, const Options& options, const Tuning::Evaluate& evaluate,
                             bool& made, const Plan* failed = nullptr);
  /// Whether a plan that was made when there was more memory may be made again to take less.
  bool may_shrink(const Plan& plan, ocl::Context& device) { return !plan.is_shrunk() && !fits(plan, device); }
  /// To be called when the first run of a plan is enqueued.
  void build_beside(ocl::Context& device);
  /// Whether nothing is built beside the program.
  bool is_built_beside() const;
  /// With the context's lock held.
  Arena& arena() { return arena_; }
  CachedValues& cached() { return cached_; }
  KeptValues& kept() { return kept_; }

  /// What plans so far were made of, for follow() of another process.
  std::string choices() const { return tuning_.choices().text(); }
  /// Plans are made with these choices from now on, where nobody forces others. False where they are of another device, driver or
  /// version and have no effect.
  bool follow(StoredChoices choices);

  void trim() override;
  void reclaim(std::size_t bytes) override { evict(bytes); }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Plan> plan;
    std::vector<std::string> description;  ///< for explaining misses, when somebody listens
  };

  /// With the mutex held; null where there is none but `failed`, which is dropped.
  std::shared_ptr<Plan> find(const std::string& key, const Plan* failed);
  void insert(Entry entry);
  /// How a plan is made.
  struct Making {
    Options options;
    bool keeps = true;   ///< values that nobody asked for, where they are written anyway
    bool caches = true;  ///< what is made of leaves only
    std::vector<Maker> avoided = {};
  };
  Entry build(std::string key, const Work& work, const Subgraph& graph, ocl::Context& device, const Options& options);
  /// By other solvers, and without fusion, where kernels crash the driver's compiler.
  std::shared_ptr<Plan> make(const Subgraph& graph, ocl::Context& device, Making making);
  std::shared_ptr<Plan> make_once(const Subgraph& graph, ocl::Context& device, const Making& making);
  /// The lengths of the sequences, if nothing of the kind was recorded before.
  std::vector<std::int64_t> lengths_to_foresee(const Subgraph& graph, const Options& options);
  void evict(std::size_t bytes);
  /// Whether its memory is to be had, as far as one can say now.
  bool fits(const Plan& plan, ocl::Context& device);
  std::string reason(const std::vector<std::string>& description) const;

  mutable std::mutex mutex_;  ///< of the plans; never held while one is made
  std::condition_variable ready_;
  std::unordered_set<std::string> building_;  ///< the keys of plans that some thread makes
  std::list<Entry> entries_;                  ///< the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  Arena arena_;
  CachedValues cached_;
  KeptValues kept_;
  Tuning tuning_;
  std::set<std::string> foreseen_;  ///< the kinds of subgraphs that were recorded with their lengths
  BuildsBeside beside_;
};

}  // namespace clnet::exec
