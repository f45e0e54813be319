#include "lib/exec/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include "clnet/error.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/other_builders.h"
#include "lib/cl/quirks.h"
#include "lib/exec/plan/foresight.h"

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

}  // namespace

KernelsCrash::KernelsCrash(std::set<std::string> kernels, std::string compiler, std::vector<Maker> makers)
    : DeviceError(text(kernels, compiler)),
      kernels_(std::move(kernels)),
      compiler_(std::move(compiler)),
      makers_(std::move(makers)) {}

std::string KernelsCrash::text(const std::set<std::string>& kernels, const std::string& compiler) {
  return fmt::format("{} crash{} {}", fmt::join(kernels, ", "), kernels.size() == 1 ? "es" : "", compiler);
}

Plan::Plan(Recording recording, std::vector<ValueId> keep, ocl::Context& device, const PlacementOptions& options)
    : recording_(std::move(recording)), keep_(std::move(keep)), placement_(place(recording_, keep_, options)) {
  build(device);
  prepared_.resize(recording_.commands().size());
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    auto& prepared = prepared_[i];
    prepared.command = i;
    if (const auto* launch = std::get_if<Launch>(&recording_.commands()[i])) {
      prepare(*launch, prepared, device);
      // Of two alternative launches, one counts.
      if (!prepared.skipped && launch->when() != Launch::When::in_place) ++kernels_;
    } else {
      ++host_calls_;
    }
  }
}

namespace {

/// Throws KernelsCrash for a kernel that is noted to crash the compiler.
void refuse_crashing(const DeviceInfo& info, const std::vector<ocl::KernelToBuild>& kernels,
                     const std::vector<const Launch*>& launches, const ocl::Prebuilder& prebuilder) {
  std::vector<Maker> makers;
  std::set<std::string> names;
  const auto noted = prebuilder.noted(kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (noted[i] != ocl::Noted::crashed) continue;
    makers.push_back(launches[i]->maker());
    names.insert(kernels[i].function);
  }
  if (!makers.empty())
    throw KernelsCrash(
        std::move(names),
        fmt::format("the compiler of {} {}, as {} notes", info.platform, info.driver_version, prebuilder.notes_file()),
        std::move(makers));
}

void end_if(const std::stop_token& stop) {
  if (stop.stop_requested()) throw ocl::CompilingCancelled("compiling was cancelled");
}

/// Builds programs on several threads where the driver allows it. `built` runs on this thread several times a second, with the
/// number of finished programs. Its exception ends the build once the programs in progress are built.
void build_programs(ocl::Context& device, const std::vector<const ocl::ProgramSource*>& programs,
                    const std::function<void(std::size_t)>& built) {
  std::size_t next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable changed;
  const auto build = [&](std::size_t i) {
    std::exception_ptr thrown;
    try {
      device.programs().prepare(*programs[i]);
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (!failure) failure = thrown;
    ++done;
    changed.notify_one();
  };
  const auto threads =
      device.info().thread_safe ? std::min<std::size_t>(programs.size(), std::thread::hardware_concurrency()) : 1;
  if (threads <= 1) {
    const ocl::WhileWaiting waiting([&] { built(next); });
    for (; next < programs.size(); ++next) {
      build(next);
      built(next + 1);
    }
  } else {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 0; i < threads; ++i)
      helpers.emplace_back([&](const std::stop_token& stop) {
        const ocl::WhileWaiting waiting([&] { end_if(stop); });
        for (;;) {
          std::unique_lock lock(mutex);
          if (next >= programs.size()) return;
          const auto mine = next++;
          lock.unlock();
          build(mine);
        }
      });
    std::unique_lock lock(mutex);
    while (done < programs.size()) {
      changed.wait_for(lock, std::chrono::milliseconds(100));
      const auto so_far = done;
      lock.unlock();
      try {
        built(so_far);
      } catch (...) {
        lock.lock();
        next = programs.size();
        throw;
      }
      lock.lock();
    }
    lock.unlock();
    built(programs.size());
  }
  if (failure) std::rethrow_exception(failure);
}

/// A thread that loads programs while others are built elsewhere: loading takes a driver's time, too.
class ReadBeside {
 public:
  explicit ReadBeside(ocl::Context& device) : thread_([this, &device](const std::stop_token& stop) { read(device, stop); }) {}

  void add(const ocl::ProgramSource& program) {
    const std::lock_guard lock(mutex_);
    programs_.push_back(&program);
    changed_.notify_one();
  }

 private:
  void read(ocl::Context& device, const std::stop_token& stop) {
    const ocl::WhileWaiting waiting([&] { end_if(stop); });
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !programs_.empty(); }) && !stop.stop_requested()) {
      const auto* program = programs_.front();
      programs_.pop_front();
      lock.unlock();
      try {
        device.programs().prepare(*program);
      } catch (const std::exception&) {
        // The launch that needs it reports the error.
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<const ocl::ProgramSource*> programs_;
  std::jthread thread_;  ///< the last member, as it uses the others
};

}  // namespace

void Plan::note_first_run(const ocl::Context& device) {
  if (const auto kernels = std::exchange(compiled_by_run_, {}); !kernels.empty())
    ocl::prebuilder_for(device.info())->note_run(kernels);
}

void Plan::build(ocl::Context& device) {
  using Takes = ocl::Prebuilder::Takes;
  const auto prebuilder = ocl::prebuilder_for(device.info());
  const auto takes = prebuilder->takes();
  const auto key = [](const Launch& launch) {
    return std::tuple(std::tie(launch.program(), launch.function(), launch.local()), is_large(launch));
  };
  const auto less = [&](const Launch* a, const Launch* b) { return key(*a) < key(*b); };
  std::set<const Launch*, decltype(less)> launches(less);
  for (const auto& command : recording_.commands())
    if (const auto* launch = std::get_if<Launch>(&command)) launches.insert(launch);

  std::vector<ocl::KernelToBuild> ahead;
  std::vector<const Launch*> ahead_of;
  std::vector<const ocl::ProgramSource*> programs;
  std::size_t total = 0;
  for (const auto* launch : launches) {
    const bool is_there = device.programs().has(launch->program());
    // A user's kernel may run forever on zeros: it is only compiled elsewhere, not run. A kernel with a large range is compiled
    // differently than for the single group that runs ahead. Where the build elsewhere tests the compiler, an equally large range
    // runs.
    const bool users = launch->program().users();
    const bool elsewhere = takes == Takes::all || (takes == Takes::some && !is_large(*launch) && !users);
    if (elsewhere && (users || !launch->local().empty()) && !is_empty(*launch)) {
      ahead.push_back(to_build(recording_, *launch));
      ahead_of.push_back(launch);
    } else if (!is_there) {
      ++total;
    }
    // Sorted by program.
    if (!is_there && (programs.empty() || *programs.back() != launch->program())) programs.push_back(&launch->program());
  }
  // The second of two sets of programs is needed at once. Where building it takes time, it is built beside (BuildsBeside).
  const bool in_turn = takes == Takes::all || ocl::has_quirk(device.info(), "compiles-one-at-a-time");
  const auto foreseen = in_turn ? std::vector<ocl::ProgramSource>{} : device.programs().foreseen();
  const auto is_foreseen = [&](const auto* program) {
    return std::find(foreseen.begin(), foreseen.end(), *program) != foreseen.end();
  };
  if (std::any_of(programs.begin(), programs.end(), is_foreseen)) {
    const auto own = programs;
    for (const auto& program : foreseen)
      if (std::none_of(own.begin(), own.end(), [&](const auto* other) { return *other == program; }))
        programs.push_back(&program);
    total += programs.size() - own.size();
  }
  if (!ahead.empty()) {
    const auto noted = prebuilder->noted(ahead);
    total += static_cast<std::size_t>(std::count(noted.begin(), noted.end(), ocl::Noted::nothing));
  }
  const ocl::Compiling compiling(total);
  std::size_t done = 0;
  {
    std::optional<ReadBeside> reader;
    prebuilder->build(
        ahead, [&](std::size_t noted) { compiling.tell(done = std::min(noted, total)); },
        [&](const ocl::ProgramSource& program) {
          if (!device.info().thread_safe) return;
          if (!reader) reader.emplace(device);
          reader->add(program);
        });
  }
  if (takes == Takes::all)
    refuse_crashing(device.info(), ahead, ahead_of, *prebuilder);
  else
    // Which of two alternative launches will run is not known yet.
    for (std::size_t i = 0; i < ahead.size(); ++i)
      if (ahead_of[i]->when() == Launch::When::always) compiled_by_run_.push_back(std::move(ahead[i]));
  // Also where the first run compiles them: a listener that got the first report gets the last.
  if (programs.empty()) compiling.tell(total);
  build_programs(device, programs, [&](std::size_t built) { compiling.tell(done + (total - done) * built / programs.size()); });
}

namespace {

/// The launch's work-group, reduced where the built kernel allows less than the device, because of its registers. A group that a
/// kernel relies on (GROUP, and those of users' kernels) is not changed.
std::vector<std::size_t> allowed_group(const Launch& launch, const ::cl::Kernel& kernel, const ocl::Context& device) {
  auto local = launch.local();
  const auto items = [&] { return std::accumulate(local.begin(), local.end(), std::size_t{1}, std::multiplies{}); };
  if (items() <= 1 || ocl::has_quirk(device.info(), "rusticl-kernel-groups")) return local;
  const auto& program = launch.program();
  const bool fixed = program.defines.count("GROUP") != 0 || program.users();
  // A kernel takes the size that it was built for (reqd_work_group_size), though NVIDIA's driver reports 256 for all.
  const auto asked = ocl::checked(launch.function(),
                                  [&] { return kernel.getWorkGroupInfo<CL_KERNEL_COMPILE_WORK_GROUP_SIZE>(device.device()); });
  if (asked[0] * asked[1] * asked[2] == items()) return local;
  const auto most =
      ocl::checked(launch.function(), [&] { return kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device.device()); });
  while (items() > most) {
    const auto largest = std::max_element(local.begin(), local.end());
    if (fixed || *largest % 2 != 0)
      throw Unsupported(fmt::format("{}: a work-group of {} work-items, and the device takes {} of this kernel",
                                    launch.function(), items(), most));
    *largest /= 2;
  }
  return local;
}

}  // namespace

void Plan::prepare(const Launch& launch, PreparedCommand& prepared, ocl::Context& device) {
  prepared.skipped = std::any_of(launch.global().begin(), launch.global().end(), [](auto size) { return size == 0; });
  if (prepared.skipped) return;
  prepared.kernel = device.programs().kernel(launch.program(), launch.function());
  prepared.global = range(launch.global());
  prepared.local = range(allowed_group(launch, prepared.kernel, device));
  cl_uint index = 0;
  double bytes = 0;
  try {
    for (const auto& arg : launch.arguments()) {
      if (const auto* buffer = std::get_if<BufferArg>(&arg)) {
        const auto& info = recording_.value(buffer->ref.value);
        const auto home = placement_.homes[root(buffer->ref.value)];
        auto& arguments = home == Home::arena ? prepared.fixed : prepared.changing;
        arguments.push_back({index, info.root, info.offset + buffer->ref.offset});
        bytes += static_cast<double>(info.spec.bytes());
        index += 2;
      } else if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
        prepared.scalars.push_back({index++, scalar->value, recording_.value(scalar->value).spec.dtype});
      } else if (const auto* local = std::get_if<LocalArg>(&arg)) {
        prepared.kernel.setArg(index++, local->bytes, nullptr);
      } else if (const auto* integer = std::get_if<std::int32_t>(&arg)) {
        prepared.kernel.setArg(index++, static_cast<cl_int>(*integer));
      } else if (launch.computes_f64()) {
        prepared.kernel.setArg(index++, static_cast<cl_double>(std::get<double>(arg)));
      } else {
        prepared.kernel.setArg(index++, static_cast<cl_float>(std::get<double>(arg)));
      }
    }
  } catch (const ::cl::Error& error) {
    throw DeviceError(fmt::format("{}: argument {} was refused: {}", launch.function(), index, ocl::error_name(error.err())));
  }
  prepared.bytes = launch.moved_bytes() >= 0 ? launch.moved_bytes() : bytes;
}

std::size_t Plan::bytes_at(Home home) const {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < placement_.homes.size(); ++id)
    if (placement_.homes[id] == home) bytes += stored_bytes(recording_.value(static_cast<ValueId>(id)).spec);
  return bytes;
}

std::string Plan::what() const {
  std::size_t largest = 0, count = 0;
  for (std::size_t id = 0; id < placement_.homes.size(); ++id) {
    if (placement_.homes[id] != Home::arena) continue;
    ++count;
    const auto bytes = [&](std::size_t value) { return recording_.value(static_cast<ValueId>(value)).spec.bytes(); };
    if (placement_.homes[largest] != Home::arena || bytes(id) > bytes(largest)) largest = id;
  }
  if (count == 0) return "no intermediate";
  const auto spec = to_string(recording_.value(static_cast<ValueId>(largest)).spec);
  return count == 1 ? spec : fmt::format("{} intermediates, the largest {}", count, spec);
}

}  // namespace clnet::exec
