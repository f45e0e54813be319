// Transfers to a device beside the kernels: a transfer queue, pinned memory, and reused buffers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "lib/cl/main_queue.h"
#include "lib/cl/memory_pool.h"
#include "lib/cl/opencl.h"
#include "lib/cl/profiler.h"

namespace clnet::ocl {

/// The way of data into a buffer: `mapped` where host and device share memory, through `pinned` host memory otherwise.
enum class UploadPath { mapped, pinned };

class Uploader {
 public:
  /// `main` is the queue of the kernels that will read the buffers.
  Uploader(const cl::Context& context, const cl::Device& device, MemoryPool& memory, Profiler& profiler,
           std::shared_ptr<MainQueue> main, UploadPath path);
  ~Uploader();

  /// See Context::upload.
  BufferPtr upload(std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill);
  /// Frees the buffers and the pinned memory that wait for reuse.
  void reclaim();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace clnet::ocl
