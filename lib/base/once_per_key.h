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
    auto& entry = at(key);
    const std::lock_guard lock(entry.mutex);
    if (!entry.value) entry.value = make();
    return *entry.value;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Value> value;
  };

  Entry& at(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return entries_[key];
  }

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace clnet
