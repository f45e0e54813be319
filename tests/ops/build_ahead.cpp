#include "lib/pocl/build_ahead.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clnet/error.h"
#include "clnet/kernel.h"
#include "clnet/tensor.h"
#include "lib/cl/context.h"
#include "lib/pocl/notes.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;
using namespace clnet::pocl;
namespace fs = std::filesystem;

namespace {

/// A kernel that nobody compiled before.
KernelToBuild fresh(const std::string& name, const std::string& body) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return {{name,
           "kernel void " + name + "(global int* x, const ulong at, const int by, const float f, local int* l) { " + body + " }",
           {{"STAMP", std::to_string(now)}},
           true},
          name,
          {1},
          {KernelToBuild::Buffer{64}, std::uint64_t{3}, std::int32_t{2}, 0.5F, KernelToBuild::Local{16}}};
}

std::vector<KernelToBuild> several() {
  std::vector<KernelToBuild> kernels;
  for (const char* name : {"one", "two", "three", "four", "five"})
    kernels.push_back(fresh(name, "x[at] = (int)(STAMP) / by + (int)f;"));
  return kernels;
}

/// A folder that stands for the driver's, so that the notes in it are this test's. What is compiled goes to the driver's own.
struct Processes : BuildProcesses {
  explicit Processes(const DeviceInfo& device) : BuildProcesses(build_processes(device)) {
    count = 2;
    apart = false;
    folder = notes.path();
  }
  fs::path file() const { return fs::path(folder) / "clnet-kernels"; }
  /// How many kernels are noted.
  int noted() const {
    std::ifstream notes_file(file());
    int lines = 0;
    for (std::string line; std::getline(notes_file, line);) lines += line == "clnet kernels 1" ? 0 : 1;
    return lines;
  }
  test::Folder notes;
};

fs::path script(const test::Folder& folder, const std::string& text) {
  const auto path = fs::path(folder.path()) / "script";
  std::ofstream(path) << "#!/bin/sh\n" << text << '\n';
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

/// What a kernel of the name "one" writes at its place 3 by 1 and 7.
std::int32_t value_of(const KernelToBuild& built) {
  const auto context = context_of(Device::current());
  const BufferPtr out = context->memory().allocate(64, "out");
  context->fill(*out, 0, out->bytes(), 0);
  cl::Kernel kernel = context->programs().kernel(built.program, "one");
  kernel.setArg(0, out->memory());
  kernel.setArg(1, cl_ulong{3});
  kernel.setArg(2, cl_int{1});
  kernel.setArg(3, 7.0F);
  kernel.setArg(4, 16, nullptr);
  context->launch(kernel, cl::NDRange(1), cl::NDRange(1), {"one", "", 4, 0});
  std::int32_t value = 0;
  context->read(*out, 12, &value, 4);
  return value;
}

bool is_built(const DeviceInfo& device, const std::vector<KernelToBuild>& kernels, const BuildProcesses& processes) {
  const auto all = noted(device, kernels, processes);
  return std::all_of(all.begin(), all.end(), [](Noted end) { return end == Noted::compiled; });
}

/// Whether it is done within the time that a busy machine takes.
bool ends(const BuildBeside& beside) {
  const auto begun = std::chrono::steady_clock::now();
  while (!beside.done() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(120))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return beside.done();
}

}  // namespace

TEST_CASE("building ahead: each kernel once, whatever becomes of the others") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  REQUIRE(fs::exists(processes.program));

  auto kernels = several();
  CHECK(build_ahead(device, kernels, processes) == 5);
  CHECK(build_ahead(device, kernels, processes) == 0);
  // In a new process the file tells.
  CHECK(processes.noted() == 5);

  kernels = several();
  kernels.push_back(fresh("wrong", "this is no kernel"));
  kernels.push_back(fresh("crash", "*(global int*)(ulong)by = 1;"));
  kernels.push_back(kernels.front());
  CHECK(build_ahead(device, kernels, processes) == 5);
  // Who fails does so once.
  CHECK(processes.noted() == 12);

  kernels.resize(3);
  for (auto& kernel : kernels) kernel.program.defines["OTHER"] = "1";
  CHECK(build_ahead(device, kernels, processes) == 0);
}

TEST_CASE("building ahead: each program is told once, with the last of its kernels") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  auto kernels = several();
  kernels.push_back(kernels.front());
  kernels.back().local = {2};
  std::vector<std::string> told;
  const auto built = [&](const ProgramSource& program) { told.push_back(program.name); };
  CHECK(build_ahead(device, kernels, processes, {}, built) == 6);
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<std::string>{"five", "four", "one", "three", "two"});
  told.clear();
  CHECK(build_ahead(device, kernels, processes, {}, built) == 0);
  CHECK(told.empty());
}

TEST_CASE("building ahead: what it compiled is what runs") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  auto kernels = several();
  REQUIRE(build_ahead(device, kernels, processes) == 5);

  const auto stamp = static_cast<std::int32_t>(std::stoll(kernels[0].program.defines["STAMP"]));
  CHECK(value_of(kernels[0]) == static_cast<std::int32_t>(static_cast<std::uint32_t>(stamp) + 7U));
}

TEST_CASE("building ahead: kernels that need a library of the system are linked with it") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  auto kernels = several();
  // Compilers fill the array by memset().
  kernels[0] = fresh("one", "int many[500] = {0}; many[by] = 6; many[(int)at] += 1; x[at] = many[by] + many[3] + many[(int)f];");
  CHECK(build_ahead(device, kernels, processes) == 5);
  CHECK(value_of(kernels[0]) == 7);
}

TEST_CASE("building ahead: processes that fail or hang cost time only") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  const auto kernels = several();
  processes.program = "/nonexistent/clnet-build-kernels";
  CHECK(build_ahead(device, kernels, processes) == 0);
  const test::Folder folder;
  processes.program = script(folder, "exit 3").string();
  CHECK(build_ahead(device, kernels, processes) == 0);
  processes.program = script(folder, "printf abcd >&5").string();
  CHECK(build_ahead(device, kernels, processes) == 0);
  processes.program = script(folder, "exec sleep 100").string();
  processes.patience = std::chrono::seconds(1);
  const auto start = std::chrono::steady_clock::now();
  CHECK(build_ahead(device, kernels, processes) == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  // One that began a kernel and hangs, or crashes, does so once.
  processes.program = script(folder, R"([ $3 = 0 ] && printf '\000\001\000\000' >&5; exec sleep 100)").string();
  CHECK(build_ahead(device, kernels, processes) == 0);
  CHECK(processes.noted() == 1);
  processes.program =
      script(folder, R"([ $3 = 0 ] && printf '\000\000\000\000\001\000\000\000\000\001\000\000' >&5; exit 3)").string();
  CHECK(build_ahead(device, kernels, processes) == 1);
  CHECK(processes.noted() == 3);
  const auto ends = noted(device, kernels, processes);
  CHECK(std::count(ends.begin(), ends.end(), Noted::compiled) == 1);
  CHECK(std::count(ends.begin(), ends.end(), Noted::failed) == 1);
  CHECK(std::count(ends.begin(), ends.end(), Noted::crashed) == 1);
  CHECK(std::count(ends.begin(), ends.end(), Noted::nothing) == 2);
  // A folder that takes no notes.
  Processes silent(device);
  silent.folder = "/proc/none";
  CHECK(build_ahead(device, several(), silent) == 5);
}

TEST_CASE("building ahead: only a process that ended by a fault of its own has crashed") {
  const auto device = Device::current().info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  const auto end_of = [&](const std::string& end) {
    const test::Folder folder;
    Processes processes(device);
    processes.program = script(folder, R"([ $3 = 1 ] && printf '\004\000\000\000' >&5; )" + end).string();
    const auto kernels = several();
    build_ahead(device, kernels, processes);
    const auto ends = noted(device, kernels, processes);
    REQUIRE(std::count(ends.begin(), ends.end(), Noted::nothing) == 4);
    return *std::find_if(ends.begin(), ends.end(), [](Noted noted) { return noted != Noted::nothing; });
  };
  CHECK(end_of("kill -ABRT $$") == Noted::crashed);
  CHECK(end_of("kill -SEGV $$") == Noted::crashed);
  CHECK(end_of("exit 1") == Noted::crashed);
  CHECK(end_of("kill -KILL $$") == Noted::failed);
  CHECK(end_of("kill -INT $$") == Noted::failed);
  // Of the other process it is no fault.
  CHECK(end_of("[ $3 = 1 ] && exit 0; exit 1") == Noted::failed);
}

TEST_CASE("building ahead: apart, each kernel is tried, however few there are and whatever crashes before") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  processes.apart = true;
  processes.count = 1;
  const auto program = processes.program;
  const auto two = [] {
    std::vector<KernelToBuild> kernels{fresh("one", "x[at] = by;"), fresh("two", "x[at] = 2 * by;")};
    kernels[0].program.source += kernels[1].program.source;
    kernels[1].program = kernels[0].program;
    return kernels;
  };
  // So many processes end over the first kernel of them that they are given.
  const auto crashing = [&](const test::Folder& folder, int times) {
    return script(folder, "echo >>\"$0.starts\"; [ $(wc -l <\"$0.starts\") -le " + std::to_string(times) + " ] || exec " +
                              program + R"( "$@"; printf '\000\000\000\000' >&5; kill -ABRT $$)")
        .string();
  };
  {
    const test::Folder folder;
    processes.program = crashing(folder, 1);
    const auto kernels = two();
    // A process may end for other reasons: nothing is noted of the first time.
    CHECK(build_ahead(device, kernels, processes) == 2);
    CHECK(noted(device, kernels, processes) == std::vector{Noted::compiled, Noted::compiled});
  }
  const test::Folder folder;
  processes.program = crashing(folder, 2);
  const auto kernels = two();
  CHECK(build_ahead(device, kernels, processes) == 1);
  CHECK(noted(device, kernels, processes) == std::vector{Noted::crashed, Noted::compiled});
  CHECK(build_ahead(device, kernels, processes) == 0);
  CHECK(processes.noted() == 4);
}

TEST_CASE("building ahead: apart, processes wait for the next plan, and are made anew where one has ended") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  processes.apart = true;
  processes.count = 1;
  const test::Folder folder;
  const auto starts = folder / "starts";
  processes.program = script(folder, "echo $$ >>" + starts.string() + "; exec " + processes.program + " \"$@\"").string();
  const auto started = [&] {
    std::ifstream file(starts);
    std::vector<pid_t> result;
    for (pid_t process = 0; file >> process;) result.push_back(process);
    return result;
  };
  for (int plan = 0; plan < 3; ++plan) CHECK(build_ahead(device, several(), processes) == 5);
  REQUIRE(started().size() == 1);
  // Somebody ends it while it waits.
  REQUIRE(::kill(started()[0], SIGKILL) == 0);
  CHECK(build_ahead(device, several(), processes) == 5);
  CHECK(started().size() == 2);
  // One that is needed for more makes room for two.
  processes.count = 2;
  CHECK(build_ahead(device, several(), processes) == 5);
  CHECK(started().size() == 4);
  CHECK(build_ahead(device, several(), processes) == 5);
  CHECK(started().size() == 4);
  CHECK(processes.noted() == 30);
}

TEST_CASE("building ahead: what is compiled with other flags of the driver's is noted apart") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  const auto kernels = several();
  CHECK(build_ahead(device, kernels, processes) == 5);
  const test::Variable flags("POCL_EXTRA_BUILD_FLAGS", "-DOTHER");
  CHECK(noted(device, kernels, processes) == std::vector<Noted>(5, Noted::nothing));
}

TEST_CASE("building ahead: apart needs a place for its notes, the driver's or clnet's") {
  const auto device = Device::current().info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  const test::Folder own;
  const test::Variable apart("CLNET_COMPILE_APART", "1"), count("CLNET_BUILD_PROCESSES", "1");
  CHECK(build_processes(device).apart);
  const test::Variable pocl("POCL_KERNEL_CACHE", "0"), cache("CLNET_CACHE_DIR", (own / "new").c_str());
  const auto here = build_processes(device);
  CHECK(here.apart);
  CHECK(notes_file(here) == (own / "new/clnet-kernels").string());
  const test::Variable nowhere("CLNET_CACHE_DIR", "/proc/none");
  CHECK_FALSE(build_processes(device).apart);
  const test::Variable off("CLNET_COMPILE_APART", "0");
  CHECK_FALSE(build_processes(device).apart);
}

TEST_CASE("building ahead: who asked hears how far it has come, and may end it") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  std::vector<std::size_t> told;
  CHECK(build_ahead(device, several(), processes, [&](std::size_t done) { told.push_back(done); }) == 5);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.front() == 0);
  CHECK(told.back() >= 4);
  const test::Folder folder;
  processes.program = script(folder, "exec sleep 100").string();
  const auto start = std::chrono::steady_clock::now();
  const auto ends = [&](std::size_t) {
    if (std::chrono::steady_clock::now() - start > std::chrono::milliseconds(300)) throw Error("enough");
  };
  CHECK_THROWS_WITH(build_ahead(device, several(), processes, ends), "enough");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
  CHECK(processes.noted() == 5);
}

TEST_CASE("building ahead: the end of the processes is seen, whoever holds their pipe or waits for them") {
  const auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  const test::Folder folder;
  Processes held(device);
  held.program = script(folder, "sleep 20 & exit 0").string();
  const auto start = std::chrono::steady_clock::now();
  CHECK(build_ahead(device, several(), held) == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  CHECK(build_ahead(device, several(), processes) == 5);
  std::signal(SIGCHLD, before);
}

TEST_CASE("building ahead: what is no file of notes, or has grown too large, begins anew") {
  const auto device = Device::current().info();
  Processes pipe(device), large(device);
  if (pipe.program.empty()) return test::skip("a driver that compiles several kernels at once");
  REQUIRE(::mkfifo(pipe.file().c_str(), 0600) == 0);
  CHECK(build_ahead(device, several(), pipe) == 5);
  CHECK(pipe.noted() == 5);
  std::ofstream(large.file()) << "a line\n";
  fs::resize_file(large.file(), std::uintmax_t{1} << 32);
  CHECK(build_ahead(device, several(), large) == 5);
  CHECK(large.noted() == 5);
}

TEST_CASE("building ahead: not for a device that stands elsewhere") {
  auto device = Device::current().info();
  Processes processes(device);
  if (processes.program.empty()) return test::skip("a driver that compiles several kernels at once");
  device.name = "a wrapped one";
  CHECK(build_ahead(device, several(), processes) == 0);
  CHECK(processes.noted() == 0);
}

TEST_CASE("building ahead: users' kernels run on their own data only, also where they are compiled apart") {
  const auto device = Device::current().info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  const test::Variable count("CLNET_BUILD_PROCESSES", "2"), apart("CLNET_COMPILE_APART", GENERATE("0", "1"));
  const auto stamp = std::to_string(std::chrono::steady_clock::now().time_since_epoch().count() % 1000000);
  const auto x = Tensor::from<std::int32_t>({27, 97});
  std::vector<Tensor> steps;
  for (int i = 0; i < 5; ++i) {
    const auto name = "collatz" + std::to_string(i);
    const Kernel kernel(name, "kernel void " + name + "(IN(x), OUT(y)) { int steps = " + stamp +
                                  "; for (long v = LOAD(x, get_global_id(0)); v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++steps; " +
                                  "STORE(y, get_global_id(0), steps); }");
    steps.push_back(kernel.range({2}, {2})(x));
  }
  const auto start = std::chrono::steady_clock::now();
  eval(steps);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(steps[4].to_vector<std::int32_t>()[0] == std::stoi(stamp) + 111);
}

TEST_CASE("kernels are compiled beside the program") {
  auto context = context_of(Device::current());
  const auto& device = context->info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  const Processes processes(device);
  const auto kernels = several();
  CHECK_FALSE(is_built(device, kernels, processes));
  {
    const BuildBeside beside(device, kernels, processes);
    CHECK(ends(beside));
  }
  CHECK(is_built(device, kernels, processes));
  CHECK(processes.noted() == 5);
  auto others = several();
  others.push_back(fresh("crash", "*(global int*)(ulong)by = 1;"));
  {
    const BuildBeside beside(device, others, processes);
    CHECK(ends(beside));
  }
  CHECK_FALSE(is_built(device, others, processes));
  CHECK(processes.noted() > 5);
}

TEST_CASE("one process at a time compiles beside the program") {
  auto context = context_of(Device::current());
  const auto& device = context->info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  Processes processes(device);
  const test::Folder folder;
  const auto one = (folder / "one").string(), two = (folder / "two").string();
  processes.program = script(folder, "mkdir " + one + " || touch " + two + "; sleep 0.3; rmdir " + one).string();
  std::vector<std::unique_ptr<BuildBeside>> all;
  for (int k = 0; k < 3; ++k) all.push_back(std::make_unique<BuildBeside>(device, several(), processes));
  CHECK(std::all_of(all.begin(), all.end(), [](const auto& beside) { return ends(*beside); }));
  CHECK_FALSE(fs::exists(two));
}

TEST_CASE("what nobody waits for is compiled at the lowest priority") {
  auto context = context_of(Device::current());
  const auto& device = context->info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  Processes processes(device);
  const test::Folder folder;
  const auto told = (folder / "nice").string();
  processes.program = script(folder, "sleep 0.3; nice > " + told).string();
  processes.idle = true;
  {
    const BuildBeside beside(device, several(), processes);
    CHECK(ends(beside));
  }
  int nice = 0;
  std::ifstream(told) >> nice;
  CHECK(nice == 19);
}

TEST_CASE("what is compiled beside the program ends with whoever asked for it") {
  auto context = context_of(Device::current());
  const auto& device = context->info();
  if (build_processes(device).program.empty()) return test::skip("a driver that compiles several kernels at once");
  Processes processes(device);
  const test::Folder folder;
  processes.program = script(folder, "exec sleep 100").string();
  const auto begun = std::chrono::steady_clock::now();
  { const BuildBeside beside(device, several(), processes); }
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));
  CHECK(processes.noted() == 0);
}
