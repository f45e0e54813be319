// A host thread for a device: it enqueues the device's commands and waits for them, beside the threads of other devices.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/device.h"

namespace clnet::parallel {

/// Runs jobs one after the other, each in the surroundings of the thread that gave it: evaluation options with DetectAnomaly,
/// Autocast, NamedScope, watches of compiling. The device is the current one. What a scope holds by other thread-locals does not
/// come along, as calls of modules under way.
///
/// Threads of two lanes never wait for one another as long as they share no tensors, parameters or random numbers. Any thread
/// may call all functions.
class Lane {
 public:
  explicit Lane(const Device& device);
  /// Waits for the jobs.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const Device& device() const;
  /// Gives a job. The future has its result, or what it threw. A job of the lane's own thread runs at once. Throws Error in a
  /// function under compile() and in one of on_compile().
  template <class Job>
  std::future<std::invoke_result_t<Job>> run(Job job) {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(std::move(job));
    auto result = task->get_future();
    add([task = std::move(task)] { (*task)(); });
    return result;
  }

 private:
  void add(std::function<void()> job);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A lane for each device.
class Lanes {
 public:
  /// Throws Error where a device is given twice.
  explicit Lanes(std::span<const Device> devices);

  std::size_t size() const { return lanes_.size(); }
  Lane& operator[](std::size_t index) { return *lanes_[index]; }
  /// Runs body(index) in all lanes at once and waits for all of them. Throws what the first of the lanes threw.
  template <class Body>
  void run(const Body& body) {
    std::vector<std::future<void>> running;
    // The futures refer to the body: all have to end before an exception leaves.
    std::exception_ptr failure;
    try {
      for (std::size_t i = 0; i < size(); ++i) running.push_back(lanes_[i]->run([&body, i] { body(i); }));
    } catch (...) {
      failure = std::current_exception();
    }
    for (auto& each : running) {
      try {
        each.get();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace clnet::parallel
