// One run of a plan: finds the places of its values, sets the changed arguments, and enqueues.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/exec/collect/sole_owner.h"
#include "lib/exec/place/verify.h"
#include "lib/exec/plan/plan.h"

namespace clnet::exec {

class Plan::Run : public HostContext {
 public:
  Run(Plan& plan, ocl::Context& device, Arena& arena, PrepackCache& prepacks, const std::vector<Binding>& leaves)
      : plan_(plan), placement_(plan.placement_), device_(device), arena_(arena), prepack_cache_(prepacks), leaves_(leaves) {
    locations_.resize(placement_.homes.size());
    for (std::size_t id = 0; id < locations_.size(); ++id) {
      if (placement_.homes[id] != Home::leaf || !placement_.needs_buffer[id]) continue;
      auto leaf = leaves_[id].on_device();
      locations_[id] = {leaf->buffer, leaf->offset, leaf};
    }
    // Existing entries are held before any allocation, which may drop entries without holders.
    for (const auto& prepack : placement_.prepacks) prepacks_.push_back(find(prepack));
    arena_.reserve(device_.memory(), placement_.layout.segments, [&] { return plan_.what(); });
    grant_donations();
    for (std::size_t id = 0; id < locations_.size(); ++id) {
      if (placement_.homes[id] == Home::arena) {
        const auto& place = placement_.places[id];
        locations_[id].buffer = arena_.segment(place.segment);
        locations_[id].first = static_cast<std::int64_t>(place.offset / size_of(spec(id).dtype));
      } else if (placement_.homes[id] == Home::per_run && !locations_[id].buffer) {
        locations_[id].buffer = allocate(id);
      }
    }
    for (std::size_t k = 0; k < prepacks_.size(); ++k) place(placement_.prepacks[k], prepacks_[k]);
    for (auto id : plan_.keep_) {
      const auto& location = locations_[plan_.root(id)];
      results_.push_back(std::make_shared<DeviceValue>(device_.shared_from_this(), location.buffer,
                                                       location.first + plan_.recording_.value(id).offset));
    }
    if (verify_enabled()) verify(view(plan_.recording_, placement_, plan_.keep_, run_places(), run_prepacks(), granted_));
  }

  RunResult operator()(std::optional<LaunchBatchMode> mode) {
    static const bool poison = env::flag("CLNET_POISON");
    // A profiler shows each launch, and poison comes between launches.
    const bool batched = (!poison || mode) && !device_.profiler().enabled() &&
                         plan_.batches_.ready(plan_.recording_, placement_, device_, mode, tail_);
    std::size_t behind_batch = 0;
    for (auto& prepared : plan_.prepared_) {
      if (prepared.command < behind_batch) continue;
      if (const auto* batch = batched ? plan_.batches_.at(prepared.command, tail_) : nullptr) {
        enqueue(*batch);
        behind_batch = batch->last;
        continue;
      }
      if (is_left_out(prepared)) continue;
      if (prepared.command == tail_) prepare_tail();
      if (prepared.command >= tail_) {
        launch_in_tail(prepared, poison);
        continue;
      }
      if (poison) poison_outputs(prepared);
      const auto& command = plan_.recording_.commands()[prepared.command];
      if (const auto* call = std::get_if<HostCall>(&command)) {
        called_once_ = called_once_ || call->once;
        call->call(*this);
      } else if (!prepared.skipped) {
        set_arguments(std::get<Launch>(command), prepared);
        launch(std::get<Launch>(command), prepared);
      }
    }
    // All is enqueued: the new values are valid from now on.
    for (std::size_t k = 0; k < prepacks_.size(); ++k)
      if (prepacks_[k].made && is_kept(prepacks_[k])) publish(placement_.prepacks[k], prepacks_[k]);
    RunResult made{std::move(results_), {}};
    // Another thread that meets a rewritten leaf makes the same rewrite again.
    for (const auto& donation : granted_)
      if (!donation.repeatable) made.overwritten.push_back(locations_[static_cast<std::size_t>(donation.from)].leaf);
    return made;
  }

  /// A host call that runs once has begun.
  bool called_once() const { return called_once_; }

  ocl::Context& device() override { return device_; }
  const ::cl::Buffer& buffer(Ref ref) override { return locations_[plan_.root(ref.value)].buffer->memory(); }
  std::size_t offset(Ref ref) override {
    const auto first = locations_[plan_.root(ref.value)].first;
    return static_cast<std::size_t>(first + plan_.recording_.value(ref.value).offset + ref.offset);
  }
  void read(Ref ref, void* target, std::size_t bytes) override {
    if (bytes == 0) return;
    device_.read(*locations_[plan_.root(ref.value)].buffer, byte_offset(ref), target, bytes);
  }
  void read(std::span<const Range> ranges) override {
    std::vector<ocl::Context::Range> all;
    for (const auto& [ref, target, bytes] : ranges)
      if (bytes > 0) all.push_back({locations_[plan_.root(ref.value)].buffer.get(), byte_offset(ref), target, bytes});
    device_.read(all);
  }
  std::unique_ptr<ocl::Mapping> map(std::span<const Ref> read, std::span<const Ref> written) override {
    std::vector<ocl::Context::MappedRange> ranges;
    for (const auto& refs : {read, written})
      for (const auto& ref : refs)
        ranges.push_back({locations_[plan_.root(ref.value)].buffer.get(), byte_offset(ref),
                          static_cast<std::size_t>(spec(static_cast<std::size_t>(ref.value)).bytes()),
                          ranges.size() >= read.size()});
    return device_.map(ranges);
  }
  void keep(std::shared_ptr<void> what) override { kept_.push_back(std::move(what)); }
  void write(Ref ref, std::shared_ptr<const void> owner, const void* source, std::size_t bytes) override {
    if (bytes == 0) return;
    device_.write(*locations_[plan_.root(ref.value)].buffer, byte_offset(ref), source, bytes, std::move(owner));
  }

 private:
  std::size_t byte_offset(Ref ref) { return offset(ref) * size_of(spec(static_cast<std::size_t>(ref.value)).dtype); }

  /// The place of a root value: its buffer and first element.
  struct Location {
    ocl::BufferPtr buffer;
    std::int64_t first = 0;
    std::shared_ptr<DeviceValue> leaf;
  };
  /// A Prepack in this run: its sources, and the existing entry or the one that this run makes.
  struct FoundPrepack {
    std::vector<std::uint64_t> sources, scalars;
    bool imported = false;
    PrepackedPtr there;
    std::shared_ptr<Prepacked> made;
  };

  const Spec& spec(std::size_t id) const { return plan_.recording_.value(static_cast<ValueId>(id)).spec; }

  ocl::BufferPtr allocate(std::size_t id) const {
    const auto& its_spec = spec(id);
    return device_.memory().allocate(stored_bytes(its_spec), [&] { return to_string(its_spec); });
  }

  FoundPrepack find(const Prepack& prepack) const {
    FoundPrepack found;
    for (auto leaf : prepack.leaves) {
      const auto& location = locations_[static_cast<std::size_t>(leaf)];
      found.sources.push_back(location.leaf->id);
      found.imported = found.imported || location.buffer->imported();
    }
    for (auto leaf : prepack.scalars) found.scalars.push_back(bits_of(leaf, spec(static_cast<std::size_t>(leaf)).dtype));
    if (is_kept(found)) found.there = prepack_cache_.find(*prepack.text, found.sources, found.scalars);
    return found;
  }

  /// A caller may write to imported memory at any time: prepacks of it are not kept.
  static bool is_kept(const FoundPrepack& prepack) { return !prepack.imported; }

  void place(const Prepack& prepack, FoundPrepack& found) {
    if (!found.there) {
      found.made = std::make_shared<Prepacked>(Prepacked{prepack.text, found.sources, found.scalars, {}, prepack.small});
      for (auto id : prepack.values) found.made->buffers.push_back(allocate(static_cast<std::size_t>(id)));
    }
    const auto& buffers = found.there ? found.there->buffers : found.made->buffers;
    for (std::size_t i = 0; i < prepack.values.size(); ++i)
      locations_[static_cast<std::size_t>(prepack.values[i])].buffer = buffers[i];
  }

  void publish(const Prepack& prepack, FoundPrepack& found) {
    if (prepack_cache_.publish(std::move(found.made)))
      for (auto leaf : prepack.leaves) locations_[static_cast<std::size_t>(leaf)].leaf->made_of_it = &prepack_cache_;
  }

  /// Whether the command only makes prepacked values that exist, or its alternative runs.
  bool is_left_out(const PreparedCommand& prepared) const {
    const auto prepack = placement_.prepack_of[prepared.command];
    if (prepack != Placement::none && prepacks_[prepack].there) return true;
    const auto* launch = std::get_if<Launch>(&plan_.recording_.commands()[prepared.command]);
    return launch && launch->when() != Launch::When::always &&
           (launch->when() == Launch::When::in_place) != lies_in_place(plan_.recording_, placement_, granted_, *launch);
  }

  /// Places results in the memory of leaves without other readers.
  void grant_donations() {
    for (const auto& donation : placement_.donations) {
      const auto& binding = leaves_[static_cast<std::size_t>(donation.from)];
      const auto& from = locations_[static_cast<std::size_t>(donation.from)];
      // A rewritten leaf keeps its value if the evaluation fails, so only the evaluation's own leaf may be rewritten.
      if (binding.may_overwrite != (donation.repeatable ? MayOverwrite::ranges : MayOverwrite::all)) continue;
      if (!sole_owner(*from.leaf) || from.first != 0) continue;
      locations_[static_cast<std::size_t>(donation.to)].buffer = from.buffer;
      granted_.push_back(donation);
      if (!donation.repeatable) tail_ = std::min(tail_, donation.command);
    }
  }

  /// Prepares the commands that overwrite leaves: everything that can fail is done before.
  void prepare_tail() {
    for (auto& prepared : plan_.prepared_)
      if (prepared.command >= tail_ && !prepared.skipped && !is_left_out(prepared))
        set_arguments(std::get<Launch>(plan_.recording_.commands()[prepared.command]), prepared);
  }

  void launch_in_tail(PreparedCommand& prepared, bool poison) {
    const auto& launch = std::get<Launch>(plan_.recording_.commands()[prepared.command]);
    try {
      if (poison) poison_outputs(prepared);
    } catch (const DeviceError&) {
      // Poison only makes existing faults visible.
    }
    try {
      if (!prepared.skipped) this->launch(launch, prepared, ocl::Context::Failing::tried_again);
    } catch (const std::exception& error) {
      // A range of one dimension is enqueued entirely, or not at all.
      if (prepared.command == tail_ && launch.global().size() == 1) throw;
      for (const auto& donation : granted_)
        if (!donation.repeatable && donation.command <= prepared.command)
          locations_[static_cast<std::size_t>(donation.from)].leaf->set_overwritten();
      throw LostInPlace(fmt::format("{}; what was being updated in place is lost, until it is set again", error.what()));
    }
  }

  std::vector<RunPlace> run_places() const {
    std::vector<RunPlace> places(locations_.size());
    for (std::size_t id = 0; id < locations_.size(); ++id)
      if (const auto& location = locations_[id]; location.buffer)
        places[id] = {location.buffer->id(), location.first * static_cast<std::int64_t>(size_of(spec(id).dtype)),
                      static_cast<std::int64_t>(location.buffer->bytes())};
    return places;
  }

  std::vector<RunPrepack> run_prepacks() const {
    std::vector<RunPrepack> prepacks;
    for (const auto& prepack : prepacks_)
      prepacks.push_back({prepack.there != nullptr, prepack.imported, is_kept(prepack), prepack.sources,
                          prepack.there ? prepack.there->sources : prepack.made->sources});
    return prepacks;
  }

  void poison_outputs(const PreparedCommand& prepared) {
    for (auto id : placement_.first_uses[prepared.command]) {
      const auto index = static_cast<std::size_t>(id);
      const auto home = placement_.homes[index];
      const bool donated =
          std::any_of(granted_.begin(), granted_.end(), [&](const Donation& donation) { return donation.to == id; });
      if (home == Home::leaf || donated || spec(index).bytes() == 0) continue;
      const auto& location = locations_[index];
      device_.fill(*location.buffer, static_cast<std::size_t>(location.first) * size_of(spec(index).dtype),
                   static_cast<std::size_t>(spec(index).bytes()), 0xff);
    }
  }

  void set_arguments(const Launch& launch, PreparedCommand& prepared) {
    try {
      if (prepared.arena_version != arena_.version()) {
        for (auto& bound : prepared.fixed) set(prepared.kernel, bound);
        prepared.arena_version = arena_.version();
      }
      for (auto& bound : prepared.changing) set(prepared.kernel, bound);
      for (auto& bound : prepared.scalars) set(prepared.kernel, bound);
    } catch (const ::cl::Error& error) {
      throw DeviceError(fmt::format("{}: an argument was refused: {}", launch.function(), ocl::error_name(error.err())));
    }
    if (verify_enabled()) verify_arguments(launch, prepared);
  }

  void enqueue(const LaunchBatch& batch) {
    plan_.batches_.enqueue(batch, plan_.recording_, device_,
                           {[&](std::size_t segment) -> const ocl::BufferPtr& { return arena_.segment(segment); },
                            [&](std::size_t root) -> const ocl::BufferPtr& { return locations_[root].buffer; },
                            [&](ValueId leaf) { return locations_[static_cast<std::size_t>(leaf)].first; },
                            [&](ValueId leaf) { return argument_bits(leaf, spec(static_cast<std::size_t>(leaf)).dtype); },
                            [&](std::size_t command) { return is_left_out(plan_.prepared_[command]); }});
  }

  void launch(const Launch& launch, const PreparedCommand& prepared,
              ocl::Context::Failing failing = ocl::Context::Failing::told) {
    const auto scope = device_.profiler().enabled() ? to_string(launch.scope()) : std::string();
    device_.launch(prepared.kernel, prepared.global, prepared.local,
                   {launch.function(), launch.detail_text(), prepared.bytes, launch.flop_count(), scope}, failing);
  }

  /// The argument counts as unknown while it is set: a failed call leaves it either way.
  template <class Known, class Value>
  void set(::cl::Kernel& kernel, cl_uint index, Known& known, Known value, Known unknown, const Value& argument) {
    if (known == value) return;
    known = unknown;
    kernel.setArg(index, argument);
    known = value;
    ++plan_.arguments_set_;
  }

  void set(::cl::Kernel& kernel, BoundBuffer& bound) {
    const auto& location = locations_[static_cast<std::size_t>(bound.root)];
    set(kernel, bound.index, bound.memory, location.buffer->id(), std::uint64_t{0}, location.buffer->memory());
    const auto offset = location.first + bound.offset;
    set(kernel, bound.index + 1, bound.set_offset, offset, std::int64_t{-1}, static_cast<cl_ulong>(offset));
  }

  std::uint64_t bits_of(ValueId leaf, Dtype dtype) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, leaves_[static_cast<std::size_t>(leaf)].scalar, size_of(dtype));
    return bits;
  }

  /// The bits for a kernel's parameter: f16 and bf16 as float.
  std::uint64_t argument_bits(ValueId leaf, Dtype dtype) const {
    const auto bits = bits_of(leaf, dtype);
    if (dtype != Dtype::f16 && dtype != Dtype::bf16) return bits;
    const auto half = static_cast<std::uint16_t>(bits);
    return std::bit_cast<std::uint32_t>(dtype == Dtype::f16 ? half_to_float(half) : bfloat16_to_float(half));
  }

  static std::size_t argument_bytes(Dtype dtype) {
    return dtype == Dtype::f16 || dtype == Dtype::bf16 ? sizeof(cl_float) : size_of(dtype);
  }

  void set(::cl::Kernel& kernel, BoundScalar& bound) {
    const auto bits = bits_of(bound.leaf, bound.dtype);
    if (bound.set && bits == bound.bits) return;
    bound.set = false;
    const auto argument = argument_bits(bound.leaf, bound.dtype);
    kernel.setArg(bound.index, argument_bytes(bound.dtype), &argument);
    bound.bits = bits;
    bound.set = true;
    ++plan_.arguments_set_;
  }

  /// Checks that the kernel's arguments, set by this run or an earlier one, point to its values.
  void verify_arguments(const Launch& launch, const PreparedCommand& prepared) const {
    for (const auto* arguments : {&prepared.fixed, &prepared.changing})
      for (const auto& bound : *arguments) {
        const auto& location = locations_[static_cast<std::size_t>(bound.root)];
        verify_set(prepared.command, launch.function(), bound.index, {bound.memory, bound.set_offset},
                   {location.buffer->id(), location.first + bound.offset});
      }
  }

  Plan& plan_;
  const Placement& placement_;
  ocl::Context& device_;
  Arena& arena_;
  PrepackCache& prepack_cache_;
  const std::vector<Binding>& leaves_;
  std::vector<Location> locations_;
  std::vector<FoundPrepack> prepacks_;
  std::vector<Donation> granted_;
  std::size_t tail_ = ~std::size_t{0};  ///< the first command that overwrites a leaf permanently
  std::vector<std::shared_ptr<DeviceValue>> results_;
  bool called_once_ = false;
  std::vector<std::shared_ptr<void>> kept_;  ///< the last member, which goes first
};

Plan::RunResult Plan::replay(ocl::Context& device, Arena& arena, PrepackCache& prepacks, const std::vector<Binding>& leaves,
                             std::optional<LaunchBatchMode> mode) {
  std::unique_ptr<Run> run;
  try {
    run = std::make_unique<Run>(*this, device, arena, prepacks, leaves);
  } catch (const DeviceError&) {
    // Another plan may have left a larger arena than needed here. If freeing it does not help, the error names this plan's own
    // need.
    if (arena.bytes() == 0) throw;
    arena.clear();
    run = std::make_unique<Run>(*this, device, arena, prepacks, leaves);
  }
  try {
    return (*run)(mode);
  } catch (const NotRepeatable&) {
    throw;
  } catch (const DeviceError& error) {
    if (!run->called_once()) throw;
    throw NotRepeatable(error.what());
  }
}

}  // namespace clnet::exec
