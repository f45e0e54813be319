#include "lib/exec/place/prepack_cache.h"

#include <algorithm>

namespace clnet::exec {

namespace {

std::size_t combined(std::size_t hash, std::uint64_t value) { return hash * 0x9E3779B97F4A7C15U + value; }

}  // namespace

std::size_t Prepacked::bytes() const {
  std::size_t total = 0;
  for (const auto& buffer : buffers) total += buffer->bytes();
  return total;
}

std::size_t PrepackCache::hash(const std::string& text, const std::vector<std::uint64_t>& sources) {
  // The sources tell most apart: of two prepacks of the same weights, the length of the text does.
  std::size_t result = text.size();
  for (auto source : sources) result = combined(result, source);
  return result;
}

PrepackCache::Entries::iterator PrepackCache::lookup(const std::string& text, const std::vector<std::uint64_t>& sources) {
  const auto [begin, end] = by_key_.equal_range(hash(text, sources));
  for (auto at = begin; at != end; ++at) {
    const auto& entry = **at->second;
    if (entry.sources == sources && (entry.text.get() == &text || *entry.text == text)) return at->second;
  }
  return entries_.end();
}

PrepackedPtr PrepackCache::find(const std::string& text, const std::vector<std::uint64_t>& sources,
                                const std::vector<std::uint64_t>& scalars) {
  const std::lock_guard lock(mutex_);
  const auto found = lookup(text, sources);
  if (found == entries_.end() || (*found)->scalars != scalars) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return *found;
}

PrepackedPtr PrepackCache::remove(Entries::iterator at) {
  auto entry = *at;
  const auto forget = [&](auto& index, const auto& key) {
    const auto [begin, end] = index.equal_range(key);
    for (auto i = begin; i != end; ++i)
      if (i->second == at) {
        index.erase(i);
        return;
      }
  };
  forget(by_key_, hash(*entry->text, entry->sources));
  for (auto source : entry->sources) forget(by_source_, source);
  entries_.erase(at);
  if (entry->small) small_bytes_ -= entry->bytes();
  return entry;
}

bool PrepackCache::is_known(const Prepacked& entry) {
  constexpr std::size_t most_remembered = 1 << 14;
  auto key = combined(hash(*entry.text, entry.sources), std::hash<std::string_view>()(*entry.text));
  for (auto scalar : entry.scalars) key = combined(key, scalar);
  if (offered_.count(key)) return true;
  if (offered_.size() == most_remembered) offered_.clear();
  offered_.insert(key);
  return false;
}

bool PrepackCache::publish(PrepackedPtr entry) {
  std::vector<PrepackedPtr> gone;
  const std::lock_guard lock(mutex_);
  if (entry->small && !is_known(*entry)) return false;
  // Scalars that change from run to run would fill the memory with values that nobody asks for again.
  if (const auto found = lookup(*entry->text, entry->sources); found != entries_.end()) gone.push_back(remove(found));
  entries_.push_front(std::move(entry));
  const auto& added = *entries_.front();
  by_key_.emplace(hash(*added.text, added.sources), entries_.begin());
  for (auto source : added.sources) by_source_.emplace(source, entries_.begin());
  if (!added.small) return true;
  small_bytes_ += added.bytes();
  for (auto at = std::prev(entries_.end()); small_bytes_ > most_small && at != entries_.begin();) {
    const auto last = at--;
    if ((*last)->small) gone.push_back(remove(last));
  }
  return true;
}

void PrepackCache::drop(std::uint64_t source) {
  std::vector<PrepackedPtr> gone;
  const std::lock_guard lock(mutex_);
  for (auto found = by_source_.find(source); found != by_source_.end(); found = by_source_.find(source))
    gone.push_back(remove(found->second));
}

void PrepackCache::evict(std::size_t bytes) {
  std::vector<PrepackedPtr> gone;
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.end(); bytes > 0 && at != entries_.begin();) {
    --at;
    if (at->use_count() > 1) continue;
    bytes -= std::min(bytes, (*at)->bytes());
    gone.push_back(remove(at++));
  }
}

void PrepackCache::clear() {
  std::vector<PrepackedPtr> gone;
  const std::lock_guard lock(mutex_);
  while (!entries_.empty()) gone.push_back(remove(entries_.begin()));
}

std::size_t PrepackCache::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t PrepackCache::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& entry : entries_) total += entry->bytes();
  return total;
}

}  // namespace clnet::exec
