// clnet-build-kernels PLATFORM DEVICE: a process of build_ahead (lib/cl/build_ahead.h), which compiles kernels into the driver's
// cache on disk. Descriptor 3 has the jobs in JSON, 4 the numbers of those to do; 5 takes twice the number of one that is begun,
// and one more when it is done.
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/cl/opencl.h"

namespace {

using nlohmann::json;

std::string content(int descriptor) {
  struct stat state {};
  if (::fstat(descriptor, &state) != 0) return {};
  std::string text(static_cast<std::size_t>(state.st_size), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const auto size = ::pread(descriptor, text.data() + read, text.size() - read, static_cast<off_t>(read));
    if (size <= 0) return {};
    read += static_cast<std::size_t>(size);
  }
  return text;
}

/// Zeros that take memory only where a kernel writes.
class Zeros {
 public:
  explicit Zeros(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory");
  }
  ~Zeros() { ::munmap(memory_, bytes_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;

  void* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* memory_;
};

bool say(std::uint32_t what) { return ::write(5, &what, sizeof what) == sizeof what; }

class Builder {
 public:
  explicit Builder(const cl::Device& device) : device_(device), context_(device), queue_(context_, device) {}

  void build(const json& job) {
    const auto program = first_that_builds(job.at("builds"));
    for (const auto& kernel : job.at("kernels")) run(program, kernel);
  }

 private:
  cl::Program first_that_builds(const json& builds) {
    for (const auto& build : builds) {
      cl::Program program(context_, build.at("source").get<std::string>());
      try {
        program.build({device_}, build.at("options").get<std::string>().c_str());
        return program;
      } catch (const cl::BuildError&) {
      }
    }
    throw std::runtime_error("does not compile");
  }

  /// The first group, on zeros.
  void run(const cl::Program& program, const json& text) {
    cl::Kernel kernel(program, text.at("function").get<std::string>().c_str());
    std::vector<std::unique_ptr<Zeros>> zeros;
    std::vector<cl::Buffer> buffers;
    cl_uint index = 0;
    for (const auto& argument : text.at("arguments")) {
      const auto& kind = argument.begin().key();
      const auto& value = argument.begin().value();
      if (kind == "buffer") {
        const auto& all = *zeros.emplace_back(std::make_unique<Zeros>(value.get<std::size_t>()));
        kernel.setArg(index++,
                      buffers.emplace_back(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, all.bytes(), all.memory()));
      } else if (kind == "local") {
        kernel.setArg(index++, value.get<std::size_t>(), nullptr);
      } else if (kind == "scalar") {
        const auto bits = value.at(1).get<std::uint64_t>();
        kernel.setArg(index++, std::min(value.at(0).get<std::size_t>(), sizeof bits), &bits);
      } else if (kind == "ulong") {
        kernel.setArg(index++, value.get<cl_ulong>());
      } else if (kind == "int") {
        kernel.setArg(index++, value.get<cl_int>());
      } else {
        kernel.setArg(index++, value.get<cl_float>());
      }
    }
    const auto local = text.at("local").get<std::vector<std::size_t>>();
    const auto size = [&](std::size_t axis) { return axis < local.size() ? local[axis] : 1; };
    const auto group = local.size() == 1   ? cl::NDRange(size(0))
                       : local.size() == 2 ? cl::NDRange(size(0), size(1))
                                           : cl::NDRange(size(0), size(1), size(2));
    queue_.enqueueNDRangeKernel(kernel, cl::NullRange, group, group);
    queue_.finish();
  }

  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  // Nobody waits for it when the program that asked for it is gone, and a kernel that crashes on zeros leaves no trace.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd listener{5, 0, 0};
  if (::poll(&listener, 1, 0) != 0) return 1;
  // Compilers wait for the linkers that they start, which a host that ignores its children's ends would have them miss.
  ::signal(SIGCHLD, SIG_DFL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const auto text = json::parse(content(3));
  const auto& jobs = text.at("jobs");
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(std::stoul(argv[1])).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  const auto& device = devices.at(std::stoul(argv[2]));
  // A wrapped device may stand at no place of its own.
  if (device.getInfo<CL_DEVICE_NAME>().find(text.at("device").get<std::string>()) == std::string::npos) return 1;
  Builder builder(device);
  for (std::uint32_t number = 0; ::read(4, &number, sizeof number) == sizeof number;) {
    if (!say(2 * number)) break;
    try {
      builder.build(jobs.at(number));
      if (!say(2 * number + 1)) break;
    } catch (const std::exception&) {
      // Whoever needs it says what is wrong with it.
    }
  }
  // Drivers take their time with taking themselves apart.
  std::_Exit(0);
} catch (const std::exception&) {
  return 1;
}
