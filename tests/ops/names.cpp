// Layers without a name, and layers with several: mistakes that compile, run, and train something else.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "tests/support/captured.h"

using namespace clnet;
using Catch::Matchers::Contains;
using clnet::test::written_on_stderr;

namespace {

const Tensor& some() {
  static const Tensor x = ones({2, 4});
  return x;
}

struct Forgetful : nn::Module {
  nn::Linear a{4, 4}, b{4, 4};
  Forgetful() { add("a", a); }
  Tensor forward(const Tensor& x) override { return b(a(x)); }
};

/// Calls what it is given, and adds nothing.
template <int number>
struct Caller : nn::Module {
  std::function<Tensor(const Tensor&)> call;
  explicit Caller(std::function<Tensor(const Tensor&)> f) : call(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return call(x); }
};

template <int number, class L>
std::string said_of_call(L layer) {
  return written_on_stderr([&] { Caller<number>([&](const Tensor& x) { return layer(x); })(some()); });
}

template <int number>
struct Holder : nn::Module {
  Holder() = default;
  template <class... Layers>
  explicit Holder(const Layers&... layers) {
    (put(layers), ...);
  }
  template <class L>
  void put(const L& layer) {
    add("l" + std::to_string(children().size()), layer);
  }
};

}  // namespace

TEST_CASE("a layer that forward() calls and nobody added is told once") {
  const auto said = written_on_stderr([] {
    Forgetful net;
    net(some());
    net(some());
    CHECK(net.parameters().size() == 2);
  });
  CHECK(said ==
        "clnet: Forgetful: its forward() calls a Linear(4, 4) that was never added to a module, so that nothing trains, saves or "
        "moves it; add(\"name\", it) in the constructor, or freeze() it where that is meant\n");
}

TEST_CASE("a parameter that forward() reads and no module has is told once, unless it is frozen or an optimizer's") {
  struct Replaced : nn::Module {
    nn::Parameter w = add_parameter("w", zeros({4, 2}));
    Tensor forward(const Tensor& x) override { return matmul(x, w); }
  };
  Replaced net;
  const auto said_after = [&](const nn::Parameter& w) {
    return written_on_stderr([&] {
      net.w = w;
      net(some());
      net(some());
    });
  };
  CHECK(written_on_stderr([&] { net(some()); }).empty());
  nn::Parameter frozen(zeros({4, 2})), optimized(zeros({4, 2}));
  frozen.freeze();
  const optim::SGD sgd({{{"w", optimized}}}, {});
  CHECK(said_after(frozen).empty());
  CHECK(said_after(optimized).empty());
  CHECK(
      said_after(nn::Parameter(zeros({4, 2}))) ==
      "clnet: Replaced: its forward() reads a Parameter that was never added to a module, so that nothing trains, saves or moves "
      "it; add_parameter(\"name\", it) in the constructor and set() later, or freeze() it where that is meant\n");
}

TEST_CASE("layers without a name whose modes or statistics matter are told, too") {
  CHECK_THAT(said_of_call<1>(nn::Dropout{0.5}), Contains("calls a Dropout(0.5) that was never added to a module, so that train() "
                                                         "and inference() do not reach it"));
  // Once, although it asks for its mode, too.
  const auto said = said_of_call<2>(nn::BatchNorm1d(4, {.affine = false}));
  CHECK_THAT(said, Contains("calls a BatchNorm1d(4) that was never added"));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK_THAT(said_of_call<3>(nn::Sequential{nn::Linear{4, 2}}), Contains("calls a Sequential that was never added"));
}

TEST_CASE("nothing is told of layers without a name where it does not matter, or is meant") {
  CHECK(said_of_call<4>(nn::ReLU()).empty());
  CHECK(said_of_call<5>(nn::Flatten{}).empty());
  nn::Sequential frozen{nn::Linear{4, 4}, nn::BatchNorm1d{4}};
  frozen.freeze();
  CHECK(said_of_call<6>(frozen).empty());
  nn::Linear elsewhere{4, 4};
  Holder<1> holder(elsewhere);
  CHECK(said_of_call<7>(elsewhere).empty());
  CHECK(written_on_stderr([] { nn::Linear{4, 4}(some()); }).empty());

  CHECK(written_on_stderr([] {
          nn::Sequential net{nn::Linear{4, 4}, nn::Sequential{nn::Dropout{0.5}, nn::Linear{4, 4}}};
          net.replace("1", nn::Sequential{nn::Linear{4, 3}, nn::BatchNorm1d{3}});
          net(some());
          auto copy = nn::clone(net);
          copy(some());
        }).empty());
}

TEST_CASE("nothing is told of a module that calls itself, nor of what a hook calls") {
  struct Chain : nn::ModuleList<nn::Linear> {
    Chain() { append(nn::Linear{4, 4}); }
    Tensor forward(const Tensor& x) override {
      Tensor y = x;
      for (const auto& layer : *this) y = layer(y);
      return y;
    }
  };
  struct First : nn::Sequential {
    First() : nn::Sequential{nn::Linear{4, 4}, relu} {}
    Tensor forward(const Tensor& x) override { return (*this)[0](x) + x; }
  };
  CHECK(written_on_stderr([] { Chain()(some()); }).empty());
  CHECK(written_on_stderr([] { First()(some()); }).empty());
  CHECK(written_on_stderr([] {
          nn::Sequential net{nn::Linear{4, 4}, nn::BatchNorm1d{4}}, teacher{nn::Linear{4, 4}};
          int calls = 0;
          const auto hook = net.on_forward("0", [&](const Tensor&, const Tensor&) {
            teacher(some());
            if (++calls < 3) net(some());
          });
          net(some());
        }).empty());
}

TEST_CASE("the library's own networks and layers add what they call") {
  CHECK(written_on_stderr([] {
          for (const auto& name : models::names()) {
            if (models::is_language_model(name))
              (*models::make(name, {16}, 10))(zeros({2, 16}, Dtype::i32));
            else
              (*models::make(name, {3, 32, 32}, 10))(zeros({2, 3, 32, 32}));
          }
          nn::Transformer transformer(8, 2);
          transformer(zeros({3, 1, 8}), zeros({2, 1, 8}));
          nn::Sequential{nn::MultiheadAttention{4, 2}}(zeros({3, 1, 4}));
        }).empty());
}

TEST_CASE("one layer under several names is told") {
  const auto said = written_on_stderr([] {
    const std::vector<nn::Linear> layers(3, nn::Linear(4, 4));
    const Holder<2> net(layers[0], layers[1], layers[2]);
    CHECK(net.parameter_count() == 20);
  });
  CHECK_THAT(said,
             Contains("clnet: Holder<2>: 'l1' is the same layer as 'l0', with the same parameters, as copies of modules are; "
                      "nn::clone() makes one of its own, and nn::tied() says that it is meant\n"));
  CHECK_THAT(said, Contains("'l2' is the same layer as 'l0'"));

  const nn::Linear twice(4, 4);
  CHECK_THAT(written_on_stderr([&] {
               nn::Sequential{twice, relu, twice}(some());
             }),
             Contains("Sequential: '2' is the same layer as '0'"));
  // In different parts of one model.
  CHECK_THAT(written_on_stderr([&] {
               Holder<3>(nn::Sequential{nn::Linear{4, 4}, twice}, nn::Sequential{twice});
             }),
             Contains("Holder<3>: 'l1.0' is the same layer as 'l0.1'"));
  CHECK_THAT(written_on_stderr([] {
               Holder<4> net(nn::Linear{4, 4}, nn::Linear{4, 4});
               const nn::Linear head(4, 2);
               net.replace("l0", head);
               net.replace("l0", head);
               net.replace("l1", head);
             }),
             Contains("Holder<4>: 'l1' is the same layer as 'l0'") && !Contains("'l0' is the same"));
}

TEST_CASE("nothing is told of layers that are tied, cloned, in two models, or have no parameters") {
  const nn::Linear layer(4, 4);
  CHECK(written_on_stderr([&] {
          const Holder<5> net(layer, nn::tied(layer));
          CHECK(net.parameter_count() == 20);
          CHECK(net.state_dict().size() == 4);
          nn::Sequential{nn::Sequential{layer}, nn::Sequential{layer}};
        }).empty());
  const nn::Sequential block{nn::Linear(4, 4), nn::BatchNorm1d(4)};
  CHECK(written_on_stderr([&] { Holder<6>(block, nn::tied(block)); }).empty());
  const nn::Linear other(4, 4);
  CHECK(written_on_stderr([&] {
          Holder<7>(other, nn::clone(other), nn::clone(other));
          Holder<8>{other};
          const auto activation = nn::ReLU();
          Holder<9>(activation, activation);
        }).empty());
}

TEST_CASE("a module without a forward() is named by its class") {
  struct Headless : nn::Module {};
  Headless headless;
  CHECK_THROWS_WITH(static_cast<nn::Module&>(headless)(some()),
                    "Headless: has no forward() of one tensor (Tensor forward(const Tensor& x) override)");
}
