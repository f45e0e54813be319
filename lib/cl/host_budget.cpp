#include "lib/cl/host_budget.h"

#include <algorithm>
#include <utility>

namespace clnet::ocl {

HostBudget& HostBudget::instance() {
  static auto& budget = *new HostBudget;  // outlives what static tensors do at exit
  return budget;
}

void HostBudget::find_limit() {
  std::size_t most = 0;
  for (const auto* share : shares_) most = std::max(most, share->limit_);
  limit_ = most;
}

HostBudget::Share::Share(HostBudget& budget, std::size_t limit, std::function<void(std::size_t)> drop)
    : budget_(budget), limit_(limit), drop_(std::move(drop)) {
  const std::lock_guard lock(budget_.mutex_);
  budget_.shares_.push_back(this);
  budget_.find_limit();
}

HostBudget::Share::~Share() {
  const std::lock_guard lock(budget_.mutex_);
  std::erase(budget_.shares_, this);
  budget_.find_limit();
  budget_.taken_ -= taken_;
}

bool HostBudget::Share::take(std::size_t bytes) {
  auto taken = budget_.taken();
  do {
    const auto limit = budget_.limit();
    if (taken > limit || bytes > limit - taken) return false;
  } while (!budget_.taken_.compare_exchange_weak(taken, taken + bytes));
  taken_ += bytes;
  return true;
}

void HostBudget::Share::give(std::size_t bytes) {
  taken_ -= bytes;
  budget_.taken_ -= bytes;
}

void HostBudget::Share::set_limit(std::size_t bytes) {
  const std::lock_guard lock(budget_.mutex_);
  limit_ = bytes;
  budget_.find_limit();
}

std::size_t HostBudget::Share::taken_by_others() const {
  const auto own = taken_.load(), all = budget_.taken();
  return all - std::min(own, all);
}

void HostBudget::Share::make_room(std::size_t bytes) {
  const auto lacks = [&] {
    const auto taken = budget_.taken() + bytes, limit = budget_.limit();
    return taken - std::min(taken, limit);
  };
  const std::lock_guard lock(budget_.mutex_);
  for (auto* share : budget_.shares_)
    if (share != this && share->drop_ && lacks() > 0) share->drop_(lacks());
}

}  // namespace clnet::ocl
