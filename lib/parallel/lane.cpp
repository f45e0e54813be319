#include "lib/parallel/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/context.h"
#include "lib/cl/lane_device.h"
#include "lib/exec/options/options.h"
#include "lib/graph/autocast.h"
#include "lib/graph/capture.h"
#include "lib/graph/scope.h"

namespace clnet::parallel {

namespace {

/// What a thread has by thread-locals, for another thread.
class Surroundings {
 public:
  Surroundings()
      : options_(exec::Options::now()),
        autocast_(autocasting()),
        dtype_(Autocast::dtype()),
        scope_(scope_now()),
        told_(ocl::CompileWatch::forward()) {}

  void run(const std::function<void()>& job) const {
    const exec::OptionsScope options(options_);
    const InScope scope(scope_);
    std::optional<Autocast> autocast;
    if (autocast_) autocast.emplace(dtype_);
    std::optional<ocl::CompileWatch> watch;
    if (told_) watch.emplace(told_);
    job();
  }

 private:
  exec::Options options_;
  bool autocast_;
  Dtype dtype_;
  ScopePtr scope_;
  ocl::CompileTold told_;
};

struct LaneJob {
  Surroundings surroundings;
  std::function<void()> run;
};

}  // namespace

struct Lane::Impl {
  Device device;
  std::mutex mutex;  ///< guards the jobs
  std::condition_variable changed;
  std::deque<LaneJob> jobs;
  bool ends = false;
  std::thread thread;

  explicit Impl(const Device& its_device) : device(its_device), thread([this] { work(); }) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    changed.notify_one();
    thread.join();
  }

  void work() {
    const DeviceScope here(device);
    const ocl::InLane lane(context_of(device));
    for (;;) {
      std::optional<LaneJob> job;  // freed in this thread, and before the next wait
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return ends || !jobs.empty(); });
        if (jobs.empty()) return;
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      job->surroundings.run(job->run);
    }
  }
};

Lane::Lane(const Device& device) : impl_(std::make_unique<Impl>(device)) {}
Lane::~Lane() = default;

const Device& Lane::device() const { return impl_->device; }

void Lane::add(std::function<void()> job) {
  if (capturing()) throw Error("compile: the function gives a lane a job; it may only build graph");
  ocl::require_not_telling();
  if (std::this_thread::get_id() == impl_->thread.get_id()) return job();
  LaneJob next{{}, std::move(job)};
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->jobs.push_back(std::move(next));
  }
  impl_->changed.notify_one();
}

Lanes::Lanes(std::span<const Device> devices) {
  for (const auto& device : devices) {
    if (std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) { return lane->device() == device; }))
      throw Error(fmt::format("lanes: the device {} is given twice", device.info().name));
    lanes_.push_back(std::make_unique<Lane>(device));
  }
}

}  // namespace clnet::parallel
