// The hooks of a run, called together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/checkpoint.h"
#include "clnet/train.h"

namespace clnet::train {

class Hooks {
 public:
  using Call = void (Hook::*)(Run& run);

  Hooks(std::vector<std::shared_ptr<Hook>> hooks, Run& run) : hooks_(std::move(hooks)), run_(run) {}
  /// Leaves out those that only observe.
  void drop_observers();

  /// In order.
  void before(Call call) const;
  /// In reverse. All are called, also where one throws; then the first exception is thrown.
  void after(Call call) const;
  void on_loss(std::int64_t step, double loss) const;

  /// Of those that do more than observe.
  std::string names() const;
  /// The states of these, for a checkpoint.
  std::vector<io::LoadedPart> parts() const;

 private:
  std::vector<std::shared_ptr<Hook>> hooks_;
  Run& run_;
};

/// While it lives, hooks see the record.
class HookedRecord {
 public:
  HookedRecord(Run& run, EpochMetrics& record) : run_(run) { run.record = &record; }
  ~HookedRecord() { run_.record = nullptr; }
  HookedRecord(const HookedRecord&) = delete;
  HookedRecord& operator=(const HookedRecord&) = delete;

 private:
  Run& run_;
};

}  // namespace clnet::train
