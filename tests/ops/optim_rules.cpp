// Every optimizer against its formula in double precision: values and states over many steps, on one plan.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

/// Parameters of several ranks, among them an empty one and one of one element.
class Mixed : public nn::Module {
 public:
  explicit Mixed(const std::vector<Shape>& shapes, Dtype dtype = Dtype::f32) {
    int which = 0;
    for (const auto& shape : shapes) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < shape.numel(); ++i)
        values.push_back(std::sin(static_cast<float>(i) * 0.7F + static_cast<float>(which)) + 0.05F);
      add_parameter("p" + std::to_string(which++), cast(Tensor::from(values, shape), dtype).detach());
    }
  }
  Tensor forward(const Tensor& x) override { return x; }
};

const std::vector<Shape> all_ranks{{5, 3}, {7}, {1}, {0}, {2, 3, 4}, {300}};
const std::vector<Shape> matrices{{5, 3}, {3, 8}, {4, 4}};

using Values = std::vector<double>;
/// A parameter as the formulas see it.
struct Element {
  Shape shape;
  Values p;
  std::map<std::string, Values> states;
  Values& state(const std::string& name, double initial = 0) { return states.try_emplace(name, p.size(), initial).first->second; }
};
/// One step of a whole parameter; `t` from 1.
using Formula = std::function<void(Element& e, const Values& g, int t)>;
using Make = std::function<optim::Optimizer(const nn::Module&)>;

struct Checked {
  double tolerance = 1e-5;
  std::vector<Shape> shapes = all_ranks;
  std::uint64_t plans = 1;    ///< how many the steps may need
  std::size_t restart = 7;    ///< the step after which a new optimizer takes the state over
  std::uint64_t kernels = 8;  ///< at most, per step: five parameters with elements
};

double gradient(std::size_t parameter, std::size_t i, int t) {
  return std::cos(static_cast<double>(i) * 1.3 + 3.0 * static_cast<double>(parameter) + 0.9 * t) + 0.1;
}

void require_near(const Tensor& got, const Values& want, double tolerance, const std::string& what) {
  const auto values = got.to_vector<float>();
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i] - want[i]) <= tolerance * (1 + std::abs(want[i])))) {
      INFO(what << ", element " << i);
      CHECK(values[i] == Approx(want[i]));
      return;
    }
}

void check(const Make& make, const Formula& formula, const Checked& options = {}) {
  Mixed model(options.shapes);
  auto optimizer = make(model);
  std::vector<Element> elements;
  for (const auto& [name, parameter] : model.parameters()) {
    const auto now = parameter.value().to_vector<float>();
    elements.push_back({parameter.value().shape(), Values(now.begin(), now.end()), {}});
  }
  const auto plans = exec::statistics().plans_made;
  for (int t = 1; t <= 14; ++t) {
    std::vector<Tensor> gradients;
    for (std::size_t k = 0; k < elements.size(); ++k) {
      std::vector<float> g;
      for (std::size_t i = 0; i < elements[k].p.size(); ++i) g.push_back(static_cast<float>(gradient(k, i, t)));
      // Computed, as those of a loss are; not a number that the host knows where it has one element.
      gradients.push_back(nn::Parameter(Tensor::from(g, elements[k].shape)));
      if (!g.empty()) formula(elements[k], Values(g.begin(), g.end()), t);
    }
    const auto kernels = exec::statistics().kernels;
    optimizer.apply(gradients);
    CHECK(exec::statistics().kernels - kernels <= options.kernels);
    for (std::size_t k = 0; k < elements.size(); ++k)
      require_near(model.parameters()[k].second, elements[k].p, options.tolerance,
                   "step " + std::to_string(t) + ", parameter " + std::to_string(k));
    if (t == static_cast<int>(options.restart)) {
      const auto state = optimizer.state_dict();
      const auto made = exec::statistics().plans_made;
      CHECK(made - plans <= options.plans);
      optimizer = make(model);
      optimizer.load_state_dict(state);
      CHECK(optimizer.steps() == t);
    }
  }
  CHECK(exec::statistics().plans_made - plans <= options.plans);
  const auto state = optimizer.state_dict();
  std::size_t states = 3;  // the step and two rates
  for (std::size_t k = 0; k < elements.size(); ++k)
    for (const auto& [name, want] : elements[k].states) {
      const auto full_name = "p" + std::to_string(k) + "." + name;
      const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == full_name; });
      INFO(full_name);
      REQUIRE(found != state.end());
      require_near(found->second, want, options.tolerance, full_name);
      ++states;
    }
  for (std::size_t k = 0; k < elements.size(); ++k)
    if (elements[k].p.empty())
      states += static_cast<std::size_t>(std::count_if(
          state.begin(), state.end(), [&](const auto& entry) { return entry.first.starts_with("p" + std::to_string(k) + "."); }));
  CHECK(state.size() == states);
}

/// A formula of each element for itself.
using Single = std::function<void(double& p, double g, const std::function<double&(const char* name)>& state, int t)>;
Formula each(const Single& single, const std::map<std::string, double>& initial = {}) {
  return [=](Element& e, const Values& g, int t) {
    for (std::size_t i = 0; i < g.size(); ++i)
      single(
          e.p[i], g[i],
          [&](const char* name) -> double& {
            const auto found = initial.find(name);
            return e.state(name, found == initial.end() ? 0 : found->second)[i];
          },
          t);
  };
}

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double length(const Values& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

/// Both directions, with and without weight decay; the rate is 0.01 unless a formula says otherwise.
template <class Options, class Test>
void variants(const Test& test) {
  for (const bool maximize : {false, true})
    for (const double decay : {0.0, 0.1}) {
      Options options;
      options.learning_rate = 0.01;
      options.maximize = maximize;
      options.weight_decay = decay;
      INFO("maximize " << maximize << ", weight decay " << decay);
      test(options);
    }
}

}  // namespace

TEST_CASE("SGD with dampening, and uphill") {
  for (const double momentum : {0.0, 0.9})
    for (const double dampening : {0.0, 0.3})
      variants<optim::SGDOptions>([&](optim::SGDOptions o) {
        o.momentum = momentum;
        o.dampening = dampening;
        check([=](const auto& m) { return optim::SGD(m, o); }, each([=](double& p, double g, const auto& state, int t) {
                if (o.maximize) g = -g;
                g += o.weight_decay * p;
                if (momentum > 0) {
                  double& buffer = state("momentum_buffer");
                  buffer = t == 1 ? g : momentum * buffer + (1 - dampening) * g;
                  g = buffer;
                }
                p -= o.learning_rate * g;
              }));
      });
}

TEST_CASE("Adam and AdamW with the largest mean square") {
  for (const bool amsgrad : {false, true})
    for (const bool decoupled : {false, true})
      variants<optim::AdamOptions>([&](optim::AdamOptions o) {
        o.amsgrad = amsgrad;
        o.beta2 = 0.9;
        const auto make = [=](const nn::Module& m) -> optim::Optimizer {
          if (decoupled)
            return optim::AdamW(m, {.learning_rate = o.learning_rate,
                                    .beta1 = o.beta1,
                                    .beta2 = o.beta2,
                                    .eps = o.eps,
                                    .weight_decay = o.weight_decay,
                                    .amsgrad = o.amsgrad,
                                    .maximize = o.maximize});
          return optim::Adam(m, o);
        };
        check(make, each([=](double& p, double g, const auto& state, int t) {
                if (o.maximize) g = -g;
                if (decoupled)
                  p *= 1 - o.learning_rate * o.weight_decay;
                else
                  g += o.weight_decay * p;
                double &m = state("exp_avg"), &v = state("exp_avg_sq");
                m = o.beta1 * m + (1 - o.beta1) * g;
                v = o.beta2 * v + (1 - o.beta2) * g * g;
                double square = v;
                if (amsgrad) {
                  double& largest = state("max_exp_avg_sq");
                  largest = std::max(largest, v);
                  square = largest;
                }
                const double mean = m / (1 - std::pow(o.beta1, t));
                p -= o.learning_rate * mean / (std::sqrt(square / (1 - std::pow(o.beta2, t))) + o.eps);
              }));
      });
}

TEST_CASE("NAdam") {
  for (const bool decoupled : {false, true})
    variants<optim::NAdamOptions>([&](optim::NAdamOptions o) {
      o.decoupled = decoupled;
      o.momentum_decay = 0.05;
      const auto mu = [o](int k) { return o.beta1 * (1 - 0.5 * std::pow(0.96, k * o.momentum_decay)); };
      const auto product_of = [=](int t) {
        double product = 1;
        for (int k = 1; k <= t; ++k) product *= mu(k);
        return product;
      };
      const auto single = each([=](double& p, double g, const auto& state, int t) {
        if (o.maximize) g = -g;
        if (decoupled)
          p *= 1 - o.learning_rate * o.weight_decay;
        else
          g += o.weight_decay * p;
        const double product = product_of(t);
        double &m = state("exp_avg"), &v = state("exp_avg_sq");
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        const double mean = mu(t + 1) * m / (1 - product * mu(t + 1)) + (1 - mu(t)) * g / (1 - product);
        p -= o.learning_rate * mean / (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.eps);
      });
      check([=](const auto& m) { return optim::NAdam(m, o); },
            [=](Element& e, const Values& g, int t) {
              single(e, g, t);
              e.states["mu_product"] = {product_of(t)};
            });
    });
}

TEST_CASE("RAdam") {
  for (const bool decoupled : {false, true})
    variants<optim::RAdamOptions>([&](optim::RAdamOptions o) {
      o.decoupled = decoupled;
      check([=](const auto& m) { return optim::RAdam(m, o); }, each([=](double& p, double g, const auto& state, int t) {
              if (o.maximize) g = -g;
              if (decoupled)
                p *= 1 - o.learning_rate * o.weight_decay;
              else
                g += o.weight_decay * p;
              double &m = state("exp_avg"), &v = state("exp_avg_sq");
              m = o.beta1 * m + (1 - o.beta1) * g;
              v = o.beta2 * v + (1 - o.beta2) * g * g;
              const double mean = m / (1 - std::pow(o.beta1, t)), past = std::pow(o.beta2, t);
              const double infinite = 2 / (1 - o.beta2) - 1, rho = infinite - 2 * t * past / (1 - past);
              if (rho > 5) {
                const double r = std::sqrt((rho - 4) * (rho - 2) * infinite / ((infinite - 4) * (infinite - 2) * rho));
                p -= o.learning_rate * mean * r * std::sqrt(1 - past) / (std::sqrt(v) + o.eps);
              } else {
                p -= o.learning_rate * mean;
              }
            }),
            {.plans = 2});
    });
}

TEST_CASE("Adamax") {
  variants<optim::AdamaxOptions>([](const optim::AdamaxOptions& o) {
    check([=](const auto& m) { return optim::Adamax(m, o); }, each([=](double& p, double g, const auto& state, int t) {
            g = (o.maximize ? -g : g) + o.weight_decay * p;
            double &m = state("exp_avg"), &u = state("exp_inf");
            m = o.beta1 * m + (1 - o.beta1) * g;
            u = std::max(o.beta2 * u, std::abs(g) + o.eps);
            p -= o.learning_rate / (1 - std::pow(o.beta1, t)) * m / u;
          }));
  });
}

TEST_CASE("Lion") {
  variants<optim::LionOptions>([](const optim::LionOptions& o) {
    check([=](const auto& m) { return optim::Lion(m, o); }, each([=](double& p, double g, const auto& state, int) {
            if (o.maximize) g = -g;
            p *= 1 - o.learning_rate * o.weight_decay;
            double& m = state("exp_avg");
            p -= o.learning_rate * sign_of(o.beta1 * m + (1 - o.beta1) * g);
            m = o.beta2 * m + (1 - o.beta2) * g;
          }));
  });
}

TEST_CASE("Adagrad") {
  for (const double initial : {0.0, 0.5})
    variants<optim::AdagradOptions>([&](optim::AdagradOptions o) {
      o.lr_decay = 0.1;
      o.initial_accumulator_value = initial;
      check([=](const auto& m) { return optim::Adagrad(m, o); }, each(
                                                                     [=](double& p, double g, const auto& state, int t) {
                                                                       g = (o.maximize ? -g : g) + o.weight_decay * p;
                                                                       double& sum = state("sum");
                                                                       sum += g * g;
                                                                       p -= o.learning_rate / (1 + (t - 1) * o.lr_decay) * g /
                                                                            (std::sqrt(sum) + o.eps);
                                                                     },
                                                                     {{"sum", initial}}));
    });
}

TEST_CASE("Adadelta") {
  variants<optim::AdadeltaOptions>([](optim::AdadeltaOptions o) {
    o.learning_rate = 1;
    check([=](const auto& m) { return optim::Adadelta(m, o); }, each([=](double& p, double g, const auto& state, int) {
            g = (o.maximize ? -g : g) + o.weight_decay * p;
            double &v = state("square_avg"), &u = state("acc_delta");
            v = o.rho * v + (1 - o.rho) * g * g;
            const double move = std::sqrt(u + o.eps) / std::sqrt(v + o.eps) * g;
            u = o.rho * u + (1 - o.rho) * move * move;
            p -= o.learning_rate * move;
          }));
  });
}

TEST_CASE("RMSprop by the standard deviation, and uphill") {
  for (const bool centered : {false, true})
    for (const double momentum : {0.0, 0.9})
      variants<optim::RMSpropOptions>([&](optim::RMSpropOptions o) {
        o.centered = centered;
        o.momentum = momentum;
        o.alpha = 0.9;
        check([=](const auto& m) { return optim::RMSprop(m, o); }, each([=](double& p, double g, const auto& state, int) {
                g = (o.maximize ? -g : g) + o.weight_decay * p;
                double& v = state("square_avg");
                v = o.alpha * v + (1 - o.alpha) * g * g;
                double square = v;
                if (centered) {
                  double& mean = state("grad_avg");
                  mean = o.alpha * mean + (1 - o.alpha) * g;
                  square -= mean * mean;
                }
                double move = g / (std::sqrt(square) + o.eps);
                if (momentum > 0) {
                  double& buffer = state("momentum_buffer");
                  buffer = momentum * buffer + move;
                  move = buffer;
                }
                p -= o.learning_rate * move;
              }));
      });
}

TEST_CASE("RMSprop by the standard deviation bears gradients that are always the same") {
  // What is left of the mean square less the mean's is rounding, below 0, too.
  for (const double momentum : {0.0, 0.9}) {
    Mixed model(std::vector<Shape>{{64}});
    optim::RMSprop optimizer(model, {.learning_rate = 1e-3, .alpha = 0.5, .momentum = momentum, .centered = true});
    std::vector<float> slopes;
    for (std::size_t i = 0; i < 64; ++i) slopes.push_back(static_cast<float>(gradient(0, i, 0)));
    const auto before = model.parameters()[0].second.value().to_vector<float>();
    for (int t = 0; t < 60; ++t) optimizer.apply({Tensor::from(slopes)});
    const auto after = model.parameters()[0].second.value().to_vector<float>();
    for (std::size_t i = 0; i < 64; ++i) CHECK((slopes[i] > 0 ? after[i] < before[i] : after[i] > before[i]));
  }
}

TEST_CASE("Rprop") {
  for (const bool maximize : {false, true}) {
    const optim::RpropOptions o{.learning_rate = 0.05, .min_step = 0.02, .max_step = 0.1, .maximize = maximize};
    check([=](const auto& m) { return optim::Rprop(m, o); }, each(
                                                                 [=](double& p, double g, const auto& state, int) {
                                                                   if (maximize) g = -g;
                                                                   double &before = state("prev"), &size = state("step_size");
                                                                   if (g * before > 0) size *= o.grow;
                                                                   if (g * before < 0) size *= o.shrink;
                                                                   size = std::min(std::max(size, o.min_step), o.max_step);
                                                                   if (g * before < 0) g = 0;
                                                                   p -= sign_of(g) * size;
                                                                   before = g;
                                                                 },
                                                                 {{"step_size", 0.05}}));
  }
}

TEST_CASE("ASGD") {
  variants<optim::ASGDOptions>([](optim::ASGDOptions o) {
    o.lambda = 0.1;
    o.t0 = 5;
    check([=](const auto& m) { return optim::ASGD(m, o); }, each([=](double& p, double g, const auto& state, int t) {
            g = (o.maximize ? -g : g) + o.weight_decay * p;
            // As PyTorch keeps them: what the step before has left.
            const double eta =
                t == 1 ? o.learning_rate : o.learning_rate / std::pow(1 + o.lambda * o.learning_rate * (t - 1), o.alpha);
            const double mu = t == 1 ? 1 : 1 / std::max(1.0, t - 1 - o.t0);
            p = p * (1 - o.lambda * eta) - eta * g;
            double& average = state("ax");
            average = mu == 1 ? p : average + (p - average) * mu;
          }));
  });
}

TEST_CASE("LARS") {
  for (const bool nesterov : {false, true})
    variants<optim::LARSOptions>([&](optim::LARSOptions o) {
      o.learning_rate = 2;
      o.trust = 0.01;
      o.nesterov = nesterov;
      check([=](const auto& m) { return optim::LARS(m, o); },
            [=](Element& e, const Values& g, int) {
              const double size = length(e.p), steepness = length(g);
              const double scale = o.trust * size / (steepness + o.weight_decay * size + o.eps);
              auto& buffer = e.state("momentum_buffer");
              for (std::size_t i = 0; i < g.size(); ++i) {
                const double slope = scale * ((o.maximize ? -g[i] : g[i]) + o.weight_decay * e.p[i]);
                buffer[i] = o.momentum * buffer[i] + slope;
                e.p[i] -= o.learning_rate * (nesterov ? slope + o.momentum * buffer[i] : buffer[i]);
              }
            },
            {.kernels = 20});
    });
}

TEST_CASE("LAMB") {
  variants<optim::LAMBOptions>([](const optim::LAMBOptions& o) {
    check([=](const auto& m) { return optim::LAMB(m, o); },
          [=](Element& e, const Values& g, int t) {
            auto &m = e.state("exp_avg"), &v = e.state("exp_avg_sq");
            Values move(g.size());
            for (std::size_t i = 0; i < g.size(); ++i) {
              const double slope = o.maximize ? -g[i] : g[i];
              m[i] = o.beta1 * m[i] + (1 - o.beta1) * slope;
              v[i] = o.beta2 * v[i] + (1 - o.beta2) * slope * slope;
              move[i] = m[i] / (1 - std::pow(o.beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(o.beta2, t))) + o.eps) +
                        o.weight_decay * e.p[i];
            }
            const double trust = length(e.p) / length(move);
            for (std::size_t i = 0; i < g.size(); ++i) e.p[i] -= o.learning_rate * trust * move[i];
          },
          {.kernels = 20});
  });
}

TEST_CASE("a parameter or gradient of zeros moves as if there were no trust") {
  struct Zero : nn::Module {
    nn::Parameter p = add_parameter("p", zeros({3})), q = add_parameter("q", ones({3}));
    Tensor forward(const Tensor& x) override { return x; }
  };
  Zero a, b;
  optim::LARS lars(a, {.learning_rate = 0.5, .momentum = 0});
  lars.apply({ones({3}), zeros({3})});
  CHECK(a.p.value().to_vector<float>() == std::vector<float>(3, -0.5F));
  CHECK(a.q.value().to_vector<float>() == std::vector<float>(3, 1.0F));
  optim::LAMB lamb(b, {.learning_rate = 0.5, .eps = 0});
  lamb.apply({ones({3}), ones({3}) * 2.0});
  CHECK(b.p.value().to_vector<float>()[0] == Approx(-0.5));
  CHECK(b.q.value().to_vector<float>()[0] == Approx(0.5));
}

TEST_CASE("Adafactor") {
  variants<optim::AdafactorOptions>([](optim::AdafactorOptions o) {
    o.learning_rate = 0.3;  // the step's number bounds it at times
    check([=](const auto& m) { return optim::Adafactor(m, o); },
          [=](Element& e, const Values& g, int t) {
            const double eps1 = std::pow(2.0, -23), now = std::pow(t, o.beta2_decay);
            const double count = static_cast<double>(g.size());
            const double alpha = std::max(o.eps2, length(e.p) / std::sqrt(count)) * std::min(o.learning_rate, 1 / std::sqrt(t));
            for (double& p : e.p) p *= 1 - o.learning_rate * o.weight_decay;
            Values variance(g.size());
            if (e.shape.rank() < 2) {
              auto& v = e.state("variance");
              for (std::size_t i = 0; i < g.size(); ++i) variance[i] = v[i] += now * (g[i] * g[i] - v[i]);
            } else {
              const auto rows = static_cast<std::size_t>(e.shape[-2]), columns = static_cast<std::size_t>(e.shape[-1]);
              const auto batches = g.size() / (rows * columns);
              auto& row = e.states.try_emplace("row_var", batches * rows, 0.0).first->second;
              auto& column = e.states.try_emplace("col_var", batches * columns, 0.0).first->second;
              for (std::size_t b = 0; b < batches; ++b) {
                const auto at = [&](std::size_t r, std::size_t c) { return (b * rows + r) * columns + c; };
                double mean_row = 0;
                for (std::size_t r = 0; r < rows; ++r) {
                  double mean = 0;
                  for (std::size_t c = 0; c < columns; ++c) mean += g[at(r, c)] * g[at(r, c)] / static_cast<double>(columns);
                  row[b * rows + r] += now * (mean - row[b * rows + r]);
                  mean_row += row[b * rows + r] / static_cast<double>(rows);
                }
                for (std::size_t c = 0; c < columns; ++c) {
                  double mean = 0;
                  for (std::size_t r = 0; r < rows; ++r) mean += g[at(r, c)] * g[at(r, c)] / static_cast<double>(rows);
                  column[b * columns + c] += now * (mean - column[b * columns + c]);
                }
                for (std::size_t r = 0; r < rows; ++r)
                  for (std::size_t c = 0; c < columns; ++c)
                    variance[at(r, c)] = row[b * rows + r] * column[b * columns + c] / std::max(mean_row, eps1);
              }
            }
            Values move(g.size());
            for (std::size_t i = 0; i < g.size(); ++i)
              move[i] = (o.maximize ? -g[i] : g[i]) / std::sqrt(std::max(variance[i], eps1 * eps1));
            const double bound = std::max(1.0, length(move) / (std::sqrt(count) * o.d));
            for (std::size_t i = 0; i < g.size(); ++i) e.p[i] -= alpha / bound * move[i];
          },
          {.kernels = 40});
  });
}

TEST_CASE("Muon") {
  for (const bool nesterov : {false, true})
    for (const auto& [match, unclamped] : {std::pair{false, false}, {true, false}, {false, true}}) {
      optim::MuonOptions o{.learning_rate = 0.02, .nesterov = nesterov, .match_adam = match, .unclamped = unclamped};
      check([=](const auto& m) { return optim::Muon(m, o); },
            [o](Element& e, const Values& g, int) {
              const auto rows = static_cast<std::size_t>(e.shape[0]), columns = static_cast<std::size_t>(e.shape[1]);
              auto& buffer = e.state("momentum_buffer");
              Values x(g.size());
              for (std::size_t i = 0; i < g.size(); ++i) {
                buffer[i] += (1 - o.momentum) * (g[i] - buffer[i]);
                x[i] = o.nesterov ? g[i] + o.momentum * (buffer[i] - g[i]) : buffer[i];
              }
              const double size = std::max(length(x), o.eps);
              for (double& v : x) v /= size;
              // x <- a x + (b s + c s^2) x with s = x x^T: the same on either side.
              for (int round = 0; round < 5; ++round) {
                Values s(rows * rows, 0), w(rows * rows, 0), next(x.size(), 0);
                for (std::size_t i = 0; i < rows; ++i)
                  for (std::size_t j = 0; j < rows; ++j)
                    for (std::size_t k = 0; k < columns; ++k) s[i * rows + j] += x[i * columns + k] * x[j * columns + k];
                for (std::size_t i = 0; i < rows; ++i)
                  for (std::size_t j = 0; j < rows; ++j) {
                    w[i * rows + j] += o.b * s[i * rows + j];
                    for (std::size_t k = 0; k < rows; ++k) w[i * rows + j] += o.c * s[i * rows + k] * s[k * rows + j];
                  }
                for (std::size_t i = 0; i < rows; ++i)
                  for (std::size_t j = 0; j < columns; ++j) {
                    next[i * columns + j] = o.a * x[i * columns + j];
                    for (std::size_t k = 0; k < rows; ++k) next[i * columns + j] += w[i * rows + k] * x[k * columns + j];
                  }
                x = next;
              }
              const double ratio = static_cast<double>(rows) / static_cast<double>(columns);
              const double share = o.match_adam ? 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)))
                                                : std::sqrt(o.unclamped ? ratio : std::max(1.0, ratio));
              for (std::size_t i = 0; i < g.size(); ++i)
                e.p[i] = e.p[i] * (1 - o.learning_rate * o.weight_decay) - o.learning_rate * share * x[i];
            },
            {.tolerance = 2e-4, .shapes = matrices, .kernels = 90});
    }
  Mixed vector(std::vector<Shape>{{4}});
  CHECK_THROWS_WITH(optim::Muon(Mixed(matrices), {.match_adam = true, .unclamped = true}), Catch::Contains("unclamped"));
  CHECK_THROWS_WITH(optim::Muon(vector), Catch::Contains("Muon") && Catch::Contains("[4]"));
}

TEST_CASE("half precision parameters have their states in f32") {
  const std::vector<std::function<optim::Optimizer(const nn::Module&)>> makers{
      [](const auto& m) { return optim::SGD(m, {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5}); },
      [](const auto& m) { return optim::Adam(m, {.learning_rate = 0.1}); },
      [](const auto& m) { return optim::Adam(m, {.learning_rate = 0.1, .amsgrad = true}); },
      [](const auto& m) { return optim::NAdam(m, {.learning_rate = 0.1}); },
      [](const auto& m) { return optim::Rprop(m); },
      [](const auto& m) { return optim::LAMB(m, {.learning_rate = 0.1}); },
      [](const auto& m) { return optim::Adafactor(m, {.learning_rate = 0.1}); },
      [](const auto& m) { return optim::Muon(m, {.learning_rate = 0.1}); },
  };
  for (const auto dtype : {Dtype::f16, Dtype::bf16})
    for (const auto& make : makers) {
      Mixed half(matrices, dtype), single(matrices);
      auto of_half = make(half), of_single = make(single);
      for (int t = 1; t <= 3; ++t) {
        std::vector<Tensor> gradients, same;
        for (std::size_t k = 0; k < matrices.size(); ++k) {
          std::vector<float> g;
          for (std::int64_t i = 0; i < matrices[k].numel(); ++i)
            g.push_back(static_cast<float>(gradient(k, static_cast<std::size_t>(i), t)));
          gradients.push_back(cast(Tensor::from(g, matrices[k]), dtype));
          same.push_back(cast(gradients.back(), Dtype::f32));
        }
        of_half.apply(gradients);
        of_single.apply(same);
      }
      for (const auto& [name, tensor] : of_half.state_dict())
        if (name != "step") CHECK(tensor.dtype() == Dtype::f32);
      for (std::size_t k = 0; k < matrices.size(); ++k) {
        const auto value = half.parameters()[k].second.value();
        CHECK(value.dtype() == dtype);
        const auto got = value.to_vector<double>(), want = single.parameters()[k].second.value().to_vector<double>();
        // Three roundings of the value, and the first one's; Muon's iteration makes more of what the decay does.
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(dtype == Dtype::f16 ? 4e-3 : 4e-2));
      }
    }
}
