// clnet-build-kernels PLATFORM DEVICE NUMBER NAME: a process of build_ahead (lib/pocl/build_ahead.h), one of several, which
// compiles kernels into the driver's cache on disk. Descriptor 3 has the jobs in JSON, 4 tells where those to do lie; 5 takes a
// word for each kernel that is begun, and another for how it ended. It ends with the program that started it, when 4 does, or
// when nothing came from there for some seconds.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "lib/cl/opencl.h"

namespace {

using nlohmann::json;

struct BuildOrder {
  std::uint64_t at = 0, bytes = 0;
};

/// The next job; nothing when there are to be no more.
std::optional<json> next_job() {
  constexpr int patience = 10'000;
  for (;;) {
    pollfd orders{4, POLLIN, 0};
    if (::poll(&orders, 1, patience) <= 0) return std::nullopt;
    BuildOrder order;
    const auto size = ::read(4, &order, sizeof order);
    // Another process was faster.
    if (size < 0 && errno == EAGAIN) continue;
    if (size != sizeof order) return std::nullopt;
    std::string text(order.bytes, '\0');
    for (std::size_t read = 0; read < text.size();) {
      const auto part = ::pread(3, text.data() + read, text.size() - read, static_cast<off_t>(order.at + read));
      if (part <= 0) return std::nullopt;
      read += static_cast<std::size_t>(part);
    }
    return json::parse(text);
  }
}

/// Nobody waits for it when the program that asked for it is gone. A child of that program may hold the pipe.
void end_with(pid_t parent) {
  pollfd listener{5, 0, 0};
  while (::poll(&listener, 1, 500) == 0 && ::getppid() == parent) {
  }
  std::_Exit(0);
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

enum class BuildWord : std::uint8_t { begun, done, refused };
std::uint32_t own_number = 0;
std::atomic<std::uint32_t> current{0};  ///< the kernel that is being compiled or run

bool say(BuildWord what) {
  const std::uint32_t word = current << 8 | own_number << 2 | static_cast<std::uint32_t>(what);
  return ::write(5, &word, sizeof word) == sizeof word;
}

/// The instruction that a signal came at; null where it is not known.
void* instruction(const void* context) {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(machine.pc);
#else
  return nullptr;
#endif
}

/// A kernel that only runs into trouble on zeros has been compiled: that is no crash of the compiler. Its code lies in an object
/// that the driver made and loaded, not in a library of the system.
extern "C" void on_fault(int signal, siginfo_t*, void* context) {
  Dl_info object{};
  if (void* at = instruction(context); at && ::dladdr(at, &object) != 0 && object.dli_fname) {
    const std::string_view path = object.dli_fname, name = path.substr(path.rfind('/') + 1);
    if (name.ends_with(".so") && !name.starts_with("lib")) {
      say(BuildWord::refused);
      std::_Exit(0);
    }
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Has Clang, in drivers that use it, find tools/kernel_linker.sh before other linkers.
void use_own_linker() {
  std::error_code code;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return;
  auto folders = (program.parent_path() / "linker").string();
  if (const char* others = std::getenv("COMPILER_PATH"); others && *others) folders = std::string(others) + ':' + folders;
  ::setenv("COMPILER_PATH", folders.c_str(), 1);
}

class Builder {
 public:
  explicit Builder(const cl::Device& device) : device_(device), context_(device), queue_(context_, device) {}

  /// False when nobody listens any more.
  bool build(const json& job) {
    std::optional<cl::Program> program;
    current = job.at("first").get<std::uint32_t>();
    for (const auto& kernel : job.at("kernels")) {
      if (!say(BuildWord::begun)) return false;
      bool well = true;
      try {
        if (!program) program = first_that_builds(job.at("builds"));
        if (job.at("runs").get<bool>())
          run(*program, kernel);
        else
          compile(*program, kernel);
      } catch (const std::exception&) {
        // Whoever needs it says what is wrong with it.
        well = false;
      }
      if (!say(well ? BuildWord::done : BuildWord::refused)) return false;
      ++current;
    }
    return true;
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

  /// Without running it. PoCL compiles kernels when it is asked for the program's binaries, too.
  static void compile(const cl::Program& program, const json& text) {
    const cl::Kernel kernel(program, text.at("function").get<std::string>().c_str());
    (void)program.getInfo<CL_PROGRAM_BINARIES>();
  }

  /// The first group, or as many as are wanted, on zeros.
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
    auto global = text.at("global").get<std::vector<std::size_t>>();
    if (global.empty()) global = local;
    queue_.enqueueNDRangeKernel(kernel, cl::NullRange, range(global), range(local));
    queue_.finish();
  }

  static cl::NDRange range(const std::vector<std::size_t>& sizes) {
    if (sizes.size() == 1) return {sizes[0]};
    if (sizes.size() == 2) return {sizes[0], sizes[1]};
    return {sizes.at(0), sizes.at(1), sizes.at(2)};
  }

  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  own_number = static_cast<std::uint32_t>(std::stoul(argv[3])) & 63U;
  std::thread(end_with, ::getppid()).detach();
  // Who waits for an order must not miss that there are to be no more.
  ::fcntl(4, F_SETFL, O_NONBLOCK);
  // Compilers wait for the linkers that they start, which a host that ignores its children's ends would have them miss.
  ::signal(SIGCHLD, SIG_DFL);
  // A kernel that crashes on zeros leaves no trace.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  use_own_linker();
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(std::stoul(argv[1])).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  const auto& device = devices.at(std::stoul(argv[2]));
  // A wrapped device may stand at no place of its own.
  if (device.getInfo<CL_DEVICE_NAME>().find(argv[4]) == std::string::npos) return 1;
  Builder builder(device);
  // Drivers have put their own handlers by now.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL}) ::sigaction(signal, &action, nullptr);
  for (auto job = next_job(); job && builder.build(*job);) job = next_job();
  // Drivers take their time with taking themselves apart.
  std::_Exit(0);
} catch (const std::exception&) {
  return 1;
}
