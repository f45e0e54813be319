#include "lib/exec/plan/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lib/base/log.h"
#include "lib/exec/plan/key.h"
#include "lib/exec/plan/recompute.h"
#include "lib/exec/record/record.h"

namespace clnet::exec {

PlanCache& PlanCache::of(ocl::Context& device) {
  return static_cast<PlanCache&>(
      device.extension([](ocl::Context& context) -> std::unique_ptr<Extension> { return std::make_unique<PlanCache>(context); }));
}

void PlanCache::trim() {
  arena_.clear();
  cached_.clear();
}

std::shared_ptr<Plan> PlanCache::plan(const Work& work, ocl::Context& device, const Tuning::Evaluate& evaluate, bool& made,
                                      const Plan* failed) {
  auto key = plan_key(work);
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
  /// However it ends: a failure is the first thread's, and the next tries again.
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
  const auto own = private_copy(work);
  tuning_.tune(own, device, evaluate);
  // Some drivers must not be called by two threads at once.
  const auto alone = device.info().thread_safe ? std::unique_lock<std::recursive_mutex>() : device.lock();
  auto entry = build(std::move(key), own, device);
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

void PlanCache::insert(Entry entry) {
  std::shared_ptr<Plan> oldest;  // freed without the lock
  const std::lock_guard lock(mutex_);
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
  if (entries_.size() <= most) return;
  by_key_.erase(entries_.back().key);
  oldest = std::move(entries_.back().plan);
  entries_.pop_back();
}

PlanCache::Entry PlanCache::build(std::string key, const Work& work, ocl::Context& device) {
  const auto start = std::chrono::steady_clock::now();
  const bool explain = logging::enabled(logging::Level::plan);
  auto description = explain ? describe(work) : std::vector<std::string>{};
  const auto why = explain ? reason(description) : std::string();

  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  auto plan = make(work, device);
  if (!fits(*plan, device)) {
    // Keeping values costs memory; computing values twice costs time in every run.
    if (plan->cached_bytes() > 0) plan = make(work, device, false);
    const auto again = fits(*plan, device) ? Recomputing{} : recompute(work);
    auto smaller = again.repeated ? make(again.work, device, false) : nullptr;
    const bool is_smaller = smaller && smaller->planned_bytes() < plan->planned_bytes();
    if (is_smaller) {
      logging::print(logging::Level::plan,
                     "plan: {:.2f} MiB of intermediates do not fit; {:.2f} MiB with {} operations computed twice",
                     mib(plan->planned_bytes()), mib(smaller->planned_bytes()), again.repeated);
      plan = std::move(smaller);
    }
    plan->set_shrunk(is_smaller ? again.repeated : 0);
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

std::shared_ptr<Plan> PlanCache::make(const Work& work, ocl::Context& device, bool caches) const {
  Recording recording;
  const auto ids = record(work, work.wanted, device.info(), recording, &tuning_);
  std::vector<ValueId> keep;
  for (const auto& tensor : work.wanted) keep.push_back(ids.at(tensor));
  const bool reuses = reuse_enabled();
  return std::make_shared<Plan>(std::move(recording), std::move(keep), device,
                                Placing{device.info().reuses_buffers && reuses, caches && reuses, device.info().max_allocation});
}

bool PlanCache::fits(const Plan& plan, ocl::Context& device) {
  const auto lock = device.lock();
  const auto others = [&] {
    // The arena grows; what else is in use stays, and the results come to it.
    const auto in_use = device.memory().stats().in_use;
    return in_use - std::min(in_use, arena_.bytes());
  };
  const auto needed = plan.planned_bytes() + plan.own_bytes();
  const auto limit = device.memory().stats().limit;
  if (others() + needed > limit) cached_.evict(others() + needed - limit);
  return others() + needed <= limit;
}

std::string PlanCache::reason(const std::vector<std::string>& description) const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return "it is the first";
  const Entry* nearest = nullptr;
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
