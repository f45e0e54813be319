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
  auto& extension = device.extension();
  if (!extension) extension = std::make_unique<PlanCache>(device);
  return static_cast<PlanCache&>(*extension);
}

Plan& PlanCache::plan(const Work& work, std::span<const Tensor> wanted, ocl::Context& device, const Tuning::Evaluate& evaluate,
                      bool& made) {
  auto key = plan_key(work, wanted);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    made = false;
    entries_.splice(entries_.begin(), entries_, found->second);
    return *found->second->plan;
  }
  made = true;
  tuning_.tune(work, device, evaluate);
  const auto start = std::chrono::steady_clock::now();
  const bool explain = logging::enabled(logging::Level::plan);
  auto description = explain ? describe(work) : std::vector<std::string>{};
  const auto why = explain ? reason(description) : std::string();

  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  auto plan = make(work, wanted, device);
  if (!fits(*plan, device)) {
    const auto again = recompute(work, wanted);
    auto smaller = again.repeated ? make(again.work, again.wanted, device) : nullptr;
    if (smaller && smaller->planned_bytes() < plan->planned_bytes()) {
      logging::print(logging::Level::plan,
                     "plan: {:.2f} MiB of intermediates do not fit; {:.2f} MiB with {} operations computed twice",
                     mib(plan->planned_bytes()), mib(smaller->planned_bytes()), again.repeated);
      plan = std::move(smaller);
    }
  }
  if (explain) {
    logging::print(
        logging::Level::plan,
        "plan: {} operations in {} kernels and {} host calls; intermediates {:.2f} MiB instead of {:.2f}; made in {:.0f} "
        "ms, because {}",
        work.nodes.size(), plan->kernels(), plan->host_calls(), mib(plan->planned_bytes()), mib(plan->naive_bytes()),
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(), why);
  }
  entries_.push_front({std::move(key), std::move(plan), std::move(description)});
  by_key_[entries_.front().key] = entries_.begin();
  if (entries_.size() > most) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return *entries_.front().plan;
}

std::unique_ptr<Plan> PlanCache::make(const Work& work, std::span<const Tensor> wanted, ocl::Context& device) const {
  Recording recording;
  const auto ids = record(work, wanted, device.info(), recording, &tuning_);
  std::vector<ValueId> keep;
  for (const auto& tensor : wanted)
    if (!value_of(tensor)) keep.push_back(ids.at(tensor));
  return std::make_unique<Plan>(std::move(recording), std::move(keep), device);
}

bool PlanCache::fits(const Plan& plan, ocl::Context& device) const {
  const auto memory = device.memory().stats();
  // The arena grows; what else is in use stays, and the results come to it.
  const auto others = memory.in_use - std::min(memory.in_use, arena_.bytes());
  return others + plan.planned_bytes() + plan.own_bytes() <= memory.limit;
}

std::string PlanCache::reason(const std::vector<std::string>& description) const {
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
