#include "lib/exec/batch/launch_batches.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "lib/cl/kernel_function.h"

namespace clnet::exec {

namespace {

/// A program with more kernels takes compilers long, and kernels of more parameters are refused.
constexpr std::size_t most_kernels = 48, most_parameter_bytes = 1000, most_scalars = 24;

/// The kernel counts tasks, and groups that find none left, in 32 bits.
constexpr std::int64_t most_tasks = std::int64_t{1} << 30;

/// A launch that takes longer, in microseconds, does not feel what its command costs. Nor does a batch: one that loses a thread
/// to somebody else, as to the host that builds the next step's graph, has it again in the next.
constexpr double longest = 500, longest_batch = 4000;

struct LessKernel {
  bool operator()(const Launch* a, const Launch* b) const {
    const auto key = [](const Launch& launch) { return std::tie(launch.program(), launch.function()); };
    return key(*a) < key(*b);
  }
};

/// Memory that a launch touches: bytes of a place, which is a segment of the arena or a root value's own.
struct Touch {
  std::size_t place = 0;
  std::int64_t first = 0, last = 0;
  bool writes = false;

  bool conflicts(const Touch& other) const {
    return place == other.place && (writes || other.writes) && first < other.last && other.first < last;
  }
};

class Finder {
 public:
  Finder(const Recording& recording, const Placement& placement, const DeviceInfo& device, std::size_t fewest_entries,
         std::size_t end)
      : recording_(recording),
        placement_(placement),
        device_(device),
        fewest_entries_(fewest_entries),
        end_(std::min(end, recording.commands().size())),
        own_place_(recording.value_count()) {
    std::iota(own_place_.begin(), own_place_.end(), placement.layout.segments.size());
    for (const auto& donation : placement.donations)
      own_place_[static_cast<std::size_t>(donation.to)] = own_place_[static_cast<std::size_t>(donation.from)];
  }

  LaunchBatches operator()() {
    for (const auto& command : recording_.commands())
      if (const auto* launch = std::get_if<Launch>(&command)) result_.microseconds += microseconds_of(*launch);
    for (std::size_t command = 0; command < end_; ++command) {
      const auto* launch = std::get_if<Launch>(&recording_.commands()[command]);
      if (!launch || !fits(*launch)) {
        close(command);
      } else if (!is_empty(*launch)) {
        // The batch may have no room, nor the program for a new one; what no program takes is a command of its own.
        for (int attempts = 3; attempts > 0 && !add(command, *launch); --attempts) close(command);
      }
    }
    close(end_);
    if (!result_.programs.empty() && result_.programs.back().commands.empty()) result_.programs.pop_back();
    return std::move(result_);
  }

 private:
  static bool is_empty(const Launch& launch) {
    return std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size == 0; });
  }

  bool fits(const Launch& launch) {
    if (launch.computes_f64()) return false;
    if (launch.local().empty() || std::any_of(launch.local().begin(), launch.local().end(), [](auto size) { return size != 1; }))
      return false;
    std::size_t tasks = 1;
    for (auto size : launch.global()) tasks *= size;
    if (tasks > 65536) return false;
    if (microseconds_of(launch) > longest) return false;
    auto [known, fresh] = may_.try_emplace(&launch, false);
    if (fresh) known->second = ocl::may_be_function(launch.program());
    return known->second;
  }

  /// Of cores that are not in a hurry: for each lane of their vectors 7.5 operations per nanosecond, and 20 bytes of all.
  double microseconds_of(const Launch& launch) const {
    double bytes = std::max(0.0, launch.moved_bytes());
    if (launch.moved_bytes() < 0)
      for (const auto& arg : launch.arguments())
        if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
          const auto touch = touched(*buffer);
          bytes += static_cast<double>(touch.last - touch.first);
        }
    const auto lanes = std::clamp(device_.native_float_width, 4, 16);
    return launch.flop_count() / (7.5e3 * lanes * device_.compute_units) + bytes / 20e3;
  }

  Touch touched(const BufferArg& arg) const {
    const auto& info = recording_.value(arg.ref.value);
    const auto root = static_cast<std::size_t>(info.root);
    const auto size = static_cast<std::int64_t>(size_of(info.spec.dtype));
    const auto count = arg.count >= 0 ? arg.count : info.spec.shape.numel() - arg.ref.offset;
    Touch touch;
    touch.first = (info.offset + arg.ref.offset) * size;
    touch.last = touch.first + count * size;
    touch.writes = arg.writes;
    touch.place = own_place_[root];
    if (placement_.homes[root] == Home::arena) {
      const auto& place = placement_.places[root];
      touch.place = place.segment;
      touch.first += static_cast<std::int64_t>(place.offset);
      touch.last += static_cast<std::int64_t>(place.offset);
    }
    return touch;
  }

  /// False where the batch that is open has no room for it.
  bool add(std::size_t command, const Launch& launch) {
    if (!open_) {
      open_.emplace();
      open_->first = command;
      open_->program = program_for();
    }
    auto& program = result_.programs[open_->program];
    const auto before = std::tuple(open_->bases.size(), open_->scalars.size(), open_->values.size());
    const auto found = kernels_.find(&launch);
    LaunchBatch::ListEntry entry;
    entry.command = command;
    entry.kernel = found != kernels_.end() ? found->second : program.commands.size();
    entry.may_be_left_out = placement_.prepack_of[command] != Placement::none || launch.when() != Launch::When::always;
    std::size_t local = 0;
    for (const auto& arg : launch.arguments()) add_words(entry.words, arg, local);
    const BatchParameters parameters{std::max(program.parameters.bases, open_->bases.size()),
                                     std::max(program.parameters.scalars, open_->scalars.size())};
    std::int64_t tasks = 1;
    for (auto size : launch.global()) tasks *= static_cast<std::int64_t>(size);
    if (entry.kernel >= most_kernels || parameters.bytes() > most_parameter_bytes || local > device_.local_memory ||
        tasks > most_tasks - tasks_ || open_->microseconds > longest_batch) {
      open_->bases.resize(std::get<0>(before));
      open_->scalars.resize(std::get<1>(before));
      open_->values.resize(std::get<2>(before));
      full_ = entry.kernel >= most_kernels || open_->entries.empty();
      return false;
    }
    program.parameters = parameters;
    if (found == kernels_.end()) {
      kernels_.emplace(&launch, entry.kernel);
      program.commands.push_back(command);
    }
    tasks_ += tasks;
    open_->microseconds += microseconds_of(launch);
    open_->local_bytes = std::max(open_->local_bytes, local);
    entry.waits = must_wait(launch);
    const bool several = std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size > 1; });
    open_->side_by_side = open_->side_by_side || several || (!entry.waits && !open_->entries.empty());
    open_->entries.push_back(std::move(entry));
    return true;
  }

  /// The last program, unless it is full.
  std::size_t program_for() {
    if (result_.programs.empty() || full_) {
      result_.programs.emplace_back();
      kernels_.clear();
      kernels_kept_ = 0;
      full_ = false;
    }
    return result_.programs.size() - 1;
  }

  template <class T>
  static std::size_t index_in(std::vector<T>& list, const T& wanted) {
    const auto found = std::find(list.begin(), list.end(), wanted);
    if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
    list.push_back(wanted);
    return list.size() - 1;
  }

  void add_words(std::vector<std::uint64_t>& words, const Arg& arg, std::size_t& local) {
    if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
      const auto& info = recording_.value(buffer->ref.value);
      const auto root = static_cast<std::size_t>(info.root);
      auto offset = info.offset + buffer->ref.offset;
      std::size_t value = 0;
      LaunchBatch::Base base{false, root};
      if (placement_.homes[root] == Home::arena) {
        base = {true, placement_.places[root].segment};
        offset += static_cast<std::int64_t>(placement_.places[root].offset / size_of(recording_.value(info.root).spec.dtype));
      } else if (placement_.homes[root] == Home::leaf) {
        value = 1 + index_in(open_->values, {false, info.root});
      }
      words.push_back(index_in(open_->bases, base) | static_cast<std::uint64_t>(value) << 32);
      words.push_back(static_cast<std::uint64_t>(offset));
    } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
      const auto& known = open_->scalars;
      if (known.size() < most_scalars || std::find(known.begin(), known.end(), scalar->value) != known.end())
        words.push_back(index_in(open_->scalars, scalar->value));
      else
        words.push_back(static_cast<std::uint64_t>(1 + index_in(open_->values, {true, scalar->value})) << 32);
    } else if (const auto* memory = std::get_if<LocalArg>(&arg)) {
      constexpr std::size_t vector = 64;
      words.push_back(local / vector);
      local += (memory->bytes + vector - 1) / vector * vector;
    } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
      words.push_back(static_cast<std::uint32_t>(*integer));
    } else {
      words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(std::get<double>(arg))));
    }
  }

  /// Whether the launch touches memory that others since the last wait touch, one of them writing.
  bool must_wait(const Launch& launch) {
    constexpr std::size_t most = 256;  // comparisons stay few
    std::vector<Touch> touches;
    for (const auto& arg : launch.arguments())
      if (const auto* buffer = std::get_if<BufferArg>(&arg)) touches.push_back(touched(*buffer));
    const auto meets = [&](const Touch& touch) {
      return std::any_of(since_.begin(), since_.end(), [&](const Touch& other) { return touch.conflicts(other); });
    };
    const bool waits = since_.size() > most || std::any_of(touches.begin(), touches.end(), meets);
    if (waits) since_.clear();
    since_.insert(since_.end(), touches.begin(), touches.end());
    return waits;
  }

  void close(std::size_t command) {
    if (!open_) return;
    open_->last = command;
    auto& kernels = result_.programs[open_->program].commands;
    if (open_->entries.size() >= fewest_entries_) {
      result_.batches.push_back(std::move(*open_));
      kernels_kept_ = kernels.size();
    } else {
      std::erase_if(kernels_, [&](const auto& kernel) { return kernel.second >= kernels_kept_; });
      kernels.resize(kernels_kept_);
    }
    open_.reset();
    since_.clear();
    tasks_ = 0;
  }

  const Recording& recording_;
  const Placement& placement_;
  const DeviceInfo& device_;
  const std::size_t fewest_entries_, end_;
  std::vector<std::size_t> own_place_;  ///< by root value
  LaunchBatches result_;
  std::optional<LaunchBatch> open_;
  bool full_ = false;  ///< the last program takes no more kernels
  std::vector<Touch> since_;
  std::int64_t tasks_ = 0;                                    ///< of the open batch
  std::map<const Launch*, std::size_t, LessKernel> kernels_;  ///< of the last program
  std::size_t kernels_kept_ = 0;                              ///< of them those of batches that are kept
  std::map<const Launch*, bool, LessKernel> may_;
};

}  // namespace

LaunchBatches find_launch_batches(const Recording& recording, const Placement& placement, const DeviceInfo& device,
                                  std::size_t fewest_entries, std::size_t end) {
  return Finder(recording, placement, device, fewest_entries, end)();
}

std::vector<std::uint64_t> batch_list(const Recording& recording, const LaunchBatch& batch,
                                      const std::vector<std::uint64_t>& values, const std::vector<bool>& left_out,
                                      std::size_t groups) {
  // Whoever waits for longer than some of what all of it takes waits for a thread that has no core.
  constexpr double cycles = 2500, least = 100;  // of a microsecond; and microseconds
  const auto patience = static_cast<std::uint64_t>(cycles * std::max(batch.microseconds / 8, least));
  std::vector<std::uint64_t> list{0, groups, patience, values.size() + 1, 0};
  list.insert(list.end(), values.begin(), values.end());
  std::uint64_t tasks = 0, after = 0;
  for (std::size_t k = 0; k < batch.entries.size(); ++k) {
    const auto& entry = batch.entries[k];
    const auto& global = std::get<Launch>(recording.commands()[entry.command]).global();
    std::uint64_t its_tasks = left_out[k] ? 0 : 1;
    for (auto size : global) its_tasks *= size;
    if (entry.waits) after = tasks;
    const auto size = [&](std::size_t axis) { return axis < global.size() ? std::uint64_t{global[axis]} : 1; };
    list.insert(list.end(),
                {entry.kernel, BatchList::arguments + entry.words.size(), its_tasks, after, size(0), size(1), size(2)});
    list.insert(list.end(), entry.words.begin(), entry.words.end());
    tasks += its_tasks;
  }
  list[BatchList::tasks] = tasks;
  return list;
}

}  // namespace clnet::exec
