#include "lib/exec/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "clnet/error.h"

namespace clnet::exec {

namespace {

::cl::NDRange range(const std::vector<std::size_t>& sizes) {
  switch (sizes.size()) {
    case 0: return ::cl::NullRange;
    case 1: return {sizes[0]};
    case 2: return {sizes[0], sizes[1]};
    default: return {sizes[0], sizes[1], sizes[2]};
  }
}

std::size_t stored_bytes(const Spec& spec) { return std::max<std::size_t>(1, static_cast<std::size_t>(spec.bytes())); }

}  // namespace

Plan::Plan(Recording recording, std::vector<ValueId> keep, ocl::Context& device)
    : recording_(std::move(recording)), keep_(std::move(keep)) {
  find_homes(device.info());
  build_programs(device);
  place(device);
  for (std::size_t i = 0; i < recording_.commands().size(); ++i) {
    auto& step = steps_[i];
    step.command = i;
    if (const auto* launch = std::get_if<Launch>(&recording_.commands()[i])) {
      prepare(*launch, step, device);
      if (!step.skipped) ++kernels_;
    } else {
      ++host_calls_;
    }
  }
}

std::vector<bool> Plan::find_packed() const {
  std::vector<bool> packed(recording_.value_count()), changing(recording_.value_count(), false);
  for (std::size_t id = 0; id < packed.size(); ++id) packed[id] = recording_.value(static_cast<ValueId>(id)).packed;
  for (auto leaf : recording_.changing()) changing[static_cast<std::size_t>(leaf)] = true;
  for (const auto& command : recording_.commands()) {
    bool stays = true;
    for_each_ref(command, [&](Ref ref, bool writes) {
      const auto id = root(ref.value);
      const bool leaf = recording_.value(static_cast<ValueId>(id)).leaf;
      stays = stays && (writes ? packed[id] : packed[id] || (leaf && !changing[id]));
    });
    if (stays) continue;
    for_each_ref(command, [&](Ref ref, bool writes) {
      if (writes) packed[root(ref.value)] = false;
    });
  }
  return packed;
}

void Plan::find_homes(const DeviceInfo& device) {
  const auto& commands = recording_.commands();
  const auto packed = find_packed();
  homes_.assign(recording_.value_count(), Home::nowhere);
  packed_.resize(recording_.value_count());
  packed_from_.resize(recording_.value_count());
  needs_buffer_.assign(recording_.value_count(), false);
  steps_.resize(commands.size());
  std::vector<bool> seen(recording_.value_count(), false);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    bool packs = true;
    std::vector<ValueId> leaves;
    for_each_ref(commands[i], [&](Ref ref, bool writes) {
      const auto id = root(ref.value);
      const auto& info = recording_.value(static_cast<ValueId>(id));
      homes_[id] = info.leaf ? Home::leaf : packed[id] ? Home::packed : device.reuses_buffers ? Home::arena : Home::own;
      if (info.leaf) {
        needs_buffer_[id] = true;
        leaves.push_back(static_cast<ValueId>(id));
      }
      packs = packs && (writes ? packed[id] : info.leaf || packed[id]);
      if (!seen[id]) steps_[i].first_uses.push_back(static_cast<ValueId>(id));
      seen[id] = true;
    });
    if (packs) steps_[i].packs_for = std::move(leaves);
  }
  for (auto id : keep_) {
    const auto kept = root(id);
    const bool leaf = recording_.value(static_cast<ValueId>(kept)).leaf;
    homes_[kept] = leaf ? Home::leaf : Home::own;
    if (leaf) needs_buffer_[kept] = true;
  }
}

void Plan::build_programs(ocl::Context& device) const {
  std::vector<const ocl::ProgramSource*> programs;
  for (const auto& command : recording_.commands()) {
    const auto* launch = std::get_if<Launch>(&command);
    if (launch && std::none_of(programs.begin(), programs.end(), [&](const auto* other) { return *other == launch->program(); }))
      programs.push_back(&launch->program());
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto build = [&] {
    for (std::size_t i; (i = next++) < programs.size();) {
      try {
        device.programs().prepare(*programs[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const auto threads =
      device.info().thread_safe ? std::min<std::size_t>(programs.size(), std::thread::hardware_concurrency()) : 1;
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(build);
  build();
  helpers.clear();
  if (failure) std::rethrow_exception(failure);
}

void Plan::place(const ocl::Context& device) {
  const auto& commands = recording_.commands();
  constexpr auto unused = std::numeric_limits<std::size_t>::max();
  std::vector<Lifetime> lives(recording_.value_count(), Lifetime{0, unused, 0});
  for (std::size_t i = 0; i < commands.size(); ++i)
    for_each_ref(commands[i], [&](Ref ref, bool) {
      auto& life = lives[root(ref.value)];
      life.first = std::min(life.first, i);
      life.last = i;
    });

  // In place: an output takes over the memory of an input that ends with the same command.
  std::vector<std::size_t> owner(lives.size());
  for (std::size_t id = 0; id < owner.size(); ++id) owner[id] = id;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto* launch = std::get_if<Launch>(&commands[i]);
    if (!launch) continue;
    for (const auto& out : launch->arguments()) {
      const auto* target = std::get_if<BufferArg>(&out);
      if (!target || !target->writes || target->reads) continue;
      const auto to = root(target->ref.value);
      if (homes_[to] != Home::arena || owner[to] != to || lives[to].first != i) continue;
      const auto& spec = recording_.value(static_cast<ValueId>(to)).spec;
      for (const auto& in : launch->arguments()) {
        const auto* source = std::get_if<BufferArg>(&in);
        if (!source || source->access != Access::same_element) continue;
        const auto from = root(source->ref.value);
        const auto& given = recording_.value(static_cast<ValueId>(from)).spec;
        // The input is the whole of its memory, element by element, and no other argument touches that.
        if (homes_[from] != Home::arena || given.bytes() != spec.bytes() || size_of(given.dtype) != size_of(spec.dtype)) continue;
        if (recording_.value(source->ref.value).offset + source->ref.offset != 0) continue;
        const auto touches = std::count_if(launch->arguments().begin(), launch->arguments().end(), [&](const Arg& other) {
          const auto* buffer = std::get_if<BufferArg>(&other);
          return buffer && root(buffer->ref.value) == from;
        });
        if (touches != 1) continue;
        auto& life = lives[owner[from]];
        if (life.last != i) continue;
        life.last = lives[to].last;
        owner[to] = owner[from];
        std::erase(steps_[i].first_uses, static_cast<ValueId>(to));  // it holds a value, which is not to be poisoned
        break;
      }
    }
  }

  std::vector<Lifetime> values;
  std::vector<std::size_t> index(lives.size(), unused);
  for (std::size_t id = 0; id < lives.size(); ++id) {
    if (homes_[id] != Home::arena) continue;
    const auto bytes = stored_bytes(recording_.value(static_cast<ValueId>(id)).spec);
    naive_bytes_ += bytes;
    if (owner[id] != id) continue;
    index[id] = values.size();
    values.push_back({bytes, lives[id].first, lives[id].last});
  }
  layout_ = lay_out(values, device.info().max_allocation);
  places_.resize(lives.size());
  for (std::size_t id = 0; id < lives.size(); ++id)
    if (homes_[id] == Home::arena) places_[id] = layout_.places[index[owner[id]]];
}

void Plan::prepare(const Launch& launch, Step& step, ocl::Context& device) {
  step.skipped = std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size == 0; });
  if (step.skipped) return;
  step.kernel = device.programs().kernel(launch.program(), launch.function());
  step.global = range(launch.global());
  step.local = range(launch.local());
  cl_uint index = 0;
  try {
    for (const auto& arg : launch.arguments()) {
      if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
        const auto& info = recording_.value(buffer->ref.value);
        const auto home = homes_[root(buffer->ref.value)];
        auto& slots = home == Home::arena || home == Home::packed ? step.fixed : step.changing;
        slots.push_back({index, info.root, info.offset + buffer->ref.offset});
        step.bytes += static_cast<double>(info.spec.bytes());
        index += 2;
      } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
        step.scalars.push_back({index++, scalar->value, recording_.value(scalar->value).spec.dtype});
      } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
        step.kernel.setArg(index++, local->bytes, nullptr);
      } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
        step.kernel.setArg(index++, static_cast<cl_int>(*integer));
      } else {
        step.kernel.setArg(index++, static_cast<cl_float>(std::get<float>(arg)));
      }
    }
  } catch (const ::cl::Error& error) {
    throw DeviceError(fmt::format("{}: argument {} was refused: {}", launch.function(), index, ocl::error_name(error.err())));
  }
}

std::size_t Plan::own_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < homes_.size(); ++id)
    if (homes_[id] == Home::own || (homes_[id] == Home::packed && !packed_[id]))
      bytes += stored_bytes(recording_.value(static_cast<ValueId>(id)).spec);
  return bytes;
}

std::string Plan::what() const {
  std::size_t largest = 0, count = 0;
  for (std::size_t id = 0; id < homes_.size(); ++id) {
    if (homes_[id] != Home::arena) continue;
    ++count;
    const auto bytes = [&](std::size_t value) { return recording_.value(static_cast<ValueId>(value)).spec.bytes(); };
    if (homes_[largest] != Home::arena || bytes(id) > bytes(largest)) largest = id;
  }
  if (count == 0) return "no intermediate";
  const auto spec = to_string(recording_.value(static_cast<ValueId>(largest)).spec);
  return count == 1 ? spec : fmt::format("{} intermediates, the largest {}", count, spec);
}

}  // namespace clnet::exec
