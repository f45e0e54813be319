#include "lib/cl/program_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lib/base/env.h"
#include "lib/base/key_locks.h"
#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/compile_watch.h"
#include "lib/cl/disk_cache.h"
#include "lib/cl/other_builders.h"
#include "lib/cl/quirks.h"

namespace clnet::ocl {

namespace {

constexpr const char* plain_options = "-cl-std=CL1.2 -w";
/// Defines the guard of the header of reads_long_header(), which skips it.
constexpr const char* declared_options = "-cl-std=CL1.2 -w -D_OPENCL_H_";
constexpr const char* large_options = "-cl-std=CL1.2 -w -cl-intel-256-GRF-per-thread";

/// Equal only for equal programs: every part has its length in front.
std::string key_of(const ProgramSource& program) {
  std::string key;
  const auto add = [&](std::string_view part) { key.append(part).append(fmt::format("\x01{}\x01", part.size())); };
  add(program.name);
  add(program.source);
  for (const auto& [name, value] : program.defines) {
    add(name);
    add(value);
  }
  return key;
}

/// The source with the compiler's line numbers; a user's part starts at 1.
std::string numbered(std::string_view source) {
  std::string text;
  for (int line = 1; !source.empty(); ++line) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    text += fmt::format("{:5} | {}\n", line, source.substr(0, end));
    if (source.starts_with("#line 1 ")) line = 0;
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return text;
}

/// The user's own part of a kernel, with the dtypes of its parameters; the library's text between is left out.
std::string without_includes(const std::string& text) {
  const auto users = text.rfind("\n#line 1 ");
  if (users == std::string::npos) return text;
  std::size_t defines = 0;
  while (text.compare(defines, 8, "#define ") == 0) defines = text.find('\n', defines) + 1;
  return text.substr(0, defines) + text.substr(users + 1);
}

/// NVIDIA's compiler counts all lines of its input ("<kernel>:418:3: error: ..."). Lines of a user's kernel get its name and the
/// numbers of #line.
std::string with_users_lines(std::string log, const std::string& text) {
  constexpr std::string_view place = "<kernel>:";
  const auto directive = text.rfind("\n#line 1 \"");
  if (directive == std::string::npos) return log;
  const auto name = directive + 10, name_end = text.find('"', name);
  // Numbering begins after the directive's own line.
  const auto before = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(directive), '\n') + 2;
  for (auto at = log.find(place); at != std::string::npos; at = log.find(place, at + 1)) {
    const auto digits = at + place.size(), end = log.find_first_not_of("0123456789", digits);
    const auto line = std::atol(log.c_str() + digits);
    if (line > before) log.replace(at, end - at, fmt::format("{}:{}", text.substr(name, name_end - name), line - before));
  }
  return log;
}

std::optional<DiskCache> disk_cache(const DeviceInfo& info) {
  const std::string mode = env::word("CLNET_CACHE", {"on", "off", "force"}).value_or("on");
  const auto folder = env::cache_folder();
  if (mode == "off" || !folder || (mode == "on" && info.caches_programs)) return std::nullopt;
  return DiskCache(*folder + "/programs");
}

}  // namespace

std::string full_source(const ProgramSource& program) {
  std::string text;
  for (const auto& [name, value] : program.defines) text += fmt::format("#define {} {}\n", name, value);
  text += program.source.empty() ? kernel_source(program.name) : resolve_includes(program.name, program.source);
  return text;
}

std::vector<std::pair<std::string, std::string>> ways_to_build(const ProgramSource& program, const DeviceInfo& device) {
  // OpenCL has vload_half without cl_khr_fp16, too, but some compilers lack it, and some make a call per number.
  const bool by_hand = !device.fp16 && !has_quirk(device, "nvidia-halves");
  const std::string text = (by_hand ? "#define CLNET_HALVES_BY_HAND\n" : "") + full_source(program);
  std::vector<std::pair<std::string, std::string>> ways;
  if (program.defines.contains(std::string(large_register_file))) return {{text, large_options}};
  if (reads_long_header(device) && !program.users())
    ways.emplace_back(kernel_file("builtins.clh").value() + text, declared_options);
  ways.emplace_back(text, plain_options);
  return ways;
}

struct ProgramCache::State {
  cl::Context context;
  cl::Device device;
  DeviceInfo info;
  std::string device_key;        ///< a binary's key besides its source
  std::size_t local_memory = 0;  ///< limit of a kernel's local memory; 0: the driver checks it
  std::optional<DiskCache> disk;
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_future<cl::Program>> entries;
  std::map<std::string, ProgramSource> foreseen;  ///< not requested yet
  std::atomic<std::uint64_t> built{0}, loaded{0}, unforeseen{0};

  /// The program of a key. The first thread builds it, others wait. A failure is not remembered.
  cl::Program program(const ProgramSource& source, const std::string& key) {
    std::promise<cl::Program> promise;
    for (;;) {
      std::unique_lock lock(mutex);
      const auto found = entries.find(key);
      if (found == entries.end()) {
        entries[key] = promise.get_future().share();
        if (foreseen.erase(key) == 0) ++unforeseen;
        break;
      }
      const std::shared_future<cl::Program> future = found->second;
      lock.unlock();
      try {
        return future.get();
      } catch (const CompilingCancelled&) {
        // Whoever was at it has ended. This thread has not.
      }
    }
    try {
      cl::Program result = make(source);
      promise.set_value(result);
      return result;
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        entries.erase(key);
      }
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  cl::Program make(const ProgramSource& source) {
    const auto ways = ways_to_build(source, info);
    logging::print(logging::Level::source, "source of {}:\n{}", source.name, numbered(ways.back().first));
    if (ways.size() == 1) return make(source.name, ways[0].first, ways[0].second);
    try {
      return make(source.name, ways[0].first, ways[0].second);
    } catch (const BuildError&) {
      auto program = make(source.name, ways[1].first, ways[1].second);
      logging::print(logging::Level::warning,
                     "program {} calls a function that kernels/builtins.clh does not declare: it took longer to build",
                     source.name);
      return program;
    }
  }

  cl::Program make(const std::string& name, const std::string& text, const std::string& options) {
    const auto start = std::chrono::steady_clock::now();
    const auto milliseconds = [&] {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    const std::string disk_key = disk ? fmt::format("{}options: {}\n{}", device_key, options, text) : std::string();
    std::optional<KeyLocks> locks;
    if (disk) {
      if (!disk->has(disk_key)) wait_for_other_builders(locks.emplace(disk->locks()), *disk, disk_key);
      if (const auto binary = disk->load(disk_key)) {
        if (auto program = from_binary(*binary, options)) {
          ++loaded;
          logging::print(logging::Level::plan, "program {} loaded in {:.0f} ms", name, milliseconds());
          return *program;
        }
        logging::print(logging::Level::plan, "cached program {} ignored: the driver refuses it", name);
      }
    }
    cl::Program program = build(name, text, options);
    ++built;
    logging::print(logging::Level::plan, "program {} built in {:.0f} ms", name, milliseconds());
    if (disk) keep(program, disk_key);
    return program;
  }

  cl::Program build(const std::string& name, const std::string& text, const std::string& options) {
    cl::Program program = checked("program " + name, [&] { return cl::Program(context, text); });
    try {
      program.build({device}, options.c_str());
    } catch (const cl::Error& error) {
      std::string compiler_log;
      try {
        compiler_log = program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device);
      } catch (const cl::Error& no_log) {
        compiler_log = fmt::format("(no log: {})", error_name(no_log.err()));
      }
      while (!compiler_log.empty() && (compiler_log.back() == '\0' || compiler_log.back() == '\n')) compiler_log.pop_back();
      throw BuildError(fmt::format("program {} does not compile for {}: {}\n{}\nThe source, as compiled with {}:\n{}", name,
                                   device.getInfo<CL_DEVICE_NAME>(), error_name(error.err()),
                                   with_users_lines(std::move(compiler_log), text), options, numbered(without_includes(text))));
    }
    return program;
  }

  std::optional<cl::Program> from_binary(const std::string& binary, const std::string& options) {
    try {
      cl::Program program(context, {device}, cl::Program::Binaries{{binary.begin(), binary.end()}});
      program.build({device}, options.c_str());
      return program;
    } catch (const cl::Error&) {
      return std::nullopt;
    }
  }

  void keep(const cl::Program& program, const std::string& disk_key) {
    try {
      // A wrapped context's program may list several devices; ours is found by its id.
      const auto devices = program.getInfo<CL_PROGRAM_DEVICES>();
      const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
      for (std::size_t i = 0; i < devices.size() && i < binaries.size(); ++i) {
        if (devices[i]() == device() && !binaries[i].empty()) {
          disk->store(disk_key, {reinterpret_cast<const char*>(binaries[i].data()), binaries[i].size()});
        }
      }
    } catch (const cl::Error& error) {
      logging::print(logging::Level::plan, "program not kept on disk: {} from {}", error_name(error.err()), error.what());
    }
  }
};

ProgramCache::ProgramCache(cl::Context context, cl::Device device, const DeviceInfo& info) : state_(std::make_unique<State>()) {
  state_->context = std::move(context);
  state_->device = std::move(device);
  state_->info = info;
  state_->device_key = fmt::format("platform: {}\ndevice: {}\nversion: {}\ndriver: {}\n", info.platform, info.name,
                                   info.device_version, info.driver_version);
  if (has_quirk(info, "local-memory-aborts")) state_->local_memory = info.local_memory;
  state_->disk = disk_cache(info);
}

ProgramCache::~ProgramCache() = default;

cl::Kernel ProgramCache::kernel(const ProgramSource& program, const std::string& function) {
  const cl::Program built = state_->program(program, key_of(program));
  const std::string what = fmt::format("kernel {} of program {}", function, program.name);
  cl::Kernel kernel = checked(what, [&] { return cl::Kernel(built, function.c_str()); });
  if (state_->local_memory) {
    const auto used = checked(what, [&] { return kernel.getWorkGroupInfo<CL_KERNEL_LOCAL_MEM_SIZE>(state_->device); });
    if (used > state_->local_memory) {
      throw Unsupported(fmt::format("{} uses {} bytes of local memory, the device has {}", what, used, state_->local_memory));
    }
  }
  return kernel;
}

void ProgramCache::prepare(const ProgramSource& program) { state_->program(program, key_of(program)); }

bool ProgramCache::has(const ProgramSource& program) const {
  const auto key = key_of(program);
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->entries.find(key);
  return found != state_->entries.end() && found->second.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void ProgramCache::foresee(const ProgramSource& program) {
  auto key = key_of(program);
  const std::lock_guard lock(state_->mutex);
  if (!state_->entries.contains(key)) state_->foreseen.emplace(std::move(key), program);
}

std::vector<ProgramSource> ProgramCache::foreseen() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ProgramSource> result;
  for (const auto& [key, program] : state_->foreseen) result.push_back(program);
  return result;
}

std::uint64_t ProgramCache::unforeseen() const { return state_->unforeseen; }
std::uint64_t ProgramCache::built() const { return state_->built; }
std::uint64_t ProgramCache::loaded() const { return state_->loaded; }

}  // namespace clnet::ocl
