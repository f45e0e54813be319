#include "lib/exec/plan/cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <unordered_map>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/lower/rematerialize.h"
#include "lib/exec/lower/rewrite.h"
#include "lib/exec/plan/key.h"

namespace clnet::exec {

PlanCache& PlanCache::of(ocl::Context& device) { return device.extension<PlanCache>(); }

bool PlanCache::follow(StoredChoices choices) {
  const auto followed = tuning_.choices().follow(std::move(choices));
  if (followed == Choices::Follows::changed) {
    std::list<CachedPlan> plans;  // freed without the lock
    const std::lock_guard lock(mutex_);
    by_key_.clear();
    plans.swap(entries_);
    // Compiled functions hold their plans.
    for (const auto& entry : plans) entry.plan->retire();
  }
  return followed != Choices::Follows::no;
}

void PlanCache::trim() {
  arena_.clear();
  speculative_outputs_.clear();
  prepacks_.clear();
}

void PlanCache::evict(std::size_t bytes) {
  const auto freed = speculative_outputs_.evict(bytes);
  if (freed < bytes) prepacks_.evict(bytes - freed);
}

std::shared_ptr<Plan> PlanCache::plan(const Work& work, ocl::Context& device, const Options& options,
                                      const Tuning::Evaluate& evaluate, bool& made, const Plan* failed) {
  auto key = plan_key(work, options);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto found = find(key, failed)) {
      made = false;
      return found;
    }
    if (building_.insert(key).second) break;
    ready_.wait(lock, [&] { return building_.count(key) == 0; });
  }
  lock.unlock();
  /// Ends the making in every case: the first thread gets a failure, and the next tries again.
  struct Built {
    PlanCache& cache;
    const std::string key;
    ~Built() {
      const std::lock_guard guard(cache.mutex_);
      cache.building_.erase(key);
      cache.ready_.notify_all();
    }
  };
  const Built built{*this, key};
  made = true;
  const auto graph = rewritten(Subgraph(work), options);
  tuning_.tune(graph, device, prepacks_, options, evaluate);
  // Some drivers must not be called by two threads at once.
  const auto alone = device.info().thread_safe ? std::unique_lock<std::recursive_mutex>() : device.lock();
  auto entry = build(std::move(key), work, graph, device, options);
  auto plan = entry.plan;
  insert(std::move(entry));
  return plan;
}

std::shared_ptr<Plan> PlanCache::find(const std::string& key, const Plan* failed) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  if (const auto entry = found->second; entry->plan.get() == failed) {
    by_key_.erase(found);
    entries_.erase(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->plan;
}

void PlanCache::insert(CachedPlan entry) {
  std::shared_ptr<Plan> oldest;  // freed without the lock
  const std::lock_guard lock(mutex_);
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
  if (entries_.size() <= most) return;
  by_key_.erase(entries_.back().key);
  oldest = std::move(entries_.back().plan);
  entries_.pop_back();
}

PlanCache::CachedPlan PlanCache::build(std::string key, const Work& work, const Subgraph& graph, ocl::Context& device,
                                       const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool explain = logging::enabled(logging::Level::plan);
  auto description = explain ? describe(work) : std::vector<std::string>{};
  const auto why = explain ? reason(description) : std::string();

  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  auto plan = make(graph, device, {options});
  if (!fits(*plan, device)) {
    // Keeping values costs memory; computing values twice costs time in every run.
    if (!plan->speculative().empty()) plan = make(graph, device, {.options = options, .speculates = false});
    if (!fits(*plan, device) && plan->prepacked_bytes() > 0)
      plan = make(graph, device, {.options = options, .speculates = false, .caches = false});
    const Subgraph once(work);
    auto again = fits(*plan, device) ? std::nullopt : rematerialized(once);
    const auto repeated = again ? again->nodes().size() - once.nodes().size() : 0;
    auto smaller =
        again ? make(rewritten(std::move(*again), options), device, {.options = options, .speculates = false, .caches = false})
              : nullptr;
    const bool is_smaller = smaller && smaller->planned_bytes() < plan->planned_bytes();
    if (is_smaller) {
      logging::print(logging::Level::plan,
                     "plan: {:.2f} MiB of intermediates do not fit; {:.2f} MiB with {} operations computed twice",
                     mib(plan->planned_bytes()), mib(smaller->planned_bytes()), repeated);
      plan = std::move(smaller);
    }
    plan->set_shrunk(is_smaller ? repeated : 0);
  }
  if (explain) {
    logging::print(
        logging::Level::plan,
        "plan: {} operations in {} kernels and {} host calls; intermediates {:.2f} MiB instead of {:.2f}; made in {:.0f} "
        "ms, because {}",
        work.nodes.size(), plan->kernels(), plan->host_calls(), mib(plan->planned_bytes()), mib(plan->naive_bytes()),
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(), why);
  }
  return {std::move(key), std::move(plan), std::move(description)};
}

namespace {

/// The tensors of a recorded graph that are in memory after their launch.
class Written {
 public:
  Written(Recording& recording, const ValueIds& ids)
      : recording_(recording), ids_(ids), written_(recording.value_count(), false) {
    for (const auto& command : recording.commands())
      for_each_ref(command, [&](Ref ref, bool writes) {
        const auto root = recording.value(ref.value).root;
        if (writes && !recording.value(root).from_leaves) written_[static_cast<std::size_t>(root)] = true;
      });
  }

  bool has(const Tensor& tensor) const {
    return ids_.contains(tensor) && written_[static_cast<std::size_t>(recording_.value(ids_.at(tensor)).root)];
  }

  /// Allows to return the tensor: other parts of its concatenation keep no more memory than it does.
  void hold(const Tensor& tensor) {
    if (root_of(tensor).tensor.same(tensor) && has(tensor))
      held_[recording_.value(ids_.at(tensor)).root] += tensor.spec().bytes();
  }

  /// The value to return for a tensor that was not requested. None where it would cost a launch, or keep much more memory than
  /// its own and, for a computed one, than that of held neighbours.
  std::optional<ValueId> value(const Tensor& tensor) {
    const auto root = root_of(tensor);
    if (!has(root.tensor)) return std::nullopt;
    const auto memory = recording_.value(ids_.at(root.tensor)).root;
    const auto held = root.tensor.same(tensor) ? held_[memory] : tensor.spec().bytes();
    if (4 * held < recording_.value(memory).spec.bytes()) return std::nullopt;
    if (ids_.contains(tensor)) return ids_.at(tensor);
    const auto id = recording_.add_value(tensor.spec());
    recording_.alias(id, {ids_.at(root.tensor), root.offset});
    return id;
  }

 private:
  Recording& recording_;
  const ValueIds& ids_;
  std::vector<bool> written_;                       ///< by root value
  std::unordered_map<ValueId, std::int64_t> held_;  ///< bytes by root value
};

}  // namespace

namespace {

void tell_of_crash(const std::string& crash, const std::vector<Maker>& avoided, bool unfused) {
  std::set<std::string> instead;
  for (const auto& maker : avoided) instead.insert(fmt::format("without {}:{} there", maker.op, maker.solver));
  if (unfused) instead.insert("each operation gets a kernel of its own");
  logging::warn_once(fmt::format("{}: {}", crash, fmt::join(instead, ", ")));
}

}  // namespace

std::shared_ptr<Plan> PlanCache::make(const Subgraph& graph, ocl::Context& device, Making making) {
  auto& avoided = making.avoided;
  bool unfused = false;
  std::set<std::string> kernels;
  std::string crash;
  /// Whether another way remains.
  const auto try_without_fusion = [&] {
    if (!making.options.fuses) return false;
    making.options.fuses = false;
    unfused = true;
    avoided.clear();  // the parts change
    return true;
  };
  for (;;) {
    try {
      auto plan = make_once(graph, device, making);
      if (!crash.empty()) tell_of_crash(crash, avoided, unfused);
      return plan;
    } catch (const KernelsCrash& error) {
      kernels.insert(error.kernels().begin(), error.kernels().end());
      crash = KernelsCrash::text(kernels, error.compiler());
      const auto known = avoided.size();
      for (const auto& maker : error.makers())
        if (!maker.op.empty() && std::find(avoided.begin(), avoided.end(), maker) == avoided.end()) avoided.push_back(maker);
      if (avoided.size() == known && !try_without_fusion()) throw;
    } catch (const Unsupported& error) {
      if (avoided.empty()) throw;
      if (!try_without_fusion()) throw DeviceError(fmt::format("{}; {}", crash, error.what()));
    }
  }
}

std::vector<std::int64_t> PlanCache::lengths_to_foresee(const Subgraph& graph, const Options& options) {
  // A forced or measured solver does not predict those of other lengths.
  if (!options.solvers.empty()) return {};
  auto lengths = lengths_of(graph);
  if (lengths.empty()) return {};
  const auto kind = kind_of(graph);
  const std::lock_guard lock(mutex_);
  return foreseen_.contains(kind) ? std::vector<std::int64_t>{} : lengths;
}

void PlanCache::build_beside(ocl::Context& device) {
  const std::lock_guard lock(mutex_);
  beside_.start(device);
}

bool PlanCache::is_built_beside() const {
  const std::lock_guard lock(mutex_);
  return beside_.done();
}

std::shared_ptr<Plan> PlanCache::make_once(const Subgraph& graph, ocl::Context& device, const Making& making) {
  auto [recording, ids, results] = lower(graph, device.info(),
                                         {.options = making.options,
                                          .preferences = &tuning_,
                                          .lengths = lengths_to_foresee(graph, making.options),
                                          .avoided = making.avoided});
  std::vector<Work::Result> speculative;
  Written written(recording, ids);
  for (const auto& tensor : graph.wanted()) written.hold(tensor);
  for (const auto& result : graph.speculative()) written.hold(result.tensor);
  if (making.speculates)
    for (const auto& [tensor, of] : graph.speculative())
      if (const auto value = written.value(tensor)) {
        results.push_back(*value);
        speculative.push_back(of);
      }
  const bool foresees = !recording.lengths().empty();
  auto others =
      foresees ? foreseen(graph, recording, device.info(), making.options, making.avoided) : std::vector<ocl::KernelToBuild>{};
  auto placement_options = PlacementOptions::of(device.info(), making.options);
  placement_options.caches = placement_options.caches && making.caches;
  auto plan = std::make_shared<Plan>(std::move(recording), std::move(results), device, placement_options);
  plan->set_speculative(std::move(speculative));
  for (const auto& kernel : others) device.programs().foresee(kernel.program);
  if (foresees) {
    const std::lock_guard lock(mutex_);
    foreseen_.insert(kind_of(graph));
    beside_.add(std::move(others));
  }
  return plan;
}

bool PlanCache::fits(const Plan& plan, ocl::Context& device) {
  const auto lock = device.lock();
  const auto others = [&] {
    // The arena grows; all other memory stays in use, and the results are added.
    const auto in_use = device.memory().stats().in_use;
    return in_use - std::min(in_use, arena_.bytes());
  };
  const auto needed = plan.planned_bytes() + plan.own_bytes();
  const auto limit = device.memory().limit_beside_others(others() + needed);
  if (others() + needed > limit) evict(others() + needed - limit);
  return others() + needed <= limit;
}

std::string PlanCache::reason(const std::vector<std::string>& description) const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return "it is the first";
  const CachedPlan* nearest = nullptr;
  std::size_t differences = description.size();
  for (const auto& entry : entries_) {
    if (entry.description.size() != description.size()) continue;
    std::size_t count = 0;
    for (std::size_t i = 0; i < description.size(); ++i) count += entry.description[i] != description[i];
    if (count <= differences) {
      nearest = &entry;
      differences = count;
    }
  }
  if (!nearest) return fmt::format("none of {} plans has as many operations and inputs", entries_.size());
  const auto [other, mine] = std::mismatch(nearest->description.begin(), nearest->description.end(), description.begin());
  if (mine == description.end()) return "the same operations are connected otherwise, or other results or solvers are asked for";
  return fmt::format("where the nearest plan has '{}' there is '{}'{}", *other, *mine,
                     differences > 1 ? fmt::format(", and {} differences more", differences - 1) : "");
}

}  // namespace clnet::exec
