// L-BFGS against the dense formula that it stands for, and on valleys that descent does not get through.
#include <catch2/catch.hpp>
#include <cmath>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "lib/optim/line_search.h"

using namespace clnet;
using Vector = std::vector<double>;

namespace {

/// Rosenbrock's valley in two parameters of unlike shapes: (1 - x)^2 + 100 (y - x^2)^2, in pairs.
struct Valley : nn::Module {
  nn::Parameter x, y;
  Valley() : x(add_parameter("x", Tensor::from({-1.2F, 0.5F}))), y(add_parameter("y", Tensor::from({1.0F, -0.3F}, {2, 1}))) {}
  Tensor forward(const Tensor& t) override { return t; }
  Tensor loss() const { return sum(square(1.0 - x)) + sum(square(reshape(y, {2}) - square(x))) * 100.0; }
};

/// sum of c_i (p_i - m_i)^4 + (p_i - m_i)^2 / 2 plus a coupling of neighbours: smooth and convex. Each batch moves m.
struct Bowl : nn::Module {
  nn::Parameter p;
  Bowl() : p(add_parameter("p", Tensor::from({2.0F, -1.0F, 0.5F, 1.5F}))) {}
  Tensor forward(const Tensor& t) override { return t; }
  Tensor loss(double batch = 0) const {
    const Tensor away = p.value() - Tensor::from({0.5F, 0.25F, -0.5F, 1.0F}) * (1 + batch);
    const Tensor coupling = slice(p, 0, 0, 3) - slice(p, 0, 1, 4);
    return sum(square(square(away)) * Tensor::from({0.1F, 0.2F, 0.3F, 0.4F})) + sum(square(away)) * 0.5 +
           sum(square(coupling)) * 0.25;
  }
};
double bowl(const Vector& p, double batch, Vector& g) {
  const Vector m{0.5, 0.25, -0.5, 1}, c{0.1, 0.2, 0.3, 0.4};
  double loss = 0;
  g.assign(4, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    const double d = p[i] - m[i] * (1 + batch);
    loss += c[i] * d * d * d * d + d * d / 2;
    g[i] += 4 * c[i] * d * d * d + d;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double d = p[i] - p[i + 1];
    loss += 0.25 * d * d;
    g[i] += 0.5 * d;
    g[i + 1] -= 0.5 * d;
  }
  return loss;
}

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// BFGS with the inverse Hessian as a matrix, made anew from the last pairs and their scaled identity in each iteration.
struct Dense {
  Vector p{2, -1, 0.5, 1.5};
  double rate = 0.5;
  std::size_t history = 3;
  int iterations = 0, evaluations = 0;
  std::vector<std::pair<Vector, Vector>> pairs;
  Vector direction, before;
  double distance = 0;

  Vector newton(const Vector& g) const {
    const std::size_t n = g.size();
    const auto& [last_s, last_y] = pairs.back();
    std::vector<Vector> h(n, Vector(n, 0));
    for (std::size_t i = 0; i < n; ++i) h[i][i] = product(last_s, last_y) / product(last_y, last_y);
    for (const auto& [s, y] : pairs) {
      // (1 - r s y^T) H (1 - r y s^T) + r s s^T
      const double r = 1 / product(s, y);
      Vector hy(n, 0);
      for (std::size_t i = 0; i < n; ++i) hy[i] = product(h[i], y);
      const double yhy = product(y, hy);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) h[i][j] += -r * (s[i] * hy[j] + hy[i] * s[j]) + r * (1 + r * yhy) * s[i] * s[j];
    }
    Vector d(n);
    for (std::size_t i = 0; i < n; ++i) d[i] = -product(h[i], g);
    return d;
  }

  double step(int most, double batch) {
    Vector g;
    const double first = bowl(p, batch, g);
    ++evaluations;
    for (int k = 1; k <= most; ++k) {
      if (++iterations == 1) {
        direction = g;
        for (double& d : direction) d = -d;
        double sum = 0;
        for (const double v : g) sum += std::abs(v);
        distance = std::min(1.0, 1 / sum) * rate;
      } else {
        Vector s = direction, y = g;
        for (std::size_t i = 0; i < s.size(); ++i) s[i] *= distance, y[i] -= before[i];
        if (product(s, y) > 1e-10) pairs.emplace_back(s, y);
        if (pairs.size() > history) pairs.erase(pairs.begin());
        direction = newton(g);
        distance = rate;
      }
      before = g;
      for (std::size_t i = 0; i < p.size(); ++i) p[i] += distance * direction[i];
      if (k < most) bowl(p, batch, g), ++evaluations;
    }
    return first;
  }
};

}  // namespace

TEST_CASE("L-BFGS is BFGS with the last pairs") {
  // Of one loss, and of another one in each step: then a pair joins the gradients of two.
  for (const double other : {0.0, 0.2}) {
    Bowl model;
    const optim::LBFGSOptions options{.learning_rate = 0.5, .max_iter = 4, .history_size = 3};
    optim::LBFGS optimizer(model, options);
    Dense dense;
    for (int k = 0; k < (other > 0 ? 8 : 3); ++k) {
      const double batch = other * (k % 3 - 1);
      INFO("batch " << batch << " of step " << k);
      CHECK(optimizer.step([&] { return model.loss(batch); }) == Approx(dense.step(4, batch)).epsilon(1e-5));
      const auto got = model.p.value().to_vector<double>();
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(dense.p[i]).margin(2e-5));
      CHECK(optimizer.iterations() == dense.iterations);
      CHECK(optimizer.evaluations() == dense.evaluations);
      const auto state = optimizer.state_dict();
      optimizer = optim::LBFGS(model, options);
      optimizer.load_state_dict(state);
      CHECK(optimizer.state_dict().size() == state.size());
    }
    CHECK(optimizer.state_dict().size() == 2 + 5 + 3 * 3);
  }
}

TEST_CASE("L-BFGS with a line search goes through a valley") {
  Valley model;
  optim::LBFGS optimizer(model, {.max_iter = 60, .strong_wolfe = true});
  const double first = optimizer.step([&] { return model.loss(); });
  CHECK(first == Approx(model.loss().item<double>() + first).epsilon(1e-3));
  for (const auto& parameter : {model.x, model.y})
    for (const auto v : parameter.value().to_vector<float>()) CHECK(v == Approx(1).margin(2e-3));
  CHECK(optimizer.iterations() < 60);
  CHECK(optimizer.evaluations() < 120);
}

TEST_CASE("L-BFGS takes no more evaluations than it may") {
  for (const std::int64_t most : {1, 2, 4, 9}) {
    Valley model;
    optim::LBFGS optimizer(model, {.max_iter = 6, .max_eval = most, .strong_wolfe = true});
    std::int64_t calls = 0, before = 0;
    double last = 1e30;
    for (int k = 0; k < 4; ++k, before = calls) {
      const double loss = optimizer.step([&] { return ++calls, model.loss(); });
      CHECK(calls - before <= most + 1);  // one more in a line search
      CHECK(calls == optimizer.evaluations());
      CHECK(loss <= last);
      last = loss;
    }
  }
}

TEST_CASE("L-BFGS climbs as it goes down the other side") {
  for (const bool search : {false, true}) {
    Bowl down, up;
    optim::LBFGS first(down, {.learning_rate = 0.5, .max_iter = 3, .strong_wolfe = search});
    optim::LBFGS second(up, {.learning_rate = 0.5, .max_iter = 3, .strong_wolfe = search, .maximize = true});
    for (int k = 0; k < 3; ++k) CHECK(first.step([&] { return down.loss(); }) == -second.step([&] { return -up.loss(); }));
    CHECK(down.p.value().to_vector<float>() == up.p.value().to_vector<float>());
  }
}

TEST_CASE("L-BFGS needs few plans, however long its history is") {
  Valley model;
  optim::LBFGS optimizer(model, {.max_iter = 8, .tolerance_change = 0, .strong_wolfe = true});
  optimizer.step([&] { return model.loss(); });
  const auto plans = exec::statistics().plans_made;
  optimizer.step([&] { return model.loss(); });
  CHECK(exec::statistics().plans_made == plans);
}

TEST_CASE("L-BFGS leaves frozen parameters and those that the loss does not reach") {
  Valley model;
  model.y.freeze();
  const auto before = model.y.value().to_vector<float>();
  optim::LBFGS optimizer(model, {.strong_wolfe = true});
  optimizer.step([&] { return model.loss(); });
  CHECK(model.y.value().to_vector<float>() == before);
  CHECK(model.x.value().to_vector<float>() != std::vector<float>{-1.2F, 0.5F});
  model.y.freeze(false);
  optim::LBFGS other(model);
  other.step([&] { return sum(square(model.x - 3.0)); });
  CHECK(model.y.value().to_vector<float>() == before);
  CHECK(model.x.value().to_vector<float>()[0] == Approx(3).margin(1e-3));
}

TEST_CASE("L-BFGS changes nothing when the loss throws") {
  Valley model;
  optim::LBFGS optimizer(model, {.strong_wolfe = true});
  const auto x = model.x.value().to_vector<float>();
  int calls = 0;
  CHECK_THROWS_WITH(optimizer.step([&]() -> Tensor {
    if (++calls == 4) throw std::runtime_error("no more");
    return model.loss();
  }),
                    "no more");
  CHECK(model.x.value().to_vector<float>() == x);
  CHECK(optimizer.iterations() == 0);
  CHECK(optimizer.state_dict().size() == 2);
  CHECK_THROWS_WITH(optimizer.step([] { return ones({}); }), Catch::Contains("LBFGS") && Catch::Contains("none of its 2"));
  CHECK_THROWS_WITH(optimizer.step(nullptr), "LBFGS: step() without a loss");
  CHECK_THROWS_WITH(optimizer.load_state_dict({{"n_iter", Tensor::scalar(1, Dtype::i64)}}),
                    Catch::Contains("func_evals is missing; d is missing"));
}

TEST_CASE("a line search ends where Wolfe's conditions hold") {
  // Along each line f(t), from several first distances, too short and too long ones among them.
  const std::vector<std::pair<std::function<double(double)>, std::function<double(double)>>> lines{
      {[](double t) { return (t - 3) * (t - 3); }, [](double t) { return 2 * (t - 3); }},
      {[](double t) { return -t / (t * t + 2); }, [](double t) { return (t * t - 2) / std::pow(t * t + 2, 2); }},
      {[](double t) { return std::pow(t + 0.004, 5) - 2 * std::pow(t + 0.004, 4); },
       [](double t) { return 5 * std::pow(t + 0.004, 4) - 8 * std::pow(t + 0.004, 3); }},
      {[](double t) { return std::cosh(t - 1) + 0.3 * std::sin(8 * t) - 2 * t; },
       [](double t) { return std::sinh(t - 1) + 2.4 * std::cos(8 * t) - 2; }}};
  for (std::size_t k = 0; k < lines.size(); ++k)
    for (const double first : {1e-3, 0.1, 1.0, 10.0}) {
      const auto& [f, slope] = lines[k];
      if (!(slope(0) < 0)) continue;
      int calls = 0;
      const auto go = [&, &f = f, &slope = slope](double t) {
        ++calls;
        return optim::Reached{t, f(t), slope(t), {}};
      };
      INFO("line " << k << " from " << first);
      const auto end = optim::strong_wolfe(go, {0, f(0), slope(0), {}}, first, 1, {});
      CHECK(end.loss <= f(0) + 1e-4 * end.distance * slope(0));
      CHECK(std::abs(end.slope) <= -0.9 * slope(0));
      CHECK(end.loss == f(end.distance));
      CHECK(calls <= 26);
    }
}

TEST_CASE("a line search asks for no fall that a loss in f32 cannot show") {
  int calls = 0;
  const auto go = [&](double t) {
    ++calls;
    return optim::Reached{t, static_cast<float>(1 + 1e-9 * (t - 1) * (t - 1)), 2e-9 * (t - 1), {}};
  };
  CHECK(optim::strong_wolfe(go, {0, 1, -2e-9, {}}, 1, 1, {}).distance == 1);
  CHECK(calls == 1);
}

TEST_CASE("a line search comes back from where the loss is no number") {
  for (const double first : {0.1, 1.0, 1.9, 2.1, 10.0, 1000.0}) {
    int calls = 0;
    const auto go = [&](double t) {
      ++calls;
      const double root = std::sqrt(2 - t);
      return optim::Reached{t, (t - 1) * (t - 1) - 0.1 * root, 2 * (t - 1) + 0.05 / root, {}};
    };
    const auto start = go(0), end = optim::strong_wolfe(go, start, first, 1, {});
    INFO("from " << first);
    CHECK(end.loss <= start.loss + 1e-4 * end.distance * start.slope);
    CHECK(std::abs(end.slope) <= -0.9 * start.slope);
    CHECK(calls <= 27);
    // Where no evaluation is left it stays.
    CHECK(optim::strong_wolfe(go, start, 10, 1, {.most = 0}).distance == 0);
  }
}
