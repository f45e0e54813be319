// Other processes that build a program which this one needs as well: one builds it, the others wait, and load it.
#pragma once

#include <functional>
#include <string>

#include "lib/base/key_locks.h"
#include "lib/cl/disk_cache.h"

namespace clnet::ocl {

/// Waits as long as another process has the lock of a program, and no file of it is there. Then the lock is this process'. One
/// that was stopped would keep it for ever: after a minute this process waits no more, now and later.
void wait_for_other_builders(KeyLocks& locks, const DiskCache& disk, const std::string& key);

/// While it lives, `told` is called several times a second where this thread waits for another process. An exception from it ends
/// the waiting.
class WhileWaiting {
 public:
  explicit WhileWaiting(std::function<void()> told);
  ~WhileWaiting();
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;

 private:
  friend void wait_for_other_builders(KeyLocks& locks, const DiskCache& disk, const std::string& key);
  std::function<void()> told_;
  WhileWaiting* outer_;
};

}  // namespace clnet::ocl
