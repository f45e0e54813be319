// Kernels as functions: which names of a text are its own, and what is put where.
#include "lib/cl/kernel_function.h"

#include <catch2/catch.hpp>
#include <regex>

#include "lib/cl/kernel_source.h"

using namespace clnet::ocl;
using Catch::Contains;

namespace {

std::string of(const std::string& text, std::size_t part = 3) { return functions_of({"p", text, {}, true}, part); }

}  // namespace

TEST_CASE("a kernel takes its place as the last parameters, after what macros add") {
  const auto text = of("__attribute__((reqd_work_group_size(1, 1, 1))) kernel void twice(IN(x), OUT(y) MORE) {\n  f(g(1));\n}\n");
  CHECK_THAT(text, Contains("kernel void twice(IN(x), OUT(y) MORE CLNET_PLACE_PARAMETERS) {\n  f(g(1));\n}\n"));
  CHECK_THAT(text, Contains("#define twice twice_of_3\n") && Contains("#undef twice\n"));
  CHECK_THAT(text, !Contains("#define reqd_work_group_size") && !Contains("define IN") && !Contains("define f "));
  CHECK(function_name("twice", 3) == "twice_of_3");
}

TEST_CASE("functions, types and constants of a text are its own, and macros end with it") {
  const auto text =
      of("#define SIZE 4  // not { this\n"
         "#  define LONG(x) \\\n  ((x) {\n"
         "typedef float vector __attribute__((ext_vector_type(4)));\n"
         "typedef struct { int inner; } pair_type;\n"
         "constant int table[SIZE] = {1, 2, 3, 4};\n"
         "/* void old(int a) { */\n"
         "static inline float helper(const float a);\n"
         "INLINE float helper(const float a)\n{ if (a > 0) { return table[0]; } return 1.0f; }\n"
         "kernel WIDE void k(global float *x)\n{\n  for (;;) { x[0] = helper(SIZE); }\n}\n");
  for (const char* name : {"vector", "pair_type", "table", "helper", "k"}) {
    CHECK_THAT(text, Contains(std::string("#define ") + name + " " + name + "_of_3\n"));
    CHECK_THAT(text, Contains(std::string("#undef ") + name + "\n"));
  }
  for (const char* name : {"SIZE", "LONG"}) CHECK_THAT(text, Contains(std::string("#undef ") + name + "\n"));
  for (const char* name : {"old", "inner", "a", "INLINE", "x", "float"})
    CHECK_THAT(text, !Contains(std::string("#define ") + name + " "));
  CHECK_THAT(text, Contains("void k(global float *x CLNET_PLACE_PARAMETERS)\n{"));
  CHECK_THAT(text, !Contains("helper(const float a CLNET"));
}

TEST_CASE("defines stand within the part") {
  const auto text = functions_of({"p", "kernel void k(global float *x) { x[0] = N; }", {{"N", "2"}}, true}, 0);
  CHECK_THAT(text, Contains("#define N 2\n") && Contains("#undef N\n"));
}

TEST_CASE("kernels of work-items that meet, and users' own, stay kernels") {
  const auto may = [](const std::string& body, bool few) {
    return may_be_function({"p", "kernel void k(global float *x) { " + body + " }", {}, few});
  };
  CHECK(may("x[get_global_id(0)] = 1;", true));
  CHECK_FALSE(may("x[get_global_id(0)] = 1;", false));
  CHECK_FALSE(may("x[get_local_id(0)] = 1;", true));
  CHECK_FALSE(may("barrier(CLK_LOCAL_MEM_FENCE);", true));
}

TEST_CASE("a text whose macros define functions stays as it is, unless the functions' names stand there") {
  const auto may = [](const std::string& text) {
    return may_be_function({"p", text + "kernel void k(global float *x) { x[0] = f(x[0]); }\n", {}, true});
  };
  const std::string macro = "#define OF(space) static float f(const float a) { return a; }\n";
  CHECK_FALSE(may(macro + "OF(global)\n"));
  CHECK_FALSE(may("constant int one = 1;\n" + macro + "OF(global)\n"));
  CHECK(may("#define FUNCTION static inline float\nFUNCTION f(const float a) { return a; }\n"));
  CHECK(may("#define ALWAYS __attribute__((always_inline))\n#define T(x) float\nstatic ALWAYS T(x) f(T(x) a) { return a; }\n"));
}

TEST_CASE("of each file, all kernels are found where they may be functions") {
  const std::regex kernel("(?:^|\n)kernel [^\n;{]*void (\\w+)\\(");
  std::size_t found = 0;
  for (const auto& file : embedded_files()) {
    if (!file.name.ends_with(".cl")) continue;
    const ProgramSource program{std::string(file.name.substr(0, file.name.size() - 3)), {}, {}, true};
    if (!may_be_function(program)) continue;
    const auto text = functions_of(program, 7);
    for (std::cregex_iterator at(file.text.data(), file.text.data() + file.text.size(), kernel), end; at != end; ++at) {
      INFO(file.name);
      CHECK_THAT(text, Contains("#define " + (*at)[1].str() + " " + (*at)[1].str() + "_of_7\n"));
      ++found;
    }
  }
  CHECK(found > 100);
}
