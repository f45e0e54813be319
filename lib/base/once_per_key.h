// Values by key, each of them made once.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace clnet {

/// Any thread may call it: who wants a value that another thread is making waits for it, who wants that of another key does not.
template <class Value>
class OncePerKey {
 public:
  /// What `make` gave for the key, the first time that it did so without throwing.
  template <class Make>
  Value get(const std::string& key, const Make& make) {
    auto& guarded = at(key);
    const std::lock_guard lock(guarded.mutex);
    if (!guarded.value) guarded.value = make();
    return *guarded.value;
  }

 private:
  struct GuardedValue {
    std::mutex mutex;
    std::optional<Value> value;
  };

  GuardedValue& at(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return values_[key];
  }

  std::mutex mutex_;
  std::map<std::string, GuardedValue> values_;
};

}  // namespace clnet
