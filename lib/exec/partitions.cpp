#include "lib/exec/partitions.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "clnet/error.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/collect/value.h"
#include "lib/graph/capture.h"

namespace clnet::exec {

namespace {

const DeviceValue* placed_value(const std::shared_ptr<Value>& value) { return dynamic_cast<const DeviceValue*>(value.get()); }

/// Null: on no device.
const ocl::Context* device_of_leaf(const std::shared_ptr<Value>& value) {
  const auto* placed = placed_value(value);
  return placed ? placed->device.get() : nullptr;
}

/// Groups of what is on one device.
class Groups {
 public:
  explicit Groups(std::size_t count) : parents_(count), devices_(count) { std::iota(parents_.begin(), parents_.end(), 0); }
  std::size_t root(std::size_t member) {
    while (parents_[member] != member) member = parents_[member] = parents_[parents_[member]];
    return member;
  }
  void put(std::size_t member, const std::shared_ptr<ocl::Context>& device) {
    auto& known = devices_[root(member)];
    if (known && known != device) refuse_two_devices(*device, *known);
    known = device;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    if (devices_[b]) put(a, devices_[b]);
    parents_[b] = a;
  }
  std::shared_ptr<ocl::Context>& device(std::size_t member) { return devices_[root(member)]; }

 private:
  std::vector<std::size_t> parents_;
  std::vector<std::shared_ptr<ocl::Context>> devices_;  ///< of roots
};

/// The groups of a graph as it would be without speculative values.
class WholeGraph {
 public:
  /// Throws DeviceError where an operation reads from two devices.
  WholeGraph(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted, Walk& walk) {
    for (const auto& tensor : asked) find(tensor);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const auto tensor = uncounted(members_[m].tensor);
      if (members_[m].value) continue;
      if (!walk.enter(node_of(tensor))) {  // another thread has computed it
        members_[m].value = asked_value_of(tensor);
        continue;
      }
      const auto& inputs = node_of(tensor)->inputs;
      // As in Cutting: a copy is with its second input, or with none.
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const auto input = find(inputs[i]); i > 0 || !copy_of(*node_of(tensor))) joins_.emplace_back(m, input);
    }
    groups_.emplace(members_.size());
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const auto& [tensor, value] = members_[m];
      if (const auto* placed = placed_value(value)) groups_->put(m, placed->device);
      if (const auto* copy = copy_of(*node_of(tensor)); copy && copy->device() && !value) groups_->put(m, copy->device());
    }
    for (const auto& [a, b] : joins_)
      if (const auto& [tensor, value] = members_[b]; !is_host_scalar(tensor, value.get())) groups_->join(a, b);
    if (!wanted) return;
    for (const auto& tensor : asked)
      if (const auto found = numbers_.find({node_of(tensor).get(), -1}); found != numbers_.end())
        groups_->put(found->second, wanted);
  }

  /// Of a node without a value that was asked for. Null: none of its leaves decides.
  std::shared_ptr<ocl::Context> device(const Node* node) {
    const auto found = numbers_.find({node, -1});
    return found == numbers_.end() ? nullptr : groups_->device(found->second);
  }

 private:
  struct Member {
    Tensor tensor;  ///< uncounted
    std::shared_ptr<Value> value;
  };
  std::size_t find(const Tensor& tensor) {
    auto value = asked_value_of(tensor);
    const auto [found, fresh] = numbers_.try_emplace({node_of(tensor).get(), value ? output_of(tensor) : -1}, members_.size());
    if (fresh) members_.push_back({uncounted(tensor), std::move(value)});
    return found->second;
  }

  std::vector<Member> members_;                                 ///< values that were asked for, and nodes
  std::map<std::pair<const Node*, int>, std::size_t> numbers_;  ///< of values by output, of nodes by -1
  std::vector<std::pair<std::size_t, std::size_t>> joins_;
  std::optional<Groups> groups_;
};

}  // namespace

class Partitions::Cutting {
 public:
  Cutting(Partitions& partitions, const Work& work, std::span<const std::shared_ptr<Value>> values)
      : partitions_(partitions), work_(work), groups_(work.nodes.size() + work.leaves.size()), stages_(work.nodes.size()) {
    unite(values);
  }

  void choose_devices(const std::shared_ptr<ocl::Context>& wanted, std::span<const Tensor> asked) {
    if (wanted) {
      std::unordered_set<const Node*> of_asked;
      for (const auto& tensor : asked) of_asked.insert(node_of(tensor).get());
      for (std::size_t i = 0; i < work_.wanted.size(); ++i)
        if (of_asked.contains(node_of(work_.wanted[i]).get())) groups_.put(work_.producer(work_.results[i]), wanted);
    }
    auto usual = wanted;
    for (std::size_t k = 0; k < work_.nodes.size(); ++k) {
      auto& device = groups_.device(k);
      if (device) continue;
      if (!usual) usual = partitions_.current_ = context_of(Device::current());
      device = usual;
    }
  }

  /// Before devices are chosen: whether an operation depends on no device.
  bool has_free() {
    for (std::size_t k = 0; k < work_.nodes.size(); ++k)
      if (!groups_.device(k)) return true;
    return false;
  }

  std::vector<std::shared_ptr<ocl::Context>> devices() {
    std::vector<std::shared_ptr<ocl::Context>> all;
    for (std::size_t k = 0; k < work_.nodes.size(); ++k) all.push_back(groups_.device(k));
    return all;
  }

  void cut() {
    const auto needed = needed_nodes();
    for (std::size_t k = 0; k < work_.nodes.size(); ++k) {
      if (!needed[k]) continue;
      const auto* copy = copy_of(*work_.nodes[k]);
      auto& stage = stages_[k];
      for (const auto value : needed_by(k))
        if (!work_.is_leaf(value)) {
          const auto from = work_.producer(value);
          stage = std::max(stage, stages_[from] + (copy && !copy_of(*work_.nodes[from])));
        }
      if (!copy) add(k);
    }
    for (std::size_t k = 0; k < work_.nodes.size(); ++k)
      if (needed[k] && copy_of(*work_.nodes[k])) {
        copies_[k] = partitions_.copies_.size();
        partitions_.copies_.push_back({groups_.device(k), stages_[k], source(work_.reads_of(k)[0]), work_.nodes[k]->outputs[0]});
      }
    for (std::size_t p = 0; p < partitions_.partitions_.size(); ++p) read_all(p);
    for (const auto result : work_.results) partitions_.wanted_.push_back(source(result));
    for (const auto& [node, output] : work_.speculative) {
      if (const auto found = places_.find(node); found != places_.end())
        partitions_.partitions_[found->second.first].work.speculative.push_back({found->second.second, output});
      else if (const auto copy = copies_.find(node); copy != copies_.end())
        partitions_.speculative_copies_.emplace_back(Work::Result{node, output}, copy->second);
    }
    for (auto& partition : partitions_.partitions_) {
      drop_wanted(partition.work);
      partition.work.number();
    }
    find_may_overwrite();
  }

 private:
  Tensor tensor(ValueNumber value) const {
    if (work_.is_leaf(value)) return uncounted(work_.leaves[value]);
    const auto k = work_.producer(value);
    return uncounted(work_.nodes[k], static_cast<int>(value - work_.first_outputs[k]));
  }

  /// The inputs whose values a node needs.
  std::span<const ValueNumber> needed_by(std::size_t k) const {
    const auto all = work_.reads_of(k);
    return copy_of(*work_.nodes[k]) ? all.first(1) : all;
  }

  /// Without those that merely say where a copy goes. What somebody holds may be returned, too, as it is made.
  std::vector<bool> needed_nodes() const {
    std::vector<bool> needed(work_.nodes.size());
    for (const auto result : work_.results) needed[work_.producer(result)] = true;
    for (std::size_t k = work_.nodes.size(); k-- > 0;)
      if (needed[k])
        for (const auto value : needed_by(k))
          if (!work_.is_leaf(value)) needed[work_.producer(value)] = true;
    return needed;
  }

  void unite(std::span<const std::shared_ptr<Value>> values) {
    const auto first_leaf = work_.nodes.size();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const auto* placed = placed_value(values[i])) groups_.put(first_leaf + i, placed->device);
    for (std::size_t k = 0; k < work_.nodes.size(); ++k) {
      const auto* copy = copy_of(*work_.nodes[k]);
      if (copy && copy->device()) groups_.put(k, copy->device());
      // A copy is with its second input, or with none.
      for (const auto value : work_.reads_of(k).subspan(copy ? 1 : 0)) {
        // Kernels anywhere get it by value.
        if (work_.is_leaf(value) && is_host_scalar(work_.leaves[value], values[value].get())) continue;
        groups_.join(k, work_.is_leaf(value) ? first_leaf + value : work_.producer(value));
      }
    }
  }

  void add(std::size_t k) {
    const auto& device = groups_.device(k);
    const auto [found, fresh] = by_place_.try_emplace({stages_[k], device.get()}, partitions_.partitions_.size());
    if (fresh) {
      auto& partition = partitions_.partitions_.emplace_back();
      partition.device = device;
      partition.stage = stages_[k];
    }
    auto& partition = partitions_.partitions_[found->second];
    places_[static_cast<std::uint32_t>(k)] = {found->second, static_cast<std::uint32_t>(partition.work.nodes.size())};
    partition.work.nodes.push_back(work_.nodes[k]);
    partition.nodes.push_back(static_cast<std::uint32_t>(k));
  }

  Source source(ValueNumber value) {
    if (work_.is_leaf(value)) return {Source::Kind::leaf, value};
    const auto node = work_.producer(value);
    if (const auto copy = copies_.find(node); copy != copies_.end()) return {Source::Kind::copy, copy->second};
    const auto partition = places_.at(static_cast<std::uint32_t>(node)).first;
    const auto [found, fresh] = results_.try_emplace(value, partitions_.partitions_[partition].work.wanted.size());
    if (fresh) partitions_.partitions_[partition].work.wanted.push_back(tensor(value));
    return {Source::Kind::partition, partition, found->second};
  }

  /// What the partition reads and does not compute is a leaf of it.
  void read_all(std::size_t p) {
    auto& partition = partitions_.partitions_[p];
    std::unordered_set<ValueNumber> seen;
    for (const auto node : partition.nodes)
      for (const auto value : work_.reads_of(node)) {
        const bool made_here = !work_.is_leaf(value) && !copies_.contains(work_.producer(value)) &&
                               places_.at(static_cast<std::uint32_t>(work_.producer(value))).first == p;
        if (made_here || !seen.insert(value).second) continue;
        const auto from = source(value);
        partition.work.leaves.push_back(tensor(value));
        partition.work.values.push_back(from.kind == Source::Kind::leaf ? work_.values[from.of] : unknown_);
        partition.sources.push_back(from);
      }
  }

  /// One partition may overwrite leaves that only it reads: it runs last, so that nothing fails afterwards.
  void find_may_overwrite() {
    if (work_.may_overwrite.empty()) return;
    auto& all = partitions_.partitions_;
    std::size_t last = 0;
    for (const auto& partition : all) last = std::max(last, partition.stage);
    for (const auto& copy : partitions_.copies_)
      if (copy.stage > last) return;
    std::vector<std::size_t> readers(work_.leaves.size());
    const auto count = [&](const Source& source) {
      if (source.kind == Source::Kind::leaf) ++readers[source.of];
    };
    for (const auto& copy : partitions_.copies_) count(copy.from);
    for (const auto& partition : all)
      for (const auto& source : partition.sources) count(source);
    std::int64_t most = 0;
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (all[p].stage != last) continue;
      std::int64_t bytes = 0;
      for (const auto& [kind, leaf, result] : all[p].sources)
        if (kind == Source::Kind::leaf && readers[leaf] == 1 && work_.may_overwrite[leaf] != MayOverwrite::nothing)
          bytes += work_.leaves[leaf].spec().bytes();
      if (bytes <= most) continue;
      most = bytes;
      partitions_.last_ = p;
    }
    if (!partitions_.last_) return;
    auto& work = all[*partitions_.last_].work;
    for (const auto& [kind, leaf, result] : all[*partitions_.last_].sources) {
      const bool own = kind == Source::Kind::leaf && readers[leaf] == 1;
      work.may_overwrite.push_back(own ? work_.may_overwrite[leaf] : MayOverwrite::nothing);
      work.own_holders.push_back(own ? work_.own_holders[leaf] : Work::OwnHolders{});
    }
  }

  /// Another partition may have asked for what nobody else did.
  static void drop_wanted(Work& work) {
    std::erase_if(work.speculative, [&](const Work::Result& result) {
      const auto tensor = work.tensor(result);
      return std::any_of(work.wanted.begin(), work.wanted.end(), [&](const Tensor& other) { return other.same(tensor); });
    });
  }

  Partitions& partitions_;
  const Work& work_;
  const std::shared_ptr<Value> unknown_ = std::make_shared<InputValue>();  ///< until a run
  Groups groups_;                                                          ///< of the nodes, then the leaves
  std::vector<std::size_t> stages_;
  std::unordered_map<std::size_t, std::size_t> copies_;                          ///< by node
  std::map<std::pair<std::size_t, const ocl::Context*>, std::size_t> by_place_;  ///< partitions
  std::map<std::uint32_t, std::pair<std::size_t, std::uint32_t>> places_;        ///< of nodes: the partition, and which of its
  std::unordered_map<ValueNumber, std::size_t> results_;                         ///< of partitions
};

class Partitions::Run {
 public:
  Run(Partitions& partitions, std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values,
      const Options& options, Placements& placements)
      : partitions_(partitions),
        leaves_(leaves),
        values_(values),
        options_(options),
        placements_(placements),
        results_(partitions.partitions_.size()),
        copies_(partitions.copies_.size()) {}

  void stage(std::size_t stage) {
    start_copies(stage);
    for (std::size_t c = 0; c < copies_.size(); ++c)
      if (partitions_.copies_[c].stage == stage) copy(c);
    for (std::size_t p = 0; p < results_.size(); ++p)
      if (partitions_.partitions_[p].stage == stage && p != partitions_.last_) compute(p);
    if (const auto last = partitions_.last_; last && partitions_.partitions_[*last].stage == stage) compute(*last);
  }

  void finish(const Finish& finish) {
    Results all;
    for (const auto& source : partitions_.wanted_) all.push_back(std::dynamic_pointer_cast<DeviceValue>(value(source)));
    for (const auto& [result, copy] : partitions_.speculative_copies_) {
      speculative_.push_back(result);
      speculative_values_.push_back(copies_[copy]);
    }
    all.insert(all.end(), speculative_values_.begin(), speculative_values_.end());
    std::set<ocl::Context*> devices;
    for (const auto& partition : partitions_.partitions_) devices.insert(partition.device.get());
    for (const auto& copy : partitions_.copies_) devices.insert(copy.device.get());
    // In the order of their addresses, as every thread does that holds several.
    std::vector<std::unique_lock<std::recursive_mutex>> locks;
    for (auto* device : devices) locks.push_back(device->lock());
    finish(all, speculative_);
  }

 private:
  std::shared_ptr<Value> value(const Source& source) const {
    switch (source.kind) {
      case Source::Kind::leaf: return values_[source.of];
      case Source::Kind::partition: return results_[source.of][source.result];
      case Source::Kind::copy: return copies_[source.of];
    }
    return nullptr;
  }

  /// All of them, before the first is waited for.
  void start_copies(std::size_t stage) {
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      const auto& copy = partitions_.copies_[c];
      if (copy.stage == stage && copy.from.kind != Source::Kind::copy) readings_[c] = start(copy);
    }
  }
  /// Null where nothing has to be read.
  std::shared_ptr<ocl::Context::Reading> start(const Copy& copy) const {
    const auto from = value(copy.from);
    const auto* placed = placed_value(from);
    if (!placed || placed->device == copy.device) return nullptr;
    require_there(*placed, copy.spec);
    return placed->device->start_reading(*placed->buffer, static_cast<std::size_t>(placed->offset) * size_of(copy.spec.dtype),
                                         static_cast<std::size_t>(copy.spec.bytes()));
  }

  void copy(std::size_t c) {
    const auto& copy = partitions_.copies_[c];
    const auto from = value(copy.from);
    if (auto placed = std::dynamic_pointer_cast<DeviceValue>(from); placed && placed->device == copy.device) {
      require_there(*placed, copy.spec);
      copies_[c] = std::move(placed);
      return;
    }
    auto reading = readings_[c] ? std::move(readings_[c]) : start(copy);
    const auto bytes = static_cast<std::size_t>(copy.spec.bytes());
    auto buffer = copy.device->memory().allocate(std::max<std::size_t>(1, bytes), [&] { return to_string(copy.spec); });
    const auto host = reading ? placed_value(from)->uploaded : std::dynamic_pointer_cast<const HostValue>(from);
    if (bytes > 0) {
      if (reading) {
        const auto* content = reading->wait();
        copy.device->write(*buffer, 0, content, bytes, std::move(reading));
      } else {
        copy.device->write(*buffer, 0, host->bytes.data(), bytes, host);
      }
    }
    copies_[c] = std::make_shared<DeviceValue>(copy.device, std::move(buffer), 0);
    if (host && (!placed_value(from) || !placed_value(from)->is_lent)) copies_[c]->keep(copy.spec, host);
  }

  void compute(std::size_t p) {
    auto& partition = partitions_.partitions_[p];
    auto leaves = uncounted(partition.work.leaves);
    std::vector<std::shared_ptr<Value>> values;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (partition.sources[i].kind == Source::Kind::leaf) leaves[i] = uncounted(leaves_[partition.sources[i].of]);
      values.push_back(value(partition.sources[i]));
    }
    const auto known = [&] {
      const std::lock_guard lock(partitions_.mutex_);
      return partition.plan;
    }();
    auto plan = known;
    execute(partition.work, leaves, values, partition.device, options_, plan, placements_, [&](const Results& made) {
      const auto asked_for = partition.work.wanted.size();
      results_[p].assign(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(asked_for));
      for (std::size_t i = 0; i < plan->speculative().size(); ++i) {
        const auto& [node, output] = plan->speculative()[i];
        speculative_.push_back({partition.nodes[node], output});
        speculative_values_.push_back(made[asked_for + i]);
      }
    });
    // The others shall run beside it.
    if (p != partitions_.last_) partition.device->flush();
    if (plan == known) return;
    const std::lock_guard lock(partitions_.mutex_);
    partition.plan = plan;
  }

  Partitions& partitions_;
  std::span<const Tensor> leaves_;
  std::span<const std::shared_ptr<Value>> values_;
  const Options& options_;
  Placements& placements_;
  std::vector<Results> results_;  ///< by partition
  Results copies_, speculative_values_;
  std::vector<Work::Result> speculative_;
  std::map<std::size_t, std::shared_ptr<ocl::Context::Reading>> readings_;  ///< that began, by copy
};

bool Partitions::are_needed(const Work& work, std::span<const std::shared_ptr<Value>> values,
                            const std::shared_ptr<ocl::Context>& wanted) {
  const ocl::Context* device = nullptr;
  for (const auto& value : values) {
    const auto* home = device_of_leaf(value);
    if (!home) continue;
    if (device && home != device) return true;
    device = home;
  }
  if (std::any_of(work.nodes.begin(), work.nodes.end(), [](const auto& node) { return copy_of(*node); })) return true;
  if (!device || ocl::Context::made() < 2) return false;
  if (device == (wanted ? wanted : context_of(Device::current())).get()) return false;
  Partitions none;
  return Cutting(none, work, values).has_free();
}

Partitions::Partitions(const Work& work, std::span<const std::shared_ptr<Value>> values,
                       const std::shared_ptr<ocl::Context>& wanted, std::span<const Tensor> asked) {
  for (const auto& value : values) leaf_devices_.push_back(device_of_leaf(value));
  Cutting cutting(*this, work, values);
  cutting.choose_devices(wanted, asked);
  cutting.cut();
}

std::vector<std::shared_ptr<ocl::Context>> Partitions::devices(const Work& work, const std::shared_ptr<ocl::Context>& wanted,
                                                               std::span<const Tensor> asked) {
  Partitions none;
  Cutting cutting(none, work, work.values);
  cutting.choose_devices(wanted, asked);
  return cutting.devices();
}

bool Partitions::depend_on(std::span<const std::pair<Tensor, std::shared_ptr<DeviceValue>>> speculative, const Work& work,
                           const std::shared_ptr<ocl::Context>& wanted, std::span<const Tensor> asked, Walk& walk) {
  try {
    WholeGraph whole(asked, wanted, walk);
    const auto usual = wanted ? wanted : context_of(Device::current());
    const auto is_on = [&](const Node* node, const std::shared_ptr<ocl::Context>& device) {
      const auto without = whole.device(node);
      return (without ? without : usual) == device;
    };
    for (const auto& [tensor, value] : speculative)
      if (!is_on(node_of(tensor).get(), value->device)) return true;
    const auto with = devices(work, wanted, asked);
    for (std::size_t k = 0; k < with.size(); ++k)
      if (!is_on(work.nodes[k].get(), with[k])) return true;
    return false;
  } catch (const DeviceError&) {
    return true;  // which the evaluation will throw
  }
}

bool Partitions::serves(std::span<const std::shared_ptr<Value>> values) const {
  return (!current_ || current_ == context_of(Device::current())) &&
         std::equal(leaf_devices_.begin(), leaf_devices_.end(), values.begin(), values.end(),
                    [](const auto* home, const auto& value) { return home == device_of_leaf(value); });
}

void Partitions::run(std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values, const Options& options,
                     Placements& placements, const Finish& finish) {
  for (const auto& value : values) require_given(value.get());
  std::size_t last = 0;
  for (const auto& partition : partitions_) last = std::max(last, partition.stage);
  for (const auto& copy : copies_) last = std::max(last, copy.stage);
  Run run(*this, leaves, values, options, placements);
  for (std::size_t stage = 0; stage <= last; ++stage) run.stage(stage);
  run.finish(finish);
}

std::vector<const Partitions::Partition*> Partitions::list() const {
  std::vector<const Partition*> all;
  for (const auto& partition : partitions_) all.push_back(&partition);
  return all;
}

}  // namespace clnet::exec
