// clnet-info --self-test: what is broken is named, kept, and not used from then on. And --report: what others are sent.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "clnet/device.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet::test;
namespace fs = std::filesystem;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the self-test names a solver that is wrong, and the library avoids it afterwards") {
  const clnet::test::Folder folder;
  fs::create_directory(folder / "kernels");
  const auto good = content(fs::path(CLNET_SOURCE_DIR) / "kernels/norm/softmax_direct.cl");
  const std::vector<std::string> environment{"CLNET_CACHE_DIR=" + (folder / "cache").string(),
                                             "CLNET_KERNEL_DIR=" + (folder / "kernels").string(), "CLNET_DEBUG=3"};
  const auto self_test = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), {CLNET_INFO, "--self-test", "--only", "softmax", "--json"});
    auto outcome = Process(folder.path(), more, environment).wait();
    INFO(outcome.err);
    REQUIRE(outcome.code <= 1);
    return std::pair(outcome.code, nlohmann::json::parse(outcome.out));
  };

  // Every device has the solver for GPUs.
  const auto source = content(fs::path(CLNET_SOURCE_DIR) / "kernels/norm/softmax_gpu.cl");
  const auto first_store = source.find("STORE");
  REQUIRE(first_store != std::string::npos);
  folder.write("kernels/softmax_gpu.cl",
               replaced(source, source.substr(first_store, source.find(';', first_store) - first_store), "(void)0"));
  const auto [code, report] = self_test();
  CHECK(code == 1);
  REQUIRE(report["broken"].size() >= 1);
  std::set<std::string> named;
  for (const auto& fault : report["broken"]) named.insert(fault["what"].get<std::string>());
  CHECK(named.contains("softmax:gpu"));
  CHECK_FALSE(named.contains("softmax:direct"));
  REQUIRE(fs::exists(report["file"].get<std::string>()));

  const auto listed = Process(folder.path(), {CLNET_INFO}, environment).wait();
  CHECK(listed.out.find("softmax:gpu") != std::string::npos);

  // A good kernel is another state of the kernels; nothing is wrong with it.
  folder.write("kernels/softmax_gpu.cl", source);
  CHECK(Process(folder.path(), {CLNET_INFO}, environment).wait().out.find("softmax:gpu") == std::string::npos);
  const auto [good_code, good_report] = self_test();
  CHECK(good_code == 0);
  CHECK(good_report["broken"].empty());
}

TEST_CASE("the self-test survives a solver that ends the process or does not build") {
  const clnet::test::Folder folder;
  fs::create_directory(folder / "kernels");
  folder.write("kernels/softmax_gpu.cl", "this is no kernel");
  const auto outcome =
      Process(folder.path(), {CLNET_INFO, "--self-test", "--only", "softmax"},
              {"CLNET_CACHE_DIR=" + (folder / "cache").string(), "CLNET_KERNEL_DIR=" + (folder / "kernels").string()})
          .wait();
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("BROKEN   softmax:gpu") != std::string::npos);
}

TEST_CASE("the self-test never tries a solver again that has ended the process, not even to measure it") {
  const clnet::test::Folder folder;
  fs::create_directory(folder / "kernels");
  const auto source = content(fs::path(CLNET_SOURCE_DIR) / "kernels/norm/softmax_gpu.cl");
  const auto first_store = source.find("STORE");
  REQUIRE(first_store != std::string::npos);
  folder.write("kernels/softmax_gpu.cl", replaced(source, source.substr(first_store, source.find(';', first_store) - first_store),
                                                  "*(volatile global int *)16 = 1"));
  // Also when several processes try it at a time.
  const auto outcome =
      Process(folder.path(), {CLNET_INFO, "--self-test", "--only", "softmax", "--json", "--jobs", "3"},
              {"CLNET_CACHE_DIR=" + (folder / "cache").string(), "CLNET_KERNEL_DIR=" + (folder / "kernels").string()})
          .wait();
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 1);
  const auto report = nlohmann::json::parse(outcome.out);
  REQUIRE(!report["broken"].empty());
  CHECK(report["broken"][0]["what"] == "softmax:gpu");
  if (clnet::Device::current().info().type != clnet::DeviceType::gpu) {
    CHECK(report["broken"].size() == 1);
    CHECK(report["broken"][0]["reason"].get<std::string>().find("crashes the process") != std::string::npos);
  }
  // A GPU's fault ends its context and not the process; what else is broken there is the choice that no solver is named in.
  for (const auto& broken : report["broken"]) {
    const auto what = broken["what"].get<std::string>();
    INFO(what);
    CHECK((what == "softmax:gpu" || what.find(" by ") == std::string::npos));
    CHECK(what.find("softmax:direct") == std::string::npos);
  }
}

TEST_CASE("the self-test reports all that it found when its processes end between checks") {
  const clnet::test::Folder folder;
  const auto run = [&](int checks) {
    return Process(folder.path(), {CLNET_INFO, "--self-test", "--only", "softmax", "--json", "--jobs", "1"},
                   {"CLNET_CACHE_DIR=" + (folder / "cache").string(), std::string("LD_PRELOAD=") + PROCESS_ENDING,
                    "END_AFTER=" + std::to_string(checks)})
        .wait();
  };
  const auto outcome = run(3);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 1);
  const auto report = nlohmann::json::parse(outcome.out);
  REQUIRE(report["checks"] >= 6);
  CHECK(report["broken"].size() == (report["checks"].get<std::size_t>() - 1) / 3);  // nobody misses one after the last check
  for (const auto& fault : report["broken"]) {
    CHECK(fault["what"].get<std::string>().starts_with("after "));
    CHECK(fault["reason"].get<std::string>().find("Killed") != std::string::npos);
  }
  // One that cannot be killed is left behind.
  const auto staying = Process(folder.path(), {CLNET_INFO, "--self-test", "--only", "softmax", "--json", "--jobs", "1"},
                               {"CLNET_CACHE_DIR=" + (folder / "cache").string(), std::string("LD_PRELOAD=") + PROCESS_ENDING,
                                "END_AFTER=" + std::to_string(report["checks"].get<int>() - 1), "END_STAYS=1"})
                           .wait();
  INFO(staying.out << staying.err);
  REQUIRE(staying.code == 1);
  const auto last = nlohmann::json::parse(staying.out);
  CHECK(last["run"] == last["checks"]);
  REQUIRE(last["broken"].size() == 1);
  CHECK(last["broken"][0]["reason"] == "does not end, and cannot be killed");
  const auto never = run(0);
  CHECK(never.code == 3);
  CHECK(never.err.find("before a check has begun") != std::string::npos);
}

TEST_CASE("the self-test runs every check once, however many processes run them") {
  const clnet::test::Folder folder;
  const std::vector<std::string> environment{"CLNET_CACHE_DIR=" + (folder / "cache").string()};
  const auto checks = [&](const std::string& jobs) {
    const auto outcome =
        Process(folder.path(), {CLNET_INFO, "--self-test", "--only", "softmax", "--json", "--jobs", jobs}, environment).wait();
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    const auto report = nlohmann::json::parse(outcome.out);
    CHECK(report["run"] == report["checks"]);
    CHECK(report["processes"] == std::stoi(jobs));
    return report["checks"].get<int>();
  };
  CHECK(checks("1") == checks("3"));
  const auto outcome =
      Process(folder.path(), {"/bin/sh", "-c", "exec \"$0\" --self-test --only softmax <&-", CLNET_INFO}, environment).wait();
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("the self-test refuses what makes no sense, and tells what it cannot keep") {
  const clnet::test::Folder folder;
  const auto code = [&](std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.begin(), CLNET_INFO);
    const auto outcome = Process(folder.path(), arguments, environment).wait();
    CHECK_FALSE(outcome.err.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    return outcome.code;
  };
  CHECK(code({"--full"}) == 2);
  CHECK(code({"--self-test", "--full", "--quick"}) == 2);
  CHECK(code({"--jobs", "2"}) == 2);
  CHECK(code({"--device", "cpu"}) == 2);
  CHECK(code({"--report", "file", "--self-test"}) == 2);
  CHECK(code({"--report", "file", "--device", "no such device"}) == 1);
  CHECK(code({"--report", (folder / "nowhere/file").string()},
             {std::string("OCL_ICD_VENDORS=") + NULL_ICD, "NULL_OPENCL_DEVICE=h200"}) == 1);
  CHECK(code({"--self-test", "--jobs", "0"}) == 2);
  CHECK(code({"--self-test", "--only", "cooking"}) == 3);
  CHECK(code({"--self-test", "--device", "no such device"}) == 3);
  CHECK(code({"--self-test"}, {"OCL_ICD_VENDORS=/nonexistent"}) == 3);
  folder.write("file", "");
  CHECK(code({"--self-test", "--only", "index_add"}, {"CLNET_CACHE_DIR=" + (folder / "file/cache").string()}) == 3);
}

TEST_CASE("a report tells device, self-test and ten times, and nothing of who sends it") {
  const clnet::test::Folder folder;
  const auto outcome = Process(folder.path(), {CLNET_INFO, "--report", "report.json"},
                               {std::string("OCL_ICD_VENDORS=") + NULL_ICD, "NULL_OPENCL_DEVICE=h200",
                                "CLNET_CACHE_DIR=" + (folder / "cache").string()})
                           .wait();
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  const auto text = content(folder / "report.json");
  CHECK(text.find(folder.path().string()) == std::string::npos);
  const auto report = nlohmann::json::parse(text);
  CHECK(report["report"] == 1);
  CHECK(report["complete"] == true);
  CHECK(report["device"]["name"] == "NVIDIA H200");
  CHECK(report["variables"][0] == "CLNET_CACHE_DIR");
  CHECK(report["self_test"]["run"] == report["self_test"]["checks"]);
  // The null driver computes nothing.
  CHECK(report["self_test"]["broken"].size() > 10);
  CHECK(report["bench"]["gflops_in_registers"] > 0);
  REQUIRE(report["bench"]["items"].size() == 10);
  for (const auto& item : report["bench"]["items"]) {
    INFO(item.dump());
    CHECK(item.value("median_ms", 0.0) > 0);
  }
}

TEST_CASE("a report is complete where an item ends its process") {
  const clnet::test::Folder folder;
  const auto outcome = Process(folder.path(), {CLNET_INFO, "--report", "report.json"},
                               {std::string("OCL_ICD_VENDORS=") + NULL_ICD, "NULL_OPENCL_DEVICE=h200",
                                "CLNET_CACHE_DIR=" + (folder / "cache").string(), std::string("LD_PRELOAD=") + OPENCL_FAULTS,
                                "FAULT_ABORT=gelu_erf_elementwise"})
                           .wait();
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  const auto report = nlohmann::json::parse(content(folder / "report.json"));
  CHECK(report["complete"] == true);
  REQUIRE(report["bench"]["items"].size() == 10);
  for (const auto& item : report["bench"]["items"]) {
    INFO(item.dump());
    CHECK(item.contains("median_ms") == (item["name"] != "elementwise-gelu-1m"));
    if (item.contains("error")) CHECK(item["error"] == "ended the process: Aborted");
  }
}

TEST_CASE("clnet-info's lines fit on a screen, and an unknown option is named") {
  const clnet::test::Folder folder;
  const auto listed = Process(folder.path(), {CLNET_INFO}).wait();
  INFO(listed.out);
  CHECK(listed.code == 0);
  std::istringstream lines(listed.out);
  std::string before;
  bool continued = false;
  for (std::string line; std::getline(lines, line); before = line) {
    CHECK(line.size() <= 122);
    continued = continued || (before.starts_with("     quirk") && line.starts_with(std::string(22, ' ')));
  }
  if (listed.out.find("pocl-affinity") != std::string::npos) CHECK(continued);
  const auto refused = Process(folder.path(), {CLNET_INFO, "--jsn"}).wait();
  CHECK(refused.code == 2);
  CHECK(refused.err == "clnet-info: there is no option --jsn; did you mean --json? (see --help)\n");
}

TEST_CASE("clnet-info refuses empty names, and says why there may be no device") {
  const clnet::test::Folder folder;
  const auto refused = Process(folder.path(), {CLNET_INFO, "--report", ""}).wait();
  CHECK(refused.code == 2);
  CHECK(refused.err == "clnet-info: --report: the name is empty (see --help)\n");
  folder.write("file", "");
  for (const auto& [cache, text] :
       {std::pair{"file/pocl", "; PoCL has none where its cache folder cannot be made: "},
        std::pair{"pocl", "no OpenCL device found: install a driver, such as the package pocl-opencl-icd for CPUs\n"}}) {
    const std::vector<std::string> environment{"OCL_ICD_VENDORS=/nonexistent", "POCL_CACHE_DIR=" + (folder / cache).string()};
    for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--report", "report.json"}}) {
      auto command = options;
      command.insert(command.begin(), CLNET_INFO);
      const auto outcome = Process(folder.path(), command, environment).wait();
      CHECK(outcome.code == 1);
      CHECK_THAT(outcome.err, Catch::StartsWith("clnet-info: no OpenCL device found") && Catch::Contains(text));
    }
  }
}

TEST_CASE("A cache of PoCL's that is a file is named before anything is compiled") {
  if (clnet::Device::current().info().platform != "Portable Computing Language") return;
  const clnet::test::Folder folder;
  folder.write("file", "");
  const auto file = (folder / "file").string();
  const auto outcome = Process(folder.path(), {CLNET_INFO, "--prepare", "cnn"}, {"POCL_CACHE_DIR=" + file}).wait();
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Catch::Contains("its cache folder " + file + " is no folder (POCL_CACHE_DIR)\n"));
}
